"""Coverage, sliced W2, errors of moments, ESS and R-hat, against closed forms."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

import measurements
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian, covariance_error, mean_error
from concord.laws.known import Draws
from concord.metrics import (
    coverage,
    diagnostics,
    log_predictive,
    moment_errors,
    running_mean,
    sliced_distance,
)
from concord.sampling import streams
from concord.sampling.trace import Trace

COV = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.2], [0.0, 0.2, 0.5]])
TARGET = Gaussian(np.array([1.0, -2.0, 0.5]), COV)


def measurement(x, posterior=TARGET, reference=None):
    """Return draws (chain, draw, dim) of one agent, and what they are compared with."""
    trace = Trace(
        {
            "x": (("chain", "draw", "agent", "dim"), x[:, :, None]),
            "diverged_at": (("chain",), np.full(len(x), -1)),
        },
        np.arange(x.shape[1]) + 1,
        np.array([0]),
    )
    problem = SimpleNamespace(posterior=posterior, agents=1, dim=x.shape[-1])
    if reference is not None:
        problem.reference = reference
    return measurements.measurement(
        trace, problem=problem, stream=lambda label: streams.generator(3, label)
    )


def exact(chains=40, draws=50, seed=0):
    count = chains * draws
    return TARGET.sample(count, np.random.default_rng(seed)).reshape(chains, draws, -1)


def values(family, m):
    return {row.metric: row for row in family.rows(m) if row.agent in ("0", "network")}


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.0), (0.5, 0.0), (2.0, 0.0), (1.0, 1.0)])
def test_intervals_cover_what_a_normal_law_says(factor, shift):
    """Within 0.03: some four standard errors of 2000 draws, and of the exact ones."""
    sds = np.sqrt(np.diag(COV))
    x = TARGET.mean + factor * (exact() - TARGET.mean) + shift * sds
    found = values(coverage, measurement(x))
    for level in (50, 90):
        end = norm.ppf(0.5 + level / 200) * factor
        wanted = norm.cdf(shift + end) - norm.cdf(shift - end)
        row = found[f"coverage_{level}"]
        assert row.value == pytest.approx(wanted, abs=0.03)
        assert row.lo <= row.value <= row.hi and row.hi - row.lo < 0.1


def test_sliced_distance_of_a_shift_is_its_length_in_standard_deviations():
    sds = np.sqrt(np.diag(COV))
    shift = np.array([3.0, -1.0, 2.0])
    row = values(sliced_distance, measurement(exact() + shift * sds))["sliced_w2"]
    # 50 directions in place of all: the mean of (theta . shift)^2, to its standard error.
    directions = np.random.default_rng(0).standard_normal((100_000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    error = (3 * (directions @ shift) ** 2).std() / np.sqrt(50)
    assert row.value**2 == pytest.approx((shift**2).sum(), abs=4 * error)
    assert row.lo < row.value < row.hi


def test_sliced_distance_of_exact_draws_is_near_the_floor():
    found = values(sliced_distance, measurement(exact(seed=1)))
    row, floor = found["sliced_w2"], found["sliced_w2_floor"]
    assert row.value == pytest.approx(floor.value, rel=0.5)
    assert row.lo < 0.5 * floor.value  # such draws may be exact
    far = values(sliced_distance, measurement(exact(seed=1) + 1.0))["sliced_w2"]
    assert far.lo > 5 * floor.value


def test_errors_of_moments_are_those_of_whitened_ones():
    root = np.linalg.cholesky(COV)
    off = root @ np.array([3.0, 0.0, 4.0])
    assert mean_error(TARGET.mean + off, COV, TARGET) == pytest.approx(5 / np.sqrt(3))
    assert covariance_error(TARGET.mean, 1.1 * COV, TARGET) == pytest.approx(0.1)
    assert covariance_error(TARGET.mean, COV, TARGET) < 1e-12
    lost = np.full((2, 3), [[np.nan], [np.inf]]), np.full((2, 3, 3), np.nan)
    assert np.isinf([mean_error(*lost, TARGET), covariance_error(*lost, TARGET)]).all()


def test_moment_errors_of_exact_draws_lie_in_their_floors():
    m = measurement(exact(chains=400, draws=2, seed=5))
    found = values(moment_errors, m)
    for name in ("mean_error", "covariance_error"):
        row, floor = found[name], found[f"{name}_floor"]
        assert floor.lo < row.value < floor.hi
        assert row.lo < 0.5 * floor.value < row.hi
    # n draws: squares are 1/n for the mean, (d + 1)/n for the covariance, in expectation.
    assert found["mean_error_floor"].value == pytest.approx(400**-0.5, rel=0.1)
    assert found["covariance_error_floor"].value == pytest.approx(0.1, rel=0.1)
    wide = TARGET.mean + 1.5 * (exact(chains=400, draws=2, seed=5) - TARGET.mean) + 2 * COV[0]
    found = values(moment_errors, measurement(wide))
    assert found["covariance_error"].lo < 1.25 < found["covariance_error"].hi
    off = mean_error(TARGET.mean + 2 * COV[0], COV, TARGET)
    assert found["mean_error"].lo < off < found["mean_error"].hi


def test_diagnostics_of_autoregressive_chains():
    """An AR(1) chain of n draws has n (1 - a) / (1 + a) effective ones; here to a fifth."""
    rng, a, chains, draws = np.random.default_rng(4), 0.8, 8, 2000
    noise = rng.standard_normal((chains, draws, 1)) * np.sqrt(1 - a**2)
    x = np.empty_like(noise)
    x[:, 0] = rng.standard_normal((chains, 1))
    for k in range(1, draws):
        x[:, k] = a * x[:, k - 1] + noise[:, k]
    found = values(diagnostics, measurement(x, Gaussian(np.zeros(1), np.eye(1))))
    effective = 0.9 * chains * draws * (1 - a) / (1 + a)
    assert found["ess_bulk"].value == pytest.approx(effective, rel=0.2)
    assert found["r_hat"].value < 1.02
    stuck = values(diagnostics, measurement(x + np.arange(chains)[:, None, None]))
    assert stuck["r_hat"].value > 1.5 and stuck["ess_bulk"].value < 50
    few = values(diagnostics, measurement(x[:, :3]))
    assert np.isnan([few["r_hat"].value, few["ess_bulk"].value]).all()
    with warnings.catch_warnings(action="error"):  # of more chains than draws
        assert values(diagnostics, measurement(x[:, :5]))["ess_bulk"].value > 4


def test_any_reference_will_do_and_none_is_refused():
    draws = Draws(exact(chains=100, seed=2).reshape(-1, 3))
    row = values(coverage, measurement(exact(), None, draws))["coverage_90"]
    assert row.value == pytest.approx(0.9, abs=0.03)
    with pytest.raises(ConcordError, match="metric coverage: the posterior of SimpleNamespace is"):
        values(coverage, measurement(exact(), None))


def test_log_predictive_density_is_that_of_the_predictive_law():
    """Linear regression: of exact draws it is normal, N(x^T m, x^T V x + sigma^2)."""
    import concord

    rng = np.random.default_rng(6)
    X = rng.standard_normal((30, 3))
    problem = concord.problems.linear_regression(X, X @ [1, -1, 2], agents=1, noise_sd=0.8)
    m = measurement(exact())
    m = replace(m, problem=problem)
    with pytest.raises(ConcordError, match="metric log_predictive needs data that are held out"):
        values(log_predictive, m)
    new = rng.standard_normal((8, 3))
    y = new @ [1, -1, 2] + 0.8 * rng.standard_normal(8)
    problem.test = new, y
    law = problem.posterior
    sd = np.sqrt(np.einsum("td,de,te->t", new, law.cov, new) + 0.64)
    wanted = norm.logpdf(y, new @ law.mean, sd).mean()
    draws = law.sample(40 * 200, rng).reshape(40, 200, 3)
    m = replace(m, trace=measurement(draws).trace)
    found = values(log_predictive, m)
    row = found["log_predictive"]
    assert row.lo - 0.01 < wanted < row.hi + 0.01 and row.hi - row.lo < 0.05
    assert found["log_predictive_posterior"].value == pytest.approx(wanted, abs=0.02)
    m = replace(m, trace=measurement(draws + 0.5).trace)
    assert values(log_predictive, m)["log_predictive"].hi < wanted


def test_log_predictive_density_of_labels():
    """Two rows, two draws: by hand."""
    import concord

    problem = concord.problems.logistic_regression([[1.0], [2.0]], [0, 1], agents=1)
    problem.test = np.array([[1.0], [-1.0]]), np.array([1, 0])
    m = measurement(np.array([[[0.0], [0.0], [1.0]]]), None)
    m.trace.draw[:] = 0, 50, 100  # the first is burn-in
    m = replace(m, problem=problem)
    chance = (0.5 + 1 / (1 + np.exp(-1.0))) / 2  # of either label
    assert values(log_predictive, m)["log_predictive"].value == pytest.approx(np.log(chance))


def test_running_averages_of_independent_draws_have_errors_that_fall_as_their_number_rises():
    """1/k for means, and (2 tr V^2 / (tr V)^2) / k for the variance; exactly of two draws."""
    m = measurement(exact(2000, 40))
    found = {(row.metric, row.iteration): row for row in running_mean.rows(m)}
    ratio = 2 * np.trace(COV @ COV) / np.trace(COV) ** 2
    for metric, factor in (("running_mean_error", 1.0), ("running_trace_error", ratio)):
        for count, iteration in enumerate(m.trace.draw[m.late], 1):
            row = found[metric, iteration]
            half = (row.hi - row.lo) / 2
            assert row.value == pytest.approx(factor / count, abs=2.5 * half)
    x = np.array([[[2.0, -2.0, 0.5], [1.0, -4.0, 0.5]]])
    found = {(r.metric, r.iteration): r.value for r in running_mean.rows(measurement(x))}
    assert found["running_mean_error", 1] == pytest.approx(1 / 5.5)
    assert found["running_mean_error", 2] == pytest.approx((0.25 + 1) / 5.5)
    assert found["running_trace_error", 2] == pytest.approx((2.5 / 5.5 - 1) ** 2)
