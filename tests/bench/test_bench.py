"""The bench measures what it says, and one command runs all of it."""

import itertools

import numpy as np
import pandas
import pytest

import bench
import rivals
from concord.loop import run
from concord.networks.construction import network as network_of


@pytest.mark.thorough
def test_the_command_prints_and_writes_every_case(monkeypatch, tmp_path, capsys):
    whole = bench.bench
    monkeypatch.setattr(bench, "bench", lambda names: whole(True, names))
    bench.main(["-o", str(tmp_path / "bench.csv")])
    printed, table = capsys.readouterr().out, pandas.read_csv(tmp_path / "bench.csv")
    cases = [case for entry in bench.ENTRIES.values() for case in entry(True)]
    timed = [case.name for case in cases if isinstance(case, bench.Case)]
    assert table["name"].to_list() == timed
    assert all(case[0] in printed for case in cases)
    assert (table["lo"] > 0).all() and (table["lo"] <= table["ratio"]).all()
    # State and buffers are more than the positions.
    assert (table["memory_ratio"].dropna() > 1).all()
    with pytest.raises(SystemExit, match=r"no benchmark .large.\b.*large_networks"):
        bench.main(["large"])


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
    assert 4 < bench.time_case(case, turns=9, least=1e-3)["ratio"] < 16


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
