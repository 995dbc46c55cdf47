"""Activity, messages, distances to a reference posterior, accuracy by updates."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import everything
import measurements
from concord.laws import quadrature
from concord.sampling.trace import Trace
from concord_studies.metrics import (
    Measurement,
    accuracy,
    activity,
    posterior_density,
    posterior_trace,
    w1_marginal,
)

accuracy_by_updates = everything.kind("metrics", "accuracy_by_updates")
posterior_distance = everything.kind("metrics", "posterior_distance")


def measurement(variables, draw, agents: int, **problem) -> Measurement:
    return measurements.measurement(
        Trace(variables, np.asarray(draw), np.arange(agents)),
        problem=SimpleNamespace(agents=agents, dim=2, **problem),
        stream=lambda what: np.random.default_rng(len(what)),
    )


@pytest.mark.parametrize(("burn_in", "first"), [(-1, 20), (0, 20), (59, 60), (60, 80)])
def test_draws_that_stand_for_a_sample_are_those_beyond_burn_in(burn_in, first) -> None:
    """By default the first tenth is left out; else what is recorded up to burn_in."""
    exact = quadrature.from_log_density(lambda a, b: -(a**2 + b**2) / 2, ((-8, 8),) * 2, 64)
    draw = [0, *range(20, 201, 20)]
    x = np.random.default_rng(0).standard_normal((3, len(draw), 2, 2))
    x[:, np.array(draw) < first] += 1e4
    m = measurement({"x": (("chain", "draw", "agent", "dim"), x)}, draw, 2, reference=exact)
    m = replace(m, burn_in=burn_in)
    for rows in (w1_marginal.rows(m), posterior_distance.rows(m), posterior_trace.rows(m)):
        late = [row.value for row in rows if not row.metric.endswith("_window")]
        assert max(late) < 100
    other = w1_marginal.rows(replace(m, burn_in=0))
    assert (max(row.value for row in other) > 100) == (first > 20)


def table(rows):
    return {(k, agent, name): (value, lo, hi) for k, agent, name, value, lo, hi, *_ in rows}


COUNTS = ("chain", "draw", "agent")


def test_the_mean_accuracy_of_all_agents_has_the_interval_of_their_mean() -> None:
    """Agents of a chain that err in turn have a mean without chance."""
    values = np.array([[[0.9, 0.5]], [[0.5, 0.9]], [[0.7, 0.7]]])
    found = table(accuracy.rows(measurement({"accuracy": (COUNTS, values)}, [30], 2)))
    assert found[30, "network", "accuracy_over_agents"] == pytest.approx((0.7, 0.7, 0.7))
    value, lo, hi = found[30, "0", "accuracy_mean"]
    assert value == pytest.approx(0.7) and lo < 0.6 and hi > 0.8


def test_rates_per_agent() -> None:
    active = np.array([[[0, 0], [10, 4]], [[0, 0], [12, 8]]])
    sent = np.array([[[0, 0], [5, 1]], [[0, 0], [3, 4]]])
    m = measurement({"activations": (COUNTS, active), "broadcasts": (COUNTS, sent)}, [0, 20], 2)
    found = table(activity.rows(m))
    value, lo, hi = found[20, "0", "activation_rate"]
    assert value == pytest.approx(11 / 20)
    # Two chains at 0.5 and 0.6: standard error 0.05, one degree of freedom.
    assert (lo, hi) == pytest.approx((0.55 - 12.706 * 0.05, 0.55 + 12.706 * 0.05), abs=1e-4)
    assert found[20, "1", "activations"][0] == 6
    assert found[20, "0", "trigger_rate"][0] == pytest.approx((5 / 10 + 3 / 12) / 2)
    assert found[20, "1", "triggers"][0] == 2.5


@pytest.fixture(scope="module")
def posterior() -> quadrature.Grid:
    return quadrature.from_log_density(
        lambda a, b: -0.5 * (a**2 + (b - a) ** 2), ((-20, 20), (-20, 20)), 300
    )


@pytest.fixture
def sampled(posterior) -> Measurement:
    """Return chains that sample the posterior; agent 1 is shifted by 1 in the first parameter."""
    draws = posterior.sample(6 * 401 * 2, np.random.default_rng(0)).reshape(6, 401, 2, 2)
    draws[:, :, 1, 0] += 1
    draws[:, :40] = 1e6  # burn-in must not count
    variables = {"x": ((*COUNTS, "dim"), draws)}
    return measurement(variables, np.arange(0, 4001, 10), 2, reference=posterior)


def test_marginal_distances(sampled) -> None:
    found = table(w1_marginal.rows(sampled))
    exact, shifted = (found[4000, str(agent), "w1_marginal"] for agent in range(2))
    floor = found[4000, "network", "w1_marginal_floor"]
    # Independent exact draws: the distance is the floor's, within both intervals.
    assert exact[1] < floor[2] and floor[1] < exact[2]
    assert found[4000, "1", "w1_marginal_0"][0] == pytest.approx(1, abs=0.1)
    assert shifted[0] == pytest.approx(0.5 + exact[0] / 2, abs=0.05)
    for agent in ("0", "1"):
        low = found[4000, agent, "w1_marginal_min"][0]
        high = found[4000, agent, "w1_marginal_max"][0]
        assert low < found[4000, agent, "w1_marginal"][0] < high
    # Agent 1 is nearly twice or more as far: (b - a) / ((a + b) / 2).
    a, b = exact[0], shifted[0]
    assert found[4000, "network", "w1_marginal_spread"][0] == pytest.approx(
        2 * (b - a) / (a + b), rel=0.1
    )
    pooled = found[4000, "0", "w1_marginal_pooled"]
    assert pooled[0] < exact[0]
    assert pooled[1] < pooled[2]
    windows = [v for (_, _, name), v in found.items() if name == "w1_marginal_window"]
    assert len(windows) > 10


def test_widths(sampled) -> None:
    """1 for exact draws, wherever they are; a chain's own mean counts as part of the width."""
    found = table(posterior_trace.rows(sampled))
    for agent in ("0", "1"):
        value, lo, hi = found[4000, agent, "posterior_trace"]
        assert lo < 1 < hi and value == pytest.approx(1, abs=0.1)
    x = sampled.trace["x"]
    late = x[:, sampled.trace.draw >= 400].reshape(-1, 2, 2)
    pooled = late.var(axis=0).sum(axis=-1)
    exact = np.trace(sampled.problem.reference.moments()[1])
    assert found[4000, "0", "posterior_trace"][0] == pytest.approx(pooled[0] / exact, rel=5e-3)
    x[:, :, 0] += 3 * np.arange(len(x))[:, None, None]
    apart = table(posterior_trace.rows(sampled))[4000, "0", "posterior_trace"][0]
    shift = 3 * np.arange(len(x))
    assert apart == pytest.approx(1 + 2 * shift.var(ddof=1) / exact, rel=0.05)


def test_two_dimensional_distances(sampled, monkeypatch) -> None:
    monkeypatch.setattr(posterior_distance, "DRAWS", 150)
    found = table(posterior_distance.rows(sampled))
    for order in (1, 2):
        name = f"posterior_w{order}"
        exact, floor = found[4000, "0", name], found[4000, "network", f"{name}_floor"]
        assert exact[1] < floor[2] and floor[1] < exact[2]
        assert found[4000, "1", name][0] > 0.9
    assert found[4000, "0", "posterior_w2"][0] > found[4000, "0", "posterior_w1"][0]


def test_densities_of_cells(sampled) -> None:
    found = table(posterior_density.rows(sampled))
    edges = [
        np.array([found[i, "network", f"cell_{axis}"][1] for i in range(posterior_density.CELLS)])
        for axis in range(2)
    ]
    area = np.prod([edge[1] - edge[0] for edge in edges])
    size = posterior_density.CELLS**2
    mass = {
        agent: np.array([found[i, agent, "density"][0] for i in range(size)]) * area
        for agent in ("posterior", "0", "1")
    }
    assert mass["posterior"].sum() == pytest.approx(1, abs=2e-3)
    assert mass["0"].sum() == pytest.approx(1, abs=1e-2)
    first = [found[i, "network", "cell_0"][0] for i in range(posterior_density.CELLS)]
    means = {
        a: (v.reshape(-1, posterior_density.CELLS).sum(axis=1) @ first) for a, v in mass.items()
    }
    assert means["posterior"] == pytest.approx(0, abs=0.01)
    assert means["0"] == pytest.approx(0, abs=0.1)


def test_accuracy_by_updates_takes_the_tick_of_that_update() -> None:
    # Chain 0 moves at ticks 1, 3; chain 1 at ticks 2, 3, 4.
    active = np.array([[0, 1, 1, 2, 2], [0, 0, 1, 2, 3]])[..., None]
    accuracy = np.array([[0.0, 0.1, 0.1, 0.2, 0.2], [0.0, 0.0, 0.5, 0.6, 0.9]])[..., None]
    m = measurement(
        {"activations": (COUNTS, active), "accuracy": (COUNTS, accuracy)}, np.arange(5), 1
    )
    found = table(accuracy_by_updates.rows(m))
    means = [found[u, "0", "accuracy_after_mean"][0] for u in range(3)]
    assert means == pytest.approx([0.0, 0.3, 0.4])
    assert (3, "0", "accuracy_after_mean") not in found  # chain 0 has no third update
    value, lo, hi = found[1, "0", "accuracy_after_sd"]
    assert value == pytest.approx(np.std([0.1, 0.5], ddof=1))
    assert lo < value < hi
