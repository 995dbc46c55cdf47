"""Checks of problems: gradients, Hessians and minimizers fit potentials and each other."""

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from concord import streams
from concord.contracts import dtype_of
from concord.errors import ConcordError
from concord.problem import ChosenAgents, Proximal, WithHessians, WithMiniBatches, WithPotential
from concord.problems.from_options import NoDataSets
from concord.sampling import partition
from concord_arena.testing._outcome import Inapplicable, expect, taken
from concord_arena.testing.variants import variants
from concord_studies.contracts import NeedsData

AGENTS, CHAINS = 3, 2


@cache
def built(module: Any) -> list[tuple[Any, Any]]:
    """Return pairs of options and problem, for all variants of a kind without downloaded data."""
    split = partition.Partition.parse({"kind": "equal"}, "test")

    def build(params: Any) -> Any:
        """Build the problem of options; a ConcordError if it reads downloaded data."""
        if isinstance(module, NeedsData) and module.needs(params):
            raise ConcordError("it reads downloaded data")
        module.check(params, AGENTS)
        data = NoDataSets()
        return module.build(params, AGENTS, split, lambda what: streams.generator(5, what), data)

    return list(taken(build, variants(module)))


def offering(module: Any, protocol: Any, what: str) -> Iterator[tuple[Any, Any, np.ndarray]]:
    """Yield options, problem and positions of all variants that implement a protocol.

    what: what the protocol offers, for the reason why the check does not apply.
    """
    found = [(params, one) for params, one in built(module) if isinstance(one, protocol)]
    if not found:
        raise Inapplicable(f"it has no {what}")
    for params, one in found:
        yield params, one, somewhere(one)


def somewhere(problem: Any, seed: int = 0) -> np.ndarray:
    """Draw positions (chains, agents, dim) away from 0, where Laplace priors have a kink."""
    rng = np.random.default_rng(seed)
    shape = (CHAINS, problem.agents, problem.dim)
    x = rng.choice([-1, 1], shape) * rng.uniform(0.2, 1.2, shape)
    return x.astype(dtype_of(problem))


def alike(found: np.ndarray, expected: np.ndarray, double: float, single: float = 1e-4) -> bool:
    """Return whether arrays agree up to rounding, relative to the largest expected entry.

    double, single: the tolerance for arrays of doubles, and of single floats.
    """
    rounding = double if expected.dtype == float else single
    return bool(np.abs(found - expected).max() <= rounding * np.abs(expected).max())


def _has_another_gradient(params: Any) -> bool:
    """Return whether released code evaluates the prior's gradient elsewhere than at x."""
    return getattr(params, "prior_gradient_at", "iterate") != "iterate"


def says_what_it_is(module: Any) -> None:
    """Check that a problem has agents, dim, posterior and ``from_chain``."""
    for _, problem in built(module):
        expect(problem.agents == AGENTS, f"agents is {problem.agents!r}, not {AGENTS}")
        expect(isinstance(problem.dim, int) and problem.dim > 0, f"dim is {problem.dim!r}")
        expect("posterior" in dir(problem), "it has no posterior; set None where it is unknown")
        why = "it has no from_chain(first); return itself where chains have the same data"
        expect(hasattr(problem, "from_chain"), why)
        found = list(inspect.signature(problem.from_chain).parameters)
        expect(found == ["first"], f"from_chain takes {found}, not first")


def gradients_are_functions_of_the_positions(module: Any) -> None:
    """Check that gradients are finite, repeatable, of read-only x, and the same in blocks."""
    for params, problem in built(module):
        x = somewhere(problem)
        x.setflags(write=False)
        first = problem.gradient(x)
        expect(first.shape == x.shape, f"gradient(x) has the shape {first.shape}, not {x.shape}")
        expect(bool(np.isfinite(first).all()), "the gradient is not finite")
        kept = first.copy()
        second = problem.gradient(x + 1)
        expect(first is not second and np.array_equal(first, kept), "a gradient changes afterwards")
        expect(np.array_equal(problem.gradient(x), kept), "the gradient is another one again")
        later = problem.from_chain(1).gradient(x[1:])
        why = f"from_chain(1) has other gradients than chain 1, with {params}"
        expect(alike(later, first[1:], 1e-12, 1e-5), why)


def gradient_is_the_slope_of_the_potential(module: Any) -> None:
    """Check gradients against central differences of the potential.

    The differences have errors of order h^2 times third derivatives, and of 1e-16 / h by rounding.
    """
    for params, problem, x in offering(module, WithPotential, "potential"):
        if dtype_of(problem) is not np.dtype(float) or _has_another_gradient(params):
            continue
        shape = problem.potential(x).shape
        expect(shape == x.shape[:2], f"potential(x) has the shape {shape}, not (chains, agents)")
        h, slopes, found = 1e-5, np.empty_like(x), problem.gradient(x)
        for coordinate, change in enumerate(h * np.eye(problem.dim)):
            # Every agent at once: f_i depends on x_i alone.
            rise = problem.potential(x + change) - problem.potential(x - change)
            slopes[..., coordinate] = rise / (2 * h)
        off = np.abs(slopes - found) - 1e-6 * np.abs(found)
        why = f"the gradient is not the slope of the potential, with {params}"
        expect(bool(off.max() <= 1e-7 * np.abs(found).max()), why)


def hessians_are_slopes_of_the_gradient(module: Any) -> None:
    """Check Hessian products against central differences of the gradient along a direction.

    Options whose products raise a ConcordError are skipped.
    """
    for params, problem, x in offering(module, WithHessians, "Hessians"):
        v, h = somewhere(problem, 1), 1e-6
        try:
            found = problem.hessian_product(x, v)
        except ConcordError:
            continue
        slope = (problem.gradient(x + h * v) - problem.gradient(x - h * v)) / (2 * h)
        kept = dtype_of(problem) is not np.dtype(float) or alike(found, slope, 1e-4)
        expect(kept, f"hessian_product is not the slope of the gradient, with {params}")


def minimizers_have_no_gradient(module: Any) -> None:
    """Check that ``minimize`` and ``minimize_one`` end where grad f_i(x) + c_i x = b_i."""
    for params, problem, start in offering(module, Proximal, "minimizers"):
        if _has_another_gradient(params):
            continue
        linear, curvature = somewhere(problem, 2), np.array([1.0, 2.0, 0.5])
        try:
            x = problem.minimize(linear, curvature, start)[0]
        except ConcordError:
            continue
        left = np.abs(problem.gradient(x) + curvature[:, None] * x - linear).max()
        size = np.abs(problem.gradient(start)).max()
        kept = bool(left <= 1e-5 + 1e-8 * size)
        expect(kept, f"minimize does not end at a minimizer, by {left:.2g}, with {params}")
        alone = problem.minimize_one(1, linear[:, 1], curvature, start[:, 1])[0]
        expect(alike(alone, x[:, 1], 1e-5), f"minimize_one ends elsewhere than minimize: {params}")


def chosen_agents_have_the_gradients_of_all(module: Any) -> None:
    """Check that ``gradient_of`` returns rows of ``gradient``."""
    for params, problem, x in offering(module, ChosenAgents, "gradients of chosen agents"):
        chains, agents = np.arange(CHAINS)[:, None], np.array([[2, 0], [1, 2]])
        found = problem.gradient_of(agents, x[chains, agents])
        why = f"gradient_of gives other gradients than gradient, with {params}"
        expect(alike(found, problem.gradient(x)[chains, agents], 1e-10), why)


def mini_batches_of_every_point_average_to_the_gradient(module: Any) -> None:
    """Check that gradients of all mini-batches of one point average to the full gradient."""
    for params, problem, x in offering(module, WithMiniBatches, "mini-batches"):
        total = np.zeros_like(x)
        for row in range(problem.counts.max()):
            inside = row < problem.counts
            rows = np.where(inside, row, 0)[None, :, None].repeat(CHAINS, axis=0)
            total += problem.batch_gradient(x, rows) * inside[:, None]
        off = np.abs(total / problem.counts[:, None] - problem.gradient(x)).max()
        rounding = (1e-12 if x.dtype == float else 1e-4) * np.abs(total).max()
        why = f"mini-batches of one point do not average to the gradient, with {params}"
        expect(bool(off <= rounding), why)


def a_batch_is_the_mean_of_its_points(module: Any) -> None:
    """Check that a mini-batch's gradient is the mean over mini-batches of its single points.

    So it has the same expectation, and the prior's gradient counts once.
    """
    for params, problem, x in offering(module, WithMiniBatches, "mini-batches"):
        counts = problem.counts[:, None]
        rows = np.random.default_rng(3).integers(0, counts, (CHAINS, AGENTS, 4))
        mean = np.mean([problem.batch_gradient(x, rows[..., [j]]) for j in range(4)], axis=0)
        kept = alike(problem.batch_gradient(x, rows), mean, 1e-12)
        expect(kept, f"a mini-batch is not the mean of its points, with {params}")


CHECKS = (
    says_what_it_is,
    gradients_are_functions_of_the_positions,
    gradient_is_the_slope_of_the_potential,
    hessians_are_slopes_of_the_gradient,
    minimizers_have_no_gradient,
    chosen_agents_have_the_gradients_of_all,
    mini_batches_of_every_point_average_to_the_gradient,
    a_batch_is_the_mean_of_its_points,
)
