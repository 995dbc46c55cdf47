"""The bench measures what it says, and one command runs all of it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from concord import bench, topology
from concord.__main__ import main


@pytest.fixture
def tiny(monkeypatch):
    """Let the command run at tiny sizes."""
    whole = bench.bench
    monkeypatch.setattr(bench, "bench", lambda output: whole(output, tiny=True))


def test_the_command_prints_and_writes_every_case(tiny, tmp_path, capsys):
    assert main(["bench", "-o", str(tmp_path / "bench.csv")]) == 0
    printed = capsys.readouterr().out
    with open(tmp_path / "bench.csv") as file:
        rows = list(csv.DictReader(file))
    cases = [case for entry in bench.ENTRIES for case in entry(True)]
    timed = [case for case in cases if isinstance(case, bench.Case)]
    assert [row["name"] for row in rows] == [case.name for case in timed]
    assert all(case.name in printed for case in cases)
    for row in rows:
        assert 0 < float(row["lo"]) <= float(row["ratio"]) <= float(row["hi"])
        assert float(row["step_seconds"]) > 0
    assert any("ring" in name and "per agent" in name for name in (row["name"] for row in rows))


def test_a_case_that_cannot_run_says_why(monkeypatch, capsys):
    monkeypatch.setattr(bench, "ENTRIES", [lambda tiny: iter([bench.Skipped("A / B", "no C")])])
    assert bench.bench(tiny=True) == []
    assert "A / B: skipped, no C" in capsys.readouterr().out


def test_ratios_are_of_work_done():
    """Eight times the numbers take about eight times as long: far from 2 and from 32."""
    case = bench.Case("eight", bench.normals(8, 4000), bench.normals(1, 4000))
    timing = bench.time_case(case, turns=9, least=1e-3)
    assert 4 < timing.ratio < 16
    per = bench.time_case(
        bench.Case("per", case.step, case.reference, per=8.0), turns=9, least=1e-3
    )
    assert 0.5 < per.ratio < 2


def test_a_stepper_steps_every_time_it_is_called(monkeypatch):
    seen = []
    module = bench.plugin("samplers", "de_sgld", "tests")
    init = module.init

    def watched(*arguments):
        state, step = init(*arguments)

        def noted(state, k, rng):
            after, info = step(state, k, rng)
            seen.append(after.x.copy())
            return after, info

        return state, noted

    monkeypatch.setattr(module, "init", watched)
    work = bench.stepper("de_sgld", bench.STEP, topology.build("ring", 3), chains=2)
    work()
    work()
    assert len(seen) == 2 and seen[0].shape == (2, 3, 2)
    assert not np.array_equal(*seen)


def test_cvxpy_solves_the_same_primal_step():
    """To the solver's tolerance; otherwise the comparison of times would mean nothing."""
    pytest.importorskip("cvxpy")
    problem = bench.regression(4)
    curvature = np.array([1.0, 2.0, 3.0, 10.0])
    linear = np.random.default_rng(0).standard_normal((4, 2))
    found = bench.cvxpy_primal(problem, curvature)(linear)
    out = np.empty((1, 4, 2))
    problem.prox(1, curvature)(slice(None), linear[None].copy(), out.copy(), out)
    np.testing.assert_allclose(found, out[0], atol=1e-4)


def test_without_cvxpy_its_case_is_skipped_with_the_remedy(monkeypatch):
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    (case,) = bench.admm_against_cvxpy(True)
    assert isinstance(case, bench.Skipped) and "pip install" in case.reason
