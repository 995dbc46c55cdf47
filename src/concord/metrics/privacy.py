"""How well what agents have sent hides their data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.contracts import Label
from concord.metrics import Measurement, Row
from concord.networks.privacy import epsilon

METRICS = ("epsilon",)
NETWORK = "privacy"
LABELS = {
    "epsilon": Label("epsilon of what agents have sent"),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the epsilon of each agent for the stated delta, and the largest of the network.

    Each vector that an agent sends to all its neighbors counts once (``networks.privacy``). Where
    chains differ in how often an agent has sent, that of the chain in which it has most often.
    """
    hidden = m.topology.conditions.privacy
    assert hidden is not None
    sent = m.trace["broadcasts"]
    most = sent if sent.ndim == 2 else sent.max(axis=0)
    known = {
        count: epsilon(2 * hidden.clip * np.sqrt(count) / hidden.sigma, hidden.delta)
        for count in np.unique(most).tolist()
    }
    for row, k in enumerate(m.trace.draw):
        values = [known[count] for count in most[row].tolist()]
        for agent, value in zip(m.agents, values, strict=True):
            yield Row(k, agent, "epsilon", value, chance=False)
        if len(m.agents) == m.problem.agents:
            yield Row(k, "network", "epsilon", max(values), chance=False)
