r"""Event triggers: an agent sends its vector only where that has changed enough since last.

.. math::
    \hat w_a \leftarrow w_a \quad \text{if} \quad
    \lVert w_a - \hat w_a \rVert^2 > \frac{\mu}{(\tau_a + 1)^\delta}

with :math:`\hat w_a` the vector that agent a has sent last, to all its neighbors, and tau_a how
often it was active before. An agent that has sent nothing yet sends when it is first active.

Source: bhar2023, eqs. (7)-(9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from concord.errors import ConcordError
from concord.networks.network import Network

LONG_RUN = 5000  # iterations by which differences of rounding may have grown to those of samples


class Trigger(NamedTuple):
    """A trigger with threshold mu and exponent delta.

    knows_start: whether neighbors know where an agent starts; if not, they know nothing at first.
    """

    threshold: float
    decay: float
    knows_start: bool

    def start(self, x0: np.ndarray) -> np.ndarray:
        """Return the vectors that neighbors know of each agent at the start, (chains, agents, dim).

        x0: the agents' first positions, of the same shape.
        """
        return x0 if self.knows_start else np.full_like(x0, np.inf)

    def send(
        self, network: Network, agents: np.ndarray, w: np.ndarray, sent: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Send the vectors of active agents that have changed enough, and count them.

        agents: numbers of the active agents, (chains, few). w: their vectors, (chains, few, dim).
        sent: what all agents have sent last, (chains, agents, dim). Return what neighbors know then
        of the active agents, (chains, few, dim), and the new ``sent``.
        """
        chains, active = np.arange(len(w))[:, None], network.meter.activations
        times = (0.0 if active is None else active[chains, agents]) + 1.0
        change = w - sent[chains, agents]
        large = np.einsum("cad,cad->ca", change, change) > self.threshold * times**-self.decay
        network.count_sent(agents, large, large * network.degrees[agents])
        sent = sent.copy()
        sent[chains, agents] = latest = np.where(large[..., None], w, sent[chains, agents])
        return latest, sent

    def amplifies(
        self,
        fusion: Callable[[int], float],
        step_size: Callable[[int], float],
        agents: int,
        steps: int,
    ) -> bool:
        """Return whether stale differences move agents more than noise does, in a long run.

        fusion, step_size: beta and alpha of iteration k. agents, steps: their numbers.
        A difference of sent vectors, up to the threshold, pulls again in every iteration until they
        are sent anew: too far if its pull exceeds the noise, beta^2 mu / tau^delta > N^2 alpha / 2.
        Then small differences grow, and after thousands of iterations triggers differ.
        """
        k = 2 * LONG_RUN
        pull = fusion(k) ** 2 * self.threshold * (2.0 * k / agents) ** -self.decay
        return bool(steps >= LONG_RUN and pull > agents**2 * step_size(k) / 2)


def trigger_of(sampler: Any) -> Trigger | None:
    """Return the trigger of a sampler's options; None without ``communication: triggered``.

    A ConcordError if the options are those of half a trigger, or of one that is not asked for.
    """
    triggered, starts = sampler.communication == "triggered", sampler.known == "start"
    has_option = {sampler.threshold is not None, sampler.decay is not None}
    if has_option != {triggered} or (starts and not triggered):
        raise ConcordError(
            "threshold, decay, known: a trigger needs the first two, and nothing else takes them; "
            "give them with communication: triggered, or leave them out"
        )
    return Trigger(sampler.threshold, sampler.decay, starts) if triggered else None
