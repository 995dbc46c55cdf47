"""The law that the problem states: ``initial(shape, rng)``, positions (chains, agents, dim)."""

import numpy as np

from concord.errors import ConcordError
from concord.options import Options as Params
from concord.problem import Problem
from concord.sampling.initial import Shape


def draw(params: Params, problem: Problem, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Return initial positions (chains, agents, dim) from the problem's law, if it has one."""
    if not hasattr(problem, "initial"):
        raise ConcordError(
            f"initial.kind: {type(problem).__name__} states no law of initial positions; "
            "choose kind normal"
        )
    return problem.initial(shape, rng)


def moments(params: Params, dim: int) -> None:
    """Return None, since only draws from the problem's own law are known."""
