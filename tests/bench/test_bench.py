"""The bench measures what it says, and one command runs all of it."""

import csv
import itertools

import numpy as np
import pytest

import bench
import rivals
from concord.loop import run
from concord.networks.construction import network as network_of


@pytest.mark.thorough
def test_the_command_prints_and_writes_every_case(monkeypatch, tmp_path, capsys):
    whole = bench.bench
    monkeypatch.setattr(bench, "bench", lambda output, names: whole(output, True, names))
    bench.main(["-o", str(tmp_path / "bench.csv")])
    printed = capsys.readouterr().out
    with open(tmp_path / "bench.csv") as file:
        rows = list(csv.DictReader(file))
    cases = [case for entry in bench.ENTRIES for case in entry(True)]
    timed = [case for case in cases if isinstance(case, bench.Case)]
    assert [row["name"] for row in rows] == [case.name for case in timed]
    assert all(case.name in printed for case in cases)
    for row in rows:
        assert 0 < float(row["lo"]) <= float(row["ratio"]) <= float(row["hi"])
        # State and buffers are more than the positions.
        assert not row["memory_ratio"] or float(row["memory_ratio"]) > 1


def test_memory_is_that_of_state_and_buffers():
    """DE-SGLD holds a few arrays of the positions' size, and as many more for twice the chains."""
    graph = network_of("ring", 5)
    small, large = (bench.stepper("de_sgld", graph, n) for n in (20_000, 40_000))
    assert small.positions == 20_000 * 5 * 2 * 8
    assert 4 < small.memory / small.positions < 12
    assert large.memory == pytest.approx(2 * small.memory, rel=0.01)


def test_ratios_are_of_work_done():
    """Eight times the numbers take about eight times as long: far from 2 and from 32."""
    case = bench.Case("eight", bench.normals(8, 4000), bench.normals(1, 4000))
    assert 4 < bench.time_case(case, turns=9, least=1e-3).ratio < 16


def test_compiled_steps_are_as_many_plain_ones():
    pytest.importorskip("numba")
    for kind in ("de_sgld", "gossip_ula"):
        compiled, plain = (
            way(kind, network_of("ring", 3), 2, bench.regression(3), {"step_size": 1e-3})
            for way in (bench.Compiled, bench.Sampling)
        )
        for work in (compiled, plain):
            work._rng = np.random.default_rng(2)
            work.begin()
        compiled()
        for _ in range(bench.STEPS):
            plain()
        assert compiled._k == plain._k == bench.STEPS
        np.testing.assert_allclose(compiled._state.x, plain._state.x, rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "package"),
    [("Loops", None), ("Lines", None), ("Compiled", "numba"), ("Jax", "jax"), ("Solver", "cvxpy")],
)
def test_others_make_the_same_steps(name, package):
    """Given the same noise, to rounding, or to CVXPY's tolerance; else times would mean nothing."""
    if package is not None:
        pytest.importorskip(package)
    solved = name == "Solver"
    chains, steps = (1, 2) if solved else (3, 5)
    network, problem = network_of("path", 4), bench.regression(4)
    options = {"penalty": rivals.PENALTY} if solved else {"step_size": 1e-3}
    x0 = np.random.default_rng(0).standard_normal((chains, 4, 2))
    rival = getattr(rivals, name)(problem, network.graph, x0, 1e-3)
    sampler = bench.parameters(rival.kind, options)
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    state = run(sampler, problem, network.start(x0), x0, steps, rng)
    for _ in range(steps):
        rival.step(other)
    assert not np.allclose(rival.x, x0, atol=1e-2)
    np.testing.assert_allclose(rival.x, state.x, atol=1e-3 if solved else 1e-12)


@pytest.mark.thorough
def test_large_networks_hold_at_most_ten_times_their_positions():
    """Of a size at which arrays of positions count, and what does not grow with agents does not.

    DE-SGLD holds 6, DIGing-SGLD, whose state is three arrays, 9.
    """
    for name, kind in itertools.product(("ring", "exponential"), bench.LARGE_KINDS):
        work = bench.Sampling(kind, network_of(name, 20_000), 10, bench.Near(20_000))
        assert work.memory < 10 * work.positions, (name, kind)


def test_benchmarks_run_by_name(monkeypatch, capsys):
    def chosen(tiny):
        yield bench.Skipped("A / B", "no C")

    monkeypatch.setattr(bench, "ENTRIES", [chosen, lambda tiny: 1 / 0])
    assert bench.bench(names=["chosen"]) == []
    assert "A / B: skipped, no C" in capsys.readouterr().out
    with pytest.raises(bench.ConcordError, match=r"no benchmark 'chose'.*chosen"):
        bench.bench(names=["chose"])
