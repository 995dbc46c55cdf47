"""The recorder of a run whose agents several processes divide among them."""

import numpy as np

from concord.contracts import Problem
from concord.networks.transports import Part, Sum
from concord.sampling.recorder import Record, Recorder, indexed
from concord.sampling.trace import Trace


class Divided(Recorder):
    """Keeps on the first process what all record; of others its trace has no chains.

    part: the agents of this process, whose positions it is shown.
    """

    def __init__(
        self,
        part: Part,
        record: Record,
        problem: Problem,
        shape: tuple[int, int, int],
        iterations: int,
        strict: bool = False,
    ) -> None:
        self._part, self._here = part, part.rank == 0
        super().__init__(record, problem, shape, iterations, strict)
        self._whole = problem.agents == part.agents  # the problem is that of all

    def trace(self) -> Trace:
        """Return what has been recorded so far, by all processes."""
        self.diverged_at = self._part.first(self.diverged_at)
        self.diverged_at = self.diverged_at[: None if self._here else 0]
        return super().trace()

    def _own(self, values: np.ndarray, axis: int = -1) -> np.ndarray:
        return values.take(self._part.here(self.agents)[1], axis)

    def _chosen(self, values: np.ndarray, axis: int) -> np.ndarray | None:
        found = self._part.collect(values, axis % values.ndim, self.agents)
        if found is None or self._all:
            return found
        return indexed(found, np.arange(len(self.agents)), axis)

    def _mean(self, summed: Sum, x: np.ndarray) -> np.ndarray | None:
        total = self._part.total(summed, x)
        return None if total is None else total / self._agents

    def _everywhere(self, value: np.ndarray | None) -> np.ndarray | None:
        found: np.ndarray | None = self._part.of_all(value)[0]
        return found

    def _potentials(self, x: np.ndarray) -> np.ndarray | None:
        if not self._whole:
            return super()._potentials(x)
        everyone = self._part.collect(x, 1, np.arange(self._agents))
        return None if everyone is None else self._probes["potential"](everyone)[..., self.agents]
