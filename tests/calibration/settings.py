"""Which samplers are held against the posterior, with which options, and what to expect of them.

Step sizes fall to a last value at which the bias is small: the law of a draw then differs from the
posterior by no more than SLACK in Kolmogorov's distance. (0.02 is 8 % of a standard deviation, or
5 % of one in the mean; of 20 000 chains, 0.016 was the largest difference, chance included.)
"""

from dataclasses import dataclass
from typing import Any

from calibration.models import MODELS
from calibration.ranks import NARROW, WIDE
from concord.networks.construction import network
from concord.sampling.schedules import Schedule

SLACK = 0.02
# Of a path not all agents have as many neighbors.
ALONE, PATH, RING = network("no_edges", 1), network("path", 3), network("ring", 12)
STEPS = 800


@dataclass(frozen=True)
class Setting:
    """A sampler with its options.

    expected: None where draws must be of the posterior, else what those of the agents and of their
    average must be seen to be.
    """

    sampler: str
    options: dict[str, Any]
    network: Any = PATH
    steps: int = STEPS
    expected: tuple[str, str] | None = None


def falling(first: float, last: float, steps: int, scale: float = 1.0) -> Schedule:
    """Return the schedule a / (b + k) that falls from ``first`` to ``last``, times ``scale``."""
    b = steps / (first / last - 1)
    return Schedule(scale * first * b, b=b, c=1.0, exponent=1.0)


def settings(name: str) -> dict[str, Setting]:
    """Return the settings for one of the models, by label."""
    scale = 1 / MODELS[name].curvature
    fine = falling(0.15, 0.003, STEPS, scale)
    each = falling(0.15, 0.003, STEPS, PATH.agents * scale)
    slow = falling(0.2, 0.002, 2 * STEPS)
    gossip = {"step_size": falling(0.1, 0.002, 2 * STEPS, scale), "fusion": Schedule(0.5)}
    whole = {**gossip, "drift": "whole"}
    sparing = {**whole, "communication": "triggered", "threshold": 0.01, "decay": 1.0}
    found = {
        "C-ULA": Setting("c_ula", {"step_size": fine}, ALONE),
        "D-ULA": Setting("d_ula", {"step_size": fine, "fusion": Schedule(0.3)}),
        "DE-SGLD": Setting("de_sgld", {"step_size": each}),
        "DE-SGHMC": Setting("de_sghmc", {"step_size": slow, "friction": 2.0}, steps=2 * STEPS),
        "gossip ULA, corrected": Setting("gossip_ula", whole, steps=2 * STEPS),
        "gossip ULA, corrected, triggered": Setting("gossip_ula", sparing, steps=2 * STEPS),
        # bhar2023 as printed samples the posterior to the power 1/2.
        "gossip ULA, published": Setting(
            "gossip_ula", {**gossip, "drift": "half"}, steps=2 * STEPS, expected=(WIDE, WIDE)
        ),
    }
    if name != "tied_mixture":  # which has no proximal step
        # The stationary law of D-ADMMS: agents too wide, their average too narrow.
        found["D-ADMMS"] = Setting("admm", {"penalty": 2.0}, RING, 100, (WIDE, NARROW))
    return found
