"""What a study's problems, figures and tables are, as protocols, and the words for metrics.

A kind's module declares what it offers; metrics, figures and jobs ask by these protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from concord.kinds import Declaration, declaration_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concord.laws.gaussian import Gaussian


@dataclass(frozen=True, kw_only=True)
class ProblemDeclaration(Declaration):
    """What the module of a kind of problem says of it beside its functions.

    needs: the data sets, of config/datasets.yaml, that options ask for.
    takes: those that they read where these are at hand.
    unavailable: what to install where the kind cannot be computed; None where it can.
    job: what a job takes that samples it: environment, mem_mb, runtime.
    files: options that name files of the study's folder, which are data of its runs.
    amplifies: why rounding errors grow until the chains of another processor are others.
    """

    needs: Callable[[Any], tuple[str, ...]] = lambda params: ()
    takes: Callable[[Any], tuple[str, ...]] = lambda params: ()
    unavailable: Callable[[], str | None] = lambda: None
    job: Mapping[str, str | int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    amplifies: str = ""


def declaration_of_problem(module: object) -> ProblemDeclaration:
    """Return the declaration in the module of a kind of problem; an empty one if there is none."""
    stated = declaration_of(module)
    return stated if isinstance(stated, ProblemDeclaration) else ProblemDeclaration()


@runtime_checkable
class SampledLaw(Protocol):
    """A problem with a known law of the sum of the potentials, whatever their prior share."""

    @property
    def sampled(self) -> Gaussian:
        """Return the Gaussian proportional to exp(-sum_i f_i). A ConcordError if there is none.

        It is not the posterior where potentials omit the prior, or each has all of it.
        """


@runtime_checkable
class HeldOut(Protocol):
    """A problem with held-out rows of data, whose mean density over a Gaussian law is known.

    test: features, (rows, columns), and targets, (rows,); None if none are held out.
    """

    test: tuple[np.ndarray, np.ndarray] | None

    def held_out_log_density(self, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Return the log of each held-out target's density, averaged over N(mean, cov), (rows,).

        mean: (dim,). cov: (dim, dim).
        """


@runtime_checkable
class Predictive(Protocol):
    """A problem with predictive class probabilities, of which the recorder keeps averages."""

    def predictive(self, x: np.ndarray) -> np.ndarray:
        """Return class probabilities, (chains, agents, images, classes).

        x: positions, (chains, agents, dim); the agents may be any of the problem's.
        """


@runtime_checkable
class WithTestSets(Protocol):
    """A problem with named test sets; ``predictive`` has their images one set after another."""

    tests: Mapping[str, Any]  # by name; each has ``labels``, (images,)
    examples: Mapping[str, Mapping[str, int]]  # rows reported one by one, by set and name


class Label(NamedTuple):
    """The words for a metric whose name does not say what it measures.

    says: what the metric is, as a phrase within a sentence; none: its name. A label of ``recall``
    is used for ``recall_3``, too: the "3" replaces ``{}`` in the phrase, or else follows it.
    head: the heading of its column in a table, where that is not ``says``.
    axis, unit: the text of a figure's axis and its unit, of a price alone. A price is a metric that
    an axis may show in place of iterations, such as the bytes sent.
    """

    says: str = ""
    head: str = ""
    axis: str = ""
    unit: str = ""


# What an agent pays in the arena.
PRICES = {
    "gradients": Label(axis="gradients per agent"),
    "bytes": Label(axis="bytes sent per agent", unit="B"),
    "seconds": Label(axis="simulated seconds", unit="s"),
}


class Read(NamedTuple):
    """A metric that every run shown must have.

    A plain name in the place of a ``Read`` is a metric that at least one run must have.
    """

    metric: str
    select: Mapping[str, Any] | None = None  # of the runs shown only those that match
    agents: Sequence[int | str] = ()  # of these agents


@runtime_checkable
class OutputKind(Protocol):
    """A kind of figure or table, a module of ``figures`` or ``tables``."""

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
class LayerKind(Protocol):
    """A kind of layer, a module of ``concord_studies.layers``."""

    Params: type  # a ``figures.layer.Layer`` whose fields are its options


@runtime_checkable
class TableKind(OutputKind, Protocol):
    """A kind of table, a module of ``concord_studies.tables``."""

    def tabulate(self, params: Any, runs: Sequence[Any]) -> Any:
        """Return the ``tables.Table`` of measured runs (``results.Measured``)."""
