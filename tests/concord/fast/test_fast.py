"""Compiled steps: the chains of the plain steps but for rounding, with the same counts."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import concord
import everything
from concord import fast, kinds
from concord.arguments import ChosenSampler
from concord.chains import Labels, sample_chains
from concord.errors import ConcordError
from concord.networks.construction import network as network_of
from concord.networks.network import Network
from concord.options import build
from concord.problems import quadratic_problem
from concord.problems.from_options import from_options
from concord.problems.kinds import tied_mixture
from concord.record import ChainDivergence, Record
from concord.samplers import de_sgld
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule
from concord.streams import generator
from variants import problem as regression
from variants import variants

numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
ROOT = Path(__file__).parents[3]
FALLING = {"kind": "power", "a": 0.02, "b": 5, "exponent": 0.55}
STEP = {"step_size": FALLING}
FUSED = {**STEP, "fusion": {"kind": "power", "a": 0.4, "b": 5, "exponent": 0.05}}
TRIGGER = {"communication": "triggered", "threshold": 0.3, "decay": 0.4}


@pytest.fixture
def eager(monkeypatch) -> None:
    """Compile steps of short runs, however few numbers they move."""
    monkeypatch.setattr(fast, "WORTH", 0)
    if find_spec("numba") is not None:
        from concord.fast import steps

        monkeypatch.setattr(steps, "PLAIN", 1e9)


def quadratic(agents: int, dim: int) -> quadratic_problem.QuadraticProblem:
    rng = np.random.default_rng(3)
    factors = rng.standard_normal((agents, dim, 2 * dim))
    gram = factors @ factors.swapaxes(1, 2) / (2 * dim)
    return quadratic_problem.QuadraticProblem(gram, rng.standard_normal((agents, dim)))


def mixture(agents: int, **options) -> tied_mixture.TiedMixture:
    return from_options(tied_mixture)(agents, **{"points": 23, **options})


def mixtures(agents: int, points: int):
    """A problem whose chains have three sets of points."""
    kind = everything.kind("problems", "tied_mixtures")
    return from_options(kind)(agents, data_sets=3, points=points)


def sampler_of(kind: str, **options):
    if kind == "d_ula_in_turn":
        return build(everything.kind("samplers", kind), options, "sampler")
    return ChosenSampler.parse({"kind": kind, **options}, "sampler").params


def traces(sampler, problem, chains=4, graph="ring", network=None, iterations=60, **options):
    """Return the traces of plain and of compiled steps."""
    network = network or network_of(graph if problem.agents > 1 else "no_edges", problem.agents)
    options = {"record": Record(every=7), "law": Law("normal"), **options}
    about = {"chains": chains, "iterations": iterations, "seed": 5, "labels": Labels(run="r")}
    return [
        sample_chains(sampler, problem, network, compiled=compiled, **about, **options)
        for compiled in (False, True)
    ]


def check(expected, trace, how="compiled") -> None:
    """Compare two traces: numbers of chains to rounding, all others exactly."""
    assert (expected.attributes["steps"], trace.attributes["steps"]) == ("plain", how)
    assert trace.variables.keys() == expected.variables.keys()
    for name, (axes, values) in expected.variables.items():
        assert trace.variables[name][0] == axes, name
        assert trace[name].dtype == values.dtype, name
        if values.dtype.kind == "f":
            np.testing.assert_allclose(trace[name], values, rtol=1e-10, atol=1e-11, err_msg=name)
        else:
            np.testing.assert_array_equal(trace[name], values, err_msg=name)


# Samplers none of whose steps are affine in normal numbers, or whose answers are not their state.
# FALD draws its rounds. Of others steps are no affine maps, or messages differ in length.
NEVER = {"choco_sgld", "consensus_mc", "d_mala_released", "de_psgld", "fald", "fsgld", "qlsd"}
NEVER |= {"layered_ula", "layered_ula_released"}


@numba
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", kinds.names("samplers"))
def test_chains_of_every_sampler_are_those_of_its_plain_steps(name: str) -> None:
    """All kinds of Concord and of its studies, with all choices of options that are tested."""
    kind, compiled, tried = everything.kind("samplers", name), 0, 0
    for sampler in variants(kind):
        for graph, agents in (("star", 4), ("server", 4), ("no_edges", 1)):
            problem, network = regression(agents, 3), network_of(graph, agents)
            try:
                sampler.check(problem, network)
            except ConcordError:
                continue
            expected, trace = traces(sampler, problem, network=network, iterations=30)
            check(expected, trace, trace.attributes["steps"])
            compiled += trace.attributes["steps"] == "compiled"
            tried += 1
    assert (compiled > 0) == (name not in NEVER), (compiled, tried)


PROBLEMS = {
    **{f"quadratic {dim}": lambda agents, dim=dim: quadratic(agents, dim) for dim in (1, 6)},
    "mixture": mixture,
    "mixture whose parts are alike": lambda agents: mixture(agents, points=4 * agents),
    "mixture as printed": lambda agents: mixture(agents, second_mean="theta_2"),
    "mixtures": lambda agents: mixtures(agents, points=4 * agents),
}
SAMPLERS = {
    "c_ula": ("c_ula", STEP),
    "de_sghmc": ("de_sghmc", {**STEP, "friction": 2.0, "initial_velocity_sd": 1.0}),
    "d_ula": ("d_ula", FUSED),
    "d_ula with constant steps": ("d_ula", {"step_size": 0.01, "fusion": 0.2}),
    "d_ula in turn": ("d_ula_in_turn", FUSED),
    "gossip": ("gossip_ula", FUSED),
    "gossip alone": ("gossip_ula", {**STEP, "communication": "never", "drift": "whole"}),
    "gossip triggered": ("gossip_ula", {**FUSED, **TRIGGER}),
    "gossip triggered from the start": ("gossip_ula", {**FUSED, **TRIGGER, "known": "start"}),
}


@numba
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_chains_on_mixtures_and_quadratics_are_those_of_plain_steps(
    sampler: str, problem: str
) -> None:
    kind, options = SAMPLERS[sampler]
    posterior = PROBLEMS[problem](1 if kind == "c_ula" else 5)
    check(*traces(sampler_of(kind, **options), posterior))


class State(NamedTuple):
    x: np.ndarray
    v: np.ndarray


class Own(concord.FullGradientSampler):
    """A user's sampler: three calls of the generator, and two kinds of steps."""

    seed: int
    step_size: Schedule
    every: int = 3

    def init(self, x0, problem, network, rng):
        return State(x0, rng.standard_normal(x0.shape))

    def step(self, state, k, problem, network, rng):
        a, b, c, d, e, f = np.random.default_rng(self.seed).uniform(-0.5, 0.5, 6)
        (x, v), eta = state, self.step_size(k)
        first, shared = rng.standard_normal(x.shape), rng.normal(a, 0.3, (len(x), 1, x.shape[2]))
        v = a * v + b * problem.gradient(x + c * v) * eta + first * eta**0.5 + shared
        if k % self.every == 0:
            v = network.mix("metropolis", v) + d
            problem.gradient(v)
        x = e * network.mix("metropolis", x, plus=x - v) + f * rng.standard_normal(x.shape)
        return State(x, v)


@numba
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("step_size", [Schedule(0.1), Schedule(0.1, 2.0, 1.0, 0.7)])
def test_chains_of_random_plug_ins_are_those_of_plain_steps(seed: int, step_size) -> None:
    check(*traces(Own(seed, step_size), quadratic(4, 2), graph="path"))


class Late(de_sgld.DESGLD):
    def step(self, state, k, problem, network, rng):
        return super().step(state, k, problem, network, rng) if k > 4 else state


@numba
@pytest.mark.usefixtures("eager")
def test_steps_that_begin_later_are_compiled_from_there_on() -> None:
    check(*traces(Late(Schedule(0.01)), quadratic(4, 2)))


class Signed(concord.FullGradientSampler):
    """A sampler with a sign that all chains share, and that changes once, or in each third step."""

    once: bool

    def init(self, x0, problem, network, rng):
        return State(x0, np.ones(1))

    def step(self, state, k, problem, network, rng):
        x, sign = state
        x = x / 2 + sign + rng.standard_normal(x.shape)
        return State(x, -sign if (k == 20 if self.once else k % 3 == 2) else sign)


@numba
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(("once", "how"), [(True, "compiled"), (False, "plain")])
def test_what_chains_share_is_that_of_plain_steps(once: bool, how: str) -> None:
    check(*traces(Signed(once), quadratic(4, 2)), how)


RECORDS = {
    "every iteration": Record(),
    "every tenth": Record(every=10, agents=(3, 1), draws=False),
    "some": Record(at=(0, 1, 9, 10, 30), average=False),
    "probes": Record(every=4, probes=("consensus_error", "potential"), burn_in=20),
    "nothing else": Record(at=(60,), draws=False, average=False),
}


@numba
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("kind", ["de_sgld", "gossip_ula"])
def test_blocks_of_chains_and_what_is_recorded_are_those_of_plain_steps(kind, record) -> None:
    problem = mixtures(5, points=20)
    how = "plain" if (kind, record) == ("gossip_ula", "every iteration") else "compiled"
    check(*traces(sampler_of(kind, **STEP), problem, 120, record=RECORDS[record]), how)


GROWING = {
    "c_ula": ("c_ula", {"step_size": 9.0}),
    "de_sghmc": ("de_sghmc", {"step_size": 2.0, "friction": 1.0}),
    "d_ula": ("d_ula", {"step_size": 0.05, "fusion": 3.0}),
    "gossip": ("gossip_ula", {"step_size": 2.0}),
    "gossip triggered": ("gossip_ula", {"step_size": 2.0, **TRIGGER}),
}


@numba
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("sampler", GROWING)
@pytest.mark.parametrize("problem", ["quadratic 1", "mixture"])
def test_chains_diverge_at_the_iteration_of_plain_steps(sampler: str, problem: str) -> None:
    kind, options = GROWING[sampler]
    chosen, posterior = sampler_of(kind, **options), PROBLEMS[problem](1 if kind == "c_ula" else 5)
    options = {"record": Record(every=50), "iterations": 300}
    expected, compiled = traces(chosen, posterior, **options)
    np.testing.assert_array_equal(compiled["diverged_at"], expected["diverged_at"])
    assert compiled.attributes["steps"] == "compiled"
    assert len(np.unique(compiled["diverged_at"])) > 1 or sampler in ("d_ula", "de_sghmc")
    assert (compiled["diverged_at"] % 50 > 0).any()
    for name in {"unicasts", "broadcasts", "gradients", "activations"} & compiled.variables.keys():
        np.testing.assert_array_equal(compiled[name], expected[name])
    with pytest.raises(ChainDivergence):
        traces(chosen, posterior, strict=True, **options)


class Slower(de_sgld.DESGLD):
    def step(self, state, k, problem, network, rng):
        return super().step(state, k // 2, problem, network, rng)


class Clipped(de_sgld.DESGLD):
    def step(self, state, k, problem, network, rng):
        after = super().step(state, k, problem, network, rng)
        return after._replace(x=np.clip(after.x, -1e4, 1e4))


class Single(de_sgld.DESGLD):
    def step(self, state, k, problem, network, rng):
        noise = rng.standard_normal(state.x.shape, dtype=np.float32)
        return state._replace(x=state.x / 2 + noise)


class Turned(de_sgld.DESGLD):
    def step(self, state, k, problem, network, rng):
        return state._replace(x=state.x / 2 + rng.standard_normal(state.x.shape[::-1]).T)


class Apart(de_sgld.DESGLD):
    def step(self, state, k, problem, network, rng):
        (one,) = rng.spawn(1)
        return state._replace(x=state.x / 2 + one.standard_normal(state.x.shape))


class Idle(de_sgld.DESGLD):
    def step(self, state, k, problem, network, rng):
        (other,) = rng.spawn(1)
        idle = 0 * other.standard_normal(state.x.shape)
        return state._replace(x=state.x / 2 + rng.standard_normal(state.x.shape) + idle)


class Elsewhere(de_sgld.DESGLD):
    def step(self, state, k, problem, network, rng):
        x = network.mix("metropolis", state.x)
        return state._replace(x=x - 0.01 * problem.gradient(x) + rng.standard_normal(x.shape))


class Cubic(quadratic_problem.QuadraticProblem):
    def gradient(self, x):
        return super().gradient(x) + 0.01 * x**3


UNSUITED = {
    "loss": {
        "network": lambda: network_of(
            "ring", 5, loss={"kind": "bernoulli", "rate": 0.3, "direction": "link"}
        )
    },
    "a clock": {"network": lambda: network_of("ring", 5, link={"latency": 1.0})},
    "many agents": {"problem": lambda: quadratic(1025, 1)},
    "a cubic gradient": {"problem": lambda: Cubic(*quadratic_arrays())},
    "mini-batches": {
        "sampler": lambda: sampler_of("de_sgld", step_size=0.01, batch_size=2),
        "problem": lambda: regression(5, 2),
    },
    **{
        kind.__name__: {"sampler": lambda kind=kind: kind(Schedule(0.01, 1.0, 0.1))}
        for kind in (Slower, Clipped, Single, Turned, Apart, Idle)
    },
    "gradients elsewhere": {
        "sampler": lambda: Elsewhere(Schedule(0.01)),
        "problem": lambda: mixture(5),
    },
}


def quadratic_arrays():
    problem = quadratic(5, 2)
    return problem.gram, problem.shift


@numba
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("what", UNSUITED)
def test_steps_are_plain_where_they_are_not_compiled(what: str) -> None:
    options = {name: make() for name, make in UNSUITED[what].items()}
    sampler = options.pop("sampler", None) or sampler_of("de_sgld", **STEP)
    problem = options.pop("problem", None) or quadratic(5, 2)
    expected, trace = traces(sampler, problem, iterations=21, **options)
    assert trace.attributes["steps"] == "plain"
    for name, (_, values) in expected.variables.items():
        np.testing.assert_array_equal(trace[name], values)


@numba
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", ["de_sgld", "diging_sgld", "gossip_ula"])
def test_local_coordinates_stay_at_home_in_compiled_steps(kind: str) -> None:
    problem = concord.problems.quadratic(*quadratic_arrays(), local=[False, True])
    how = "plain" if kind == "gossip_ula" else "compiled"
    check(*traces(sampler_of(kind, **STEP), problem), how)


@numba
@pytest.mark.usefixtures("eager")
def test_agents_that_move_in_turn_are_compiled() -> None:
    network = Network(network_of("ring", 5).graph, order="in_place")
    check(*traces(sampler_of("de_sgld", **STEP), quadratic(5, 2), network=network))


@numba
@pytest.mark.parametrize(
    ("dim", "agents", "graph", "every", "how"),
    [
        (5, 10, "ring", 100, "compiled"),
        (5, 10, "ring", 1, "plain"),  # a call takes longer than a plain step
        (30, 30, "complete", 100, "plain"),  # of 1,800 numbers in each row many are not zero
    ],
)
def test_sizes_decide_whether_steps_are_compiled(monkeypatch, dim, agents, graph, every, how):
    monkeypatch.setattr(fast, "WORTH", 0)
    sampler = sampler_of("de_sgld", step_size=0.01)
    options = {"graph": graph, "iterations": 110, "record": Record(every=every)}
    _, trace = traces(sampler, quadratic(agents, dim), **options)
    assert trace.attributes["steps"] == how


@numba
@pytest.mark.parametrize(
    "arguments",
    [(5000,), ((100, 30),), ((100, 30), np.float32), (10,), ((),), (), (3000, np.float64)],
    ids=str,
)
def test_normal_numbers_and_the_generator_are_numpys(arguments) -> None:
    steps = fast.compile_steps(sampler_of("c_ula", step_size=1.0), 10**9, (1, 1, 1))
    plain, quick = generator(1, "noise"), steps.speed_up(generator(1, "noise"))
    for _ in range(2):
        expected = plain.standard_normal(*arguments)
        numbers = quick.standard_normal(*arguments)
        assert np.shape(numbers) == np.shape(expected)
        assert np.asarray(numbers).tobytes() == np.asarray(expected).tobytes()
        assert quick.integers(10**9) == plain.integers(10**9)
    out = np.empty(4000)
    assert quick.standard_normal(out=out) is out
    assert out.tobytes() == plain.standard_normal(4000).tobytes()


@numba
def test_sample_takes_compiled_steps_unless_told_not_to(monkeypatch) -> None:
    about = {"step_size": 0.01, "iterations": 50, "chains": 3, "record": {"every": 50}}
    sample = concord.sample

    def steps(**options):
        return sample("de_sgld", quadratic(5, 2), "ring", **about, **options).attributes["steps"]

    assert steps() == "plain"  # a short run
    monkeypatch.setattr(fast, "WORTH", 0)
    assert (steps(), steps(compiled=False)) == ("compiled", "plain")


@numba
def test_short_runs_are_plain() -> None:
    sampler = sampler_of("de_sgld", **STEP)
    assert fast.compile_steps(sampler, 10**4, (100, 10, 2)) is None
    assert fast.compile_steps(sampler, 10**5, (100, 10, 2)) is not None


def test_all_goes_on_without_numba(monkeypatch) -> None:
    monkeypatch.setattr(fast, "find_spec", lambda name: None)
    assert fast.compile_steps(sampler_of("de_sgld", **STEP), 10**9, (1, 1, 1)) is None


def test_nobody_imports_numba_unasked() -> None:
    script = """
import sys, concord
problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]]], b=[[1.0], [0.0]])
before = "concord.fast" in sys.modules
concord.sample("de_sgld", problem, "ring", step_size=0.01, iterations=20)
print(before, "numba" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "False False\n"
