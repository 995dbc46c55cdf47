"""Options, problems and random numbers with which any kind is tested.

Nothing here names a plug-in: what a field of ``Params`` may be follows from its declaration.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from msgspec.structs import fields as fields_of

from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.networks import topology
from concord.networks.compressions import Compression
from concord.options import choices, members
from concord.options import kinds as kinds_of
from concord.problems._data import OneDataSet
from concord.problems.kinds import linear_regression
from concord.sampling import partition, streams
from concord.sampling.schedules import Schedule

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


def problem(agents: int, dim: int, share: Any = "split", points: int = 3) -> Any:
    """Return a regression with about ``points`` per agent, not equally many."""
    params = linear_regression.Params(points=points * agents + 1, dim=dim, prior_share=share)
    split = partition.Partition.parse({"kind": "equal"}, "tests")
    return linear_regression.build(
        params, agents, split, lambda what: streams.generator(3, what, agents), Path("unused")
    )


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
    """Yield Params: every combination of choices, and the other fields varied together."""
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


class Quiet:
    """A generator without normal noise or shuffling, whose other numbers are one half, or first."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Quieten a generator."""
        self._rng = rng

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

    def __getattr__(self, name: str) -> Any:
        """Return what else the generator has."""
        return getattr(self._rng, name)


class Bare(OneDataSet):
    """A problem that offers nothing beyond the protocol: f_i(x) = |x|^2 / 2."""

    posterior: Gaussian | None = None

    def __init__(self, agents: int, dim: int = 2) -> None:
        """Make it for so many agents."""
        self.agents, self.dim = agents, dim

    def gradient(self, chains: int) -> Any:
        """Return the gradient, which is x."""
        return lambda x, out: np.positive(x, out=out)
