"""bench: ratios of run times, measured within one run, so that they carry from machine to machine.

An entry is a function that yields ``Case``s: a step, and a reference that does the least the step
could do (or the same another way, or at another size). Both are timed in turns and the ratio of
each turn is kept; its median and quartiles are reported, and the most memory that a step's state
and buffers took. To add a benchmark, add a function with ``@entry``; it may yield a ``Skipped``
with the reason why it cannot run here. ``tiny`` asks for sizes that suit a test.
"""

import argparse
import csv
import io
import itertools
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from concord import kinds, streams
from concord.errors import ConcordError, nearest
from concord.networks.construction import network as network_of
from concord.options import build, plain
from concord.problem import CountedProblem
from concord.problems.kinds import linear_regression, logistic_regression, tied_mixture
from concord.record import Record, Recorder
from concord.sampling import partition
from concord_arena.testing.samplers import with_step
from concord_arena.testing.variants import variants
from concord_studies.io import write_whole

Work = Callable[[], object]

# A case takes about as many seconds at most, by fewer turns.
PATIENCE, FEWEST = 2.0, 5


@dataclass(frozen=True)
class Case:
    """A step and its reference, timed against each other.

    Attributes
    ----------
    name
        What is compared, as the table shows it.
    step, reference
        The two pieces of work.
    per
        The ratio is divided by this: how many times more the step has to do.
    aim
        The ratio not to be exceeded; None if there is none.
    """

    name: str
    step: Work
    reference: Work
    per: float = 1.0
    aim: float | None = None


@dataclass(frozen=True)
class Skipped:
    """A case that cannot run here, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Timing:
    """Median and quartiles of the ratio, and median seconds of a step and of its reference.

    Seconds are those of the processor: other work on the machine does not count. ``memory`` is of
    the step, in bytes and in arrays of the positions' size.
    """

    case: Case
    ratio: float
    lo: float
    hi: float
    step: float
    reference: float
    memory: tuple[float, float] | None = None


class Sampling:
    """One step of a sampler as a piece of work.

    Attributes
    ----------
    memory
        Most bytes held while the state is made and two steps are taken, the problem's data apart.
    positions
        Bytes of the positions alone: chains times agents times dim numbers.
    """

    def __init__(
        self, kind: str, network: Any, chains: int, problem: Any, options: Any = None
    ) -> None:
        self._sampler = parameters(kind, options)
        self._sampler.check(problem, network)
        self._rng, *drawn = (
            streams.generator(1, "bench", stream) for stream in ("noise", "network", "clock")
        )
        self._x0 = self._rng.standard_normal((chains, network.agents, problem.dim))
        self._start = lambda: (
            CountedProblem(problem, chains),
            network.start(self._x0, *drawn),
        )
        self.positions = self._x0.nbytes
        self.begin()
        self()  # first calls import, and load what is compiled
        tracemalloc.start()
        try:
            self.begin()
            for _ in range(2):
                self()
            self.memory = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def begin(self) -> None:
        """Go back to the start."""
        self._problem, self._network = self._start()
        self._state, self._k = self._init(), 0
        self._recorder = Recorder(
            Record(at=(0,)), self._sampler, self._problem, self._network, self._x0.shape, 0
        )

    def _init(self) -> Any:
        return self._sampler.init(self._x0, self._problem, self._network, self._rng)

    def __call__(self) -> None:
        """Take one step as the loop does: counted, checked for divergence, and not recorded."""
        network, problem, k = self._network, self._problem, self._k
        network.begin(k)
        self._state = self._sampler.step(self._state, k, problem, network, self._rng)
        network.end(k, problem.settle(network.awake))
        self._k += 1
        self._recorder(self._k, self._state)


# Steps of a call of compiled ones.
STEPS = 100


class Compiled(Sampling):
    """Many steps of a sampler in one call that numba compiles, as a piece of work."""

    def _init(self) -> Any:
        from concord.fast.steps import CompiledSampler  # needs numba

        if not isinstance(self._sampler, CompiledSampler):
            self._sampler = CompiledSampler(self._sampler)
        return super()._init()

    def __call__(self) -> None:
        """Take ``STEPS`` steps as the loop does."""
        taken = 0
        while taken < STEPS:
            self._state, several = self._sampler.multi_step(
                self._state, self._k, STEPS - taken, self._problem, self._network, self._rng
            )
            if not several:  # the last of what is drawn together
                super().__call__()
            self._k += several
            taken += several or 1
        self._recorder(self._k, self._state)


Entry = Callable[[bool], Iterator[Case | Skipped]]
ENTRIES: list[Entry] = []


def entry(function: Entry) -> Entry:
    """Register a benchmark: a function of ``tiny`` that yields its cases."""
    ENTRIES.append(function)
    return function


def bench(
    output: Path | None = None, tiny: bool = False, names: Sequence[str] = ()
) -> list[Timing]:
    """Run every benchmark, or those named, and print its line.

    If ``output`` is given, write the table there, as CSV.
    """
    known = {function.__name__: function for function in ENTRIES}
    for name in names:
        if name not in known:
            raise ConcordError(f"there is no benchmark {name!r}; {nearest(name, known)}")
    chosen = [known[name] for name in names] or ENTRIES
    timings = []
    print(f"{'ratio':>8}  {'quartiles':<15} {'aim':>5}  what (time and memory of a step)")
    for function in chosen:
        for case in function(tiny):
            if isinstance(case, Skipped):
                print(f"{'-':>8}  {'':<15} {'':>5}  {case.name}: skipped, {case.reason}")
                continue
            timing = time_case(case, turns=3 if tiny else 25, least=1e-4 if tiny else 5e-3)
            timings.append(timing)
            aim = "" if case.aim is None else f"{case.aim:g}"
            quartiles = f"{timing.lo:.3g} to {timing.hi:.3g}"
            held = f", {timing.memory[0] / 1e6:.3g} MB" if timing.memory else ""
            print(
                f"{timing.ratio:>8.3g}  {quartiles:<15} {aim:>5}  "
                f"{case.name} ({1e6 * timing.step:.4g} us{held})",
                flush=True,
            )
            del case  # before the next one allocates
    if output is not None:
        write_whole(output, _table(timings))
    return timings


def time_case(case: Case, turns: int, least: float) -> Timing:
    """Time step and reference in turns, each repeated so that it takes ``least`` seconds or more.

    Turns lie close together in time, so that what slows the machine down slows both.
    """
    works = case.step, case.reference
    repeats, once = zip(*(_repeats(work, least) for work in works), strict=True)
    turn = sum(n * seconds for n, seconds in zip(repeats, once, strict=True))
    turns = min(turns, max(FEWEST, round(PATIENCE / turn)))
    seconds = np.array(
        [[_seconds(w, n) / n for w, n in zip(works, repeats, strict=True)] for _ in range(turns)]
    )
    lo, ratio, hi = np.percentile(seconds[:, 0] / seconds[:, 1] / case.per, [25, 50, 75])
    step, reference = np.median(seconds, axis=0)
    memory = None
    if isinstance(case.step, Sampling):
        memory = case.step.memory, case.step.memory / case.step.positions
    light = replace(case, step=dict, reference=dict)  # the works hold arrays
    return Timing(light, float(ratio), float(lo), float(hi), float(step), float(reference), memory)


def _repeats(work: Work, least: float) -> tuple[int, float]:
    """Return how often to repeat the work, and about how long it takes once."""
    work()  # first calls allocate and import
    once = max(_seconds(work, 1), 1e-9)
    return max(1, round(least / once)), once


def _seconds(work: Work, repeats: int) -> float:
    start = process_time()
    for _ in range(repeats):
        work()
    return process_time() - start


COLUMNS = (
    *("name", "ratio", "lo", "hi", "aim", "step_seconds", "reference_seconds", "divided_by"),
    *("memory_bytes", "memory_ratio"),
)


def _table(timings: list[Timing]) -> str:
    """Return the table as CSV; memory_ratio is memory_bytes over those of the positions alone."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for t in timings:
        aim = "" if t.case.aim is None else t.case.aim
        row = [t.case.name, t.ratio, t.lo, t.hi, aim, t.step, t.reference, t.case.per]
        writer.writerow([*row, *(t.memory or ("", ""))])
    return text.getvalue()


def _data(agents: int) -> tuple[Any, ...]:
    split = partition.Partition.parse({"kind": "equal"}, "bench")
    return agents, split, lambda what: streams.generator(1, "bench", what), Path("resources")


def regression(agents: int, dim: int = 2) -> linear_regression.LinearRegression:
    """Return a linear regression with 50 points for each agent."""
    params = linear_regression.Params(points=50 * agents, dim=dim)
    return linear_regression.build(params, *_data(agents))


def classification(agents: int, points: int) -> logistic_regression.LogisticRegression:
    """Return a logistic regression in two dimensions with so many points in all."""
    return logistic_regression.build(logistic_regression.Params(points=points), *_data(agents))


def mixture(agents: int) -> tied_mixture.TiedMixture:
    """Return the tied mixture of 100 points."""
    return tied_mixture.build(tied_mixture.Params(), *_data(agents))


def stepper(kind: str, network: Any, chains: int, dim: int = 2) -> Sampling:
    """Return a function that makes one step of a sampler on ``regression``."""
    return Sampling(kind, network, chains, regression(network.agents, dim))


def parameters(kind: str, options: Any = None) -> Any:
    """Return a sampler with values for all options, and a step at which nothing diverges."""
    sampler = kinds.find("samplers", kind, "bench")
    usual = plain(with_step(next(variants(sampler)), 1e-9))
    return build(sampler, {**usual, **(options or {})}, f"bench: {kind}")


def normals(*shape: int) -> Work:
    """Return a function that draws as many normal numbers as a step of this shape needs."""
    rng, out = streams.generator(1, "bench", "normals"), np.empty(shape)
    return lambda: rng.standard_normal(out=out)


def network(kind: str, agents: int) -> Any:
    """Return a ring, or a server, or a single agent for samplers that have no network."""
    sampler = parameters(kind)
    for name in ("ring", "server"):
        found = network_of(name, agents)
        with suppress(ConcordError):
            sampler.check(None, found)
            return found
    return network_of("no_edges", 1)


@entry
def step_against_its_random_numbers(tiny: bool) -> Iterator[Case | Skipped]:
    """Time one step, in 2 dimensions, against drawing its normal numbers: every sampler on a ring.

    A tick of gossip ULA moves two agents; SGD draws nothing, and is timed against one agent's
    normal numbers, as C-ULA; with a server all agents may have the noise of one.
    """
    chains = 20 if tiny else 1000
    for kind in kinds.names("samplers"):
        graph = network(kind, 6)
        yield Case(
            f"{kind} step / its normal numbers, {graph.name} of {graph.agents}, {chains} chains",
            stepper(kind, graph, chains),
            normals(chains, NOISY.get(kind, graph.agents), 2),
        )


# Agents for which a step draws normal numbers, where these are not all.
NOISY = {"gossip_ula": 2, "fsgld": 1}


def _agents(kind: str, size: int) -> Work:
    return stepper(kind, network_of("ring", size), 100)


def _chains(kind: str, size: int) -> Work:
    return stepper(kind, network(kind, 6), size)


def _points(kind: str, size: int) -> Work:
    graph = network(kind, 6)
    return Sampling(kind, graph, 20, classification(graph.agents, size))


# Of what work grows along: what stays the same, sizes, those of tests, and the work at a size.
AXES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], Callable[[str, int], Work]]] = {
    "agents": ("rings, 100 chains", (10, 100, 1000, 10_000), (3, 6), _agents),
    "chains": ("six agents", (10, 100, 1000, 10_000), (2, 4), _chains),
    "points": ("six agents, 20 chains", (100, 1000, 10_000), (6, 12), _points),
}
# What ten times the size may cost, per unit: memory beyond the caches is slower, and no more.
GROWTH = 2.0


@entry
def growth(tiny: bool) -> Iterator[Case]:
    """Time each sampler's work, per unit of its size, against the next smaller size.

    A ratio of 1 is work that grows as its size. Samplers without a network have one agent.
    """
    for (axis, (setting, *both, work)), kind in itertools.product(
        AXES.items(), kinds.names("samplers")
    ):
        if axis == "agents" and network(kind, 6).name != "ring":
            continue  # a server is as many pairs
        sizes = both[tiny]
        try:
            works = [work(kind, size) for size in sizes]
        except ConcordError:
            continue  # a sampler of other problems than the axis's
        for (few, before), (many, now) in itertools.pairwise(zip(sizes, works, strict=True)):
            title = f"{kind}, time for each of {many} / {few} {axis} ({setting})"
            yield Case(title, now, before, per=many / few, aim=GROWTH)


class Near:
    """f_i(x) = |x - b_i|^2 / 2: a gradient is one pass, so that times are those of samplers."""

    posterior, dim = None, 10

    def __init__(self, agents: int) -> None:
        self.agents, self.counts = agents, np.ones(agents, dtype=int)
        rng = streams.generator(1, "bench", "near")
        self._centers = rng.standard_normal((agents, self.dim))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return x - b."""
        return x - self._centers

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return x - b of these agents."""
        return x - self._centers[agents]


LARGE = {"ring": (100_000, 1_000_000), "torus": (100_000,), "exponential": (100_000,)}
LARGE_KINDS = ("de_sgld", "diging_sgld", "gossip_ula")


@entry
def large_networks(tiny: bool) -> Iterator[Case]:
    """Time steps of large networks per agent, in 10 dimensions with ten chains."""
    few, chains = (12, 2) if tiny else (1000, 10)
    for name, sizes in LARGE.items():
        tried = (36,) if tiny else sizes
        graphs = {agents: network_of(name, agents) for agents in (few, *tried)}
        for agents, kind in itertools.product(tried, LARGE_KINDS):
            work, small = (
                Sampling(kind, graphs[size], chains, Near(size)) for size in (agents, few)
            )
            title = f"{kind} per agent, {agents} / {few} agents, {name}, dim 10, {chains} chains"
            yield Case(title, work, small, per=agents / few, aim=1.5)
            del work, small


# Other ways to write a sampler: as what the table shows them, what they need, and how many chains.
OTHERS = {
    "Loops": ("Python loops", None, 100),
    "Solver": ("CVXPY per agent", "cvxpy", 1),
    "Blackjax": ("BlackJAX's SGLD", "blackjax", 100),
}
EXTRAS = {"numba": "fast", "pymc": "pymc", "numpyro": "numpyro"}  # others are of the extra bench


def _missing(package: str | None) -> str | None:
    """Say what to install; None where it is there."""
    if package is None or find_spec(package) is not None:
        return None
    remedy = f"python -m pip install -e '.[{EXTRAS.get(package, 'bench')}]'"
    return f"{package} is not installed ({remedy})"


# Chains, agents and dimensions of steps that are compared; aims with numba, and without it.
SHAPES = {(4, 10, 5): (0.6, 2.3), (100, 10, 5): (0.6, 1.25), (100, 20, 2): (0.6, 1.25)}
SHAPES[4, 50, 30] = (0.6, 1.25)
# Fast ways to write DE-SGLD: what they need, and the most that a step may take of their time.
FAST = {
    "Compiled": ("numba", "numba", (1.0, None)),
    "Lines": ("five lines of numpy", None, None),
    "Jax": ("JAX", "jax", (None, None)),
}


@entry
def step_against_what_people_write(tiny: bool) -> Iterator[Case | Skipped]:
    """Time DE-SGLD on a ring against a compiled loop, five lines of numpy, and JAX.

    With numba and, against numpy, without it.
    """
    there = find_spec("numba") is not None
    for ((chains, agents, dim), own), name in itertools.product(SHAPES.items(), FAST):
        graph, problem = network_of("ring", agents), regression(agents, dim)
        title, package, aims = FAST[name]
        case = f"de_sgld / {title}, {chains} chains, ring of {agents}, dim {dim}"
        if reason := _missing(package):
            yield Skipped(case, reason)
            continue
        other, steps = _work(name, problem, graph, chains)
        aim, without = aims or own
        if there:
            work: Work = Compiled("de_sgld", graph, chains, problem)
            yield Case(f"{case}; numba", work, other, STEPS / steps, aim)
        if not there or without is not None:
            work = Sampling("de_sgld", graph, chains, problem)
            yield Case(f"{case}; numpy alone", work, other, 1 / steps, without)


@entry
def against_others(tiny: bool) -> Iterator[Case | Skipped]:
    """Time slow ways to write a sampler against a step here, and BlackJAX's of one agent."""
    import rivals

    for name, (title, package, most) in OTHERS.items():
        kind, chains = getattr(rivals, name).kind, 1 if tiny else most
        graph = network(kind, 6 if tiny else 20)
        case = f"{title} / {kind} here, {graph.name} of {graph.agents}, {chains} chains"
        if reason := _missing(package):
            yield Skipped(case, reason)
            continue
        other, steps = _work(name, regression(graph.agents), graph, chains)
        yield Case(case, other, stepper(kind, graph, chains), steps)


def _work(name: str, problem: Any, graph: Any, chains: int) -> tuple[Work, int]:
    """Return what steps in another way, and how many steps: JAX takes many in a call."""
    import rivals

    rng = streams.generator(1, "bench", "rival")
    x0 = rng.standard_normal((chains, graph.agents, problem.dim))
    rival = getattr(rivals, name)(problem, graph.graph, x0)
    return (rival.run, rivals.STEPS) if hasattr(rival, "run") else (partial(rival.step, rng), 1)


@entry
def gradients_of_models(tiny: bool) -> Iterator[Case | Skipped]:
    """Time gradients of one logistic regression: as a library's model, and as the built-in one."""
    import concord

    rows, agents = (40, 2) if tiny else (800, 8)
    rng = streams.generator(1, "bench", "model")
    X = rng.standard_normal((rows, 5))
    y = (rng.random(rows) < 0.5).astype(int)
    own = concord.problems.logistic_regression(X, y, agents=agents, prior_scale=4.0)
    for library, package in (("PyMC", "pymc"), ("NumPyro", "numpyro")):
        if reason := _missing(package):
            yield Skipped(f"{library}'s model / built-in", reason)
            continue
        model = _model(package, X, y, agents)
        for chains in (20, 100):
            x = rng.standard_normal((chains, agents, 5))
            works = [partial(p.gradient(chains), x, np.empty_like(x)) for p in (model, own)]
            works[0]()  # compiles
            title = f"a gradient: {library}'s model / built-in, {rows} × 5, {agents} agents"
            yield Case(f"{title}, {chains} chains", *works)


def _model(package: str, X: Any, y: Any, agents: int) -> Any:
    """Return the problem of a library's logistic regression."""
    import concord

    if package == "pymc":
        import pymc

        with pymc.Model(coords={"row": range(len(y)), "feature": range(X.shape[1])}) as model:
            features = pymc.Data("X", X, dims=("row", "feature"))
            beta = pymc.Normal("beta", 0, 2, dims="feature")
            pymc.Bernoulli("y", logit_p=features @ beta, observed=y, dims="row")
        return concord.from_pymc(model, over="row", agents=agents)
    import jax
    import numpyro
    from numpyro import distributions as law

    jax.config.update("jax_enable_x64", True)

    def of_numpyro(X: Any, y: Any) -> None:
        beta = numpyro.sample("beta", law.Normal(0, 2).expand([X.shape[1]]).to_event(1))
        with numpyro.plate("row", len(y)):
            numpyro.sample("y", law.Bernoulli(logits=X @ beta), obs=y)

    return concord.from_numpyro(of_numpyro, X, y, over="row", agents=agents)


# Samplers whose steps are compiled: options, chains, agents, dimensions of a regression (None: the
# tied mixture), and the aim, the time of a compiled step over that of a plain one.
FALLING = {"kind": "power", "a": 1e-3, "b": 230, "exponent": 0.55}
FUSED = {"step_size": FALLING, "fusion": {"kind": "power", "a": 0.24, "b": 230, "exponent": 0.05}}
TRIGGERED = {"communication": "triggered", "threshold": 1.0, "decay": 0.6}
PAIRS: tuple[tuple[str, Any, int, int, int | None, float], ...] = (
    ("de_sgld", {}, 4, 10, 5, 0.25),
    ("de_sgld", {}, 50, 10, 5, 0.6),
    ("de_sgld", {}, 50, 20, 2, 0.5),
    ("d_ula", FUSED, 50, 5, None, 0.25),
    ("d_ula", FUSED, 50, 10, None, 0.25),
    ("gossip_ula", {"step_size": 1e-4}, 50, 10, 2, 0.25),
    ("gossip_ula", {"step_size": 1e-4, **TRIGGERED}, 50, 10, 2, 0.25),
    ("gossip_ula", {"step_size": 1e-4}, 50, 5, None, 0.25),
    ("gossip_ula", {"step_size": 1e-4, **TRIGGERED}, 50, 5, None, 0.25),
)


@entry
def compiled_steps_against_plain_ones(tiny: bool) -> Iterator[Case | Skipped]:
    """Time compiled steps on rings against plain ones: of regressions, and of the tied mixture."""
    for kind, options, chains, agents, dim, aim in PAIRS:
        what = f"regression, dim {dim}" if dim else "tied mixture"
        how = f" {options['communication']}" if "communication" in options else ""
        title = f"{kind}{how}, compiled / plain, {chains} chains, ring of {agents}, {what}"
        if reason := _missing("numba"):
            yield Skipped(title, reason)
            continue
        graph, problem = (
            network_of("ring", agents),
            regression(agents, dim) if dim else mixture(agents),
        )
        works = (way(kind, graph, chains, problem, options) for way in (Compiled, Sampling))
        yield Case(title, *works, per=STEPS, aim=aim)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="a CSV table, with a figure beside it")
    parser.add_argument("only", nargs="*", help="benchmarks, by name; none: all")
    given = parser.parse_args(arguments)
    try:
        bench(given.output, names=given.only)
    except ConcordError as error:
        sys.exit(f"bench: {error}")


if __name__ == "__main__":
    main()
