"""What every problem promises: its gradients are those of its potential, whatever the estimate."""

import inspect
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from concord.contracts import Batched, NeedsData, WithPotential, dtype_of
from concord.errors import ConcordError
from concord.sampling import partition, streams
from concord.testing._outcome import Inapplicable, expect, taken
from concord.testing.variants import variants

AGENTS, CHAINS = 3, 2


@cache
def built(module: Any) -> list[tuple[Any, Any]]:
    """Return options and problem of all variants that need no downloaded data."""
    split = partition.Partition.parse({"kind": "equal"}, "test")

    def build(params: Any) -> Any:
        if isinstance(module, NeedsData) and module.needs(params):
            raise ConcordError("it reads downloaded data")
        module.check(params, AGENTS)
        data = Path("unused")
        return module.build(params, AGENTS, split, lambda what: streams.generator(5, what), data)

    return list(taken(build, variants(module)))


def somewhere(problem: Any, seed: int = 0) -> np.ndarray:
    """Return positions at which no coordinate is near zero, where Laplace priors have a kink."""
    rng = np.random.default_rng(seed)
    shape = (CHAINS, problem.agents, problem.dim)
    x = rng.choice([-1, 1], shape) * rng.uniform(0.2, 1.2, shape)
    return x.astype(dtype_of(problem))


def gradient(problem: Any, x: np.ndarray) -> np.ndarray:
    """Return the full gradient at x, which is written into the array given."""
    out = np.full_like(x, np.nan)
    expect(problem.gradient(len(x))(x, out) is out, "gradient(x, out) does not return out")
    expect(bool(np.isfinite(out).all()), "gradient(x, out) leaves numbers that are not finite")
    return out


def says_what_it_is(module: Any) -> None:
    """It has agents, dim, posterior, and where a block of chains begins."""
    for _, problem in built(module):
        expect(problem.agents == AGENTS, f"agents is {problem.agents!r}, not {AGENTS}")
        expect(isinstance(problem.dim, int) and problem.dim > 0, f"dim is {problem.dim!r}")
        expect("posterior" in dir(problem), "it has no posterior; set None where it is unknown")
        found = list(inspect.signature(problem.from_chain).parameters)
        expect(found == ["first"], f"from_chain takes {found}, not first")


def leaves_its_arguments_alone(module: Any) -> None:
    """Potential and gradient do not write into x, and give the same again."""
    for _, problem in built(module):
        x = somewhere(problem)
        kept, first = x.copy(), gradient(problem, x)
        if isinstance(problem, WithPotential):
            problem.potential(x)
        expect(np.array_equal(gradient(problem, x), first), "the gradient is another one again")
        expect(np.array_equal(x, kept), "potential or gradient write into x")


def chains_from_one_on_are_those_of_the_whole(module: Any) -> None:
    """A block of chains sees the data that these chains have in the whole."""
    for params, problem in built(module):
        x = somewhere(problem)
        later, expected = problem.from_chain(1), gradient(problem, x)[1:]
        off = np.abs(gradient(later, x[1:]) - expected).max()
        rounding = 1e-12 if x.dtype == float else 1e-5
        expect(
            bool(off <= rounding * np.abs(expected).max()),
            f"from_chain(1) has other gradients than chain 1, with {params}",
        )


def gradient_is_the_slope_of_the_potential(module: Any) -> None:
    """Central differences: their error is of order h^2, times third derivatives, and 1e-16 / h."""
    tried = 0
    for params, problem in built(module):
        double = dtype_of(problem) is np.dtype(float)
        if not (double and isinstance(problem, WithPotential)):
            continue
        if getattr(params, "prior_gradient_at", "iterate") != "iterate":
            continue  # a reading whose prior has, as released, another gradient than its slope
        x, h, tried = somewhere(problem), 1e-5, tried + 1
        dim = x.shape[2]
        found = gradient(problem, x)
        expect(
            problem.potential(x).shape == (CHAINS, AGENTS),
            f"potential(x) has the shape {problem.potential(x).shape}, not (chains, agents)",
        )
        slopes = np.empty_like(x)
        for coordinate in range(dim):
            change = np.zeros(dim)
            change[coordinate] = h  # every agent at once: f_i depends on x_i alone
            rise = problem.potential(x + change) - problem.potential(x - change)
            slopes[..., coordinate] = rise / (2 * h)
        off = np.abs(slopes - found) - 1e-6 * np.abs(found)
        expect(
            bool(off.max() <= 1e-7 * np.abs(found).max()),
            f"the gradient is not the slope of the potential, with {params}",
        )
    if not tried:
        raise Inapplicable("it states no potential")


def batched(module: Any) -> list[tuple[Any, Any, np.ndarray]]:
    """Return options, problem and positions of those of which mini-batches can be drawn."""
    found = [(params, one, somewhere(one)) for params, one in built(module)]
    if not (found := [case for case in found if isinstance(case[1], Batched)]):
        raise Inapplicable("it has no mini-batches")
    return found


def mini_batches_of_every_point_average_to_the_gradient(module: Any) -> None:
    """All batches of one point, enumerated: the estimate is unbiased, exactly."""
    for params, problem, x in batched(module):
        estimate, total = problem.batch_gradient(CHAINS, 1), np.zeros_like(x)
        for row in range(problem.counts.max()):
            inside = row < problem.counts
            rows = np.where(inside, row, 0)[None, :, None].repeat(CHAINS, axis=0)
            total += estimate(x, rows, np.empty_like(x)) * inside[:, None]
        off = np.abs(total / problem.counts[:, None] - gradient(problem, x)).max()
        rounding = 1e-12 if x.dtype == float else 1e-4
        expect(
            bool(off <= rounding * np.abs(total).max()),
            f"mini-batches of one point do not average to the gradient, with {params}",
        )


def a_batch_is_the_mean_of_its_points(module: Any) -> None:
    """So a batch of b has the expectation of one point, and the prior's part counts once."""
    for params, problem, x in batched(module):
        counts = problem.counts[:, None]
        rows = np.random.default_rng(3).integers(0, counts, (CHAINS, AGENTS, 4))
        together = problem.batch_gradient(CHAINS, 4)(x, rows, np.empty_like(x))
        alone = problem.batch_gradient(CHAINS, 1)
        mean = np.mean([alone(x, rows[..., [j]], np.empty_like(x)) for j in range(4)], axis=0)
        rounding = 1e-12 if x.dtype == float else 1e-4
        expect(
            bool(np.abs(together - mean).max() <= rounding * np.abs(mean).max()),
            f"a mini-batch is not the mean of its points, with {params}",
        )


CHECKS = (
    says_what_it_is,
    leaves_its_arguments_alone,
    chains_from_one_on_are_those_of_the_whole,
    gradient_is_the_slope_of_the_potential,
    mini_batches_of_every_point_average_to_the_gradient,
    a_batch_is_the_mean_of_its_points,
)
