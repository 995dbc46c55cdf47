"""Recording: which iterations of a run are recorded, and which quantities of each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError, short
from concord.networks.graph import check_agents
from concord.networks.network import Network
from concord.options import Count, Index, Options, Some
from concord.problem import CountedProblem
from concord.sampler import ChainState, WithReadOut
from concord.sampling.trace import Trace
from concord.summary import SHOWN
from concord.values import FINITE_RANGE

# What a configuration may compute while sampling: a number per agent, and arrays to average.
Probed = Literal["consensus_error", "misclassified", "accuracy", "potential"]
Averaged = Literal["predictive"]

# What mends a gradient that is not finite: at the start, and after steps.
START_OUTSIDE = "is that start outside the support? No step size mends it"
STEP_OUTSIDE = (
    "take a smaller step_size, or start nearer, initial={'kind': 'normal', 'sd': 0.1}, unless the "
    "point is outside the support, which no step size mends"
)

# The axes of recorded arrays after chain and draw; of all others ("agent",).
_AXES: dict[str, tuple[str, ...]] = {
    "x": ("agent", "dim"),
    "x_average": ("dim",),
    "consensus_error": (),
}


class ChainDivergence(Exception):
    """A chain has diverged: the exception by which a strict ``Recorder`` ends a run."""


class Record(Options):
    """Options of which quantities a run records, and at which iterations."""

    every: Annotated[Count, "record every so many iterations (and iteration 0)"] = 1
    at: Annotated[
        tuple[Index, ...] | None, "record at just these iterations, instead of every so many"
    ] = None
    agents: Annotated[Some[Index] | None, "agents whose draws and probes are kept; none: all"] = (
        None
    )
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

    def iterations(self, iterations: int) -> np.ndarray:
        """Return the recorded iterations, increasing.

        iterations: the last iteration of the run.
        """
        if self.at is not None:
            return np.unique([k for k in self.at if k <= iterations])
        return np.arange(0, iterations + 1, self.every)

    def count(self, iterations: int) -> int:
        """Return the number of recorded iterations, of which there may be too many to list."""
        return 1 + iterations // self.every if self.at is None else len(self.iterations(iterations))


class Recorder:
    """A callback of the loop that records what ``Record`` specifies of every due iteration.

    shape: that of the positions, (chains, agents, dim). iterations: the last iteration.
    strict: raise ``ChainDivergence`` as soon as a chain diverges. Otherwise the iteration is noted
    as the run's result, and the chain goes on.
    """

    def __init__(
        self,
        record: Record,
        sampler: object,
        problem: CountedProblem,
        network: Network,
        shape: tuple[int, int, int],
        iterations: int,
        strict: bool = False,
    ) -> None:
        chains, agents, _ = shape
        self._record, self._problem, self._network, self._strict = record, problem, network, strict
        self._read_out: Callable[[ChainState], np.ndarray] | None = None
        if isinstance(sampler, WithReadOut):
            self._read_out = sampler.read_out
        self._due = record.iterations(iterations)
        self._row = 0  # the next to record
        self._agents = np.arange(agents) if record.agents is None else np.array(record.agents)
        if not (self._due > record.burn_in).any():
            raise ConcordError(
                f"record.burn_in: no iteration is recorded after the warm-up of {record.burn_in} "
                f"(the last is {self._due[-1]}); lower it, or record more often"
            )
        for key, names in (("probes", record.probes), ("averages", record.averages)):
            for name in names:
                if name != "consensus_error" and not hasattr(problem, name):
                    raise ConcordError(
                        f"record.{key}: {type(problem.problem).__name__} has no {short(name)} to "
                        "probe; remove it, or choose a problem that has"
                    )
        self._values: dict[str, list[np.ndarray]] = {}
        self._averages = {name: RunningMoments() for name in record.averages}
        self.diverged_at = np.full(chains, -1, dtype=np.int64)
        self._before: tuple[int, np.ndarray] | None = None  # iteration and positions
        self._cause: str | None = None  # None: not looked for yet

    def __call__(self, k: int, state: ChainState) -> None:
        """Record the state of iteration k if k is due, and note chains that diverge at any k."""
        x = state.x
        # One pass: the squared norm is huge, infinite or NaN as soon as any entry is.
        flat = x.ravel()
        if not flat.dot(flat) < FINITE_RANGE**2:
            self._note_divergence(k, x)
        self._before = k, x
        if self._row == len(self._due) or k != self._due[self._row]:
            return
        if self._read_out is not None:
            x = self._read_out(state)
            self._note_divergence(k, x)
        for name, value in self._observe(x).items():
            self._values.setdefault(name, []).append(value)
        if k > self._record.burn_in:
            for name, moments in self._averages.items():
                moments.add(getattr(self._problem, name)(x[:, self._agents]))
        self._row += 1

    def next_due(self) -> int:
        """Return the next iteration to record, or ``sys.maxsize`` after the last."""
        return int(self._due[self._row]) if self._row < len(self._due) else sys.maxsize

    def _observe(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the recorded arrays of one iteration by name, from x (chains, agents, dim)."""
        record, problem, network, agents = self._record, self._problem, self._network, self._agents
        chosen = x if len(agents) == x.shape[1] else x[:, agents]
        arrays: dict[str, np.ndarray] = {}
        if record.draws:
            arrays["x"] = chosen.copy()
        if record.average:
            arrays["x_average"] = x.mean(axis=1)
        if "consensus_error" in record.probes:
            shared = network.select_shared(x)
            deviation = shared - shared.mean(axis=1, keepdims=True)
            arrays["consensus_error"] = np.einsum("cad,cad->c", deviation, deviation) / x.shape[1]
        for name in record.probes:
            if name == "potential":  # of each agent's own data, so all are evaluated
                arrays[name] = problem.potential(x)[:, agents]
            elif name != "consensus_error":
                arrays[name] = getattr(problem, name)(chosen)
        counts: dict[str, np.ndarray] = {
            "unicasts": network.meter.unicasts,
            "unicast_bytes": network.meter.unicast_bytes,
            "broadcasts": network.meter.broadcasts,
            "gradients": problem.total,
        }
        if network.meter.activations is not None:
            counts["activations"] = network.meter.activations
        if network.clock is not None:
            counts["seconds"] = network.clock.seconds.T
            counts["waited"] = network.clock.waited.T
        return arrays | {name: values[..., agents].copy() for name, values in counts.items()}

    def _note_divergence(self, k: int, x: np.ndarray) -> None:
        """Note iteration k for each chain of x that leaves the finite range for the first time.

        Raises ``ChainDivergence`` if the recorder is strict.
        """
        inside = (np.abs(x) < FINITE_RANGE).all(axis=(1, 2))
        self.diverged_at[~inside & (self.diverged_at < 0)] = k
        if self._strict and not inside.all():
            raise ChainDivergence
        if self._cause is None and self._before and not np.isfinite(x).all():
            self._cause = self._describe_gradient(*self._before)

    def _describe_gradient(self, k: int, x: np.ndarray) -> str:
        """Return where in a state the gradient is not finite though x is, as a sentence, or ""."""
        problem = self._problem.problem  # whose gradients are not counted
        gradient = getattr(problem, "full_gradient", problem.gradient)
        with np.errstate(all="ignore"):
            slopes = gradient(x)
        wrong = ~np.isfinite(slopes).all(axis=-1) & (np.abs(x) < FINITE_RANGE).all(axis=-1)
        if not wrong.any():
            return ""
        place = tuple(np.argwhere(wrong)[0].tolist())
        names = getattr(problem, "agent_names", None)
        point = ", ".join(f"{value:.3g}" for value in x[place][:SHOWN])
        remedy = START_OUTSIDE if k == 0 else STEP_OUTSIDE
        return (
            f"gradient: it returned {short(slopes[place].tolist())} at iteration {k} of agent "
            f"{names[place[1]] if names else place[1]}, x = ({point}), where x is finite; {remedy}"
        )

    def trace(self) -> Trace:
        """Return the trace of the iterations recorded so far, with chains as first axis (ArviZ)."""
        due = self._due[: self._row]
        variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
        for name, values in self._values.items():
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
        return Trace(variables, due, self._agents, cause=self._cause or "")


class RunningMoments:
    """Running mean and standard deviation of arrays added one by one (Welford's update)."""

    def __init__(self) -> None:
        self.count = 0
        self._mean = np.zeros(())
        self._squares = np.zeros(())

    def add(self, values: np.ndarray) -> None:
        """Update the moments with one more array, of the same shape as the others."""
        self.count += 1
        deviation = np.asarray(values, dtype=np.float64) - self._mean
        self._mean = self._mean + deviation / self.count
        self._squares = self._squares + deviation * (values - self._mean)

    def mean_and_sd(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of the arrays so far, in single precision.

        The standard deviation divides by one less than their number, and is zero for one array.
        """
        sd = np.sqrt(self._squares / max(self.count - 1, 1))
        return self._mean.astype(np.float32), sd.astype(np.float32)


MOST_NUMBERS = 10**11  # draws of a run; a terabyte at least


def check_record(record: Record, agents: int, chains: int, iterations: int, where: str) -> None:
    """Refuse a record of nothing, of agents that do not exist, or of too many numbers."""
    recorded = range(agents) if record.agents is None else record.agents
    check_agents(record.agents or (), agents, f"{where}.agents")
    draws = record.count(iterations)
    if not draws:
        raise ConcordError(
            f"{where}.at: none of these is one of the {iterations} iterations; add one"
        )
    if chains * len(recorded) * draws > MOST_NUMBERS:
        raise ConcordError(
            f"{where}: {draws} iterations of {len(recorded)} agents and {chains} chains are "
            f"more than {MOST_NUMBERS} draws; record less often, or fewer agents"
        )
