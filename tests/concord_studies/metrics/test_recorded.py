"""Recorded values: how many are inside, of the same law and of another."""

import gzip

import numpy as np
import pytest

import concord
import everything
from concord import streams
from concord.errors import ConcordError
from concord.laws.wasserstein import fit, w2
from concord_studies.datasets import tables
from measurements import measurement

recorded = everything.kind("metrics", "recorded")
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


@pytest.fixture
def table(problem, tmp_path, monkeypatch):
    """Return a function that records the w2 of runs, by name, in the only table there is."""
    path = tmp_path / "t.csv.gz"
    monkeypatch.setattr(tables, "verify", lambda name, file: path)

    def write(runs):
        lines = ["agent,iteration,w2,kind"]
        for name, other in runs.items():
            value = w2(*fit(other["x"]), problem.posterior)
            lines += [
                f"{a},{k},{v},{name}" for k, row in enumerate(value) for a, v in enumerate(row)
            ]
        path.write_bytes(gzip.compress("\n".join(lines).encode()))

    return write


def shares(problem, ours, name, like=None):
    """Return inside, usual and least of a record; ``like``: there are others beside it."""
    given = tables.Recorded("t", "w2", {"kind": name}, like or {})
    m = measurement(
        ours, problem=problem, recorded=given, stream=lambda what: streams.generator(1, what)
    )
    found = {}
    for row in recorded.rows(m):
        found.setdefault(row.metric, []).append(row)
    assert len(found["w2_recorded"]) == 4 * (ITERATIONS + 1)
    return [found[f"recorded_{name}"][0].value for name in ("inside", "usual", "least")]


def test_other_runs_of_the_law_are_refused_as_often_as_stated(problem, table, monkeypatch):
    """95 % of values are inside, and a fifth is refused, or fewer: intervals near 0 are wide.

    Of 8 runs of ours beside 16 records, whose shares depend on each other.
    """
    monkeypatch.setattr(recorded, "LEAST", 0.2)
    table({f"s{seed}": run(problem, seed) for seed in range(11, 27)})
    found = [
        shares(problem, ours, f"s{seed}")
        for ours in (run(problem, seed) for seed in range(1, 9))
        for seed in range(11, 27)
    ]
    inside, usual, least = np.array(found).T
    assert inside.mean() == pytest.approx(usual.mean(), abs=0.02)
    assert 0.92 < usual.mean() < 1
    assert 0.03 < (inside < least).mean() < 0.25


def test_of_records_together_none_is_refused_but_that_of_another_law(problem, table):
    ours, names = run(problem, 1), {f"s{seed}": seed for seed in range(2, 12)}
    runs = {name: run(problem, seed) for name, seed in names.items()}
    table({**runs, "other": run(problem, 12, step=0.005)})
    alone = shares(problem, ours, "s2")
    together = {name: shares(problem, ours, name, {"kind": "seed"}) for name in (*names, "other")}
    assert together["s2"][:2] == alone[:2] and together["s2"][2] < alone[2]
    refused = [name for name, (inside, _, least) in together.items() if inside < least]
    assert refused == ["other"]


def test_a_record_of_fewer_chains_is_judged_by_its_own_error(tmp_path, monkeypatch):
    """Means of 20 chains of a known law beside 2000 of ours: 95 % inside; least below most."""

    class Accuracies(dict):
        chains, agent = 2000, np.array([1])
        draw = np.arange(30)

    rng = np.random.default_rng(5)
    ours = Accuracies(accuracy=rng.beta(9, 1, (2000, 30, 1)))
    path = tmp_path / "t.csv.gz"
    monkeypatch.setattr(tables, "verify", lambda name, file: path)
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


def test_a_rounded_record_is_inside_and_another_is_said_by_how_much(tmp_path, monkeypatch):
    """Of chains that agree no interval has a width, and the agents' mean is what is recorded."""

    class Accuracies(dict):
        chains, agent = 10, np.array([0, 1])
        draw = np.arange(2)

    ours = Accuracies(accuracy=np.full((10, 2, 2), [0.9, 0.5]) + 1e-5)
    path = tmp_path / "t.csv.gz"
    monkeypatch.setattr(tables, "verify", lambda name, file: path)
    lines = ["agent,iteration,accuracy_over_agents", "network,0,0.7", "network,1,0.77"]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))

    def rows(digits):
        given = tables.Recorded("t", "accuracy_over_agents", digits=digits)
        found = recorded.rows(measurement(ours, recorded=given))
        return {row.metric: row.value for row in found}

    exact, rounded = rows(None), rows(4)
    assert (exact["recorded_inside"], rounded["recorded_inside"]) == (0, 0.5)
    assert rounded["recorded_beyond"] == pytest.approx(0.77 / 0.70001 - 1)
    assert rows(0)["recorded_beyond"] == 0
    found = recorded.mean_interval(ours["accuracy"].mean(axis=-1, keepdims=True))
    endless = found[0], np.array([[0.0], [0.7]]), np.array([[np.inf], [0.7]])
    monkeypatch.setattr(recorded, "mean_interval", lambda values: endless)
    assert rows(4)["recorded_inside"] == 0  # without the first, which has no interval


def test_distances_of_fewer_chains_are_not_compared(problem):
    given = tables.Recorded("t", "w2", chains=20)
    with pytest.raises(ConcordError, match="distances of fewer chains are larger"):
        list(recorded.rows(measurement(run(problem, 1), problem=problem, recorded=given)))
