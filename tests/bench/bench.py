"""bench: ratios of run times, measured within one run, so that they carry from machine to machine.

An entry is a function that yields ``Case``s: a step, and a reference that does the least the step
could do (or the same another way, or at another size). Both are timed in turns and the ratio of
each turn is kept; its median and quartiles are reported, and the most memory that a step's state
took. To add a benchmark, add a function with ``@entry``; it may yield a ``Skipped`` with the reason
why it cannot run here. ``tiny`` asks for sizes that suit a test.
"""

import argparse
import csv
import io
import itertools
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time
from typing import Any

import numpy as np

from concord.chains import Labels, sample_chains
from concord.errors import ConcordError, nearest
from concord.io import whole
from concord.loop import keep_asleep
from concord.networks.network import Network
from concord.networks.own import network
from concord.problem import CountedProblem
from concord.problems.kinds import linear_regression
from concord.record import Record, Recorder
from concord.runs.run import ChosenSampler
from concord.sampler import Sampler
from concord.sampling import partition, streams
from concord.sampling.initial import Law

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


class Stepping:
    """One step of a sampler as a piece of work.

    Attributes
    ----------
    memory
        Most bytes held while the state is made and two steps are taken, the problem's data apart.
    positions
        Bytes of the positions alone: chains times agents times dim numbers.
    """

    def __init__(self, sampler: Sampler, net: Network, chains: int, problem: Any) -> None:
        sampler.check(problem, net)
        self._sampler, self._k = sampler, 0
        self._rng = streams.generator(1, "bench", "noise")
        x0 = self._rng.standard_normal((chains, net.agents, problem.dim))
        self.positions = x0.nbytes
        times = (streams.generator(1, "bench", what) for what in ("network", "clock"))
        tracemalloc.start()
        try:
            self._network = net.start(x0, *times)
            self._problem = CountedProblem(problem, chains)
            shape = x0.shape
            self._recorder = Recorder(
                Record(at=(0,)), sampler, self._problem, self._network, shape, 0, False
            )
            self._state = sampler.init(x0, self._problem, self._network, self._rng)
            for _ in range(2):
                self()
            self.memory = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def __call__(self) -> None:
        """Take one step as the loop does: counted, checked for divergence, and not recorded."""
        k, problem, net = self._k, self._problem, self._network
        net.begin(k)
        with np.errstate(over="ignore", invalid="ignore"):
            after = self._sampler.step(self._state, k, problem, net, self._rng)
        self._state = keep_asleep(net, self._state, after)
        net.end(k, problem.settle(net.awake))
        self._k = k + 1
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

    If ``output`` (CSV) is given, write the table there.

    Raises
    ------
    ConcordError
        If ``output`` does not end in .csv, before anything is timed.
    """
    if output is not None and output.suffix != ".csv":
        raise ConcordError(f"{output}: the bench writes a table; name it .csv")
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
        with whole(output) as path:
            path.write_text(_table(timings), encoding="utf-8")
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
    if isinstance(case.step, Stepping):
        memory = case.step.memory, case.step.memory / case.step.positions
    light = replace(case, step=dict, reference=dict)  # the works hold arrays
    return Timing(light, float(ratio), float(lo), float(hi), float(step), float(reference), memory)


def _repeats(work: Work, least: float) -> tuple[int, float]:
    """Return how often to repeat the work, and about how long it takes once."""
    work()  # first calls allocate and import
    once = max(_seconds(work, 1), 1e-9)
    return max(1, round(least / once)), once


def _seconds(work: Work, repeats: int) -> float:
    start = _processor()
    for _ in range(repeats):
        work()
    return _processor() - start


def _processor() -> float:
    """Return the processor's seconds of this process and of those it has waited for."""
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


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


def regression(agents: int, dim: int = 2) -> linear_regression.LinearRegression:
    """Return a linear regression with 50 points for each agent."""
    split = partition.Partition.parse({"kind": "equal"}, "bench")
    params = linear_regression.Params(points=50 * agents, dim=dim)
    return linear_regression.build(
        params, agents, split, lambda what: streams.generator(1, "bench", what), Path("resources")
    )


# Steps are so small that nothing diverges, however many agents there are: the time does not depend
# on them.
SAMPLERS = {
    "de_sgld": {"step_size": 1e-9},
    "d_ula": {"step_size": 1e-9, "fusion": 0.1},
    "gossip_ula": {"step_size": 1e-9},
    "diging_sgld": {"step_size": 1e-9},
}


def sampler_of(kind: str) -> Any:
    """Return a sampler of a kind with small steps."""
    return ChosenSampler.parse({"kind": kind, **SAMPLERS[kind]}, "bench").params


def stepper(kind: str, net: Network, chains: int, dim: int = 2) -> Stepping:
    """Return a function that makes one step of a sampler on ``regression``."""
    return Stepping(sampler_of(kind), net, chains, regression(net.agents, dim))


def runner(sampler: Any, net: Network, chains: int, problem: Any, iterations: int) -> Work:
    """Return the work of a whole run, whose end alone is recorded."""
    record = Record(at=(iterations,))

    def work() -> None:
        sample_chains(
            sampler,
            problem,
            net,
            law=Law("normal"),
            record=record,
            chains=chains,
            iterations=iterations,
            seed=1,
            labels=Labels(),
        )

    return work


def normals(*shape: int) -> Work:
    """Return a function that draws as many normal numbers as a step of this shape needs."""
    rng, out = streams.generator(1, "bench", "normals"), np.empty(shape)
    return lambda: rng.standard_normal(out=out)


@entry
def step_against_its_random_numbers(tiny: bool) -> Iterator[Case]:
    """Time one step, in 2 dimensions, against drawing its normal numbers.

    A tick of gossip ULA moves two agents.
    """
    chains = 20 if tiny else 1000
    for kind, moving in (("de_sgld", 6), ("d_ula", 6), ("gossip_ula", 2)):
        for name in ("ring", "complete"):
            yield Case(
                f"{kind} step / its normal numbers, {name} of 6, {chains} chains",
                stepper(kind, network(name, 6), chains),
                normals(chains, moving, 2),
                aim=3.0 if moving == 6 else 6.0,
            )


@entry
def compiled_steps(tiny: bool) -> Iterator[Case | Skipped]:
    """Time runs of compiled steps against the same runs of plain ones."""
    iterations = 20 if tiny else 2000
    for (chains, agents, dim), kind in itertools.product(
        SHAPES, ("de_sgld", "d_ula", "gossip_ula")
    ):
        case = f"{kind} with numba / without, {chains} chains, ring of {agents}, dim {dim}"
        if reason := _missing("numba"):
            yield Skipped(case, reason)
            continue
        from concord.fast.steps import CompiledSampler

        problem, net, plain = regression(agents, dim), network("ring", agents), sampler_of(kind)
        how = net, chains, problem, iterations
        yield Case(case, runner(CompiledSampler(plain), *how), runner(plain, *how), aim=1.0)


@entry
def networks_that_lose(tiny: bool) -> Iterator[Case]:
    """Time a step where a fifth of the vectors gets lost, or time goes by, against a plain one."""
    compute = {"seconds": 0.01, "spread": 0.5, "slowest": 10.0}
    faults: dict[str, dict[str, Any]] = {
        "a fifth lost": {"loss": {"kind": "bernoulli", "rate": 0.2, "direction": "one_way"}},
        "a clock": {"compute": compute},
        "no barrier": {"compute": compute, "barrier": False, "on_loss": "reuse_last"},
    }
    sizes = (6,) if tiny else (100, 10_000)
    for agents, (name, happens) in itertools.product(sizes, faults.items()):
        yield Case(
            f"de_sgld step, {name} / nothing, ring of {agents}, 100 chains",
            stepper("de_sgld", network("ring", agents, **happens), 100),
            stepper("de_sgld", network("ring", agents), 100),
            aim=LOSSY,
        )


# What a step may take where vectors get lost.
LOSSY = 3.0


# What jobs spend their time on, in a process of its own: numpy chooses its kernels at its start.
ARITHMETIC = {
    "sampling, ring of 20, 100 chains": """
from bench import network, stepper
step = stepper("de_sgld", network("ring", 20), 100)
for _ in range({}): step()""",
    "the law of 100 agents": """
import numpy as np
a = np.random.default_rng(0).standard_normal((200, 200)) / 15
for _ in range({}): a @ a @ a.T""",
}


@entry
def kernels_of_all_processors(tiny: bool) -> Iterator[Case | Skipped]:
    """Time kernels that give the same bytes on all processors against this one's own.

    Whole processes, started with and without what ``concord.__main__.settle`` sets.
    """
    from concord.__main__ import KERNELS, THREADS

    def process(code: str, kernels: Mapping[str, str]) -> Work:
        command = [sys.executable, "-c", code.format(1 if tiny else 300)]
        environment = {**os.environ, **THREADS, **kernels, "PYTHONPATH": os.pathsep.join(sys.path)}
        return lambda: subprocess.run(command, env=environment, check=True)

    for what, code in ARITHMETIC.items():
        yield Case(
            f"kernels of all processors / own: {what}",
            process(code, KERNELS),
            process(code, dict.fromkeys(KERNELS, "")),
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
        """Return x - b of some agents."""
        found: np.ndarray = x - self._centers[agents]
        return found


# Agents of large networks, and arrays of the positions' size that a step reads or writes: each pass
# of the code is counted once, products in blocks of the cache are not. A tick of gossip moves two.
LARGE = {"ring": (100_000, 1_000_000), "torus": (100_000,), "exponential": (100_000,)}
MOVED = {"de_sgld": 16, "diging_sgld": 26, "gossip_ula": None}
NUMBERS = 1 << 23  # of the arrays that the memory's bandwidth is measured with: 64 MB each


@entry
def large_networks(tiny: bool) -> Iterator[Case]:
    """Time steps of large networks per agent, in 10 dimensions with ten chains, and their bytes.

    First against 1,000 agents; then against the memory: the time in which it would move as many
    bytes, in the sum of two arrays, measured in turns.
    """
    few, chains = (12, 2) if tiny else (1000, 10)
    arrays = np.ones((3, 1000 if tiny else NUMBERS))
    for name, sizes in LARGE.items():
        tried = (36,) if tiny else sizes
        networks = {agents: network(name, agents) for agents in (few, *tried)}
        for agents, kind in itertools.product(tried, MOVED):
            work, small = (
                Stepping(sampler_of(kind), networks[size], chains, Near(size))
                for size in (agents, few)
            )
            title = f"{kind} per agent, {agents} / {few} agents, {name}, dim 10, {chains} chains"
            yield Case(title, work, small, per=agents / few, aim=1.5)
            if passes := MOVED[kind]:
                yield Case(
                    f"{kind} step / its bytes at the memory's bandwidth, {agents} agents, {name}",
                    work,
                    lambda: np.add(arrays[0], arrays[1], out=arrays[2]),
                    per=passes * work.positions / arrays.nbytes,
                )
            del work, small


# Other ways to write DE-SGLD, and what they need.
OTHERS = {
    "Lines": ("five lines of numpy", None),
    "Loops": ("Python loops", None),
    "Compiled": ("a loop in numba", "numba"),
    "Torch": ("torch", "torch"),
    "Jax": ("JAX", "jax"),
}
EXTRAS = {
    "torch": "lenet",
    "numba": "fast",
    "pymc": "pymc",
    "numpyro": "numpyro",
}  # others are of the extra bench


def _missing(package: str | None) -> str | None:
    """Say what to install; None where it is there."""
    if package is None or find_spec(package) is not None:
        return None
    remedy = f"python -m pip install -e '.[{EXTRAS.get(package, 'bench')}]'"
    return f"{package} is not installed ({remedy})"


# Chains, agents and dimensions of steps that are compared.
SHAPES = ((4, 10, 5), (100, 10, 5), (100, 20, 2), (4, 50, 30))


@entry
def step_against_what_people_write(tiny: bool) -> Iterator[Case | Skipped]:
    """Time a plain step of DE-SGLD on a ring against the same written in other ways."""
    import rivals

    for (chains, agents, dim), (name, (title, package)) in itertools.product(
        SHAPES, OTHERS.items()
    ):
        case = f"de_sgld / {title}, {chains} chains, ring of {agents}, dim {dim}"
        if reason := _missing(package):
            yield Skipped(case, reason)
            continue
        net, problem = network("ring", agents), regression(agents, dim)
        rng = streams.generator(1, "bench", "rival")
        x0 = rng.standard_normal((chains, agents, dim))
        other, steps = _work(getattr(rivals, name)(problem, net, 1e-9, x0), rng)
        yield Case(case, stepper("de_sgld", net, chains, dim), other, 1 / steps)


def _work(rival: Any, rng: Any) -> tuple[Work, int]:
    """Return what steps in another way, and how many steps: JAX takes many in a call."""
    import rivals

    if hasattr(rival, "run"):
        return rival.run, rivals.STEPS
    return partial(rival.step, rng), 1


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
            works = [partial(p.gradient, x) for p in (model, own)]
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="a CSV table")
    parser.add_argument("only", nargs="*", help="benchmarks, by name; none: all")
    given = parser.parse_args(arguments)
    try:
        bench(given.output, names=given.only)
    except ConcordError as error:
        sys.exit(f"bench: {error}")


if __name__ == "__main__":
    main()
