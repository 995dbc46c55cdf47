"""Differential privacy of all that agents have sent."""

from collections.abc import Iterator

import numpy as np

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series
from concord_studies.privacy import epsilon

METRICS = ("epsilon",)
NETWORK = "privacy"
LABELS = {"epsilon": Label("epsilon of what agents have sent")}


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
