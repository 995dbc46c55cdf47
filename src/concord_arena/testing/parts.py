"""The contracts of all kinds but samplers, as checks of a kind's module."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from concord import streams
from concord.contracts import dtype_of
from concord.errors import ConcordError
from concord.networks.topology import ChosenTopology
from concord.options import plain
from concord.problem import WithMiniBatches, WithPotential
from concord.problems.from_options import NoDataSets
from concord.sampling import initial, partition
from concord_arena.testing.runs import sample_run
from concord_arena.testing.variants import GradientOnly, Inapplicable, expect, regression, variants
from concord_studies.contracts import declaration_of_problem
from concord_studies.metrics import Row, check_network, find_family

AGENTS, CHAINS = 3, 2

T = TypeVar("T")
U = TypeVar("U")


def _kind_name(module: Any) -> str:
    """Return the name of a kind, that of its module's file."""
    return Path(module.__file__).stem


def _try(make: Callable[[T], U], options: Iterable[T]) -> Iterator[tuple[T, U]]:
    """Yield options with the object ``make(options)``; skip options that ``make`` refuses.

    Raises ``Inapplicable`` if it refuses all of them.
    """
    accepted, refused = False, ""
    for each in options:
        try:
            result = make(each)
        except ConcordError as error:
            refused = str(error)
            continue
        accepted = True
        yield each, result
    if not accepted:
        raise Inapplicable(f"it refuses all options tried: {refused}")


def graphs_are_the_same_again(module: Any) -> None:
    """Check that a graph has the same edges at each call, or is refused with a remedy."""

    def twice(case: tuple[Any, int]) -> list[Any]:
        """Return the edges of a graph that is built twice, for a pair of options and size."""
        try:
            kind = ChosenTopology(_kind_name(module), **plain(case[0]))
            return [kind.graph(case[1]).edges.tolist() for _ in range(2)]
        except ConcordError as error:
            expect(
                ";" in str(error),
                f"it refuses {case[1]} agents without a remedy after a semicolon: {error}",
            )
            raise

    for (_, agents), (one, other) in _try(twice, product(variants(module), (1, 2, 3, 5, 12))):
        expect(one == other, f"{agents} agents have another graph again; use a seed")


def every_row_has_one_agent(module: Any) -> None:
    """Check that each row goes to one agent, none is left empty, and the generator decides."""

    def twice(case: tuple[Any, Any]) -> list[list[np.ndarray]]:
        """Return the parts of rows that are split twice, for a pair of options and rows."""
        way = partition.Partition(partition.PartitionChoice(_kind_name(module), **plain(case[0])))
        return [way.split(case[1], 5, streams.generator(1, "p")) for _ in range(2)]

    for _, (parts, again) in _try(twice, product(variants(module), (40, np.arange(40) % 3))):
        expect(len(parts) == 5 and min(map(len, parts)) > 0, "it leaves an agent without rows")
        every = sorted(int(row) for part in parts for row in part)
        expect(every == list(range(40)), "its parts do not hold every row once")
        expect(all(map(np.array_equal, parts, again)), "the same generator gives other parts")


def values_are_positive_numbers(module: Any) -> None:
    """Check that a schedule's values at iterations 0 to 1000 are positive."""
    for params in variants(module):
        schedule = module.schedule(params)
        values = np.array([schedule(k) for k in range(1001)])
        expect((np.isfinite(values) & (values > 0)).all(), f"{params} has values not above 0")


def draws_have_the_stated_moments(module: Any) -> None:
    """Check mean and covariance of 10^5 draws of a law, up to five standard errors."""

    def draw(params: Any) -> tuple[np.ndarray, Any]:
        """Return 10^5 draws of a law with some options, and the moments that it states."""
        law = initial.Law(_kind_name(module), **plain(params))
        x = initial.positions(law, GradientOnly(200), (500, 200, 2), streams.generator(1, "x0"))
        return x.reshape(-1, 2), law.moments(2)

    for _, (x, moments) in _try(draw, variants(module)):
        if moments is None:
            continue
        apart = x - moments[0]
        products = apart[:, :, None] * apart[:, None, :]
        for each, expected, what in ((apart, 0, "mean"), (products, moments[1], "covariance")):
            chance = 5 * each.std(axis=0) / np.sqrt(len(x)) + 1e-12
            expect(
                (np.abs(each.mean(axis=0) - expected) <= chance).all(), f"draws have another {what}"
            )


def a_run_is_measured_or_refused(module: Any) -> None:
    """Check that a short run of DE-SGLD gives rows of the family's metrics, or a ConcordError."""
    family = find_family(_kind_name(module))
    for problem in (regression(5, 2), GradientOnly(5)):
        run = sample_run(problem)
        try:
            check_network(_kind_name(module), None)
            rows = list(family.rows(run))
        except ConcordError as error:
            expect(
                ";" in str(error), f"it refuses a run without a remedy after a semicolon: {error}"
            )
            continue
        for row in rows:
            expect(isinstance(row, Row), "rows yields something else than metrics.Row")
            named = any(fnmatchcase(row.metric, name) for name in family.metrics)
            expect(named, f"it yields {row.metric!r}, which yields does not name")
            exact = any(fnmatchcase(row.metric, name) for name in family.exact)
            expect(not (exact and row.chance), f"{row.metric!r} is exact, and random")


def no_number_of_diverged_chains_is_finite(module: Any) -> None:
    """Check that what depends on draws is nan or infinite once all chains have diverged.

    What another seed leaves as it is, such as a count of messages, does not depend on them.
    """

    def sample_twice(problem: Any) -> list[Any]:
        """Return a sampled run of a problem, and the rows of metrics of two seeds, by key."""
        check_network(_kind_name(module), None)
        run, other = sample_run(problem), sample_run(problem, seed=2)
        return [run, *({row[:3]: row for row in family.rows(m)} for m in (run, other))]

    family = find_family(_kind_name(module))
    for _, (run, sound, other) in _try(sample_twice, (regression(5, 2), GradientOnly(5))):
        dimensions, at = run.trace.variables["diverged_at"]
        variables = {**run.trace.variables, "diverged_at": (dimensions, np.full_like(at, 3))}
        lost = replace(run.trace, variables=variables).mask_diverged()
        for row in family.rows(replace(run, trace=lost)):
            values = {measured[row[:3]].value for measured in (sound, other) if row[:3] in measured}
            depends = row.iteration >= 3 and row.chance and len(values) > 1
            expect(
                not (depends and np.isfinite(row.value)),
                f"{row.metric} of agent {row.agent} is {row.value} after all chains diverged; let "
                "nan in the trace make it nan or infinite (no nanmean, no > on what may be nan)",
            )


@cache
def problems_of(module: Any) -> list[tuple[Any, Any]]:
    """Return pairs of options and problem, for all variants of a kind without downloaded data."""
    split = partition.Partition.parse({"kind": "equal"}, "test")

    def build(params: Any) -> Any:
        """Build the problem with some options. A ConcordError if it reads downloaded data."""
        if declaration_of_problem(module).needs(params):
            raise ConcordError("it reads downloaded data")
        module.check(params, AGENTS)
        stream = partial(streams.generator, 5)
        return module.build(params, AGENTS, split, stream, NoDataSets())

    return list(_try(build, variants(module)))


def _variants_of(module: Any, protocol: Any, what: str) -> Iterator[tuple[Any, Any, np.ndarray]]:
    """Yield options, problem and positions of all variants of a kind that implement a protocol.

    what: what the protocol offers, for the sentence of ``Inapplicable``. Variants of released code
    that take the prior's gradient elsewhere than at x are left out.
    """
    pairs = [pair for pair in problems_of(module) if isinstance(pair[1], protocol)]
    if not pairs:
        raise Inapplicable(f"it has no {what}")
    for params, problem in pairs:
        if getattr(params, "prior_gradient_at", "iterate") == "iterate":
            yield params, problem, draw_positions(problem)


def draw_positions(problem: Any, seed: int = 0) -> np.ndarray:
    """Draw positions (chains, agents, dim) away from 0, where Laplace priors have a kink."""
    rng = np.random.default_rng(seed)
    shape = (CHAINS, problem.agents, problem.dim)
    x = rng.choice([-1, 1], shape) * rng.uniform(0.2, 1.2, shape)
    return x.astype(dtype_of(problem))


def _is_close(one: np.ndarray, other: np.ndarray, double: float, single: float = 1e-4) -> bool:
    """Return whether arrays agree up to rounding.

    double, single: the tolerance for double and single precision, relative to the largest entry of
    ``other``.
    """
    rounding = double if other.dtype == float else single
    return bool(np.abs(one - other).max() <= rounding * np.abs(other).max())


def gradients_are_functions_of_the_positions(module: Any) -> None:
    """Check sizes, and that gradients are finite, repeatable, and the same in blocks of chains."""
    for params, problem in problems_of(module):
        expect(problem.agents == AGENTS, f"agents is {problem.agents!r}, not {AGENTS}")
        expect(isinstance(problem.dim, int) and problem.dim > 0, f"dim is {problem.dim!r}")
        expect("posterior" in dir(problem), "it has no posterior; set None where it is unknown")
        why = "it has no from_chain(first); return itself where chains have the same data"
        expect(hasattr(problem, "from_chain"), why)
        parameters = list(inspect.signature(problem.from_chain).parameters)
        expect(parameters == ["first"], f"from_chain takes {parameters}, not first")
        x = draw_positions(problem)
        x.setflags(write=False)
        first = problem.gradient(x)
        expect(first.shape == x.shape, f"gradient(x) has the shape {first.shape}, not {x.shape}")
        expect(np.isfinite(first).all(), "the gradient is not finite")
        before, second = first.copy(), problem.gradient(x + 1)
        stays = first is not second and np.array_equal(first, before)
        expect(stays, "a gradient changes afterwards")
        expect(np.array_equal(problem.gradient(x), before), "the gradient is another one again")
        later = problem.from_chain(1).gradient(x[1:])
        why = f"from_chain(1) has other gradients than chain 1, with {params}"
        expect(_is_close(later, before[1:], 1e-12, 1e-5), why)


def gradient_is_the_slope_of_the_potential(module: Any) -> None:
    """Check gradients against central differences of the potential.

    The differences have errors of order h^2 times third derivatives, and of 1e-16 / h by rounding.
    """
    for params, problem, x in _variants_of(module, WithPotential, "potential"):
        if dtype_of(problem) is not np.dtype(float):
            continue
        shape = problem.potential(x).shape
        expect(shape == x.shape[:2], f"potential(x) has the shape {shape}, not (chains, agents)")
        h, slopes, gradient = 1e-5, np.empty_like(x), problem.gradient(x)
        for coordinate, change in enumerate(h * np.eye(problem.dim)):
            # Every agent at once: f_i depends on x_i alone.
            rise = problem.potential(x + change) - problem.potential(x - change)
            slopes[..., coordinate] = rise / (2 * h)
        off = np.abs(slopes - gradient) - 1e-6 * np.abs(gradient)
        why = f"the gradient is not the slope of the potential, with {params}"
        expect(off.max() <= 1e-7 * np.abs(gradient).max(), why)


def mini_batches_average_to_the_gradient(module: Any) -> None:
    """Check that a mini-batch gradient averages those of its points, and all points' the gradient.

    Then its expectation is the gradient, and the prior's gradient counts once.
    """
    for params, problem, x in _variants_of(module, WithMiniBatches, "mini-batches"):
        total, counts = np.zeros_like(x), problem.counts[:, None]
        for row in range(problem.counts.max()):
            rows = np.where(row < counts, row, 0)[None].repeat(CHAINS, axis=0)
            total += problem.batch_gradient(x, rows) * (row < counts)
        off = np.abs(total / counts - problem.gradient(x)).max()
        rounding = (1e-12 if x.dtype == float else 1e-4) * np.abs(total).max()
        why = f"mini-batches of one point do not average to the gradient, with {params}"
        expect(off <= rounding, why)
        rows = np.random.default_rng(3).integers(0, counts, (CHAINS, AGENTS, 4))
        mean = np.mean([problem.batch_gradient(x, rows[..., [j]]) for j in range(4)], axis=0)
        why = f"a mini-batch is not the mean of its points, with {params}"
        expect(_is_close(problem.batch_gradient(x, rows), mean, 1e-12), why)


CHECKS: dict[str, tuple[Callable[[Any], None], ...]] = {
    "problems": (
        gradients_are_functions_of_the_positions,
        gradient_is_the_slope_of_the_potential,
        mini_batches_average_to_the_gradient,
    ),
    "topologies": (graphs_are_the_same_again,),
    "schedules": (values_are_positive_numbers,),
    "partitions": (every_row_has_one_agent,),
    "initial": (draws_have_the_stated_moments,),
    "metrics": (a_run_is_measured_or_refused, no_number_of_diverged_chains_is_finite),
}
