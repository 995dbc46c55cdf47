"""The samplers that are found, and problems they are tested with."""

from pathlib import Path
from typing import Any

import numpy as np

import concord
from concord import kinds, streams
from concord.problems.kinds import linear_regression
from concord.sampling import partition
from concord_arena.testing.variants import variants

__all__ = ["SAMPLERS", "problem", "variants"]

SAMPLERS = {kind: kinds.find("samplers", kind, "tests") for kind in kinds.built_in("samplers")}


def problem(agents: int, dim: int, share: Any = "split", points: int = 3) -> Any:
    """Return a linear regression with about ``points`` points for each agent, in unequal numbers.

    share: the prior's share of an agent.
    """
    params = linear_regression.Params(points=points * agents + 1, dim=dim, prior_share=share)
    split = partition.Partition.parse({"kind": "equal"}, "tests")
    return linear_regression.build(
        params, agents, split, lambda what: streams.generator(3, what, agents), Path("unused")
    )


def tilted(agents: int, dim: int, equal: bool = False) -> Any:
    """Return a quadratic problem with unequal agents; with equal Hessians if they should be."""
    rng = np.random.default_rng(8)
    root = rng.standard_normal((agents, dim, dim)) / 2
    gram = root @ root.swapaxes(1, 2) + 0.3 * np.eye(dim)
    shift = rng.standard_normal((agents, dim))
    return concord.problems.quadratic(gram[[0] * agents] if equal else gram, shift)
