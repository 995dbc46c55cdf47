"""Running means, ESS and R-hat, against closed forms."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import everything
import measurements
from concord import streams
from concord.laws.gaussian import Gaussian
from concord.sampling.trace import Trace
from concord_studies.metrics import running_mean

diagnostics = everything.kind("metrics", "diagnostics")
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
