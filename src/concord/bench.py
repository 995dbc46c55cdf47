"""bench: ratios of run times, measured within one run, so that they carry from machine to machine.

An entry is a function that yields ``Case``s: a step, and a reference that does the least the step
could do (or the same another way). Both are timed in turns and the ratio of each turn is kept; its
median and quartiles are reported. To add a benchmark, add a function with ``@entry``; it may yield
a ``Skipped`` with the reason why it cannot run here. ``tiny`` asks for sizes that suit a test.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from concord import partition, streams, topology
from concord.files import whole
from concord.plugins import plugin
from concord.problems import linear_regression
from concord.schedules import Schedule

Work = Callable[[], object]


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

    Seconds are those of the processor: other work on the machine does not count.
    """

    case: Case
    ratio: float
    lo: float
    hi: float
    step: float
    reference: float


Entry = Callable[[bool], Iterator[Case | Skipped]]
ENTRIES: list[Entry] = []


def entry(function: Entry) -> Entry:
    """Register a benchmark: a function of ``tiny`` that yields its cases."""
    ENTRIES.append(function)
    return function


def bench(output: Path | None = None, tiny: bool = False) -> list[Timing]:
    """Run every benchmark, print its line, and write the table to ``output`` (CSV) if given."""
    timings = []
    print(f"{'ratio':>8}  {'quartiles':<15} {'aim':>5}  what (time of a step)")
    for function in ENTRIES:
        for case in function(tiny):
            if isinstance(case, Skipped):
                print(f"{'-':>8}  {'':<15} {'':>5}  {case.name}: skipped, {case.reason}")
                continue
            timing = time_case(case, turns=3 if tiny else 25, least=1e-4 if tiny else 5e-3)
            timings.append(timing)
            aim = "" if case.aim is None else f"{case.aim:g}"
            quartiles = f"{timing.lo:.3g} to {timing.hi:.3g}"
            print(
                f"{timing.ratio:>8.3g}  {quartiles:<15} {aim:>5}  "
                f"{case.name} ({1e6 * timing.step:.4g} us)"
            )
    if output is not None:
        with whole(output) as path:
            path.write_text(_table(timings), encoding="utf-8")
    return timings


def time_case(case: Case, turns: int, least: float) -> Timing:
    """Time step and reference in turns, each repeated so that it takes ``least`` seconds or more.

    Turns lie close together in time, so that what slows the machine down slows both.
    """
    works = case.step, case.reference
    repeats = [_repeats(work, least) for work in works]
    seconds = np.array(
        [[_seconds(w, n) / n for w, n in zip(works, repeats, strict=True)] for _ in range(turns)]
    )
    lo, ratio, hi = np.percentile(seconds[:, 0] / seconds[:, 1] / case.per, [25, 50, 75])
    step, reference = np.median(seconds, axis=0)
    return Timing(case, float(ratio), float(lo), float(hi), float(step), float(reference))


def _repeats(work: Work, least: float) -> int:
    work()  # first calls allocate and import
    once = max(_seconds(work, 1), 1e-9)
    return max(1, round(least / once))


def _seconds(work: Work, repeats: int) -> float:
    start = process_time()
    for _ in range(repeats):
        work()
    return process_time() - start


def _table(timings: list[Timing]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["name", "ratio", "lo", "hi", "aim", "step_seconds", "reference_seconds", "divided_by"]
    )
    for t in timings:
        aim = "" if t.case.aim is None else t.case.aim
        writer.writerow([t.case.name, t.ratio, t.lo, t.hi, aim, t.step, t.reference, t.case.per])
    return text.getvalue()


def regression(agents: int, dim: int = 2) -> linear_regression.LinearRegression:
    """Return a linear regression with 50 points for each agent."""
    return linear_regression.build(
        linear_regression.Params(points=50 * agents, dim=dim),
        agents,
        partition.Partition.parse({"kind": "equal"}, "bench"),
        lambda what: streams.generator(1, "bench", what),
        Path("resources"),
    )


def stepper(kind: str, options: dict[str, Any], graph: Any, chains: int, dim: int = 2) -> Work:
    """Return a function that makes one step of a sampler on ``regression``.

    ``options`` are the fields of the sampler's ``Params``.
    """
    problem = regression(graph.agents, dim)
    sampler = plugin("samplers", kind, "bench")
    rng = streams.generator(1, "bench", "noise")
    x0 = rng.standard_normal((chains, graph.agents, dim))
    state, step = sampler.init(problem, graph, sampler.Params(**options), x0, rng)

    def work() -> None:
        nonlocal state
        state, _ = step(state, 0, rng)

    return work


def normals(*shape: int) -> Work:
    """Return a function that draws as many normal numbers as a step of this shape needs."""
    rng, out = streams.generator(1, "bench", "normals"), np.empty(shape)
    return lambda: rng.standard_normal(out=out)


STEP = {"step_size": Schedule(0.005)}


@entry
def step_against_its_random_numbers(tiny: bool) -> Iterator[Case]:
    """Time one DE-SGLD step, 6 agents in 2 dimensions, against drawing its normal numbers."""
    chains = 20 if tiny else 1000
    for kind in ("complete", "ring", "no_edges"):
        yield Case(
            f"DE-SGLD step / its normal numbers, {kind}, {chains} chains",
            stepper("de_sgld", STEP, topology.build(kind, 6), chains),
            normals(chains, 6, 2),
            aim=3.0,
        )


@entry
def growth_with_agents(tiny: bool) -> Iterator[Case]:
    """Time a DE-SGLD step on rings, per agent, against a ring of a tenth as many agents."""
    chains = 2 if tiny else 100
    sizes = (10, 100) if tiny else (10, 100, 1000, 10_000)
    works = [stepper("de_sgld", STEP, topology.build("ring", n), chains) for n in sizes]
    for agents, fewer, step, reference in zip(sizes[1:], sizes, works[1:], works, strict=False):
        yield Case(
            f"DE-SGLD step per agent, ring of {agents} / {fewer}, {chains} chains",
            step,
            reference,
            per=agents / fewer,
        )


@entry
def admm_against_cvxpy(tiny: bool) -> Iterator[Case | Skipped]:
    """Time the primal steps of one D-ADMMS iteration in CVXPY against the whole iteration here."""
    chains = 1 if tiny else 20
    name = f"primal steps in CVXPY / D-ADMMS iteration, ring of 6, {chains} chains"
    if find_spec("cvxpy") is None:
        yield Skipped(name, "CVXPY is not installed (python -m pip install -e '.[bench]')")
        return
    graph, penalty = topology.build("ring", 6), 5.0
    solve = cvxpy_primal(regression(6), 2 * penalty * graph.degrees)
    linear = streams.generator(1, "bench", "linear").standard_normal((6, 2))
    yield Case(
        name,
        lambda: [solve(linear) for _ in range(chains)],
        stepper("admm", {"penalty": penalty}, graph, chains),
    )


def cvxpy_primal(
    problem: linear_regression.LinearRegression, curvature: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return ``solve(b)``, the minimizers of f_i(x) + c_i |x|^2 / 2 - b_i^T x, all (agents, dim).

    Each agent's program is compiled once; its b_i is a parameter.
    """
    import cvxpy

    programs = []
    for features, targets, added in zip(
        problem.data.features, problem.data.targets, curvature, strict=True
    ):
        x, b = cvxpy.Variable(problem.dim), cvxpy.Parameter(problem.dim)
        fit = cvxpy.sum_squares(features @ x - targets) / 2
        ridge = (problem.prior_precision + added) / 2 * cvxpy.sum_squares(x)
        programs.append((cvxpy.Problem(cvxpy.Minimize(fit + ridge - b @ x)), x, b))

    def solve(linear: np.ndarray) -> np.ndarray:
        for (program, _, b), row in zip(programs, linear, strict=True):
            b.value = row
            program.solve()
        return np.array([x.value for _, x, _ in programs])

    return solve
