"""The bench measures what it says, and one command runs all of it."""

import csv
import itertools

import numpy as np
import pytest

import bench
import rivals
from concord.loop import run
from concord.networks.own import network


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
        # The state is more than the positions; whole runs and others are not measured.
        if row["memory_bytes"]:
            assert float(row["memory_ratio"]) > 1
    stepped = [row for row in rows if " step" in row["name"]]
    assert stepped and all(row["memory_bytes"] for row in stepped)


def test_a_table_of_another_kind_is_refused_before_anything_is_timed(tiny, tmp_path, capsys):
    with pytest.raises(SystemExit, match=r"name it \.csv"):
        bench.main(["-o", str(tmp_path / "bench.png")])
    assert not capsys.readouterr().out and not list(tmp_path.iterdir())


def test_memory_is_that_of_the_state_and_of_a_step():
    """DE-SGLD holds a few arrays of the positions' size, and as many more for twice the chains."""
    small, large = (bench.stepper("de_sgld", network("ring", 5), n) for n in (20_000, 40_000))
    assert small.positions == 20_000 * 5 * 2 * 8
    assert 4 < small.memory / small.positions < 12
    assert large.memory == pytest.approx(2 * small.memory, rel=0.01)


def test_a_run_makes_all_its_iterations():
    steps, net, problem = [], network("ring", 3), bench.regression(3)

    class Noted(type(bench.sampler_of("de_sgld"))):
        def step(self, state, k, *given):
            steps.append(k)
            return super().step(state, k, *given)

    bench.runner(Noted(1e-9), net, 2, problem, 30)()
    assert steps == list(range(30))


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
    work = bench.stepper("de_sgld", network("ring", 3), chains=2)
    first = work._state.x
    work()
    second = work._state.x
    work()
    assert second.shape == (2, 3, 2) and work._k == 4  # two of them measured the memory
    assert not np.array_equal(first, second) and not np.array_equal(second, work._state.x)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "package"), [(n, p) for n, (_, p) in bench.OTHERS.items()])
def test_others_make_the_same_steps(name, package):
    """Given the same noise, to rounding; else times would mean nothing."""
    if package is not None:
        pytest.importorskip(package)
    net, problem = network("path", 4), bench.regression(4)
    x0 = np.random.default_rng(0).standard_normal((3, 4, 2))
    rival = getattr(rivals, name)(problem, net, 1e-3, x0)
    if name == "Torch":
        torch = pytest.importorskip("torch")
        rival.noise = lambda rng: torch.from_numpy(rng.standard_normal(x0.shape))
    if name == "Jax":
        rival.noise = lambda rng: rng.standard_normal(x0.shape)
    sampler = type(bench.sampler_of("de_sgld"))(1e-3)
    state = run(sampler, problem, net.start(x0), x0, 5, np.random.default_rng(1))
    other = np.random.default_rng(1)
    for _ in range(5):
        rival.step(other)
    assert not np.allclose(rival.x, x0, atol=1e-2)
    np.testing.assert_allclose(rival.x, state.x, atol=1e-12)


def test_without_numba_its_cases_are_skipped_with_the_remedy(monkeypatch):
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    entries = bench.step_against_what_people_write(True), bench.compiled_steps(True)
    skipped = [c for c in itertools.chain(*entries) if isinstance(c, bench.Skipped)]
    assert {case.reason.split()[0] for case in skipped} == {"numba", "torch", "jax"}
    assert all("pip install" in case.reason for case in skipped)


@pytest.mark.thorough
def test_large_networks_hold_few_times_their_positions():
    """Of a size at which arrays count, and what does not grow with agents does not."""
    for name, kind in itertools.product(("ring", "exponential"), bench.MOVED):
        sampler, net = bench.sampler_of(kind), network(name, 20_000)
        work = bench.Stepping(sampler, net, 10, bench.Near(20_000))
        assert work.memory < 12 * work.positions, (name, kind)


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
