"""Laws that are read off steps are those of the papers' matrices."""

from typing import Any

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.laws import exact, paths
from concord.laws.arrivals import Losses
from concord.laws.read_off import NoLaw, StepReader
from concord.loop import run
from concord.minibatches import Batches
from concord.networks.conditions import network_under
from concord.networks.moments import chances
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


LOSSY = [
    ("de_sgld", {"step_size": POWER}),
    ("de_sghmc", {"step_size": 0.1, "friction": 1.5, "initial_velocity_sd": 0.5}),
    ("d_ula", {"step_size": POWER, "fusion": {**POWER, "exponent": 0.1}}),
    ("extra_sgld", {"step_size": 0.02, "h": 0.3}),
    ("diging_sgld", {"step_size": 0.02}),
    ("local_sgld", {"step_size": POWER, "period": 2}),
    ("admm", {"penalty": 0.7}),
]


@pytest.mark.parametrize(("kind", "options"), LOSSY)
@pytest.mark.parametrize("k", [0, 4])
def test_what_is_sent_and_heard_is_that_of_the_papers_matrices(
    kind: str, options: dict[str, Any], k: int
) -> None:
    loss = {"loss": LOSS, "on_loss": "reuse_last"}
    sampler, problem, network, reader = read(kind, options, "star", **loss)
    law = matrices.LAWS[kind](sampler, k, problem, network)
    assert isinstance(law, matrices.Law) and law.heard is not None
    got = reader.at(k).arrivals
    assert got is not None
    size = len(law.step.offset)
    for part in ("matrix", "offset", "noise"):
        same(getattr(reader.at(k).updates[0], part), getattr(law.step, part))
    same(got.heard, law.heard)
    lanes = law.heard.shape[1] // (len(network.graph.senders) * problem.dim)
    sent = np.eye(lanes * problem.agents * problem.dim, size) if law.sent is None else law.sent
    same(got.sent, sent)
    same(got.shift, np.zeros(len(sent)) if law.shift is None else law.shift)
    same(got.late, np.zeros_like(got.late) if law.late is None else law.late)
    same(got.noise[:size] @ got.noise[:size].T, law.step.noise)


class Enumerated:
    """A generator of what is lost and who sleeps: each chain has a number, whose bits say so."""

    def __init__(self, bits: np.ndarray) -> None:
        self.bits, self.used = bits, 0  # (chains, bits)

    def random(self, shape: tuple[int, int]) -> np.ndarray:
        first, self.used = self.used, self.used + shape[0]
        return self.bits[:, first : self.used].T.astype(float)


class Units:
    """A generator of normal numbers, which are prescribed for each chain."""

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers, self.used = numbers, 0  # (chains, numbers)

    def standard_normal(self, shape: Any, dtype: Any = None) -> np.ndarray:
        first, self.used = self.used, self.used + int(np.prod(shape[1:]))
        return self.numbers[:, first : self.used].reshape(shape)


@pytest.mark.parametrize(("kind", "options"), LOSSY)
@pytest.mark.parametrize("on_loss", ["keep_own_weight", "reuse_last", "skip", "sender_keeps"])
@pytest.mark.parametrize("awake", [1.0, 0.8])
def test_moments_are_averages_over_all_that_may_get_lost(
    kind: str, options: dict[str, Any], on_loss: str, awake: float
) -> None:
    if kind == "admm" and on_loss != "reuse_last":
        return  # refused by the sampler
    chosen = ChosenSampler.parse({"kind": kind, **options}, "sampler").params
    problem = Quadratics.drawn(3, 1)
    network = concord.network("star", 3, loss=LOSS, on_loss=on_loss, awake=awake)
    ways, steps, sleeps = 4, 2, 3 * (awake < 1)
    bits = np.array(list(np.ndindex((2,) * (steps * (ways + sleeps)))))
    each = np.tile([0.3] * ways + [1 - awake] * sleeps, steps)
    weight = np.where(bits, each, 1 - each).prod(axis=1)
    start_mean, start_sd = np.array([0.5, -1.0, 2.0]), 0.7
    total = 3 + 3 * (kind == "de_sghmc") + 3 * 2 * steps
    units = np.concatenate([np.zeros((1, total)), np.eye(total)])
    chains = len(bits) * len(units)
    numbers = np.tile(units, (len(bits), 1))
    masks = Enumerated(np.repeat(bits, len(units), axis=0))
    x0 = (start_mean + start_sd * numbers[:, :3])[..., None]
    running = network.start(x0, masks)  # type: ignore[arg-type]
    states = []
    run(
        chosen,
        problem,
        running,
        x0,
        steps,
        Units(numbers[:, 3:]),  # type: ignore[arg-type]
        [lambda k, state: states.append(state)],
    )
    reader = StepReader(chosen, problem, network)
    law = over_losses(network, reader, start_mean[:, None], start_sd)
    seen = law.at([1, 2])
    for place, state in enumerate(states[1:]):
        got = state.x[..., 0].reshape(len(bits), len(units), 3)
        mean = weight @ got[:, 0]
        apart = got[:, 1:] - got[:, :1]
        cov = np.einsum("m,mui,muj->ij", weight, apart, apart)
        cov += np.einsum("m,mi,mj->ij", weight, got[:, 0], got[:, 0]) - np.outer(mean, mean)
        same(seen.mean[place, 0, :, 0], mean)
        same(seen.cov[place, 0, :, 0, 0], np.diag(cov))
        same(seen.average_cov[place, 0], cov.mean())
    assert chains == len(x0)


def over_losses(network: Any, reader: StepReader, mean: Any, sd: float) -> paths.Lossy:
    drawn, graph = chances(network), network.graph
    assert drawn is not None
    losses = Losses(drawn, (graph.receivers, graph.senders), network.on_loss, 0.0)
    update = reader.update()
    start = exact.initial(3, 1, (mean, sd), update.start)
    return paths.lossy([update], losses, [start], 3, 1)
