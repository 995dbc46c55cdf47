r"""Differential privacy of the Gaussian mechanism by which agents hide what they send.

Everybody may see all vectors. Two data sets are neighbors if all points of one agent are replaced
by any others. The clipped vectors of neighbors are at most 2 C apart, whatever was sent before, so
each vector is a Gaussian mechanism of sensitivity 2 C. T vectors, each of which may depend on the
earlier ones, are as private as one mechanism with mu = 2 C sqrt(T) / sigma (Dong, Roth and Su,
"Gaussian differential privacy", 2019, arXiv:1905.02383, theorem 2.7 and corollary 3.3), which is
(epsilon, delta)-differentially private if and only if

.. math::
    \Phi\Bigl( \frac{\mu}{2} - \frac{\epsilon}{\mu} \Bigr)
    - e^\epsilon\, \Phi\Bigl( -\frac{\mu}{2} - \frac{\epsilon}{\mu} \Bigr) \le \delta

(Balle and Wang, "Improving the Gaussian mechanism for differential privacy", 2018,
arXiv:1805.06530, theorem 8). Only vectors that are sent are private. An agent's draws are not if
they are published, and a second vector that a step sends counts as a further release.
"""

from collections.abc import Callable, Iterator

import numpy as np

from concord.libraries import special
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, yields


@yields("epsilon", network="privacy", labels={"epsilon": Label("epsilon of what agents have sent")})
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the epsilon of each agent for the stated delta, and the largest of the network.

    Each vector that an agent sends to all its neighbors counts once (``networks.privacy``). Where
    chains differ in how often an agent has sent, that of the chain in which it has most often.
    """
    hidden = m.network.conditions.privacy
    assert hidden is not None
    sent = m.trace["broadcasts"]
    most = sent if sent.ndim == 2 else sent.max(axis=0)
    epsilons = {
        count: epsilon(2 * hidden.clip * np.sqrt(count) / hidden.sigma, hidden.delta)
        for count in np.unique(most).tolist()
    }
    agents = [*m.agents, *(["network"] if len(m.agents) == m.problem.agents else [])]
    for k, counts in zip(m.trace.draw, most.tolist(), strict=True):
        values = [epsilons[count] for count in counts]
        shown = [*values, max(values)][: len(agents)]
        yield from series([k], agents, {"epsilon": shown}, chance=False)


def epsilon(mu: float, delta: float) -> float:
    """Return the least epsilon at which a Gaussian mechanism is (epsilon, delta)-private.

    mu: its sensitivity divided by the standard deviation of its noise.
    """
    if not mu or _least_delta(0.0, mu) <= delta:
        return 0.0
    most = mu**2 / 2 + mu * np.sqrt(2 * np.log(1 / delta))  # the bound by concentrated privacy
    return _find_root(lambda value: _least_delta(value, mu) - delta, 0.0, most)


def sigma(epsilon: float, delta: float, clip: float, releases: int) -> float:
    """Return the least standard deviation of noise that makes vectors (epsilon, delta)-private.

    epsilon, delta: the wanted guarantee, both positive. clip: the norm C to which a vector is
    clipped. releases: the number of vectors that an agent sends.
    """
    log = np.log(1 / delta)
    # Below the least mu that concentrated privacy allows, and above what any allows.
    least = np.sqrt(2) * (np.sqrt(log + epsilon) - np.sqrt(log))
    most = 2 * least
    while _least_delta(epsilon, most) < delta:
        most *= 2
    mu = _find_root(lambda value: _least_delta(epsilon, value) - delta, least, most)
    return float(2 * clip * np.sqrt(releases) / mu)


def _least_delta(epsilon: float, mu: float) -> float:
    """Return the least delta at which the mechanism of parameter mu is (epsilon, delta)-private."""
    far = np.exp(epsilon + special().log_ndtr(-mu / 2 - epsilon / mu))
    return float(special().ndtr(mu / 2 - epsilon / mu) - far)


def _find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return a root of a continuous function that changes sign between ``low`` and ``high``."""
    from scipy.optimize import brentq  # not at the start of every job

    return float(brentq(function, low, high, xtol=1e-12, rtol=1e-12))
