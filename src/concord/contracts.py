"""The protocols of plug-ins, and of what metrics ask of problems; samplers ask ``concord.problem``.

Arrays ``x`` have shape (chains, agents, dim), and agent i is evaluated at its own x_i.
``isinstance`` sees whether the members exist, not what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from concord.errors import ConcordError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from concord.laws.gaussian import Gaussian
    from concord.problem import Problem

Stream = Callable[[str], np.random.Generator]


@runtime_checkable
class Curved(Protocol):
    """A problem with bounds on the Hessians of the potentials f_i at all positions."""

    def curvature(self) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of each agent's Hessian, both (agents, dim, dim).

        All f_i attain the upper bound at one common point; infinite where there is no bound.
        """


@runtime_checkable
class SampledLaw(Protocol):
    """A problem with a known law of the sum of the potentials, whatever their prior share."""

    @property
    def sampled(self) -> Gaussian:
        """Return the law proportional to exp(-sum_i f_i); a ConcordError if there is none."""


@runtime_checkable
class Reference(Protocol):
    """A posterior with which results are compared: exact, on a grid, or known by draws.

    A ``Gaussian``, a ``Grid`` of two parameters, ``Known`` moments with independent draws, or the
    ``Draws`` of a certified run (``concord.laws``).
    """

    @property
    def draws(self) -> float:
        """The number of independent draws behind the moments; infinite where they are exact."""

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior's mean (dim,) and covariance (dim, dim)."""

    def monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x_1, ..., x_d, x_1^2, ..., x_d^2, both (2 dim,)."""

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return independent draws from the posterior, (count, dim)."""


@runtime_checkable
class WithReference(Protocol):
    """A problem whose posterior is known, though it is not Gaussian."""

    @property
    def reference(self) -> Reference:
        """Return the posterior; a ConcordError if it is not known for these options."""


def reference_of(problem: Problem) -> Reference:
    """Return the posterior of a problem; a ConcordError if it is not known."""
    if isinstance(problem, WithReference):
        return problem.reference
    if problem.posterior is None:
        raise ConcordError(
            f"the posterior of {type(problem).__name__} is not known; remove what compares with "
            "it, or choose another problem"
        )
    return problem.posterior


@runtime_checkable
class Named(Protocol):
    """A problem whose parameters have names, of which the positions x are coordinates."""

    def constrain(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the named parameters at positions (..., dim), each of shape (..., own shape)."""


@runtime_checkable
class LogDensity(Protocol):
    """A problem of two parameters whose posterior log density can be evaluated."""

    def log_posterior(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the log density up to a constant; the arrays of both parameters broadcast."""


@runtime_checkable
class Replicated(Protocol):
    """A problem of several data sets at once: chain c holds ``sets[c % len(sets)]``."""

    sets: Sequence[Any]

    def exact_pairs(self, counts: list[int]) -> list[np.ndarray]:
        """Return two independent exact samples, (2, counts[d], dim), of each data set d."""


@runtime_checkable
class WithInitial(Protocol):
    """A problem with its own law of the initial positions x^(0)."""

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""


@runtime_checkable
class WithDtype(Protocol):
    """A problem whose arrays have another type than float64."""

    dtype: np.dtype


def dtype_of(problem: Problem) -> np.dtype:
    """Return the floating-point type of a problem's arrays, float64 unless declared."""
    return np.dtype(problem.dtype if isinstance(problem, WithDtype) else float)


@runtime_checkable
class Classifier(Protocol):
    """A problem whose parameters classify points, rightly or not."""

    def accuracy(self, x: np.ndarray) -> np.ndarray:
        """Return the fraction of points that each x_i classifies right, (chains, some agents)."""


@runtime_checkable
class HeldOut(Protocol):
    """A problem with held-out rows of data, whose mean density over a Gaussian law is known."""

    test: tuple[np.ndarray, np.ndarray] | None  # features, targets; None: all rows are agents'

    def held_out_of(self, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Return the log of every target's mean density over N(mean, cov), (..., rows)."""


@runtime_checkable
class Predictive(Protocol):
    """A problem with predictive class probabilities, of which the recorder keeps averages."""

    def predictive(self, x: np.ndarray) -> np.ndarray:
        """Return class probabilities, (chains, some agents, images, classes)."""


@runtime_checkable
class WithTests(Protocol):
    """A problem with test sets, in the order in which ``predictive`` has their images."""

    tests: Mapping[str, Any]  # by name; each has ``labels``, (images,)
    examples: Mapping[str, Mapping[str, int]]  # rows reported one by one, by set and name


@cache
def offers(module: Any, protocol: type) -> bool:
    """Return whether a kind's module has every attribute of a protocol; the answer is cached.

    Python takes long for such a check, and there are many runs of a kind.
    """
    return isinstance(module, protocol)


@runtime_checkable
class ProblemKind(Protocol):
    """A module of ``concord.problems.kinds``: a kind of problem."""

    Params: type

    def check(self, params: Any, agents: int) -> None:
        """Refuse options that are impossible together, or for this many agents."""

    def build(
        self, params: Any, agents: int, partition: Any, stream: Stream, resources: Path
    ) -> Problem:
        """Draw the data from ``stream("data")``, or load them from the folder ``resources``."""


@runtime_checkable
class TakesArrays(Protocol):
    """A problem kind that may be made of a caller's own arrays."""

    from_arrays: Callable[..., Any]


@runtime_checkable
class NeedsData(Protocol):
    """A problem kind that reads downloaded data."""

    def needs(self, params: Any) -> tuple[str, ...]:
        """Return the data sets, of config/datasets.yaml, without which it cannot be built."""


@runtime_checkable
class TakesData(Protocol):
    """A problem kind that reads some data only where they are at hand."""

    def takes(self, params: Any) -> tuple[str, ...]:
        """Return the data sets that the kind reads where they are at hand."""


@runtime_checkable
class Extra(Protocol):
    """A problem kind that needs an optional package, and larger jobs."""

    JOB: Mapping[str, Any]  # what a sampling job takes: environment, mem_mb, runtime, options

    def unavailable(self) -> str | None:
        """Return what to install where the kind cannot be computed; None where it can."""


@runtime_checkable
class Sharing(Protocol):
    """A problem kind whose runs in an experiment may have part of their metrics in common."""

    def shares(self, params: Any) -> bool:
        """Return whether runs with these options share metrics, which one job computes once."""


@runtime_checkable
class PartitionKind(Protocol):
    """A kind of partition, a module of ``concord.sampling.partitions``."""

    Params: type

    def split(
        self,
        params: Any,
        rows: int,
        labels: np.ndarray | None,
        agents: int,
        rng: np.random.Generator,
    ) -> list[np.ndarray]:
        """Return an array of row numbers for each agent, every row once.

        ``labels`` are the rows' classes, (rows,); None where they have none.
        """


@runtime_checkable
class ScheduleKind(Protocol):
    """A kind of schedule, a module of ``concord.sampling.schedules``."""

    Params: type

    def schedule(self, params: Any) -> Callable[[int], float]:
        """Return the step size as a positive function of k; a ``Schedule`` if it has that form."""


@runtime_checkable
class InitialKind(Protocol):
    """A kind of initial law, a module of ``concord.sampling.initial``."""

    Params: type

    def draw(
        self, params: Any, problem: Problem, shape: tuple[int, int, int], rng: np.random.Generator
    ) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""

    def moments(self, params: Any, dim: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return mean (dim,) and covariance (dim, dim) of one agent; None if not known."""


class Label(NamedTuple):
    """The words for a metric whose name does not say what it measures.

    A label of ``recall`` is one of ``recall_3``, too: the rest of its name follows, or is in place
    of ``{}``. What has an axis is a price, which may be drawn in place of iterations.
    """

    says: str = ""  # what it is, in a sentence; none: its name
    head: str = ""  # of its column in a table, where that is another text
    axis: str = ""
    unit: str = ""  # of the axis


# What an agent pays in the arena.
PRICES = {
    "gradients": Label(axis="gradients per agent"),
    "bytes": Label(axis="bytes sent per agent", unit="B"),
    "seconds": Label(axis="simulated seconds", unit="s"),
}


@runtime_checkable
class MetricFamily(Protocol):
    """A family of metrics, a module of ``concord_studies.metrics``."""

    METRICS: tuple[str, ...]  # the names it yields; ``*`` stands for anything

    def rows(self, m: Any) -> Iterator[Any]:
        """Yield the ``metrics.Row``s of a ``metrics.Measurement``; a ConcordError if unsuited."""


# What the module of a kind may declare beside its functions, and what holds where it does not.
DECLARED: Mapping[str, Any] = {
    # Of any kind.
    "NAME": "",  # for readers, such as "DE-SGLD"; they see its key otherwise
    # Of problems.
    "FILES": (),  # options that name files of the study's folder, which are data of its runs
    "AMPLIFIES": "",  # why rounding errors grow until the chains of another processor are others
    # Of families of metrics.
    "LABELS": {},  # ``Label``s of metrics whose names do not say all
    "CONDITIONS": (),  # metrics that are 1 where a condition is met, and 0 where it is not
    "RECORDS": (),  # ``draws``, probes and averages that it reads, which not every run records
    "EXACT": (),  # metrics for which nothing has to be sampled
    "OF_LAW": (),  # metrics of the sampler's exact law, absent where it states none
    "NETWORK": None,  # what the network must have: a property of ``Conditions``, such as clocked
    "APART": False,  # whether metrics of an iteration need no other one to be recorded
}


def declared(module: Any, name: str) -> Any:
    """Return the value that a kind's module declares under one of the names of ``DECLARED``."""
    return getattr(module, name, DECLARED[name])


class Read(NamedTuple):
    """A metric that every run shown must have; as a plain name, one that some run must have."""

    metric: str
    select: Mapping[str, Any] | None = None  # of the runs shown only those that match
    agents: Sequence[int | str] = ()  # of these agents


@runtime_checkable
class OutputKind(Protocol):
    """A kind of figure or table, a module of ``concord_studies.figures`` or ``concord_studies.tables``."""

    Params: type

    def reads(self, params: Any) -> Sequence[Read | str]:
        """Return the metrics that the runs of a figure or table must have."""


@runtime_checkable
class FigureKind(OutputKind, Protocol):
    """A kind of figure, a module of ``concord_studies.figures``."""

    def draw(self, params: Any, runs: Sequence[Any]) -> Figure:
        """Draw measured runs (``results.Measured``), given in the order of the sweep.

        A run that lacks a metric, an agent or an iteration is refused with a ``ConcordError``, and
        so are two that would be one line or panel.
        """


@runtime_checkable
class TableKind(OutputKind, Protocol):
    """A kind of table, a module of ``concord_studies.tables``."""

    def tabulate(self, params: Any, runs: Sequence[Any]) -> Any:
        """Return the ``tables.Table`` of measured runs (``results.Measured``)."""
