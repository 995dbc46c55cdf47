"""Options, networks, problems and random numbers on which checks try any kind.

Nothing here names a plug-in: what an option may be follows from its declaration.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import fields as fields_of
from msgspec.structs import replace

from concord import streams
from concord.errors import ConcordError
from concord.hints import choices, members
from concord.hints import tagged_kinds as kinds_of
from concord.loop import keep_asleep
from concord.networks.compressions import Compression
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.problem import CountedProblem
from concord.problems.from_options import NoDataSets
from concord.problems.kinds import linear_regression
from concord.sampler import check_state
from concord.sampling import partition
from concord.sampling.schedules import Schedule
from concord_arena.testing._outcome import Broken, expect
from concord_studies.contracts import declared

GRAPHS = [
    build_graph("ring", 5),
    build_graph("star", 4),
    build_graph("edge_list", 5, edges=[[0, 1], [0, 4], [1, 2], [2, 3], [1, 4]]),
    build_graph("complete", 6),
    build_graph("path", 3),
    build_graph("ring", 2),
    build_graph("no_edges", 4),
    build_graph("no_edges", 1),
    build_graph("server", 4),
]
CONSTANT, DECAYING = Schedule(0.013), Schedule(0.02, b=2.0, c=1.0, exponent=0.7)
NUMBERS = {"points": 11, "bits": 3}  # of options that have no default, or need one of several
# The seed of all that tests draw; ``testing.run`` may set it.
SEED = ContextVar("SEED", default=1)

Step = Callable[[Any, int, Any], Any]


def stream(*labels: str | int) -> np.random.Generator:
    """Return the generator of a check's random numbers, which labels and ``SEED`` determine."""
    return streams.generator(SEED.get(), "test", *labels)


def draw_tree(agents: int) -> Any:
    """Draw a random tree over agents, which ``SEED`` determines."""
    rng = stream("tree", agents)
    order = rng.permutation(agents).tolist()
    edges = [[order[i], order[rng.integers(0, i)]] for i in range(1, agents)]
    return build_graph("edge_list", agents, edges=edges)


def problem(
    agents: int, dim: int, share: Any = "split", points: int = 3, other: bool = False
) -> Any:
    """Return a linear regression with about ``points`` points for each agent, in unequal numbers.

    share: the prior's share of an agent. other: whether agent 0 gets other data.
    """
    params = linear_regression.Params(points=points * agents + 1, dim=dim, prior_share=share)
    split = partition.Partition.parse({"kind": "equal"}, "tests")
    regression = linear_regression.build(
        params, agents, split, lambda what: streams.generator(3, what, agents), NoDataSets()
    )
    if not other:
        return regression
    features, targets = regression.data.features.copy(), regression.data.targets.copy()
    features[0] *= 1.5
    targets[0] *= -2.0
    data = dataclasses.replace(regression.data, features=features, targets=targets)
    return linear_regression.LinearRegression(data, params)


class Bare:
    """A problem with gradients alone, of potentials f_i(x) = |x|^2 / 2."""

    def __init__(self, agents: int, dim: int = 2) -> None:
        """Set the numbers of agents and coordinates; there is no posterior."""
        self.agents, self.dim, self.posterior = agents, dim, None

    def from_chain(self, first: int) -> "Bare":
        """Return the problem itself."""
        return self

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient, which is x, (chains, agents, dim)."""
        return x.copy()


def options(field: Any, n: int) -> list[Any]:
    """Return values to try for an option: all its choices, or up to two its type allows.

    field: of a struct of options. n: its place there, which varies the value.
    """
    if choices(field.type):
        return list(choices(field.type))
    kinds, given = dict(members(field.type)), not field.required
    if Schedule in kinds:
        return [CONSTANT, DECAYING, *([None] if type(None) in kinds else [])]
    if Compression in kinds:
        return [Compression("qsgd", bits=3), Compression("top_k", share=0.5)]
    if field.name in NUMBERS:
        return [NUMBERS[field.name]]
    if tagged := kinds_of(field.type):
        return [
            kind(**{own.name: options(own, m)[-1] for m, own in enumerate(fields_of(kind))})
            for kind in tagged.values()
        ]
    if float in kinds:
        low, high = kinds[float].get("gt", kinds[float].get("ge", 0.0)), kinds[float].get("le")
        other = low + (0.7 + 0.1 * n if high is None else 0.4 * (high - low))
        return [field.default, other] if given else [other]
    if given:
        return [field.default_factory()] if callable(field.default_factory) else [field.default]
    return [max(1, kinds[int].get("ge", 1))] if int in kinds else [()]


def variants(module: Any) -> Iterator[Any]:
    """Yield options of a kind, with every combination of choices.

    Those that the kind's class refuses are left out. There are none where options name files, which
    only a study has.
    """
    if declared(module, "FILES"):
        return
    kind = module if isinstance(module, type) else module.Params
    fields = fields_of(kind)
    values = [options(field, n) for n, field in enumerate(fields)]
    chosen = [bool(choices(field.type)) for field in fields]
    most = max((len(v) for v, c in zip(values, chosen, strict=True) if not c), default=1)
    for picks in itertools.product(
        *(v if c else [None] for v, c in zip(values, chosen, strict=True))
    ):
        for i in range(most):
            yield kind(
                **{
                    field.name: pick if c else v[i % len(v)]
                    for field, v, c, pick in zip(fields, values, chosen, picks, strict=True)
                }
            )


def with_schedules(sampler: Any, step: Schedule = CONSTANT, others: Schedule = CONSTANT) -> Any:
    """Return a sampler whose step size is one schedule, and whose other schedules are another.

    The step size is the option ``step_size``, or the first option that takes a schedule.
    """
    names = [f.name for f in fields_of(type(sampler))]
    names = [name for name in names if isinstance(getattr(sampler, name), Schedule)]
    names.sort(key=lambda name: name != "step_size")
    return replace(sampler, **{name: others if at else step for at, name in enumerate(names)})


class Case(NamedTuple):
    """A sampler with the network and problem on which a check runs it."""

    sampler: Any
    network: Network
    problem: Any

    def __str__(self) -> str:
        """Return the case as text for errors."""
        size = f"{self.problem.agents} agents in {self.problem.dim} dimensions"
        return f"on {self.network.name} of {size}, with {self.sampler}"

    @property
    def allowed(self) -> bool:
        """Return whether the sampler accepts the problem and the network."""
        try:
            self.sampler.check(self.problem, self.network)
        except ConcordError:
            return False
        return True

    def draw(self, chains: int, *labels: str | int) -> np.ndarray:
        """Draw initial positions, (chains, agents, dim); labels name the stream."""
        shape = chains, self.problem.agents, self.problem.dim
        return stream("start", *labels).standard_normal(shape)

    def begin(self, x0: np.ndarray, rng: Any, later: Any = None) -> tuple[Any, Step]:
        """Return the state at x0, and the function of state, iteration and generator that steps it.

        later: the problem after the start; None: the same.
        """
        network = self.network.start(x0, stream("network"), stream("clock"))
        counted = CountedProblem(later or self.problem, len(x0))
        state = self.sampler.init(x0, CountedProblem(self.problem, len(x0)), network, rng)
        _check(state, self.sampler, x0.shape)

        def step(state: Any, k: int, rng: Any) -> Any:
            """Return the state after iteration k; agents that sleep keep theirs."""
            network.begin(k)
            with np.errstate(all="ignore"):
                after = self.sampler.step(state, k, counted, network, rng)
            _check(after, self.sampler, x0.shape, state)
            after = keep_asleep(network, state, after)
            network.end(k, counted.settle(network.awake))
            return after

        return state, step

    def run(self, x0: np.ndarray, steps: int, rng: Any) -> Any:
        """Return the state after a number of steps from x0."""
        return walk(*self.begin(x0, rng), rng, range(steps))

    def answer(self, state: Any) -> np.ndarray:
        """Return the sampler's read-out of a state, or its positions, (chains, agents, dim)."""
        read = getattr(self.sampler, "read_out", None)
        answer: np.ndarray = state.x if read is None else read(state)
        return answer


def walk(state: Any, step: Step, rng: Any, iterations: Iterable[int]) -> Any:
    """Return the state after stepping through given iterations.

    step: a function of state, iteration and generator.
    """
    for k in iterations:
        state = step(state, k, rng)
    return state


def cases(module: Any, constant: bool = False, dim: int = 2) -> list[Case]:
    """Return a case for each variant of a sampler; the first variant on all networks it accepts.

    constant: use schedules that do not change. dim: the dimension of the problems.
    """
    graphs, seen = [draw_tree(7), *GRAPHS], []
    found: list[Case] = []
    for number, sampler in enumerate(variants(module)):
        sampler = with_schedules(sampler) if constant else sampler
        if sampler in seen:
            continue
        seen.append(sampler)
        turn = number % len(graphs)
        every = [
            Case(sampler, Network(graph), problem(graph.agents, dim))
            for graph in graphs[turn:] + graphs[:turn]
        ]
        accepted = (case for case in every if case.allowed)
        found += list(accepted) if not found else list(itertools.islice(accepted, 1))
    expect(bool(found), "it accepts none of the networks and options tried on linear regression")
    return found


def _check(*given: Any) -> None:
    """Fail where a step or an ``init`` returns no state."""
    try:
        check_state(*given)
    except ConcordError as error:
        raise Broken(str(error)) from None
