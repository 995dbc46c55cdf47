"""Leaps have the bytes of the steps one by one, of every sampler and problem that has them."""

import warnings
from typing import Any

import numpy as np
import pytest

import concord
from concord import compiled
from concord.contracts import Info, Landed
from concord.options import build
from concord.problems.kinds import tied_mixture
from concord.sampling import leaps, loop
from concord.sampling.partition import Partition
from concord.sampling.recorder import Record, Recorder
from concord.sampling.trace import Trace

D_ULA: dict[str, Any] = {
    "step_size": {"kind": "power", "a": 0.2, "b": 230, "exponent": 0.55},
    "fusion": {"kind": "power", "a": 0.48, "b": 230, "exponent": 0.05},
}
GOSSIP: dict[str, Any] = {"step_size": 1e-4, "fusion": 0.1}
TRIGGER = {"communication": "triggered", "threshold": 8.0, "decay": 0.51}
CASES: list[tuple[str, int, dict[str, Any]]] = [
    ("c_ula", 1, {"step_size": 1e-3}),
    ("d_ula", 5, D_ULA),
    ("d_ula", 5, {**D_ULA, "gradient_scale": "one", "neighbors": "in_turn"}),
    ("gossip_ula", 5, GOSSIP),
    ("gossip_ula", 5, {**GOSSIP, "communication": "never"}),
    ("gossip_ula", 5, {**GOSSIP, **TRIGGER, "drift": "whole"}),
    ("gossip_ula", 5, {**GOSSIP, **TRIGGER, "known": "start"}),
]
NAMES = [f"{kind}-{number}" for number, (kind, _, _) in enumerate(CASES)]


@pytest.fixture
def chosen(monkeypatch):
    """Choose numpy, kernels step by step, or leaps; count the leaps."""
    found: list[int] = []
    own = Recorder.pass_over

    def choose(how: str) -> list[int]:
        monkeypatch.setattr(compiled, "_awaited", 1 if how == "numpy" else 0)
        monkeypatch.setattr(compiled, "expect", lambda *what: None)
        monkeypatch.setattr(loop, "WORTH", 2 if how == "leaps" else 10**9)
        found.clear()
        return found

    def passing(recorder: Recorder, k: int, landed: Landed) -> None:
        found.append(landed.steps)
        own(recorder, k, landed)

    monkeypatch.setattr(Recorder, "pass_over", passing)
    return choose


def mixture(agents: int, points: int = 23) -> Any:
    """Return a mixture whose agents have different numbers of points, unless they divide them."""
    values = np.random.default_rng(4).standard_normal(points)
    return concord.problems.tied_mixture(values, agents=agents)


def mixtures(agents: int) -> Any:
    params = build(tied_mixture.Params, {"points": 20, "data_sets": 3, "grid": 16}, "problem")
    partition = Partition.parse({"kind": "equal"}, "partition")
    rng = np.random.default_rng
    return tied_mixture.build(params, agents, partition, lambda what: rng(0), None)  # type: ignore


def quadratic(agents: int) -> Any:
    rng = np.random.default_rng(3)
    parts = rng.standard_normal((agents, 4, 2))
    return concord.problems.quadratic(
        np.einsum("and,ane->ade", parts, parts), rng.standard_normal((agents, 2))
    )


def sampled(case: tuple[str, int, dict[str, Any]], problem: Any, **more: Any) -> Trace:
    kind, agents, options = case
    network = None if agents == 1 else concord.network("ring", agents)
    given = {"iterations": 137, "chains": 53, "record": {"every": 20}, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", concord.DivergenceWarning)
        return concord.sample(kind, problem, network, **{**given, **options, **more})


def assert_same(one: Trace, other: Trace) -> None:
    assert one.variables.keys() == other.variables.keys()
    for name, (dimensions, values) in one.variables.items():
        assert other.variables[name][0] == dimensions
        assert np.array_equal(values, other[name], equal_nan=values.dtype.kind == "f"), name


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_leaps_lead_where_the_steps_do(chosen, case):
    kind, agents, _ = case
    problems = [mixture(agents), mixture(agents, 5 * agents)]
    problems += [quadratic(agents)] if kind == "gossip_ula" else [mixtures(agents)]
    for problem in problems:
        chosen("numpy")
        numpys = sampled(case, problem)
        for how in ("kernels", "leaps"):
            count = chosen(how)
            assert_same(numpys, sampled(case, problem))
        assert sum(count) == 2 * 137  # in two blocks of chains
        assert max(count) == 20


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_leaps_note_who_diverges_and_when(chosen, case):
    step = 1.0 if "gradient_scale" in case[2] else 0.1 if case[0] == "gossip_ula" else 0.2
    far = {**case[2], "initial": {"kind": "normal", "sd": 1e7}, "step_size": step}
    agents = case[1]
    problem = quadratic(agents) if case[0] == "gossip_ula" else mixture(agents)
    found = []
    for how in ("kernels", "leaps"):
        chosen(how)
        found.append(sampled((*case[:2], far), problem))
    assert len(set(found[0]["diverged_at"].tolist()) - {-1, 0, 1}) > 2
    assert_same(*found)


def test_there_are_no_leaps_where_something_happens_or_much_is_moved(chosen):
    count = chosen("leaps")
    losing = concord.network(
        "ring", 5, loss={"kind": "bernoulli", "rate": 0.2, "direction": "one_way"}
    )
    concord.sample("gossip_ula", mixture(5), losing, iterations=50, chains=4, **GOSSIP)
    assert not count
    graph = concord.network("ring", 5)
    assert leaps.suits(mixture(5), graph, np.zeros((50, 5, 2)))
    assert not leaps.suits(mixture(5), graph, np.zeros((5000, 5, 2)))
    assert not leaps.suits(mixture(5), graph, np.zeros((50, 5, 2), dtype=np.float32))


def test_gradients_of_two_dimensions_leap_only_with_a_blas_that_adds_up_alike(chosen, monkeypatch):
    from concord.problems import _compiled_quadratic

    chosen("leaps")
    assert _compiled_quadratic.as_blas()
    assert quadratic(5).compiled_gradient(4, 2) is not None
    monkeypatch.setattr(_compiled_quadratic, "as_blas", lambda: False)
    assert quadratic(5).compiled_gradient(4, 2) is None
    case = CASES[3]
    assert sampled(case, quadratic(5)).draw[-1] == 120


def test_a_recorder_counts_what_leaps_have_sent():
    x, each = np.zeros((2, 3, 1)), np.array([1, 2, 3])
    problem = concord.Problem(gradient=lambda x: x, agents=3, dim=1)
    recorder = Recorder(Record(every=10), problem, x.shape, 20)
    assert recorder.free(0, 20) == 0
    recorder.observe(0, x, None)
    assert recorder.free(0, 20) == 10
    each.flags.writeable = False
    fixed, left = Info(each, each), np.array([-1, 3])
    recorder.pass_over(0, Landed(None, fixed, 10, left))
    recorder.observe(10, x, None)
    recorder.pass_over(10, Landed(None, fixed, 4, np.array([2, 1])))
    recorder.pass_over(14, Landed(None, Info(each * 6, each.copy()), 6, left))
    recorder.observe(20, x, None)
    assert recorder.free(20, 20) == 0
    trace = recorder.trace()
    assert trace["unicasts"].tolist() == [[0, 0, 0], [10, 20, 30], [20, 40, 60]]
    assert trace["broadcasts"].tolist() == [[0, 0, 0], [10, 20, 30], [15, 30, 45]]
    assert trace["diverged_at"].tolist() == [13, 4]
