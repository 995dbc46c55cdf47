"""The bench measures what it says, and one command runs all of it."""

import csv
import itertools
import re

import numpy as np
import pytest

import bench
import rivals
import scaling
from concord import kinds
from concord.networks.construction import network as network_of


@pytest.fixture
def tiny(monkeypatch):
    """Let the command run at tiny sizes."""
    whole = bench.bench
    monkeypatch.setattr(bench, "bench", lambda output, names: whole(output, True, names))


@pytest.mark.thorough
def test_the_command_prints_and_writes_every_case(tiny, tmp_path, capsys):
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
        assert float(row["step_seconds"]) > 0
        # State and buffers are more than the positions; whole runs and others are not measured.
        if row["memory_bytes"]:
            assert float(row["memory_ratio"]) > 1
    stepped = [row for row in rows if row["axis"] != "iterations"]
    stepped = [
        row for row in stepped if not re.search(" here,|kernels|numbers / numpy", row["name"])
    ]
    assert all(row["memory_bytes"] for row in stepped)
    assert {row["axis"] for row in rows} == {*bench.AXES, ""}
    for suffix in (".png", ".pdf"):
        assert (tmp_path / f"bench{suffix}").stat().st_size > 1000


def test_a_table_of_another_kind_is_refused_before_anything_is_timed(tiny, tmp_path, capsys):
    with pytest.raises(SystemExit, match=r"name it \.csv"):
        bench.main(["-o", str(tmp_path / "bench.png")])
    assert not capsys.readouterr().out and not list(tmp_path.iterdir())


def test_every_sampler_is_timed_on_every_axis_that_it_has():
    places = [case.place for case in bench.growth(True)]
    found = {(place.sampler, place.axis) for place in places}
    others = {kind for kind in kinds.names("samplers") if bench.network(kind, 6).name != "ring"}
    assert others == {"bayes_admm", "c_ula", "sgd", "consensus_mc", "dg_lmc", "fsgld", "qlsd"}
    apart = {(kind, "agents") for kind in others} | {("bayes_admm", "points")}
    assert (
        found == {(kind, axis) for kind in kinds.names("samplers") for axis in bench.AXES} - apart
    )


def test_a_sampler_whose_options_are_unknown_is_skipped_and_says_so(monkeypatch):
    monkeypatch.delitem(bench.USUAL, float)
    cases = list(bench.step_against_its_random_numbers(True))
    skipped = {c.name.split()[0]: c.reason for c in cases if isinstance(c, bench.Skipped)}
    assert {*skipped} >= {"admm", "de_sghmc"}
    assert "penalty" in skipped["admm"] and "friction" in skipped["de_sghmc"]
    assert {case.place.sampler for case in bench.growth(True)}.isdisjoint(skipped)


def test_memory_is_that_of_state_and_buffers():
    """DE-SGLD holds a few arrays of the positions' size, and as many more for twice the chains."""
    graph = network_of("ring", 5)
    small, large = (bench.stepper("de_sgld", graph, n) for n in (20_000, 40_000))
    assert small.positions == 20_000 * 5 * 2 * 8
    assert 4 < small.memory / small.positions < 12
    assert large.memory == pytest.approx(2 * small.memory, rel=0.01)


def test_a_run_makes_all_its_iterations():
    work = bench.stepper("de_sgld", network_of("ring", 3), 2)
    work.run(30)()
    trace = work.recorder.trace()
    assert trace["x"].shape == (2, 4, 3, 2) and list(trace.draw) == [0, 10, 20, 30]


def timing(sampler, axis, size, reference, seconds, before):
    place = bench.Place(sampler, axis, size, reference)
    case = bench.Case("made up", print, print, place=place)
    return bench.Timing(case, 1.0, 1.0, 1.0, seconds, before)


def test_curves_join_the_cases_of_an_axis_and_state_their_exponent():
    timings = [
        timing("de_sgld", "agents", 100, 10, 3.0, 1.0),
        timing("de_sgld", "agents", 1000, 100, 300.0, 2.9),
        timing("d_ula", "chains", 20, 10, 8.0, 2.0),
    ]
    assert scaling.curves(timings, "agents") == {"de_sgld": {10: 1.0, 100: 3.0, 1000: 300.0}}
    assert scaling.slope({10: 1.0, 100: 3.0, 1000: 300.0}) == pytest.approx(2.0)
    assert scaling.slope(scaling.curves(timings, "chains")["d_ula"]) == pytest.approx(2.0)


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


def test_slow_work_is_timed_in_fewer_turns(monkeypatch):
    calls = []
    monkeypatch.setattr(bench, "_seconds", lambda work, repeats: calls.append(work) or 1.0)
    bench.time_case(bench.Case("slow", print, dict), turns=25, least=1e-3)
    assert calls.count(print) == 1 + bench.FEWEST


def test_a_stepper_steps_every_time_it_is_called():
    work = bench.stepper("de_sgld", network_of("ring", 3), chains=2)
    seen = []
    for _ in range(3):
        seen.append(work._state.x.copy())
        work()
    assert seen[0].shape == (2, 3, 2)
    assert not np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[1], seen[2])


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


@pytest.mark.thorough
@pytest.mark.parametrize("kind", rivals.KINDS)
@pytest.mark.parametrize(
    ("name", "package"), [("Lines", None), *((n, p) for n, (_, p) in bench.OTHERS.items())]
)
def test_others_make_the_same_steps(kind, name, package):
    """Given the same noise, to rounding, or to CVXPY's tolerance; else times would mean nothing."""
    if kind != "de_sgld" and name in ("Lines", "Jax"):
        pytest.skip("they are written for DE-SGLD alone")
    solved = kind == "admm" and name == "Loops"
    for needed in (package, "cvxpy" if solved else None):
        if needed is not None:
            pytest.importorskip(needed)
    chains, steps = (1, 2) if solved else (3, 5)
    network, problem = network_of("path", 4), bench.regression(4)
    options = {"step": 1e-3, "fusion": 0.2, "penalty": 3.0}
    own = {"admm": {"penalty": 3.0}, "d_ula": {"step_size": 1e-3, "fusion": 0.2}}
    sampler = bench.parameters(kind, own.get(kind, {"step_size": 1e-3}))
    x0 = np.random.default_rng(0).standard_normal((chains, 4, 2))
    rival = getattr(rivals, name)(kind, problem, network.graph, options, x0)
    if name == "Torch":
        torch = pytest.importorskip("torch")
        rival.noise = lambda rng: torch.from_numpy(rng.standard_normal(x0.shape))
    if name == "Jax":
        rival.noise = lambda rng: rng.standard_normal(x0.shape)
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    state = bench.run(sampler, problem, network.start(x0), x0, steps, rng)
    for _ in range(steps):
        rival.step(other)
    assert not np.allclose(rival.x, x0, atol=1e-2)
    np.testing.assert_allclose(rival.x, state.x, atol=1e-3 if solved else 1e-12)


@pytest.mark.thorough
def test_blackjax_makes_the_steps_of_c_ula():
    """On one agent, given the noise that it draws."""
    pytest.importorskip("blackjax")
    problem, network, chains = bench.regression(1), network_of("no_edges", 1), 4
    options = {"step": 1e-3, "fusion": 0.2, "penalty": 3.0}
    x0 = np.random.default_rng(0).standard_normal((chains, 1, 2))
    rival = rivals.Blackjax("de_sgld", problem, network.graph, options, x0)
    sampler, network = bench.parameters("c_ula", {"step_size": 1e-3}), network.start(x0)

    class Given:
        def standard_normal(self, shape, dtype):
            return np.asarray(rival.drawn(rival.keys)).reshape(shape)

    state = sampler.init(x0, problem, network, np.random.default_rng(1))
    for k in range(5):
        rival.step(np.random.default_rng(1))
        state = sampler.step(state, k, problem, network, Given())
    assert not np.allclose(state.x, x0, atol=1e-2)
    np.testing.assert_allclose(np.asarray(rival.x)[:, None], state.x, atol=1e-12)


def test_without_numba_its_cases_are_skipped_with_the_remedy(monkeypatch):
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    skipped = [c for c in bench.against_others(True) if isinstance(c, bench.Skipped)]
    assert {case.reason.split()[0] for case in skipped} == {"numba", "torch", "cvxpy", "jax"}
    assert all("pip install" in case.reason for case in skipped)


@pytest.mark.thorough
def test_large_networks_hold_at_most_ten_times_their_positions():
    """Of a size at which arrays of positions count, and what does not grow with agents does not.

    DE-SGLD holds 6, DIGing-SGLD, whose state is three arrays, 9.
    """
    for name, kind in itertools.product(("ring", "exponential"), bench.LARGE_KINDS):
        work = bench.Sampling(kind, network_of(name, 20_000), 10, bench.Near(20_000))
        assert work.memory < 10 * work.positions, (name, kind)


def test_benchmarks_run_by_name(monkeypatch, capsys, tmp_path):
    made = [bench.Skipped("A / B", "no C")]

    def chosen(tiny):
        return iter(made)

    monkeypatch.setattr(bench, "ENTRIES", [chosen, lambda tiny: 1 / 0])
    assert bench.bench(tmp_path / "one.csv", names=["chosen"]) == []
    assert "no C" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["one.csv"]  # no figure of nothing
    with pytest.raises(bench.ConcordError, match=r"no benchmark 'chose'.*chosen"):
        bench.bench(names=["chose"])
