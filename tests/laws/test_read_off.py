"""Laws that are read off steps are those of the papers' matrices."""

from typing import Any

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.laws.read_off import NoLaw, StepReader
from concord.minibatches import Batches
from concord.networks.conditions import network_under
from concord.networks.effects import Loss
from concord.runs.run import ChosenSampler
from concord.sampler import Positions, Sampler, langevin_noise
from tests.laws import matrices
from tests.laws.quadratics import Quadratics

POWER = {"kind": "power", "a": 0.05, "b": 2.0, "exponent": 0.6}
LOSS = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}

CASES = [
    ("c_ula", {"step_size": 0.02}, "single"),
    ("c_ula", {"step_size": POWER}, "single"),
    ("de_sgld", {"step_size": 0.02}, "ring"),
    ("de_sgld", {"step_size": POWER}, "star"),
    ("de_sgld", {"step_size": 0.02, "update_order": "in_place"}, "star"),
    ("de_sghmc", {"step_size": POWER, "friction": 1.5, "initial_velocity_sd": 0.5}, "ring"),
    ("de_sghmc", {"step_size": 0.1, "friction": 1.5, "update_order": "in_place"}, "star"),
    ("d_ula", {"step_size": POWER, "fusion": 0.1}, "star"),
    ("d_ula", {"step_size": 0.01, "fusion": {**POWER, "exponent": 0.1}}, "ring"),
    (
        "d_ula",
        {
            "step_size": 0.01,
            "fusion": 0.1,
            "gradient_scale": "one",
            "noise_variance": "one",
            "update_order": "in_place",
        },
        "ring",
    ),
    ("extra_sgld", {"step_size": POWER, "h": 0.3}, "star"),
    ("diging_sgld", {"step_size": POWER}, "star"),
    ("admm", {"penalty": 0.7}, "star"),
    ("admm", {"penalty": 0.7, "noise": False}, "ring"),
    ("push_sum_sgld", {"step_size": POWER}, "star"),
    ("push_sum_sgld", {"step_size": 0.02, "read": "averaged"}, "star"),
    ("local_sgld", {"step_size": POWER, "period": 3, "common_noise": 0.4}, "star"),
    ("local_sgld", {"step_size": 0.02, "renewal": 1.0}, "star"),
    ("local_sgld", {"step_size": 0.02, "communication": 0.3}, "star"),
    ("local_sgld", {"step_size": POWER, "period": 2, "communication": 0.3, "renewal": 0.2}, "ring"),
    ("dg_lmc", {"step_size": POWER, "tolerance": 0.1, "local_steps": 2}, "server"),
    (
        "dg_lmc",
        {
            "step_size": 0.02,
            "tolerance": [0.1, 0.2, 0.3, 0.4, 0.5],
            "coupling": [[[1.0, 0.5], [0.2, 2.0]]],
        },
        "server",
    ),
    ("graph_gibbs", {"tolerance": 0.1}, "star"),
    ("graph_gibbs", {"tolerance": 0.1, "step_size": POWER}, "ring"),
    ("fsgld", {"step_size": POWER}, "server"),
    (
        "fsgld",
        {
            "step_size": 0.02,
            "surrogates": "laplace",
            "probabilities": [0.1, 0.3, 0.2, 0.2, 0.2],
            "local_steps": 2,
        },
        "server",
    ),
    ("gossip_ula", {"step_size": POWER, "fusion": 0.4}, "star"),
    ("gossip_ula", {"step_size": 0.02, "communication": "never", "drift": "whole"}, "ring"),
    ("gossip_ula", {"step_size": 0.02, "local_steps": 3}, "star"),
]


def read(
    kind: str, options: dict[str, Any], topology: str, batches: Any = None, **conditions: Any
) -> tuple[Any, Any, Any, StepReader]:
    """Return sampler, problem, network and its reader."""
    agents = 1 if topology == "single" else 5
    chosen = ChosenSampler.parse({"kind": kind, **options}, "sampler")
    problem = Quadratics.drawn(agents, 2)
    if topology == "single":
        topology = "no_edges"
    network = concord.network(topology, agents, **conditions)
    network = network_under(network.graph, network.conditions, "network", chosen.order)
    return chosen.params, problem, network, StepReader(chosen.params, problem, network, batches)


def same(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("kind", "options", "topology"), CASES)
@pytest.mark.parametrize("k", [0, 1, 5])
def test_a_step_is_that_of_the_papers_matrices(
    kind: str, options: dict[str, Any], topology: str, k: int
) -> None:
    sampler, problem, network, reader = read(kind, options, topology)
    law = matrices.LAWS[kind](sampler, k, problem, network)
    reading = reader.at(k)
    steps = law.steps if isinstance(law, matrices.Chosen) else [law.step]
    chances = law.probability if isinstance(law, matrices.Chosen) else [1.0]
    same(reading.probability, chances)
    for got, wanted in zip(reading.updates, steps, strict=True):
        for part in ("matrix", "offset", "noise"):
            same(getattr(got, part), getattr(wanted, part))
    size = problem.agents * problem.dim
    if isinstance(law, matrices.Law):
        starts = ((np.eye(size), np.zeros((size, size))), *law.starts)
        same(reader.start.matrix, np.concatenate([matrix for matrix, _ in starts]))
        for number, (_, cov) in enumerate(starts):
            block = slice(number * size, (number + 1) * size)
            same(reader.start.noise[block, block], cov)
        assert not reader.start.offset.any()
