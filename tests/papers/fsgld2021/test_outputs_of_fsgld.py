"""Metrics of the theorems' constants and of draws, and figures of shards and marks."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

import everything
import made_up_runs
from concord import streams
from concord.chains import Labels, sample_chains
from concord.networks.construction import network
from concord.record import Record
from concord.samplers.fsgld import FSGLD
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule
from concord_studies import results
from concord_studies.metrics import Measurement

means = everything.kind("problems", "shards_of_means")
theory = everything.shared("fsgld2021", "theory")


def measurement(iterations=30, surrogates="none", updates=1, **options) -> Any:
    """Sample one chain that visits three shards of five points."""
    problem = means.build(
        means.Params(points=5, **options), 3, None, lambda label: default_rng(len(label)), None
    )
    sampler = FSGLD(Schedule(0.01), surrogates=surrogates, local_steps=updates, batch_size=2)
    start, net, stream = Law("normal"), network("server", 3), partial(streams.generator, 1)
    about: Any = {"law": start, "record": Record(), "seed": 1, "labels": Labels()}
    trace = sample_chains(sampler, problem, net, chains=1, iterations=iterations, **about)
    return Measurement(trace, problem, net, sampler, start, iterations, stream)


def numbers_of(family: str, run: Any) -> dict[tuple[str, str], list[float]]:
    rows: dict[tuple[str, str], list[float]] = {}
    for row in everything.kind("metrics", family).rows(run):
        rows.setdefault((row.metric, row.agent), []).append(row.value)
    return rows


@pytest.mark.parametrize("of", ["mean", "most"])
def test_constants_are_the_largest_over_the_grid(of):
    run = measurement(surrogates="laplace", grid=2.0, epsilon=of)
    found = numbers_of("constants", run)
    axis = np.linspace(-2, 2, means.SIDE)
    for s, points in enumerate(run.problem.data.features):
        gammas, epsilons, halves = [], [], []
        for theta in ((x, y) for x in axis for y in axis):
            slopes = points - theta
            gammas.append(max(slope @ slope for slope in slopes))
            for part, kept in ((1.0, epsilons), (0.5, halves)):
                rest = [slope - part * slopes.mean(axis=0) for slope in slopes]
                kept.append((np.mean if of == "mean" else np.max)([r @ r for r in rest]))
        assert found["gamma2", str(s)] == pytest.approx([max(gammas)])
        assert found["epsilon2", str(s)] == pytest.approx([max(epsilons)])
        assert found["epsilon2_half", str(s)] == pytest.approx([max(halves)])
    sum_of = np.sum([found["epsilon2", str(s)] for s in range(3)])
    assert found["variance_bound", "network"] == pytest.approx([3 * 25 * sum_of / 2])
    assert found["theorem.Lipschitz surrogates", "network"] == [0.0]


def test_the_bound_is_that_of_the_run():
    plain, corrected = (
        numbers_of("constants", measurement(surrogates=s)) for s in ("none", "laplace")
    )
    gammas = np.sum([plain["gamma2", str(s)] for s in range(3)])
    assert plain["variance_bound", "network"] == pytest.approx([3 * 25 * gammas / 2])
    assert plain["variance_between", "network"][0] > 1
    assert corrected["variance_between", "network"][0] < 1e-18
    assert "theorem.Lipschitz surrogates.value" not in {name for name, _ in plain}


def test_laws_given_shards_are_compared_with_local_posteriors():
    run = measurement(updates=100, draws="last")
    found = numbers_of("visits", run)
    centers = run.problem.data.features.mean(axis=1)
    visits = theory.Visits.of(run.problem, run.sampler)
    w2s = []
    for s in range(3):  # after so many updates theta has forgotten all other shards
        away = 15 / 16 * centers[s] - 5 / 6 * centers[s]
        values = np.linalg.eigvalsh(visits.noise[s] / (1 - visits.shrink**2))
        w2s.append(away @ away + ((np.sqrt(values) - np.sqrt(1 / 6)) ** 2).sum())
    assert found["law_local_w2", "network"] == pytest.approx([np.sqrt(np.mean(w2s))])
    traces = [np.trace(of) / (1 - visits.shrink**2) for of in visits.noise]
    assert found["law_local_trace", "network"] == pytest.approx([np.mean(traces) * 6 / 2])
    first = numbers_of("visits", replace(run, problem=measurement(updates=100).problem))
    assert first["law_trace", "network"] == pytest.approx([np.trace(visits.cov(1)) * 16 / 2])
    assert found["law_trace", "network"] == pytest.approx([np.trace(visits.cov(100)) * 16 / 2])


def test_errors_are_of_the_draws_so_far():
    run = measurement(surrogates="laplace")
    found = numbers_of("shard_draws", run)
    x, y = (np.array(found[f"chain_{axis}", "0"]) for axis in "xy")
    draws = np.stack([x, y], axis=-1) - run.problem.posterior.mean
    assert len(x) == len(run.late)
    np.testing.assert_array_equal(
        np.stack([found["shard_x", "2"], found["shard_y", "2"]], axis=-1),
        run.problem.data.features[2],
    )
    squares = found["square_so_far", "0"]
    assert squares[3] == pytest.approx((draws[:4] ** 2).sum(axis=1).mean())
    assert found["distance_so_far", "0"][3] == pytest.approx(
        np.linalg.norm(draws[:4], axis=1).mean()
    )
    assert found["mean_error_so_far", "0"][3] == pytest.approx((draws[:4].mean(axis=0) ** 2).sum())
    # As many draws of the posterior, standardized.
    exact = np.stack([found["exact_x", "network"], found["exact_y", "network"]], axis=-1)
    away = (exact - run.problem.posterior.mean) * np.sqrt(16)
    assert np.abs(away.mean(axis=0)).max() < 5 / np.sqrt(len(x))
    assert abs((away**2).mean() - 1) < 5 / np.sqrt(len(x))


def test_estimates_of_fig_1_are_at_hundredths_of_theta():
    coins = everything.kind("problems", "coin_shards")
    problem = coins.build(coins.Params(), 3, None, None, None)
    run = measurement()
    sampler = FSGLD(Schedule(0.01), batch_size=5)
    of_coins = replace(
        run, problem=problem, sampler=sampler, trace=SimpleNamespace(draw=np.array([25, 50]))
    )
    found = numbers_of("estimators", of_coins)
    assert found["estimator_mean", "network"] == pytest.approx([15 / 0.25 - 15 / 0.75, 0.0])
    assert found["estimator_sd", "network"][1] == pytest.approx(np.sqrt(412.8 + 1536))
    assert max(found["estimator_error", "network"]) < 1e-15


def test_a_panel_has_the_points_of_all_shards_and_the_draws():
    figure = everything.kind("figures", "shards")
    run = measurement()
    rows = list(everything.kind("metrics", "shard_draws").rows(run))
    measured = results.from_rows(made_up_runs.run(agents=3), rows)
    for exact, name in ((False, "chain"), (True, "exact")):
        (axes,) = figure.draw(figure.Params(exact=exact), [measured]).axes
        assert [len(line.get_xdata()) for line in axes.lines] == [5, 5, 5, len(run.late)]
        shown = [row.value for row in rows if row.metric == f"{name}_x"]
        np.testing.assert_array_equal(axes.lines[-1].get_xdata(), shown)


def test_marks_are_as_high_as_their_metrics():
    figure = everything.kind("figures", "marks_by_agent")
    rows = everything.kind("metrics", "constants").rows(measurement(surrogates="laplace"))
    measured = results.from_rows(made_up_runs.run(agents=3), rows)
    params = figure.Params(metrics={"epsilon2": "small", "gamma2": "large"}, label="constant")
    (axes,) = figure.draw(params, [measured]).axes
    heights = np.concatenate([line.get_ydata() for line in axes.lines])
    expected = [*measured.values("epsilon2"), *measured.values("gamma2")]
    np.testing.assert_allclose(heights, expected)
