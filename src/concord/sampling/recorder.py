"""The recorder: what is kept of the iterates, and when."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from concord.contracts import (
    Classifier,
    Info,
    Landed,
    Misclassifier,
    Predictive,
    Problem,
    Times,
    WithPotential,
)
from concord.errors import ConcordError, short
from concord.options import Count, Index, Options
from concord.sampling.trace import TIMES, Trace

# A chain with a coordinate beyond this has left every posterior we sample (their scales are of
# order one to a hundred); it is recorded as diverged at that iteration, and keeps running.
FINITE_RANGE = 1e8


# What a configuration may compute while sampling: a number per agent, and arrays to average.
Probed = Literal["consensus_error", "misclassified", "accuracy", "potential"]
Averaged = Literal["predictive"]

Probe = Callable[[np.ndarray], np.ndarray]

# The protocols whose methods these are.
_OFFERS: dict[str, type] = {
    "misclassified": Misclassifier,
    "accuracy": Classifier,
    "potential": WithPotential,
    "predictive": Predictive,
}

# The axes of what is kept, after chain and draw; of all other probes ("agent",).
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


def _probe(problem: Problem, name: str, key: str) -> Probe:
    if not isinstance(problem, _OFFERS[name]):
        raise ConcordError(
            f"record.{key}: {type(problem).__name__} has no {short(name)} to probe; "
            "remove it, or choose a problem that has"
        )
    found: Probe = getattr(problem, name)
    return found


def _fixed(info: Info) -> bool:
    """Whether diagnostics never change: no array of them can be written."""
    return info.clock is None and not any(
        isinstance(part, np.ndarray) and part.flags.writeable for part in info
    )


class _Average:
    """Running mean and sum of squared deviations of a probe's arrays (Welford's update)."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.count = 0

    def add(self, x: np.ndarray) -> None:
        values = np.asarray(self.probe(x), dtype=np.float64)
        if not self.count:
            self.mean, self.squares = np.zeros_like(values), np.zeros_like(values)
        self.count += 1
        deviation = values - self.mean
        self.mean += deviation / self.count
        self.squares += deviation * (values - self.mean)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation in float32; that of a single draw is zero."""
        sd = np.sqrt(self.squares / max(self.count - 1, 1))
        return self.mean.astype(np.float32), sd.astype(np.float32)


def _sum(rows: np.ndarray) -> np.ndarray:
    """Return the sum over agents, one after another, as numpy's ``sum`` adds them up."""
    # In a fifth of its time; but of a single dimension it adds up in another order.
    return rows.sum(axis=1) if rows.shape[2] == 1 else np.einsum("cad->cd", rows)


class Recorder:
    """Keeps copies of what ``Record`` specifies, in arrays allocated before the loop.

    strict: raise ``Diverged`` as soon as a chain diverges.
    """

    def __init__(
        self,
        record: Record,
        problem: Problem,
        shape: tuple[int, int, int],
        iterations: int,
        strict: bool = False,
    ) -> None:
        chains, agents, dim = shape
        self._strict = strict
        self.due = record.iterations(iterations)
        self.agents = np.arange(agents) if record.agents is None else np.array(record.agents)
        unknown = [a for a in self.agents if a >= agents]
        if unknown:
            raise ConcordError(
                f"record.agents: there is no agent {unknown[0]} among {agents}; "
                f"name agents 0 to {agents - 1}"
            )
        self._all, self._agents = len(self.agents) == agents, agents
        self._probes: dict[str, Probe] = {
            name: _probe(problem, name, "probes")
            for name in record.probes
            if name != "consensus_error"
        }
        asked = {
            "x": record.draws,
            "x_average": record.average,
            "consensus_error": "consensus_error" in record.probes,
        }
        sizes = {"agent": len(self.agents), "dim": dim}
        # Draws first, so that each record writes one contiguous block.
        self._kept = {
            name: np.empty(
                (
                    len(self.due),
                    chains,
                    *(sizes[axis] for axis in _AXES.get(name, ("agent",))),
                ),
                dtype=np.int64 if name == "misclassified" else np.float64,
            )
            for name in [*(name for name, wanted in asked.items() if wanted), *self._probes]
        }
        self._averages: dict[str, _Average] = {
            name: _Average(_probe(problem, name, "averages")) for name in record.averages
        }
        self._burn_in = record.burn_in
        if not (self.due > record.burn_in).any():
            raise ConcordError(
                f"record.burn_in: no iteration is recorded after {record.burn_in}; "
                "lower it, or record more often"
            )
        self._clock: Times | None = None
        self._times: dict[str, np.ndarray] = {}
        self._totals: dict[str, np.ndarray] = {}
        self._counts: dict[str, np.ndarray] = {}
        self._same: Info | None = None
        self._steps = 0  # with the same diagnostics, not yet counted
        self.diverged_at = np.full(chains, -1, dtype=np.int64)
        self._at(0)

    def _at(self, row: int) -> None:
        """Go on from this row: the next to write, and its iteration, which is none at the end."""
        self._next = row
        self._wanted = int(self.due[row]) if row < len(self.due) else -1

    def observe(
        self, k: int, x: np.ndarray, info: Info | None, read: Callable[[], np.ndarray] | None = None
    ) -> None:
        """Take note of iteration k: divergence and messages always, the rest when it is due.

        ``read`` returns what is recorded in place of x.
        """
        flat = x.reshape(-1)
        if info is None:
            pass
        elif info is self._same:
            self._steps += 1
        else:
            self._tally(info)
            moved = info.moved
            if moved is not None:
                flat = x.reshape(-1, x.shape[-1])[moved].reshape(-1)
        # One pass: the squared norm is huge, infinite or NaN as soon as any entry is.
        if not flat.dot(flat) < FINITE_RANGE**2:
            self._note_divergence(k, x)
        if k == self._wanted:
            if read is not None:
                x = read()
                self._note_divergence(k, x)
            self._record(self._next, x)
            self._at(self._next + 1)

    def pass_over(self, k: int, landed: Landed) -> None:
        """Take note of what the steps of a leap from iteration k on have sent, and where it led.

        None but the last may lead to an iteration that is due, which is then to be observed.
        """
        if landed.info is self._same:
            self._steps += landed.steps
        elif _fixed(landed.info):
            self._tally(landed.info)
            self._steps += landed.steps - 1
        else:
            self._tally(landed.info)
        first = (landed.left >= 0) & (self.diverged_at < 0)
        self.diverged_at[first] = k + 1 + landed.left[first]

    def free(self, k: int, iterations: int) -> int:
        """Return how many iterations there are from k to the next that is due, or to the end."""
        return (self._wanted if self._wanted >= 0 else iterations) - k

    def _tally(self, info: Info) -> None:
        """Count what a step has sent, or several that it has counted together."""
        self._catch_up()
        for name, more in (
            ("unicasts", info.unicasts),
            ("broadcasts", info.broadcasts),
            ("activations", info.active),
            ("gradients", info.gradients),
        ):
            if more is not None:
                self._count(name, more, info.moved)
        self._clock = info.clock
        self._same = info if _fixed(info) else None

    def _catch_up(self) -> None:
        """Count what steps with the same fixed diagnostics have sent since the last time."""
        for name in self._totals if self._same is not None else ():
            more = getattr(self._same, "active" if name == "activations" else name)
            self._totals[name] += self._steps * more
        self._steps = 0

    def _count(self, name: str, more: np.ndarray, moved: np.ndarray | None) -> None:
        if name not in self._totals:
            kind = np.result_type(more, np.int64)
            self._totals[name] = np.zeros(more.shape, dtype=kind)
        if moved is None:
            self._totals[name] += more
        else:
            self._totals[name].reshape(-1)[moved] += more.reshape(-1)[moved]

    def _note_divergence(self, k: int, x: np.ndarray) -> None:
        inside = (np.abs(x) < FINITE_RANGE).all(axis=(1, 2))
        self.diverged_at[~inside & (self.diverged_at < 0)] = k
        if self._strict and not inside.all():
            raise Diverged

    def _record(self, row: int, x: np.ndarray) -> None:
        found: dict[str, Any] = {}
        if {"x_average", "consensus_error"} & self._kept.keys():
            found["x_average"] = average = _sum(x) / self._agents
        if "consensus_error" in self._kept:
            distance = x - average[:, None]
            found["consensus_error"] = np.einsum("cad,cad->c", distance, distance) / self._agents
        self._catch_up()
        chosen = self._chosen(x, 1)
        if "potential" in self._probes:
            found["potential"] = self._chosen(self._probes["potential"](x), -1)
        if "x" in self._kept:
            self._kept["x"][row] = chosen
        for name, values in found.items():
            if name in self._kept:
                self._kept[name][row] = values
        for name, probe in self._probes.items():
            if name != "potential":
                self._kept[name][row] = probe(chosen)
        if self.due[row] > self._burn_in:
            for accumulated in self._averages.values():
                accumulated.add(chosen)
        for name, total in self._totals.items():
            self._counted(name)[row] = self._chosen(total, -1)
        if self._clock is not None:
            for name, times in zip(TIMES, (self._clock.seconds, self._clock.waited), strict=True):
                if name not in self._times:
                    self._times[name] = np.zeros((len(self.due), *times.shape))
                self._times[name][row] = times

    def _counted(self, name: str) -> np.ndarray:
        """Return what is kept of a count, of the agents that are recorded."""
        if name not in self._counts:
            total = self._totals[name]
            shape = len(self.due), *total.shape[:-1], len(self.agents)
            self._counts[name] = np.zeros(shape, dtype=total.dtype)
        return self._counts[name]

    def _chosen(self, values: np.ndarray, axis: int) -> np.ndarray:
        """Return the rows of the agents that are recorded, along the second axis or the last."""
        # The same way always, since what probes add up depends on how arrays lie in memory.
        if self._all:
            return values
        return values[:, self.agents] if axis == 1 else values[..., self.agents]

    def trace(self) -> Trace:
        """Return what has been recorded so far, chain first as ArviZ expects it."""
        due = self.due[: self._next]
        rows = slice(len(due))
        variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
            name: (("chain", "draw", *_AXES.get(name, ("agent",))), values[rows].swapaxes(0, 1))
            for name, values in self._kept.items()
        }
        for name, accumulated in self._averages.items():
            if not accumulated.count:
                continue  # interrupted before the first
            for suffix, array in zip(("mean", "sd"), accumulated.moments(), strict=True):
                extra = [f"{name}_dim_{axis}" for axis in range(array.ndim - 2)]
                variables[f"{name}_{suffix}"] = ("chain", "agent", *extra), array
        counted = {name: self._counted(name) for name in self._totals}
        for name, times in self._times.items():
            counted[name] = times[..., self.agents]
        if "gradients" not in counted:  # one of each agent that moved
            steps = np.broadcast_to(self.due[:, None], (len(self.due), len(self.agents)))
            counted["gradients"] = counted.get("activations", steps)
        for name, counts in counted.items():
            if counts.ndim == 3:
                variables[name] = ("chain", "draw", "agent"), counts[rows].swapaxes(0, 1)
            else:
                variables[name] = ("draw", "agent"), counts[rows]
        variables["diverged_at"] = ("chain",), self.diverged_at
        return Trace(variables, due, self.agents)
