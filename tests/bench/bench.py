"""bench: ratios of run times, measured within one run, so that they carry from machine to machine.

An entry is a function that yields ``Case``s: a step, and a reference that does the least the step
could do (or the same another way, or at another size). Both are timed in turns and the ratio of
each turn is kept; its median and quartiles are reported, and the most memory that a step's state
and buffers took. To add a benchmark, add a function with ``@entry``; it may yield the name of a
case that cannot run here, with the reason. ``tiny`` asks for sizes that suit a test.
"""

import argparse
import itertools
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas

import concord
import rivals
from concord import kinds, streams
from concord.errors import ConcordError, nearest
from concord.networks.construction import network as network_of
from concord.options import build, plain
from concord.problem import CountedProblem
from concord.problems.from_options import from_options
from concord.problems.kinds import linear_regression, tied_mixture
from concord.record import Record, Recorder
from concord_arena.testing.samplers import with_step
from concord_arena.testing.variants import variants

Work = Callable[[], object]

# A case takes about as many seconds at most, by fewer turns.
PATIENCE, FEWEST = 2.0, 5


class Case(NamedTuple):
    """A step and its reference, timed against each other.

    name: what is compared, as the table shows it.
    per: the ratio is divided by this: how many times more the step has to do.
    aim: the ratio not to be exceeded; None if there is none.
    """

    name: str
    step: Work
    reference: Work
    per: float = 1.0
    aim: float | None = None


Skipped = tuple[str, str]  # the name of a case that cannot run here, and why
Entry = Callable[[bool], Iterator[Case | Skipped]]
ENTRIES: dict[str, Entry] = {}


def entry(function: Entry) -> Entry:
    """Register a benchmark: a function of ``tiny`` that yields its cases."""
    ENTRIES[function.__name__] = function
    return function


class Sampling:
    """One step of a sampler as a piece of work.

    memory: most bytes held while the state is made and two steps are taken, the problem's data
    apart.
    positions: bytes of the positions alone: chains times agents times dim numbers.
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
        self._start = lambda: (CountedProblem(problem, chains), network.start(self._x0, *drawn))
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
        self._state = self._sampler.init(self._x0, self._problem, self._network, self._rng)
        self._k = 0
        self._recorder = Recorder(
            Record(at=(0,)), self._sampler, self._problem, self._network, self._x0.shape, 0
        )

    def __call__(self) -> None:
        """Take one step as the loop does: counted, checked for divergence, and not recorded."""
        network, problem, k = self._network, self._problem, self._k
        network.begin(k)
        self._state = self._sampler.step(self._state, k, problem, network, self._rng)
        network.end(k, problem.close_count(network.awake))
        self._k += 1
        self._recorder(self._k, self._state)


# Steps of a call of compiled ones, and of a run that would have them all.
STEPS, LONG = 100, 10**6


class Compiled(Sampling):
    """Many steps of a sampler in one call that numba compiles, as a piece of work."""

    def begin(self) -> None:
        """Go back to the start, before steps are read."""
        from concord.fast.steps import CompiledSteps  # needs numba

        super().begin()
        self._several = CompiledSteps(self._sampler, LONG)

    def __call__(self) -> None:
        """Take ``STEPS`` steps as the loop does."""
        taken = 0
        while taken < STEPS:
            self._state, several = self._several(
                self._state, self._k, STEPS - taken, self._problem, self._network, self._rng
            )
            if not several:  # the first, and the last of what is drawn together
                super().__call__()
            self._k += several
            taken += several or 1
        self._recorder(self._k, self._state)


def bench(tiny: bool = False, names: Sequence[str] = ()) -> pandas.DataFrame:
    """Run every benchmark, or those named, print a line for each case, and return their table."""
    for name in names:
        if name not in ENTRIES:
            raise ConcordError(f"there is no benchmark {name!r}; {nearest(name, ENTRIES)}")
    rows = []
    print(f"{'ratio':>8}  {'quartiles':<15} {'aim':>5}  what (time and memory of a step)")
    for case in itertools.chain(*(ENTRIES[name](tiny) for name in names or ENTRIES)):
        if not isinstance(case, Case):
            print(f"{'-':>8}  {'':<15} {'':>5}  {case[0]}: skipped, {case[1]}")
            continue
        row = time_case(case, turns=3 if tiny else 25, least=1e-4 if tiny else 5e-3)
        rows.append(row)
        quartiles = f"{row['lo']:.3g} to {row['hi']:.3g}"
        held = f", {row['memory_bytes'] / 1e6:.3g} MB" if "memory_bytes" in row else ""
        print(
            f"{row['ratio']:>8.3g}  {quartiles:<15} {case.aim or '':>5}  "
            f"{case.name} ({1e6 * row['step_seconds']:.4g} us{held})",
            flush=True,
        )
        del case  # before the next one allocates
    return pandas.DataFrame(rows)


def time_case(case: Case, turns: int, least: float) -> dict[str, Any]:
    """Time step and reference in turns, each repeated so that it takes ``least`` seconds or more.

    Turns lie close together in time, so that what slows the machine down slows both. Seconds are
    those of the processor: other work on the machine does not count.

    Returns a row of the table: median and quartiles of the ratio, median seconds of both, and the
    step's memory in bytes and in arrays of the positions' size.
    """
    works = case.step, case.reference
    once = []
    for work in works:
        work()  # first calls allocate and import
        once.append(max(_seconds(work, 1), 1e-9))
    repeats = [max(1, round(least / seconds)) for seconds in once]
    turns = min(turns, max(FEWEST, round(PATIENCE / np.dot(repeats, once))))
    seconds = np.array(
        [[_seconds(w, n) / n for w, n in zip(works, repeats, strict=True)] for _ in range(turns)]
    )
    lo, ratio, hi = np.percentile(seconds[:, 0] / seconds[:, 1] / case.per, [25, 50, 75])
    step, reference = np.median(seconds, axis=0)
    row = {"name": case.name, "ratio": ratio, "lo": lo, "hi": hi, "aim": case.aim}
    row |= {"step_seconds": step, "reference_seconds": reference, "divided_by": case.per}
    if isinstance(case.step, Sampling):
        memory = case.step.memory
        row |= {"memory_bytes": memory, "memory_ratio": memory / case.step.positions}
    return row


def _seconds(work: Work, repeats: int) -> float:
    start = process_time()
    for _ in range(repeats):
        work()
    return process_time() - start


def regression(agents: int, dim: int = 2) -> linear_regression.LinearRegression:
    """Return a linear regression with 50 points for each agent."""
    return from_options(linear_regression)(agents, points=50 * agents, dim=dim)


def stepper(kind: str, network: Any, chains: int) -> Sampling:
    """Return a function that makes one step of a sampler on ``regression``."""
    return Sampling(kind, network, chains, regression(network.agents))


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


# Agents for which a step draws normal numbers, where these are not all.
NOISY = {"gossip_ula": 2, "fsgld": 1}


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
def large_networks(tiny: bool) -> Iterator[Case | Skipped]:
    """Time steps of large networks per agent, in 10 dimensions with ten chains."""
    few, chains = (12, 2) if tiny else (1000, 10)
    for name, sizes in LARGE.items():
        for agents, kind in itertools.product((36,) if tiny else sizes, LARGE_KINDS):
            work, small = (
                Sampling(kind, network_of(name, size), chains, Near(size)) for size in (agents, few)
            )
            title = f"{kind} per agent, {agents} / {few} agents, {name}, dim 10, {chains} chains"
            yield Case(title, work, small, per=agents / few, aim=1.5)
            del work, small


EXTRAS = {"numba": "fast", "pymc": "pymc", "numpyro": "numpyro"}  # others are of the extra bench


def _missing(package: str | None) -> str | None:
    """Say what to install; None where it is there."""
    if package is None or find_spec(package) is not None:
        return None
    remedy = f"python -m pip install -e '.[{EXTRAS.get(package, 'bench')}]'"
    return f"{package} is not installed ({remedy})"


# Chains, agents and dimensions of steps that are compared, and the most that a compiled step may
# take of the time of five lines of numpy, a plain one where there is no numba.
SHAPES = {(4, 10, 5): (0.6, 2.3), (100, 10, 5): (0.6, 1.25), (100, 20, 2): (0.6, 1.25)}
SHAPES[4, 50, 30] = (0.6, 1.25)
# Fast ways to write DE-SGLD, and what they need; other ways to write a sampler, and their chains.
FAST = {"Compiled": ("numba", "numba"), "Lines": ("five lines of numpy", None)}
FAST["Jax"] = "JAX", "jax"
SLOW = {"Loops": ("Python loops", None, 100), "Solver": ("CVXPY per agent", "cvxpy", 1)}
SLOW["Blackjax"] = "BlackJAX's SGLD", "blackjax", 100


@entry
def step_against_what_people_write(tiny: bool) -> Iterator[Case | Skipped]:
    """Time DE-SGLD on a ring, compiled if it can be, against a compiled loop, numpy, and JAX."""
    compiled = find_spec("numba") is not None
    for ((chains, agents, dim), aims), name in itertools.product(SHAPES.items(), FAST):
        graph, problem = network_of("ring", agents), regression(agents, dim)
        title, package = FAST[name]
        case = f"de_sgld / {title}, {chains} chains, ring of {agents}, dim {dim}"
        if reason := _missing(package):
            yield case, reason
            continue
        other, steps = _work(name, problem, graph, chains)
        way, per = (Compiled, STEPS) if compiled else (Sampling, 1)
        aim = {"Compiled": 1.0, "Lines": aims[0 if compiled else 1]}.get(name)
        yield Case(case, way("de_sgld", graph, chains, problem), other, per / steps, aim)


@entry
def against_others(tiny: bool) -> Iterator[Case | Skipped]:
    """Time slow ways to write a sampler against a step here, and BlackJAX's of one agent."""
    for name, (title, package, most) in SLOW.items():
        kind, chains = getattr(rivals, name).kind, 1 if tiny else most
        graph = network(kind, 6 if tiny else 20)
        case = f"{title} / {kind} here, {graph.name} of {graph.agents}, {chains} chains"
        if reason := _missing(package):
            yield case, reason
            continue
        other, steps = _work(name, regression(graph.agents), graph, chains)
        yield Case(case, other, stepper(kind, graph, chains), steps)


def _work(name: str, problem: Any, graph: Any, chains: int) -> tuple[Work, int]:
    """Return what steps in another way, and how many steps: JAX takes many in a call."""
    rng = streams.generator(1, "bench", "rival")
    x0 = rng.standard_normal((chains, graph.agents, problem.dim))
    rival = getattr(rivals, name)(problem, graph.graph, x0)
    return (rival.run, rivals.STEPS) if hasattr(rival, "run") else (partial(rival.step, rng), 1)


@entry
def gradients_of_models(tiny: bool) -> Iterator[Case | Skipped]:
    """Time gradients of one logistic regression: as a library's model, and as the built-in one."""
    rows, agents = (40, 2) if tiny else (800, 8)
    rng = streams.generator(1, "bench", "model")
    X = rng.standard_normal((rows, 5))
    y = (rng.random(rows) < 0.5).astype(int)
    own = concord.problems.logistic_regression(X, y, agents=agents, prior_scale=4.0)
    for library, make in (("PyMC", _of_pymc), ("NumPyro", _of_numpyro)):
        if reason := _missing(library.lower()):
            yield f"{library}'s model / built-in", reason
            continue
        model = make(X, y, agents)
        for chains in (20, 100):
            x = rng.standard_normal((chains, agents, 5))
            title = f"a gradient: {library}'s model / built-in, {rows} × 5, {agents} agents"
            yield Case(f"{title}, {chains} chains", *(partial(p.gradient, x) for p in (model, own)))


def _of_pymc(X: np.ndarray, y: np.ndarray, agents: int) -> Any:
    """Return the problem of PyMC's logistic regression."""
    import pymc

    with pymc.Model(coords={"row": range(len(y)), "feature": range(X.shape[1])}) as model:
        features = pymc.Data("X", X, dims=("row", "feature"))
        beta = pymc.Normal("beta", 0, 2, dims="feature")
        pymc.Bernoulli("y", logit_p=features @ beta, observed=y, dims="row")
    return concord.from_pymc(model, over="row", agents=agents)


def _of_numpyro(X: np.ndarray, y: np.ndarray, agents: int) -> Any:
    """Return the problem of NumPyro's logistic regression."""
    import jax
    import numpyro
    from numpyro import distributions as law

    jax.config.update("jax_enable_x64", True)

    def model(X: Any, y: Any) -> None:
        beta = numpyro.sample("beta", law.Normal(0, 2).expand([X.shape[1]]).to_event(1))
        with numpyro.plate("row", len(y)):
            numpyro.sample("y", law.Bernoulli(logits=X @ beta), obs=y)

    return concord.from_numpyro(model, X, y, over="row", agents=agents)


# Samplers whose steps are compiled: options, chains, agents, dimensions of a regression (None: the
# tied mixture), and the aim, the time of a compiled step over that of a plain one.
FALLING = {"kind": "power", "a": 1e-3, "b": 230, "exponent": 0.55}
FUSED = {"step_size": FALLING, "fusion": {"kind": "power", "a": 0.24, "b": 230, "exponent": 0.05}}
TRIGGERED = {"communication": "triggered", "threshold": 1.0, "decay": 0.6}
THREE = (4, 10, 5), (100, 10, 5), (100, 20, 2)  # shapes, with an aim each
AIMS = {
    "de_sgld": (0.2, 0.4, 0.33),
    "de_sghmc": (0.29, 0.45, 0.36),
    "extra_sgld": (0.26, 0.43, 0.36),
    "diging_sgld": (0.38, 0.53, 0.34),
    "admm": (0.74, 1.0, 0.43),
}
PAIRS: tuple[tuple[str, Any, int, int, int | None, float], ...] = (
    *(
        (kind, {}, *s, aim)
        for kind, aims in AIMS.items()
        for s, aim in zip(THREE, aims, strict=True)
    ),
    ("de_sgld", {}, 100, 100, 10, 0.57),
    ("de_sghmc", {"step_size": FALLING}, 50, 10, 5, 0.6),
    ("d_ula", FUSED, 50, 5, None, 0.25),
    ("d_ula", FUSED, 50, 10, None, 0.25),
    ("d_ula", FUSED, 1000, 6, None, 0.5),
    ("gossip_ula", {"step_size": 1e-4}, 50, 10, 2, 0.25),
    ("gossip_ula", {"step_size": 1e-4, **TRIGGERED}, 50, 10, 2, 0.25),
    ("gossip_ula", {"step_size": 1e-4}, 50, 5, None, 0.25),
    ("gossip_ula", {"step_size": 1e-4, **TRIGGERED}, 50, 5, None, 0.25),
)


@entry
def draws_of_many_normals(tiny: bool) -> Iterator[Case | Skipped]:
    """Time the normal numbers of plain steps of long runs against numpy's."""
    if reason := _missing("numba"):
        yield "normal numbers of long runs / numpy's", reason
        return
    from concord.fast.steps import CompiledSteps

    quick = CompiledSteps(None, LONG).speed_up(streams.generator(1, "bench", "normals"))
    for shape in ((50, 20, 10), (100, 100, 10)):
        title = f"normal numbers of long runs / numpy's, {np.prod(shape)}"
        yield Case(title, partial(quick.standard_normal, shape), normals(*shape), aim=0.6)


@entry
def compiled_steps_against_plain_ones(tiny: bool) -> Iterator[Case | Skipped]:
    """Time compiled steps on rings against plain ones: of regressions, and of the tied mixture."""
    for kind, options, chains, agents, dim, aim in PAIRS:
        what = f"regression, dim {dim}" if dim else "tied mixture"
        how = f" {options['communication']}" if "communication" in options else ""
        how += ", falling steps" * ("kind" in str(options))
        title = f"{kind}{how}, compiled / plain, {chains} chains, ring of {agents}, {what}"
        if reason := _missing("numba"):
            yield title, reason
            continue
        problem = regression(agents, dim) if dim else from_options(tied_mixture)(agents)
        given = network_of("ring", agents), chains, problem
        works = (way(kind, *given, options) for way in (Compiled, Sampling))
        yield Case(title, *works, per=STEPS, aim=aim)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="a CSV table")
    parser.add_argument("only", nargs="*", help="benchmarks, by name; none: all")
    given = parser.parse_args(arguments)
    try:
        table = bench(names=given.only)
    except ConcordError as error:
        sys.exit(f"bench: {error}")
    if given.output is not None:
        table.to_csv(given.output, index=False)


if __name__ == "__main__":
    main()
