"""What problems have in common: the prior's share, own data, mini-batches of regressions."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, Self

import numpy as np
from msgspec import Meta

from concord.contracts import BatchGradient, Gradient, GradientAt, Stream
from concord.errors import ConcordError, short
from concord.options import Count, Index, build
from concord.sampling import streams
from concord.sampling.partition import AgentData, Partition, consecutive_counts

PriorShare = Annotated[
    Literal["split", "omitted", "whole", "twice"],
    "prior in each agent's potential: 1/N of it (split), none (omitted), all of it (whole), or all "
    "of it twice, where a code has 2/lambda for 1/lambda",
]
LegacySeed = Annotated[
    Annotated[int, Meta(ge=0, le=2**32 - 1)] | None,
    "draw the data agent by agent from NumPy's legacy generator with this seed, as "
    "tzikas2024's authors do; none: from the paper's data stream",
]

# Of a caller's numbers: squares, and sums of very many of them, are finite.
LARGEST = 1e100

Function = Callable[[np.ndarray, np.ndarray], object]
Draw = Callable[[np.random.RandomState, np.ndarray, np.ndarray], np.ndarray]


class OneDataSet:
    """A problem whose chains have the same data."""

    def from_chain(self, first: int) -> Self:
        """Return the problem itself."""
        return self


def prior_share(share: str, agents: int) -> float:
    """Return how many times each agent's potential holds the log prior."""
    return {"split": 1 / agents, "omitted": 0.0, "whole": 1.0, "twice": 2.0}[share]


def check_agents(params: Any, agents: int) -> None:
    """Refuse more agents than points."""
    check_points(params.points, agents)


def check_points(points: int, agents: int) -> None:
    """Refuse more agents than points."""
    if agents > points:
        raise ConcordError(
            f"{agents} agents cannot share {points} points; give each agent at least one point"
        )


def kept_apart(rows: int, testing: int, stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the rows to train on, and of those for testing, drawn at random."""
    order = np.arange(rows)
    if testing:
        stream("test").shuffle(order)
    return np.sort(order[testing:]), np.sort(order[:testing])


def numbers(values: Any, name: str) -> np.ndarray:
    """Return what a caller gives as an array of finite numbers, whose squares are finite, too."""
    try:
        given = np.array(values)
        if given.dtype.kind == "c":
            raise ConcordError(f"{name}: its numbers are complex; give real ones")
        array = given.astype(float)
    except (TypeError, ValueError):
        raise ConcordError(f"{name}: {short(values)} is no array of numbers; give one") from None
    if not np.isfinite(array).all():
        raise ConcordError(f"{name}: some of its numbers are not finite; remove them")
    if (np.abs(array) > LARGEST).any():
        most = np.abs(array).argmax()
        place = [int(index) for index in np.unravel_index(most, array.shape)]
        raise ConcordError(
            f"{name}{place or ''}: {array.flat[most]:g} is beyond {LARGEST:g}, where sums of "
            "squares are not finite; use larger units"
        )
    return array


def own_data(
    X: Any, y: Any, agents: int | None, partition: Any, seed: int, classes: bool = False
) -> AgentData:
    """Return the rows of features X and targets y, split over the agents.

    ``concord.problems.linear_regression`` explains the parameters; ``classes``: y are labels, by
    which rows may be split. A ConcordError if arrays are not numbers, or do not fit each other or
    the number of agents.
    """
    together = agents is not None
    if not together and not (isinstance(X, (list, tuple)) and isinstance(y, (list, tuple))):
        raise ConcordError(
            "agents is missing; give their number, or X and y as lists with an array of each agent"
        )
    if not together and not len(X) == len(y) > 0:
        raise ConcordError(f"X of {len(X)} agents and y of {len(y)} do not fit; give one of each")
    pieces: list[tuple[np.ndarray, np.ndarray]] = []
    for i, (rows, aims) in enumerate([(X, y)] if together else zip(X, y, strict=True)):
        place = "" if together else f"[{i}]"
        features, targets = numbers(rows, f"X{place}"), numbers(aims, f"y{place}")
        wanted = pieces[0][0].shape[1:] if pieces else features.shape[1:]
        if features.ndim != 2 or targets.shape != features.shape[:1] or not features.size:
            raise ConcordError(
                f"X{place} of shape {features.shape} and y{place} of shape {targets.shape} do not "
                "fit; give (rows, dim) and (rows,)"
            )
        if features.shape[1:] != wanted:
            raise ConcordError(
                f"X{place} has {features.shape[1]} columns and X[0] {wanted[0]}; give all agents "
                "the same features"
            )
        pieces.append((features, targets))
    features, targets = (np.concatenate(column) for column in zip(*pieces, strict=True))
    if together:
        rng = streams.generator(build(Index, seed, "seed"), "partition")
        parts = parted(partition).split(
            targets if classes else len(targets), build(Count, agents, "agents"), rng
        )
    else:
        counts = [len(aims) for _, aims in pieces]
        parts = np.split(np.arange(len(targets)), np.cumsum(counts)[:-1])
    return AgentData.from_parts(features, targets, parts)


def parted(way: Any) -> Partition:
    """Return the partition that a caller names, or gives as a mapping with a kind."""
    return Partition.parse({"kind": way} if isinstance(way, str) else way, "partition")


def takes_arrays(name: str, function: Callable[..., Any]) -> None:
    """Make the module of a kind callable: ``concord.problems.<kind>(X, y, ...)``.

    By a class of its own, as Python's data model has it ("Customizing module attribute access").
    """

    class Kind(ModuleType):
        __call__ = staticmethod(function)

    module = sys.modules[name]
    module.__class__ = Kind
    module.__dict__["__signature__"] = inspect.signature(function)


def takes_options(name: str) -> None:
    """Make the module of a kind without own data callable with its options and ``agents``."""

    def made(agents: int, *, partition: Any = "equal", seed: int = 1, **options: Any) -> Any:
        """Return the problem of so many agents; options are those of a study's files.

        ``partition`` and ``seed`` are as of ``concord.problems.linear_regression``; all that is
        random follows from the seed.
        """
        kind, split = sys.modules[name], parted(partition)
        params, count = build(kind.Params, options), build(Count, agents, "agents")
        kind.check(params, count)

        def stream(what: str) -> np.random.Generator:
            return streams.generator(build(Index, seed, "seed"), what)

        return kind.build(params, count, split, stream, Path("resources"))

    takes_arrays(name, made)


def legacy_data(
    seed: int, points: int, agents: int, variances: tuple[float, float], dim: int, draw: Draw
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw parameter, then each agent's points, in the order of tzikas2024's authors.

    ``variances`` are those of the parameter's and of the features' entries;
    ``draw(rng, features, parameter)`` returns what else an agent's points have. Returns parameter
    (dim,), features (points, dim), and what was drawn, (points,).
    """
    rng = np.random.RandomState(seed)
    origin, identity = np.zeros(dim), np.eye(dim)
    truth = rng.multivariate_normal(origin, variances[0] * identity)
    features, drawn = [], []
    for count in consecutive_counts(points, agents):
        own = rng.multivariate_normal(origin, variances[1] * identity, size=count)
        features.append(own)
        drawn.append(draw(rng, own, truth))
    return truth, np.concatenate(features), np.concatenate(drawn)


def batch_gradient(
    data: AgentData,
    chains: int,
    batch_size: int,
    link: Function | None,
    precision: float,
    add_prior: Function,
) -> BatchGradient:
    r"""Return ``g(x, rows, out)``, the mini-batch gradient of a generalized linear model.

    .. math:: \frac{n_i p}{b} \sum_j (h(x_i^\top X_j) - y_j) X_j + \text{the prior's part}

    ``link(z, out)`` writes h (None: the identity), ``precision`` is p, and ``add_prior(x, out)``
    adds the prior's part.
    """
    agents, most, dim = data.features.shape
    shape = (chains, agents, batch_size)
    features = np.empty((*shape, dim))
    targets, residual = np.empty(shape), np.empty(shape)
    flat = np.empty(shape, dtype=np.intp)
    offset = (np.arange(agents) * most)[:, None]
    table, column = data.features.reshape(-1, dim), data.targets.reshape(-1)
    scale = (precision * data.counts / batch_size)[:, None]

    def gradient(x: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.add(rows, offset, out=flat)
        np.take(table, flat, axis=0, out=features, mode="clip")
        np.take(column, flat, out=targets, mode="clip")
        np.matmul(features, x[..., None], out=residual[..., None])
        if link is not None:
            link(residual, residual)
        np.subtract(residual, targets, out=residual)
        np.matmul(residual[..., None, :], features, out=out[..., None, :])
        np.multiply(out, scale, out=out)
        add_prior(x, out)
        return out

    return gradient


def sigmoid(z: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return 1 / (1 + exp(-z)) without overflow, as (1 + tanh(z / 2)) / 2."""
    out = np.multiply(z, 0.5, out=out)
    np.tanh(out, out=out)
    out += 1.0
    out *= 0.5
    return out


class Tabled(OneDataSet):
    """Potentials whose gradients need a few numbers of each agent, not its points.

    ``tables`` are these numbers, each (agents, ...). A problem has ``slope(x, out, *tables)``,
    which writes gradients at x (..., dim) of the agents that the tables' leading axes name, and
    ``values(x, *tables)``, which returns their potentials (...).
    """

    agents: int
    dim: int
    posterior = None
    tables: tuple[np.ndarray, ...]
    slope: Callable[..., np.ndarray]
    values: Callable[..., np.ndarray]

    def gradient(self, chains: int) -> Gradient:
        """Return ``g(x, out)``, the gradient of every f_i at x_i."""
        return lambda x, out: self.slope(x, out, *self.tables)

    def gradient_at(self, chains: int, width: int) -> GradientAt:
        """Return ``g(x, agents, out)``: the gradients of ``width`` chosen agents of each chain."""
        return lambda x, agents, out: self.slope(x, out, *(table[agents] for table in self.tables))

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""
        return self.values(x, *self.tables)
