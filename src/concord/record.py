"""Recording: what is kept of a run's iterations, and when."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError, short
from concord.networks.network import Network
from concord.options import Count, Index, Options
from concord.problem import CountedProblem
from concord.sampler import ReadOut
from concord.sampling.trace import Trace

# A chain with a coordinate beyond this has left every posterior we sample (their scales are of
# order one to a hundred); it is recorded as diverged at that iteration, and keeps running.
FINITE_RANGE = 1e8

# What a configuration may compute while sampling: a number per agent, and arrays to average.
Probed = Literal["consensus_error", "misclassified", "accuracy", "potential"]
Averaged = Literal["predictive"]

# The axes of recorded arrays after chain and draw; of all others ("agent",).
_AXES: dict[str, tuple[str, ...]] = {
    "x": ("agent", "dim"),
    "x_average": ("dim",),
    "consensus_error": (),
}


class Diverged(Exception):
    """A chain has diverged, and what follows is not wanted."""


class Record(Options):
    """What to record, and when."""

    every: Annotated[Count, "record every so many iterations (and iteration 0)"] = 1
    at: Annotated[
        tuple[Index, ...] | None, "record at just these iterations, instead of every so many"
    ] = None
    agents: Annotated[
        tuple[Index, ...] | None, "agents whose draws and probes are kept; none: all"
    ] = None
    draws: Annotated[bool, "keep the agents' draws"] = True
    average: Annotated[bool, "keep the network average of each chain"] = True
    probes: Annotated[tuple[Probed, ...], "quantities computed while sampling"] = ()
    averages: Annotated[
        tuple[Averaged, ...],
        "arrays computed while sampling (predictive) of which the mean and the standard deviation "
        "over the iterations recorded after burn_in are kept",
    ] = ()
    burn_in: Annotated[
        int,
        Meta(ge=-1),
        "iterations up to this one do not enter averages, nor metrics of draws that stand for a "
        "sample; -1: all enter averages, and all but the first tenth those metrics",
    ] = -1

    def count(self, iterations: int) -> int:
        """Return the number of recorded iterations."""
        if self.at is not None:
            return len(self.iterations(iterations))
        return 1 + iterations // self.every

    def iterations(self, iterations: int) -> np.ndarray:
        """Return the recorded iterations, increasing, at most ``iterations``."""
        if self.at is not None:
            return np.unique([k for k in self.at if k <= iterations])
        return np.arange(0, iterations + 1, self.every)


class Recorder:
    """Keeps what ``Record`` specifies, as a callback of the loop.

    strict: raise ``Diverged`` as soon as a chain diverges; else a chain that diverges is noted, and
    goes on: that it diverged is the run's result.
    """

    def __init__(
        self,
        record: Record,
        sampler: Any,
        problem: CountedProblem,
        network: Network,
        shape: tuple[int, int, int],
        iterations: int,
        strict: bool = False,
    ) -> None:
        chains, agents, _ = shape
        self._record, self._problem, self._network, self._strict = record, problem, network, strict
        self._read: Callable[[Any], np.ndarray] | None = None
        if isinstance(sampler, ReadOut):
            self._read = sampler.read_out
        self._due = record.iterations(iterations)
        self._row = 0  # the next to record
        self._agents = np.arange(agents) if record.agents is None else np.array(record.agents)
        if unknown := [agent for agent in self._agents if agent >= agents]:
            raise ConcordError(
                f"record.agents: there is no agent {unknown[0]} among {agents}; "
                f"name agents 0 to {agents - 1}"
            )
        if not (self._due > record.burn_in).any():
            raise ConcordError(
                f"record.burn_in: no iteration is recorded after {record.burn_in}; "
                "lower it, or record more often"
            )
        for key, names in (("probes", record.probes), ("averages", record.averages)):
            for name in names:
                if name != "consensus_error" and not hasattr(problem, name):
                    raise ConcordError(
                        f"record.{key}: {type(problem.problem).__name__} has no {short(name)} to "
                        "probe; remove it, or choose a problem that has"
                    )
        self._kept: dict[str, list[np.ndarray]] = {}
        self._averages = {name: RunningMoments() for name in record.averages}
        self.diverged_at = np.full(chains, -1, dtype=np.int64)

    def __call__(self, k: int, state: Any) -> None:
        """Take note of iteration k: divergence always, the rest when it is due."""
        x = state.x
        # One pass: the squared norm is huge, infinite or NaN as soon as any entry is.
        flat = x.ravel()
        if not flat.dot(flat) < FINITE_RANGE**2:
            self._note_divergence(k, x)
        if self._row == len(self._due) or k != self._due[self._row]:
            return
        if self._read is not None:
            x = self._read(state)
            self._note_divergence(k, x)
        for name, value in self._observe(x).items():
            self._kept.setdefault(name, []).append(value)
        if k > self._record.burn_in:
            for name, moments in self._averages.items():
                moments.add(getattr(self._problem, name)(x[:, self._agents]))
        self._row += 1

    def next_due(self) -> int:
        """The next iteration to record, or one that no run reaches."""
        return int(self._due[self._row]) if self._row < len(self._due) else sys.maxsize

    def _observe(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return what is recorded of an iteration at x."""
        record, problem, network, agents = self._record, self._problem, self._network, self._agents
        chosen = x if len(agents) == x.shape[1] else x[:, agents]
        found: dict[str, Any] = {}
        if record.draws:
            found["x"] = chosen.copy()
        if record.average:
            found["x_average"] = x.mean(axis=1)
        if "consensus_error" in record.probes:
            apart = x - x.mean(axis=1, keepdims=True)
            found["consensus_error"] = np.einsum("cad,cad->c", apart, apart) / x.shape[1]
        for name in record.probes:
            if name == "potential":  # of each agent's own data, so all are evaluated
                found[name] = problem.potential(x)[:, agents]
            elif name != "consensus_error":
                found[name] = getattr(problem, name)(chosen)
        counts = {
            "unicasts": network.unicasts,
            "broadcasts": network.broadcasts,
            "gradients": problem.total,
        }
        if network.activations is not None:
            counts["activations"] = network.activations
        if network.clock is not None:
            counts["seconds"] = network.clock.seconds.T
            counts["waited"] = network.clock.waited.T
        return found | {name: values[..., agents].copy() for name, values in counts.items()}

    def _note_divergence(self, k: int, x: np.ndarray) -> None:
        inside = (np.abs(x) < FINITE_RANGE).all(axis=(1, 2))
        self.diverged_at[~inside & (self.diverged_at < 0)] = k
        if self._strict and not inside.all():
            raise Diverged

    def trace(self) -> Trace:
        """Return what has been recorded so far, chain first as ArviZ expects it."""
        due = self._due[: self._row]
        variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
        for name, values in self._kept.items():
            missing = self._row - len(values)  # activations begin with the first step
            widest = max(values, key=np.ndim)
            whole = np.zeros((self._row, *widest.shape), np.result_type(*values))
            for row, value in enumerate(values):
                # Counts are alike in all chains until the first step that makes them differ.
                whole[missing + row] = value
            axes = _AXES.get(name, ("agent",))
            if widest.ndim == len(axes):  # the same in all chains
                variables[name] = ("draw", *axes), whole
            else:
                variables[name] = ("chain", "draw", *axes), whole.swapaxes(0, 1)
        for name, moments in self._averages.items():
            if not moments.count:
                continue  # interrupted before the first
            for suffix, array in zip(("mean", "sd"), moments.mean_and_sd(), strict=True):
                extra = [f"{name}_dim_{axis}" for axis in range(array.ndim - 2)]
                variables[f"{name}_{suffix}"] = ("chain", "agent", *extra), array
        variables["diverged_at"] = ("chain",), self.diverged_at
        return Trace(variables, due, self._agents)


class RunningMoments:
    """Mean and standard deviation of arrays that come one by one (Welford's update)."""

    def __init__(self) -> None:
        self.count = 0
        self._mean: Any = 0.0
        self._squares: Any = 0.0

    def add(self, values: np.ndarray) -> None:
        """Take the next array into account."""
        self.count += 1
        apart = np.asarray(values, dtype=np.float64) - self._mean
        self._mean = self._mean + apart / self.count
        self._squares = self._squares + apart * (values - self._mean)

    def mean_and_sd(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation in single precision; that of one array is zero."""
        sd = np.sqrt(self._squares / max(self.count - 1, 1))
        return self._mean.astype(np.float32), sd.astype(np.float32)
