"""The samplers that are found, and problems they are tested with."""

from pathlib import Path
from typing import Any

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
