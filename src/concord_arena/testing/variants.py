"""Options, networks and problems on which contract tests try any kind, and their exceptions.

Nothing here names a plug-in: the values of an option follow from its declaration.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import msgspec
import numpy as np

from concord import streams
from concord.errors import ConcordError
from concord.hints import choices, members, tagged_kinds
from concord.networks.compressions import Compression
from concord.networks.topology import build_graph
from concord.problems.kinds import linear_regression
from concord.sampler import own_options
from concord.sampling.schedules import Schedule
from concord_studies.contracts import declaration_of_problem

GRAPHS = [
    build_graph("edge_list", 5, edges=[[0, 1], [0, 4], [1, 2], [2, 3], [1, 4]]),
    build_graph("ring", 5),
    build_graph("star", 4),
    build_graph("complete", 6),
    build_graph("path", 3),
    build_graph("ring", 2),
    build_graph("no_edges", 4),
    build_graph("no_edges", 1),
    build_graph("server", 4),
]
SCHEDULES = [Schedule(0.013), Schedule(0.02, b=2.0, c=1.0, exponent=0.7)]
NUMBERS = {"points": 11, "bits": 3}  # of options that have no default, or need one of several
# The seed of all that tests draw; ``testing.run`` may set it.
SEED = ContextVar("SEED", default=1)


class Broken(AssertionError):
    """Raised by a check that fails: a sentence on how the kind breaks its contract."""


class Inapplicable(Exception):
    """Raised by a check that has nothing to test: the reason."""


def expect(holds: Any, otherwise: str, case: object = "") -> None:
    """Raise ``Broken`` unless a condition holds.

    otherwise: the sentence of the error. case: the options or network tried, to end it with, or "".
    """
    if not holds:
        raise Broken(f"{otherwise}, {case}" if case else otherwise)


def stream(*labels: str | int) -> np.random.Generator:
    """Return the random generator that some labels and ``SEED`` determine."""
    return streams.generator(SEED.get(), "test", *labels)


def regression(agents: int, dim: int, local: Sequence[bool] | None = None) -> Any:
    """Return a linear regression with 24 points an agent and one more, the same for all seeds.

    Agents have different modes, and curvatures near one. local: the mask of local coordinates.
    """
    rng, rows = streams.generator(1, "regression", agents, dim), 24 * agents + 1
    targets = 24**0.5 * rng.standard_normal(rows)
    features = rng.standard_normal((rows, dim))
    options: dict[str, Any] = {"noise_sd": 24**0.5, "local": local}
    return linear_regression.from_arrays(features, targets, agents, **options)


class GradientOnly:
    """A problem that offers gradients alone, those of potentials f_i(x) = |x|^2 / 2."""

    posterior = None

    def __init__(self, agents: int, dim: int = 2) -> None:
        """Set the numbers of agents and coordinates."""
        self.agents, self.dim = agents, dim

    def from_chain(self, first: int) -> "GradientOnly":
        """Return the problem itself, since all chains have the same data."""
        return self

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient, which is x, (chains, agents, dim)."""
        return x.copy()


def _values(field: Any) -> list[Any]:
    """Return values to try for an option: all its choices, or up to two that its type allows."""
    types = dict(members(field.type))
    if chosen := choices(field.type):
        return list(chosen)
    if Schedule in types:
        return [*SCHEDULES, *([None] if type(None) in types else [])]
    if Compression in types:
        return [Compression("qsgd", bits=3), Compression("top_k", share=0.5)]
    if field.name in NUMBERS:
        return [NUMBERS[field.name]]
    if tagged := tagged_kinds(field.type):
        return [_build_last(kind) for kind in tagged.values()]
    default = [] if field.required else [field.default]
    if float in types:
        least = types[float].get("gt", types[float].get("ge", 0.0))
        most = types[float].get("le", least + 1.75)
        return [*default, least + 0.4 * (most - least)]
    if not field.required:
        return default if field.default is not msgspec.NODEFAULT else [field.default_factory()]
    return [max(1, types[int].get("ge", 1))] if int in types else [()]


def _build_last(kind: Any) -> Any:
    """Build options of a kind, each the last of its ``_values``."""
    return kind(**{field.name: _values(field)[-1] for field in msgspec.structs.fields(kind)})


def variants(module: Any) -> Iterator[Any]:
    """Yield variants of a kind's options: every combination of choices, each with all other values.

    module: a sampler's class, or another kind's module. There are none where options name files.
    """
    if not isinstance(module, type) and declaration_of_problem(module).files:
        return
    kind = module if isinstance(module, type) else module.Params
    options = own_options(kind)
    every = {option.name: _values(option) for option in options}
    chosen = {option.name: every.pop(option.name) for option in options if choices(option.type)}
    for picks in itertools.product(*chosen.values()):
        for turn in range(max(map(len, every.values()), default=1)):
            picked = dict(zip(chosen, picks, strict=True))
            try:
                yield kind(**_take_turn(every, turn), **picked)
            except ConcordError:  # of two options that exclude each other, the next has its turn
                yield kind(**_take_turn(every, turn, 1), **picked)


def _take_turn(every: dict[str, list[Any]], turn: int, shift: int = 0) -> dict[str, Any]:
    """Return one value of each option by name, in turn.

    shift: by how many values the turn moves on from one option to the next. every: the values of
    each option. turn: the number of the turn.
    """
    return {
        name: values[(turn + shift * place) % len(values)]
        for place, (name, values) in enumerate(every.items())
    }
