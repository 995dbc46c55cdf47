"""Recorded values: how many are inside, of the same law and of another."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import concord
from concord.datasets import fetch, tables
from concord.errors import ConcordError
from concord.metrics import recorded
from concord.sampling import streams
from measurements import measurement

CHAINS, ITERATIONS = 100, 40


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    return concord.problems.linear_regression(
        X, X @ [1.0, -1.0] + rng.standard_normal(60), agents=4
    )


def run(problem, seed, step=0.01):
    return concord.sample(
        "de_sgld", problem, "ring", step_size=step, chains=CHAINS, iterations=ITERATIONS, seed=seed
    )


def shares(problem, ours, other, tmp_path, monkeypatch):
    """Return inside, usual and least of a record that is the w2 of another run."""
    from concord.laws.gaussian import fit, w2

    value = w2(*fit(other["x"]), problem.posterior)
    lines = ["agent,iteration,w2,kind"]
    lines += [f"{a},{k},{v},x" for k, row in enumerate(value) for a, v in enumerate(row)]
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    monkeypatch.setattr(fetch, "verify", lambda name, file: path)
    given = tables.Recorded("t", "w2", {"kind": "x"})
    m = measurement(
        ours, problem=problem, recorded=given, stream=lambda what: streams.generator(1, what)
    )
    found = {}
    for row in recorded.rows(m):
        found.setdefault(row.metric, []).append(row)
    assert len(found["w2_recorded"]) == 4 * (ITERATIONS + 1)
    row = found["w2_recorded"][0]
    assert (row.value, row.chance) == (pytest.approx(value[0, 0], abs=1e-6), True)
    return [found[f"recorded_{name}"][0].value for name in ("inside", "usual", "least")]


def test_another_run_of_the_law_is_inside_as_often_as_intervals_say(problem, tmp_path, monkeypatch):
    """95 %, and the intervals near 0 are conservative; no run of eight is below the least."""
    ours = run(problem, 1)
    found = [shares(problem, ours, run(problem, s), tmp_path, monkeypatch) for s in range(2, 10)]
    inside, usual, least = np.array(found).T
    assert inside.mean() == pytest.approx(usual.mean(), abs=0.05)
    assert 0.92 < usual.mean() < 1
    assert (inside > least).all()


def test_a_run_of_another_law_is_not(problem, tmp_path, monkeypatch):
    inside, _, least = shares(
        problem, run(problem, 1), run(problem, 2, step=0.005), tmp_path, monkeypatch
    )
    assert inside < least


def test_a_record_of_fewer_chains_is_judged_by_its_own_error(tmp_path, monkeypatch):
    """Means of 20 chains of a known law beside 2000 of ours: 95 % inside; least below most."""

    class Accuracies(dict):
        chains, agent = 2000, np.array([1])
        draw = np.arange(30)

    rng = np.random.default_rng(5)
    ours = Accuracies(accuracy=rng.beta(9, 1, (2000, 30, 1)))
    path = tmp_path / "t.csv.gz"
    monkeypatch.setattr(fetch, "verify", lambda name, file: path)
    found = []
    for _ in range(12):
        record = rng.beta(9, 1, (20, 30)).mean(axis=0)
        lines = ["agent,iteration,accuracy_mean", *(f"1,{k},{v}" for k, v in enumerate(record))]
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
        m = measurement(ours, recorded=tables.Recorded("t", "accuracy_mean", chains=20))
        rows = {row.metric: row.value for row in recorded.rows(m)}
        found.append([rows[f"recorded_{name}"] for name in ("inside", "usual", "least")])
    inside, usual, least = np.array(found).T
    assert abs(inside.mean() - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 360) + 0.01
    assert abs(usual.mean() - 0.95) < 0.015
    assert (least < inside).all()


def test_distances_of_fewer_chains_are_not_compared(problem):
    given = tables.Recorded("t", "w2", chains=20)
    with pytest.raises(ConcordError, match="distances of fewer chains are larger"):
        list(recorded.rows(measurement(run(problem, 1), problem=problem, recorded=given)))


def test_it_needs_a_record(problem):
    with pytest.raises(ConcordError, match="recorded numbers"):
        list(recorded.rows(measurement(run(problem, 1), problem=problem)))
