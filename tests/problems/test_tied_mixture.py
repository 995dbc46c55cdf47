"""The tied-means mixture and its grid posterior."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.options import build
from concord.problems._shares import shares_of
from concord.problems.kinds import tied_mixture
from concord.problems.kinds.tied_mixture import MEANS
from concord.sampling.gradients import estimator
from concord.sampling.partition import Partition


def made(second_mean: str = MEANS[0], agents: int = 5, partition=None, seed: int = 0, **options):
    params = build(tied_mixture.Params, {"second_mean": second_mean, **options}, "problem")
    return tied_mixture.build(
        params,
        agents,
        Partition.parse(partition or {"kind": "equal"}, "partition"),
        lambda what: np.random.default_rng([seed, len(what)]),
        Path(),
    )


UNEVEN = {"kind": "sizes", "sizes": [1, 60, 9, 30]}


@pytest.fixture(scope="module", params=MEANS)
def problem(request):
    return made(request.param)


def test_potentials_add_up_to_the_posterior(problem) -> None:
    x = 2 * np.random.default_rng(5).standard_normal((7, 1, 2))
    total = problem.potential(np.repeat(x, 5, axis=1)).sum(axis=1)
    log = problem.log_posterior(x[:, 0, 0], x[:, 0, 1])
    assert np.allclose(total + log, (total + log)[0], rtol=0, atol=1e-10)


def test_data_depend_on_neither_agents_nor_reading() -> None:
    pools = [
        np.sort(p.points[p._mask.astype(bool)])
        for p in (made(), made(agents=10), made(agents=1), made(MEANS[1]))
    ]
    for pool in pools[1:]:
        assert np.array_equal(pool, pools[0])
    # 100 points of mean 1/2 and variance 2 + 1/4: within four standard errors.
    assert abs(pools[0].mean() - 0.5) < 4 * np.sqrt(2.25 / 100)


def test_grid_is_normalized_to_a_millionth(problem) -> None:
    grid = problem.reference
    # Gauss-Legendre quadrature on the prior's own box, whose nodes the grid knows nothing of.
    nodes, weights = np.polynomial.legendre.leggauss(500)
    log = problem.log_posterior(8 * nodes[:, None], 6 * nodes[None, :])
    integral = 48 * np.einsum("i,j,ij->", weights, weights, np.exp(log - log.max()))
    row, column = np.unravel_index(grid.density.argmax(), grid.density.shape)
    first, second = grid.centers[0][row], grid.centers[1][column]
    exact = np.exp(problem.log_posterior(first, second) - log.max()) / integral
    assert grid.density[row, column] == pytest.approx(exact, rel=1e-6)
    assert grid.mass.sum() == pytest.approx(1, abs=1e-12)


def test_draws_follow_the_grid(problem) -> None:
    grid = problem.reference
    draws = grid.sample(40_000, np.random.default_rng(6))
    mean, cov = grid.moments()
    error = np.sqrt(np.diag(cov) / len(draws))
    assert (np.abs(draws.mean(axis=0) - mean) < 4 * error).all()
    edges = (np.linspace(-3, 4, 8), np.linspace(-4, 4, 9))
    expected = grid.rebinned(edges)
    found = np.histogram2d(*draws.T, bins=edges)[0] / len(draws)
    # Four binomial standard errors for each of 56 cells.
    assert (np.abs(found - expected) < 4 * np.sqrt(expected / len(draws)) + 1e-4).all()
    for axis in range(2):
        below = (draws[:, axis] < 0.5).mean()
        exact = np.interp(0.5, grid.edges[axis], grid.cdf(axis))
        assert abs(below - exact) < 4 * np.sqrt(0.25 / len(draws))


def test_rebinning_keeps_aligned_cells(problem) -> None:
    grid = problem.reference
    edges = tuple(edge[::64] for edge in grid.edges)
    blocks = grid.mass.reshape(10, 64, 10, 64).sum(axis=(1, 3))
    assert np.allclose(grid.rebinned(edges), blocks, rtol=0, atol=1e-12)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ConcordError, match=r"truth: \[0\.0\] has 1 entries; give 2"):
        build(tied_mixture.Params, {"truth": [0.0]}, "problem")
    with pytest.raises(ConcordError, match="second_mean: 'theta' is not allowed"):
        build(tied_mixture.Params, {"second_mean": "theta"}, "problem")


@pytest.mark.parametrize("agents", [1, 5])
def test_a_chains_gradient_is_the_same_whatever_chains_stand_beside_it(agents) -> None:
    """To the last bit: chains may be divided over jobs."""
    problem = made(agents=agents)
    x = np.random.default_rng(4).standard_normal((30, agents, 2))
    together = problem.gradient(30)(x, np.empty_like(x))
    for chains in range(1, 30):
        some = x[:chains].copy()
        assert (problem.gradient(chains)(some, np.empty_like(some)) == together[:chains]).all()


@pytest.mark.parametrize("agents", [1, 5])
def test_chains_of_several_data_sets_see_their_own(agents) -> None:
    """Seven chains on three sets: each has the gradient and the potential of its set alone."""
    several = made(agents=agents, data_sets=3)
    assert (several.sets[0].points == made(agents=agents).points).all()
    assert not np.array_equal(several.sets[1].points, several.sets[2].points)
    x = np.random.default_rng(3).standard_normal((7, agents, 2))
    found = several.gradient(7)(x, np.empty_like(x))
    potentials = several.potential(x)
    for chain in range(7):
        alone, own = several.sets[chain % 3], x[chain : chain + 1]
        expected = alone.gradient(1)(own, np.empty_like(own))[0]
        assert (found[chain] == expected).all()
        assert np.allclose(potentials[chain], alone.potential(own)[0], rtol=1e-14)


def test_several_data_sets_refuse_what_differs_between_them() -> None:
    several = made(data_sets=2)
    with pytest.raises(ConcordError, match="takes no mini-batches"):
        estimator(several, 5, 2)


def test_two_modes_are_told_from_one_and_can_be_asked_for() -> None:
    """Points in two clumps, theta_2 = +-4 apart, against points in one; then a drawn set."""
    apart, together = made(agents=1), made(agents=1)
    apart._mask, together._mask = np.ones((1, 100)), np.ones((1, 100))
    apart.points = np.repeat([-2.0, 2.0], 50)[None]
    together.points = np.zeros((1, 100))
    assert apart.two_modes and not together.two_modes
    found = made(modes="two")
    assert found.two_modes
    marginal = found.reference.mass.sum(axis=0)
    middle = np.abs(found.reference.centers[1]) < 0.4
    sides = found.reference.centers[1] > 0.4, found.reference.centers[1] < -0.4
    assert marginal[middle].min() < 0.95 * min(marginal[side].max() for side in sides)


def test_two_modes_that_do_not_come_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five points as wide as this have one mode; the search for two must end."""
    monkeypatch.setattr(tied_mixture, "POINTS", 300)
    with pytest.raises(ConcordError, match=r"no draw of 60 .* two modes; .* modes: any"):
        made(modes="two", points=5, variance=100.0, data_sets=2)


def test_exact_pairs_are_the_same_at_every_call_and_for_every_number_of_agents() -> None:
    one, five = made(agents=1, data_sets=2, grid=64), made(agents=5, data_sets=2, grid=64)
    pairs = one.exact_pairs([30, 30])
    assert len(pairs) == 2 and pairs[0].shape == (2, 30, 2)
    for again in (one.exact_pairs([30, 30]), five.exact_pairs([30, 30])):
        assert all(np.array_equal(a, b) for a, b in zip(pairs, again, strict=True))
    assert not np.array_equal(pairs[0][0], pairs[0][1])


@pytest.fixture
def kernels(monkeypatch):
    """Choose numpy's arithmetic or the compiled kernel for what is made next."""

    def choose(compiled: bool) -> None:
        monkeypatch.setattr(concord.compiled, "_awaited", 0 if compiled else 1e18)

    return choose


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same bits, but for those that tell one nan from another."""
    there = ~np.isnan(a)
    bits = (each.view(np.int64)[there] for each in (a, b))
    return np.array_equal(there, ~np.isnan(b)) and np.array_equal(*bits)


@pytest.mark.parametrize("second_mean", MEANS)
@pytest.mark.parametrize(("agents", "partition"), [(1, None), (4, UNEVEN), (10, None)])
@pytest.mark.parametrize("which", ["all", "chosen", "batches"])
def test_compiled_gradients_are_numpys_to_the_last_bit(
    kernels, second_mean, agents, partition, which
) -> None:
    problem, chains = made(second_mean, agents, partition), 3
    rng = np.random.default_rng(5)
    x = 3 * rng.standard_normal((chains, agents, 2))
    x[0] *= 1e6  # on its way to divergence
    x[1, :, 1] = np.nan  # which neither hides

    def gradient() -> np.ndarray:
        if which == "all":
            return problem.gradient(chains)(x, np.empty_like(x))
        draw = np.random.default_rng(6)
        if which == "chosen":
            chosen = draw.integers(0, agents, (chains, 1))
            some = np.take_along_axis(x, chosen[..., None], axis=1)
            return problem.gradient_at(chains, 1)(some, chosen, np.empty_like(some))
        rows = draw.integers(0, problem.counts[:, None], (chains, agents, 2))
        return problem.batch_gradient(chains, 2)(x, rows, np.empty_like(x))

    with np.errstate(over="ignore"):
        kernels(compiled=False)
        numpys = gradient()
        kernels(compiled=True)
        x.flags.writeable = False  # it reads them only
        numbas = gradient()
    assert np.isnan(numpys[1]).all() and np.isfinite(numpys[[0, 2]]).all()
    assert same(numpys, numbas)


def test_compiled_gradients_of_anything_are_numpys_to_the_last_bit(kernels) -> None:
    """Shapes, masks, scales, strides, huge and tiny numbers, and those that are none."""
    rng = np.random.default_rng(7)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, 1e-310])
    for trial in range(1000):
        n, m = rng.integers(1, 40, 2)
        problem = made(MEANS[rng.integers(2)], points=5, variance=float(np.exp(rng.normal())))
        points = rng.standard_normal((n, m)) * 10.0 ** rng.integers(-3, 4)
        x = rng.standard_normal((m, 2)) * 10.0 ** rng.integers(-3, 8)
        if trial % 2:
            chosen = rng.random((m, 2)) < 0.3
            x[chosen] = rng.choice(special, chosen.sum())
            points[rng.random((n, m)) < 0.1] = -0.0
        mask = np.floor(1.7 * rng.random((n, m))) if trial % 3 else tied_mixture.NO_MASK
        scale = np.exp(rng.standard_normal(m)) if trial % 5 else tied_mixture.NO_SCALE
        totals, places = rng.standard_normal((2, m)), np.asfortranarray(x) if trial % 7 else x
        found = []
        for compiled in (False, True):
            kernels(compiled)
            differentiate = tied_mixture._differentiate(problem, points.shape)
            with np.errstate(all="ignore"):
                found.append(
                    differentiate(places, points, totals, np.empty((m, 2)), mask, scale).copy()
                )
        assert same(*found), trial


def test_runs_that_are_compiled_are_the_same_bytes(kernels) -> None:
    options = {"iterations": 300, "chains": 60, "step_size": 1e-2}
    for problem, network in ((made(), "ring"), (made(data_sets=3), "ring"), (made(agents=1), None)):
        traces = []
        for compiled in (False, True):
            kernels(compiled)
            traces.append(concord.sample("de_sgld", problem, network, **options)["x"])
        assert np.ptp(traces[0]) > 1 and traces[0].tobytes() == traces[1].tobytes()


def test_shares_are_within_two_units_of_the_last_place() -> None:
    """The shares 1 / (1 + 2^y) by themselves, against longer numbers."""
    rng, count = np.random.default_rng(6), 20_000
    y = np.concatenate([4 * rng.standard_normal(count), rng.uniform(-1000, 1000, count)])
    y = np.concatenate([y, [0.0, -0.0, 1e-300, 0.5, -0.5, 1.5, 1001, -1100, 1e300, -np.inf]])
    work, shares = shares_of((1, len(y)))
    work(y, np.zeros((1, len(y))), np.ones(len(y)))
    with np.errstate(over="ignore"):
        exact = 1 / (1 + np.exp2(y.astype(np.longdouble)))
    assert np.abs(shares[0] - exact).max() <= 2 * np.finfo(float).eps
    inside = np.abs(y) <= 1000
    error = np.abs(shares[0, inside] / exact[inside] - 1).max()
    assert np.finfo(float).eps / 4 < error <= 2 * np.finfo(float).eps


@pytest.mark.thorough
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86-64 processors")
def test_compiled_gradients_are_the_same_bytes_on_all_processors() -> None:
    code = """
import hashlib
import numpy as np
from concord.problems._compiled import tied_mixture
rng, digest = np.random.default_rng(0), hashlib.sha256()
for n, m in ((10, 403), (100, 21), (7, 3)):
    points, x, out = rng.standard_normal((n, m)), 3 * rng.standard_normal((m, 2)), np.empty((m, 2))
    buffer = np.empty((5, m))
    more = points[:2].copy(), out, rng.random((n, m)), rng.random(m)
    tied_mixture(True, 0.5, x[0], buffer, x, points, *more)
    digest.update(out.tobytes())
print(digest.hexdigest())
"""
    found = set()
    for processor in ("nehalem", "haswell", None):  # SSE, AVX2, this one
        environment = dict(os.environ) | ({"NUMBA_CPU_NAME": processor} if processor else {})
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found.add(done.stdout)
    assert len(found) == 1
