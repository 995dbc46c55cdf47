"""How often agents were active and how often they communicated, over the whole run."""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, yields


@yields(
    ("activations", "activation_rate", "triggers", "trigger_rate"),
    labels={
        "activation_rate": Label("share of iterations in which an agent moves"),
        "trigger_rate": Label("messages per activation"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield each agent's activations and triggers, and their rates, means over chains.

    activations: ticks at which the agent moved, and activation_rate, the part of all ticks.
    triggers: how often it sent to its neighbors, all at once, and trigger_rate, the number per
    activation. Where a sampler moves all agents at every step, activations are the steps.
    """
    steps = m.last
    sent = m.trace["broadcasts"]
    chance = sent.ndim == 3 or "activations" in m.trace
    sent = (sent if sent.ndim == 3 else sent[None])[:, -1].astype(float)
    active = np.full_like(sent, steps)
    if "activations" in m.trace:
        active = m.trace["activations"][:, -1].astype(float)
    values = {
        "activations": active,
        "activation_rate": active / steps,
        "triggers": sent,
        "trigger_rate": sent / np.maximum(active, 1),
    }
    for name, each in values.items():
        interval = mean_interval(each)
        varies = bool(each.std(axis=0).any())
        yield from series([steps], m.agents, {name: interval if varies else interval[0]}, chance)
