"""Laws of the initial positions x^(0), the same draws for every sampler and topology.

One module each (``contracts.InitialKind``).
"""

import numpy as np

from concord.contracts import dtype_of
from concord.errors import ConcordError
from concord.options import Chosen
from concord.problem import Problem

Moments = tuple[np.ndarray, np.ndarray]
Shape = tuple[int, int, int]


class Law(Chosen):
    """A kind of initial law and its options: ``{kind: normal, sd: 2.0}``."""

    room = "initial"
    example = "{'kind': 'normal', 'mean': 0.0, 'sd': 1.0}"

    def moments(self, dim: int) -> Moments | None:
        """Return mean (dim,) and covariance (dim, dim) of one agent's start; None if not known.

        Agents are independent.
        """
        return self.module.moments(self.params, dim)


def positions(law: Law, problem: Problem, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Draw initial positions of a shape, float64 unless the problem declares another dtype."""
    x0 = np.asarray(law.module.draw(law.params, problem, shape, rng))
    if x0.shape != shape:
        raise ConcordError(
            f"initial.kind: {law.kind} gives positions of shape {x0.shape}, not {shape} (chains, "
            "agents, dim); mend it"
        )
    return x0.astype(dtype_of(problem), copy=False)
