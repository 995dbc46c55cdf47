"""Several steps in one compiled call: the numbers of the plain steps, with the same counts."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from concord import fast
from concord.chains import Labels, sample_chains
from concord.networks.conditions import network_under
from concord.networks.own import network as network_of
from concord.options import build
from concord.problems import _quadratic
from concord.problems.kinds import tied_mixture
from concord.record import Diverged, Record
from concord.runs.run import ChosenSampler
from concord.sampling.initial import Law
from concord.sampling.partition import Partition
from concord.sampling.schedules import Schedule
from concord.sampling.streams import generator

numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="numba is not installed"
)
ROOT = Path(__file__).parents[2]
IN_TURN = ROOT / "config/papers/parayil2020/plugins/d_ula_in_turn.py"
FALLING = {"kind": "power", "a": 0.02, "b": 5, "exponent": 0.55}
STEP = {"step_size": FALLING}
FUSED = {**STEP, "fusion": {"kind": "power", "a": 0.4, "b": 5, "exponent": 0.05}}
TRIGGER = {"communication": "triggered", "threshold": 0.3, "decay": 0.4}


def quadratic(agents: int, dim: int) -> _quadratic.QuadraticProblem:
    rng = np.random.default_rng(3)
    factors = rng.standard_normal((agents, dim, 2 * dim))
    gram = factors @ factors.swapaxes(1, 2) / (2 * dim)
    return _quadratic.QuadraticProblem(gram, rng.standard_normal((agents, dim)))


def mixture(agents: int, **options) -> tied_mixture.TiedMixture | tied_mixture.TiedMixtures:
    params = build(tied_mixture.Params, {"points": 23, **options}, "problem")
    equal = Partition.parse({"kind": "equal"}, "problem")
    return tied_mixture.build(params, agents, equal, lambda what: generator(1, what), Path())


def sampler_of(kind: str, **options) -> ChosenSampler:
    if kind == "d_ula_in_turn":
        where = importlib.util.spec_from_file_location(kind, IN_TURN)
        module = importlib.util.module_from_spec(where)
        where.loader.exec_module(module)
        return build(module.DULAInTurn, options, "sampler")
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

    compiled = fast.compile_steps(sampler, 10**9, 1)
    assert compiled is not sampler
    plain = []

    def step(state, k, *others):
        plain.append(k)
        return sampler.step(state, k, *others)

    compiled.step = step
    return sample(sampler), sample(compiled), plain


def check(expected, found) -> None:
    assert found.variables.keys() == expected.variables.keys()
    for name, (axes, values) in expected.variables.items():
        assert found.variables[name][0] == axes, name
        if name in ("x", "x_average", "consensus_error"):
            np.testing.assert_allclose(found[name], values, rtol=1e-10, atol=1e-12)
        else:
            np.testing.assert_array_equal(found[name], values, err_msg=name)
            assert found[name].dtype == values.dtype, name


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
    found = traces(sampler_of(kind, **options), posterior)
    check(*found[:2])
    assert not [k for k in found[2] if k < 56]  # and three to the end, too few


@numba
@pytest.mark.parametrize("kind", ["de_sgld", "gossip_ula"])
def test_blocks_of_chains_and_chosen_iterations_are_those_of_plain_steps(kind: str) -> None:
    record = Record(at=(0, 1, 9, 10, 30), probes=("consensus_error",))
    found = traces(sampler_of(kind, **STEP), mixture(5, data_sets=3, points=20), 120, record=record)
    check(*found[:2])


@numba
@pytest.mark.parametrize("sampler", ["c_ula", "de_sgld", "d_ula", "gossip", "gossip triggered"])
@pytest.mark.parametrize("problem", ["quadratic 2", "mixture"])
def test_chains_diverge_at_the_iteration_of_plain_steps(sampler: str, problem: str) -> None:
    kind, options = SAMPLERS[sampler]
    growing = {"kind": "constant", "a": 5.0} if kind == "c_ula" else 3.0
    own = sampler_of(kind, **{**options, "step_size": growing if kind != "c_ula" else 9.0})
    posterior = PROBLEMS[problem](1 if kind == "c_ula" else 5)
    expected, found, _ = traces(own, posterior, record=Record(every=50), iterations=300)
    np.testing.assert_array_equal(found["diverged_at"], expected["diverged_at"])
    assert (found["diverged_at"] % 50 > 0).any()
    np.testing.assert_array_equal(found["unicasts"], expected["unicasts"])
    with pytest.raises(Diverged):
        traces(own, posterior, record=Record(every=50), iterations=300, strict=True)


def slow(**conditions):
    network = network_of("ring", 5, **conditions)
    return network_under(network.graph, network.conditions, "network", "simultaneous")


@numba
@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        ("de_sgld", {"network": lambda: network_of("ring", 5, loss=0.3)}),
        ("de_sgld", {"network": lambda: in_place()}),
        ("d_ula in_place", {"graph": "ring"}),
    ],
)
def test_nothing_is_compiled_where_something_happens(sampler: str, options) -> None:
    pass


def in_place():
    pass
