r"""How fast the agents of a network with decaying steps agree.

Theorem 1 of parayil2020 bounds the squared distance of the agents to their average, (25):
:math:`E \lVert \tilde w_k \rVert^2 = O((k + 1)^{-(\delta_2 - 2 \delta_1)})`. Where the consensus
step outweighs the gradient step the error follows their ratio, of order
:math:`k^{-(\delta_2 - \delta_1)}`, which decays faster than the bound.
"""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import REPLICATES, mean_interval
from concord.samplers.d_ula import DULA
from concord.samplers.gossip_ula import GossipULA
from concord_studies.contracts import Label
from concord_studies.intervals import percentile_interval
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields

BINS = 24
FITTED = 0.01


@yields(
    (
        "consensus_binned",
        *("consensus_exponent", "consensus_exponent_bound", "consensus_exponent_ratio"),
    ),
    records=("consensus_error",),
    labels={
        "consensus_exponent": Label(head="measured exponent"),
        "consensus_exponent_bound": Label(head="delta_2 - 2 delta_1"),
        "consensus_exponent_ratio": Label(head="delta_2 - delta_1"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield consensus_binned over time and consensus_exponent, with the bound's exponent.

    consensus_binned: the mean of sum_i |x_i - average|^2 / N over the recorded iterations of a bin
    of equal width in log k, and over chains with an interval. consensus_exponent: minus the
    least-squares slope of its logarithm over log(k + 1), for bins beyond 1 % of the iterations,
    with a bootstrap interval over chains. consensus_exponent_bound and _ratio: delta_2 - 2 delta_1
    and delta_2 - delta_1.
    """
    if not isinstance(m.sampler, (DULA, GossipULA)):
        raise unmet_need("consensus_rate", "a sampler with the schedules step_size and fusion")
    recorded, errors = m.trace.draw, m.trace["consensus_error"]
    late = recorded > 0
    if not late.any():
        raise unmet_need("consensus_rate", "a recorded iteration besides 0")
    recorded, errors = recorded[late], errors[:, late]
    edges = np.geomspace(recorded[0], recorded[-1] + 1, BINS + 1)
    place = np.clip(np.searchsorted(edges, recorded, side="right") - 1, 0, BINS - 1)
    bins = np.unique(place)
    centers = np.array([np.exp(np.log(recorded[place == b] + 1.0).mean()) for b in bins])
    binned = np.stack([errors[:, place == b].mean(axis=1) for b in bins], axis=1)
    means = {"consensus_binned": mean_interval(binned)}
    yield from series([round(k) for k in centers], "network", means)
    fitted = centers >= FITTED * recorded[-1]
    last, chains = int(recorded[-1]), len(errors)
    if fitted.sum() > 1:
        log_k = np.log(centers[fitted])
        chosen = m.stream("consensus_rate").integers(0, chains, size=(REPLICATES, chains))
        slopes = np.array([_fit_slope(log_k, binned[pick][:, fitted]) for pick in chosen])
        value = _fit_slope(log_k, binned[:, fitted])
        yield Row(last, "network", "consensus_exponent", -value, *percentile_interval(-slopes))
    step, fusion = m.sampler.step_size.decay, m.sampler.fusion.decay
    exponents = {
        "consensus_exponent_bound": step - 2 * fusion,
        "consensus_exponent_ratio": step - fusion,
    }
    yield from series([last], "network", exponents, chance=False)


def _fit_slope(log_k: np.ndarray, errors: np.ndarray) -> float:
    """Return the slope of log mean error against log k; nan where an error is not positive."""
    with np.errstate(divide="ignore"):
        logs = np.log(errors.mean(axis=0))
    return float(np.polyfit(log_k, logs, 1)[0]) if np.isfinite(logs).all() else float("nan")
