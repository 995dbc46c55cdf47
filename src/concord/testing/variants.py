"""Options, networks, problems and random numbers with which any kind is tested: its cases.

Nothing here names a plug-in: what a field of ``Params`` may be follows from its declaration.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import fields as fields_of
from msgspec.structs import replace

from concord.contracts import declared
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.networks import topology
from concord.networks.compressions import Compression
from concord.options import choices, members
from concord.options import kinds as kinds_of
from concord.problems._data import OneDataSet
from concord.problems.kinds import linear_regression
from concord.samplers import Batching
from concord.sampling import partition, streams
from concord.sampling.schedules import Schedule
from concord.testing._outcome import expect

GRAPHS = [
    topology.build("complete", 6),
    topology.build("ring", 5),
    topology.build("star", 4),
    topology.build("path", 3),
    topology.build("no_edges", 4),
    topology.build("edge_list", 5, edges=[[0, 1], [0, 4], [1, 2], [2, 3], [1, 4]]),
    topology.build("ring", 2),
    topology.build("no_edges", 1),
    topology.build("server", 4),
]
CONSTANT, DECAYING = Schedule(0.013), Schedule(0.02, b=2.0, c=1.0, exponent=0.7)


# Of all that the tests of a sampler draw; ``testing.run`` may set it.
SEED = ContextVar("SEED", default=1)


def stream(*labels: str | int) -> np.random.Generator:
    """Return the generator of a test's own numbers, by fixed labels: not by where a file lies."""
    return streams.generator(SEED.get(), "test", *labels)


def drawn_networks() -> list[Any]:
    """Return a tree and a network with circles of seven agents or more, which the seed decides."""
    rng = stream("networks")
    found = []
    for more in (0, 5):
        agents = int(rng.integers(7, 10))
        order = rng.permutation(agents)
        edges = {
            tuple(sorted((int(order[i]), int(order[rng.integers(0, i)])))) for i in range(1, agents)
        }
        for _ in range(more):
            edges.add(tuple(sorted(int(i) for i in rng.choice(agents, 2, replace=False))))
        found.append(
            topology.build("edge_list", agents, edges=[list(edge) for edge in sorted(edges)])
        )
    return found


def drawn_dim(*labels: str | int) -> int:
    """Return a dimension from seven on."""
    return int(stream("dimension", *labels).integers(7, 10))


def problem(
    agents: int, dim: int, share: Any = "split", points: int = 3, other: bool = False
) -> Any:
    """Return a regression with about ``points`` per agent, not equally many.

    other: agent 0 has other data.
    """
    params = linear_regression.Params(points=points * agents + 1, dim=dim, prior_share=share)
    split = partition.Partition.parse({"kind": "equal"}, "tests")
    made = linear_regression.build(
        params, agents, split, lambda what: streams.generator(3, what, agents), Path("unused")
    )
    if not other:
        return made
    features, targets = made.data.features.copy(), made.data.targets.copy()
    features[0] *= 1.5
    targets[0] *= -2.0
    data = dataclasses.replace(made.data, features=features, targets=targets)
    return linear_regression.LinearRegression(data, params)


def options(field: Any, n: int) -> list[Any]:
    """Return values of one field: all its choices, or up to two that suit its declaration."""
    if choices(field.type):
        return list(choices(field.type))
    kinds = dict(members(field.type))
    if Schedule in kinds:
        return [CONSTANT, DECAYING, *([None] if type(None) in kinds else [])]
    if field.name == "batch_size":
        return [None, None, 2]  # both schedules with full gradients, then one with mini-batches
    if field.name == "points":
        return [11]
    if tagged := kinds_of(field.type):
        return [
            kind(**{own.name: options(own, m)[-1] for m, own in enumerate(fields_of(kind))})
            for kind in tagged.values()
        ]
    if Compression in kinds:
        return [Compression("qsgd", bits=3), Compression("top_k", share=0.5)]
    given = not field.required
    if float in kinds:
        low, high = kinds[float].get("gt", kinds[float].get("ge", 0.0)), kinds[float].get("le")
        other = low + (0.7 + 0.1 * n if high is None else 0.4 * (high - low))
        return [field.default, other] if given else [other]
    if given:
        return [field.default]
    return [max(1, kinds[int].get("ge", 1))] if int in kinds else [()]


def variants(module: ModuleType) -> Iterator[Any]:
    """Yield Params: every combination of choices, and the other fields varied together.

    There are none where options name files, which only a study has.
    """
    if declared(module, "FILES"):
        return
    fields = fields_of(module.Params)
    listed = [options(field, n) for n, field in enumerate(fields)]
    chosen = [bool(choices(field.type)) for field in fields]
    for picks in itertools.product(
        *(v if c else [None] for v, c in zip(listed, chosen, strict=True))
    ):
        most = max((1 if c else len(v) for v, c in zip(listed, chosen, strict=True)), default=1)
        for i in range(most):
            yield module.Params(
                **{
                    f.name: pick if c else v[i % len(v)]
                    for f, v, c, pick in zip(fields, listed, chosen, picks, strict=True)
                }
            )


def allowed(module: ModuleType, prob: Any, graph: Any, params: Any) -> bool:
    """Tell whether the sampler accepts the combination."""
    try:
        module.check(prob, graph, params)
    except ConcordError:
        return False
    return True


class Case(NamedTuple):
    """A sampler with options, on a network and a problem."""

    module: Any
    graph: Any
    prob: Any
    params: Any

    def __str__(self) -> str:
        """Say which case it is."""
        size = f"{self.prob.agents} agents in {self.prob.dim} dimensions"
        return f"on {self.graph.name} of {size}, with {self.params}"

    @property
    def allowed(self) -> bool:
        """Whether the sampler accepts it."""
        return allowed(self.module, self.prob, self.graph, self.params)

    @property
    def batched(self) -> bool:
        """Whether these options take mini-batches."""
        return isinstance(self.params, Batching) and self.params.batch_size is not None

    @property
    def size(self) -> int:
        """Return the number of coordinates of all agents."""
        return int(self.prob.agents * self.prob.dim)

    def start(self, chains: int, seed: int) -> np.ndarray:
        """Return positions of chains to start from."""
        shape = (chains, self.prob.agents, self.prob.dim)
        return streams.generator(seed, "x0").standard_normal(shape)

    def begin(self, x0: np.ndarray, rng: Any) -> tuple[Any, Any]:
        """Return the state at x0, and the step."""
        state, step = self.module.init(self.prob, self.graph, self.params, x0, rng)
        return state, step

    def after(self, steps: int, x0: np.ndarray, rng: Any) -> Any:
        """Return the state after so many steps from x0."""
        return walk(*self.begin(x0, rng), rng, range(steps))


def walk(state: Any, step: Any, rng: Any, iterations: Iterable[int]) -> Any:
    """Return the state after a step in each of these iterations."""
    for k in iterations:
        state, _ = step(state, k, rng)
    return state


def copied(state: Any) -> Any:
    """Return a state that shares no array with another."""
    return type(state)(*(part.copy() for part in state))


def combinations(module: Any, dims: tuple[int, ...] = (1, 3), graphs: Any = GRAPHS) -> list[Case]:
    """Return every accepted combination of graph, dimension and parameters."""
    found = [
        Case(module, graph, prob, params)
        for graph in graphs
        for prob in (problem(graph.agents, dim) for dim in dims)
        for params in variants(module)
    ]
    found = [case for case in found if case.allowed]
    expect(bool(found), "it accepts none of the networks and options tried on linear regression")
    return found


def constant(params: Any, **values: Schedule) -> Any:
    """Return the options with constant schedules, the same or as stated."""
    own = {field.name: getattr(params, field.name) for field in fields_of(type(params))}
    plain = {name: CONSTANT for name, value in own.items() if isinstance(value, Schedule)}
    return replace(params, **(plain | values))


def drawn(module: Any, constants: bool = True, dim: int | None = None) -> Iterator[Case]:
    """Yield one drawn network for each of the options with full gradients, or one it accepts."""
    graphs, seen = [*drawn_networks(), *GRAPHS], []
    for number, params in enumerate(variants(module)):
        own = constant(params) if constants else params
        if own in seen:
            continue
        for graph in graphs[number % 2 :]:
            case = Case(module, graph, problem(graph.agents, dim or drawn_dim(number)), own)
            if not case.batched and case.allowed:
                seen.append(own)
                yield case
                break


class Still:
    """A generator whose normal numbers are chosen: zero, or for chain m the m-th unit vector.

    ``sizes`` keeps how many numbers per chain each call asked for.
    """

    def __init__(self, chains: int, unit: bool = False, fill: float = 0.0) -> None:
        """Choose them for so many chains; ``fill`` instead of zero."""
        self.chains, self.unit, self.fill = chains, unit, fill
        self.sizes: list[int] = []

    def standard_normal(self, size: Any = None, dtype: Any = float, out: Any = None) -> np.ndarray:
        """Return the numbers that were chosen."""
        shape = out.shape if out is not None else tuple(np.atleast_1d(size))
        values = np.full(shape, self.fill, dtype=dtype)
        axis = shape.index(self.chains)
        by_chain = np.moveaxis(values, axis, 0).reshape(self.chains, -1).copy()
        offset, width = sum(self.sizes), by_chain.shape[1]
        self.sizes.append(width)
        if self.unit:
            by_chain[np.arange(offset, offset + width), np.arange(width)] = 1.0
        moved = np.moveaxis(values, axis, 0)
        moved[...] = by_chain.reshape(moved.shape)
        if out is None:
            return values
        out[...] = values
        return out


class Wrapped:
    """Something with a part of it replaced; the rest is that of what is inside."""

    def __init__(self, inner: Any) -> None:
        """Wrap a generator or a problem."""
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        """Return what else it has."""
        return getattr(self.inner, name)


class Quiet(Wrapped):
    """A generator without normal noise or shuffling, whose other numbers are one half, or first."""

    def standard_normal(self, size: Any = None, dtype: Any = float, out: Any = None) -> np.ndarray:
        """Return zeros."""
        values = np.zeros(size, dtype) if out is None else out
        values[...] = 0.0
        return values

    def random(self, size: Any = None, out: Any = None, **_: Any) -> Any:
        """Return one half everywhere."""
        values = np.zeros(() if size is None else size) if out is None else out
        values[...] = 0.5
        return values if np.ndim(values) else 0.5

    def permuted(self, x: np.ndarray, axis: Any = None, out: Any = None) -> Any:
        """Leave the order as it is."""
        return np.copyto(out, x)

    def integers(self, low: int, high: int | None = None, size: Any = None, **_: Any) -> Any:
        """Return the least."""
        return np.zeros(() if size is None else size, dtype=int) + (0 if high is None else low)


class Bare(OneDataSet):
    """A problem that offers nothing beyond the protocol: f_i(x) = |x|^2 / 2."""

    posterior: Gaussian | None = None

    def __init__(self, agents: int, dim: int = 2) -> None:
        """Make it for so many agents."""
        self.agents, self.dim = agents, dim

    def gradient(self, chains: int) -> Any:
        """Return the gradient, which is x."""
        return lambda x, out: np.positive(x, out=out)
