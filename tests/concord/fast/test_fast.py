"""Several steps in one compiled call: the numbers of the plain steps, with the same counts."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import everything
from concord import fast
from concord.arguments import ChosenSampler
from concord.chains import Labels, sample_chains
from concord.loop import run
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

numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
ROOT = Path(__file__).parents[3]
FALLING = {"kind": "power", "a": 0.02, "b": 5, "exponent": 0.55}
STEP = {"step_size": FALLING}
FUSED = {**STEP, "fusion": {"kind": "power", "a": 0.4, "b": 5, "exponent": 0.05}}
TRIGGER = {"communication": "triggered", "threshold": 0.3, "decay": 0.4}


def quadratic(agents: int, dim: int) -> quadratic_problem.QuadraticProblem:
    rng = np.random.default_rng(3)
    factors = rng.standard_normal((agents, dim, 2 * dim))
    gram = factors @ factors.swapaxes(1, 2) / (2 * dim)
    return quadratic_problem.QuadraticProblem(gram, rng.standard_normal((agents, dim)))


def mixture(agents: int, **options) -> tied_mixture.TiedMixture | tied_mixture.TiedMixtures:
    return from_options(tied_mixture)(agents, **{"points": 23, **options})


def sampler_of(kind: str, **options) -> ChosenSampler:
    if kind == "d_ula_in_turn":
        return build(everything.kind("samplers", kind), options, "sampler")
    return ChosenSampler.parse({"kind": kind, **options}, "sampler").params


def traces(sampler, problem, chains=4, graph="ring", network=None, iterations=60, **options):
    """Return the traces of plain and of compiled steps, and how many steps were plain."""
    network = network or network_of(graph if problem.agents > 1 else "no_edges", problem.agents)
    options = {"record": Record(every=7), "law": Law("normal"), **options}

    def sample(one):
        return sample_chains(
            one, problem, network, chains=chains, iterations=iterations, seed=5,
            labels=Labels(run="r"), **options,
        )  # fmt: skip

    compiled = fast.compile_steps(sampler, 10**9, (1, 1, 1))
    assert compiled is not sampler
    plain = []

    def step(state, k, *others):
        plain.append(k)
        return sampler.step(state, k, *others)

    compiled.step = step
    return sample(sampler), sample(compiled), plain


def check(expected, trace) -> None:
    assert trace.variables.keys() == expected.variables.keys()
    for name, (axes, values) in expected.variables.items():
        assert trace.variables[name][0] == axes, name
        if name in ("x", "x_average", "consensus_error"):
            np.testing.assert_allclose(trace[name], values, rtol=1e-10, atol=1e-12)
        else:
            np.testing.assert_array_equal(trace[name], values, err_msg=name)
            assert trace[name].dtype == values.dtype, name


PROBLEMS = {
    **{f"quadratic {dim}": lambda agents, dim=dim: quadratic(agents, dim) for dim in (1, 2, 4, 6)},
    "mixture": mixture,
    "mixture whose parts are alike": lambda agents: mixture(agents, points=4 * agents),
    "mixture as printed": lambda agents: mixture(agents, second_mean="theta_2"),
    "mixtures": lambda agents: mixture(agents, data_sets=3, points=4 * agents),
}
SAMPLERS = {
    "c_ula": ("c_ula", STEP),
    "de_sgld": ("de_sgld", STEP),
    "de_sgld with weights": ("de_sgld", {**STEP, "weights": "lazy_metropolis"}),
    "d_ula": ("d_ula", FUSED),
    "d_ula of one": ("d_ula", {**FUSED, "gradient_scale": "one", "noise_variance": "one"}),
    "d_ula with constant steps": ("d_ula", {"step_size": 0.01, "fusion": 0.2}),
    "d_ula in turn": ("d_ula_in_turn", FUSED),
    "gossip": ("gossip_ula", FUSED),
    "gossip alone": ("gossip_ula", {**STEP, "communication": "never", "drift": "whole"}),
    "gossip triggered": ("gossip_ula", {**FUSED, **TRIGGER}),
    "gossip triggered from the start": ("gossip_ula", {**FUSED, **TRIGGER, "known": "start"}),
}


@numba
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_chains_are_those_of_plain_steps(sampler: str, problem: str) -> None:
    kind, options = SAMPLERS[sampler]
    posterior = PROBLEMS[problem](1 if kind == "c_ula" else 5)
    outcome = traces(sampler_of(kind, **options), posterior)
    check(*outcome[:2])
    assert not [k for k in outcome[2] if k < 56]  # and three to the end, too few


@numba
@pytest.mark.parametrize("kind", ["de_sgld", "gossip_ula"])
def test_blocks_of_chains_and_chosen_iterations_are_those_of_plain_steps(kind: str) -> None:
    record = Record(at=(0, 1, 9, 10, 30), probes=("consensus_error",))
    problem = mixture(5, data_sets=3, points=20)
    outcome = traces(sampler_of(kind, **STEP), problem, 120, record=record)
    check(*outcome[:2])
    assert sorted(set(outcome[2])) == [0, 9]


GROWING = {
    "c_ula": ("c_ula", {"step_size": 9.0}),
    "de_sgld": ("de_sgld", {"step_size": 3.0}),
    "d_ula": ("d_ula", {"step_size": 0.05, "fusion": 3.0}),
    "gossip": ("gossip_ula", {"step_size": 2.0}),
    "gossip triggered": ("gossip_ula", {"step_size": 2.0, **TRIGGER}),
}


@numba
@pytest.mark.parametrize("sampler", GROWING)
@pytest.mark.parametrize("problem", ["quadratic 2", "mixture"])
def test_chains_diverge_at_the_iteration_of_plain_steps(sampler: str, problem: str) -> None:
    kind, options = GROWING[sampler]
    chosen, posterior = sampler_of(kind, **options), PROBLEMS[problem](1 if kind == "c_ula" else 5)
    options = {"record": Record(every=50), "iterations": 300}
    expected, compiled, plain = traces(chosen, posterior, **options)
    np.testing.assert_array_equal(compiled["diverged_at"], expected["diverged_at"])
    assert (compiled["diverged_at"] % 50 > 0).any()
    for name in {"unicasts", "broadcasts", "gradients", "activations"} & compiled.variables.keys():
        np.testing.assert_array_equal(compiled[name], expected[name])
    assert len(plain) < 30
    with pytest.raises(ChainDivergence):
        traces(chosen, posterior, strict=True, **options)


class Slower(de_sgld.DESGLD):
    def step(self, state, k, problem, network, rng):
        return super().step(state, k // 2, problem, network, rng)


def other(kind):
    problem = quadratic(5, 2)
    return kind(problem.gram, problem.shift)


UNSUITED = {
    "loss": {
        "network": lambda: network_of(
            "ring", 5, loss={"kind": "bernoulli", "rate": 0.3, "direction": "link"}
        )
    },
    "a clock": {"network": lambda: network_of("ring", 5, link={"latency": 1.0})},
    "one after another": {
        "network": lambda: Network(network_of("ring", 5).graph, order="in_place")
    },
    "many agents": {"problem": lambda: quadratic(65, 1)},
    "large states": {"chains": lambda: 50, "problem": lambda: quadratic(60, 3)},
    "little between recorded iterations": {"record": lambda: Record(every=3)},
    "a step of its own": {"sampler": lambda: Slower(Schedule(0.01))},
    "another problem": {"problem": lambda: other(Other)},
    "a late prior": {
        "sampler": lambda: sampler_of("d_ula", **FUSED, prior_gradient="after_mixing"),
        "problem": lambda: other(WithPrior),
    },
}


class Other(quadratic_problem.QuadraticProblem):
    def gradient(self, x):
        return 2 * super().gradient(x)


class WithPrior(quadratic_problem.QuadraticProblem):
    def prior_gradient(self, x):
        return x


@numba
@pytest.mark.parametrize("what", UNSUITED)
def test_steps_are_plain_where_they_are_not_compiled(what: str) -> None:
    options = {name: make() for name, make in UNSUITED[what].items()}
    sampler = options.pop("sampler", None) or sampler_of("de_sgld", **STEP)
    problem = options.pop("problem", None) or mixture(5)
    expected, compiled, plain = traces(sampler, problem, iterations=21, **options)
    assert plain == list(range(21)) * (len(plain) // 21) and plain
    for name, (_, values) in expected.variables.items():
        np.testing.assert_array_equal(compiled[name], values)


def test_a_sampler_with_mini_batches_stays_as_it_is() -> None:
    sampler = sampler_of("de_sgld", **STEP, batch_size=2)
    assert fast.compile_steps(sampler, 10**9, (1, 1, 1)) is sampler


@numba
@pytest.mark.parametrize("sampler", ["c_ula", "de_sgld", "gossip", "gossip triggered"])
def test_bytes_are_those_of_plain_steps(sampler: str) -> None:
    kind, options = SAMPLERS[sampler]
    problem = quadratic(1 if kind == "c_ula" else 5, 2)
    one, sent = sampler_of(kind, **options), []
    for each in (one, fast.compile_steps(one, 10**9, (1, 1, 1))):
        x0 = np.ones((3, problem.agents, 2))
        network = network_of("ring" if problem.agents > 1 else "no_edges", problem.agents)
        network = network.start(x0)
        run(each, problem, network, x0, 40, generator(1, "noise"), [], lambda: 40)
        sent.append(network.meter.unicast_bytes)
    np.testing.assert_array_equal(*sent)


@numba
def test_short_runs_are_plain(monkeypatch) -> None:
    monkeypatch.setattr(fast, "find_spec", lambda name: name)
    sampler = sampler_of("de_sgld", **STEP)
    assert fast.compile_steps(sampler, 10**4, (100, 10, 2)) is sampler
    assert fast.compile_steps(sampler, 10**5, (100, 10, 2)) is not sampler


def test_all_goes_on_without_numba(monkeypatch) -> None:
    monkeypatch.setattr(fast, "find_spec", lambda name: None)
    sampler = sampler_of("de_sgld", **STEP)
    assert fast.compile_steps(sampler, 10**9, (1, 1, 1)) is sampler


def test_nobody_imports_numba_unasked() -> None:
    script = "import sys; from concord import fast, chains; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "False\n"
