"""Laws that are read off steps are those of the papers' matrices."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import matrices
import numpy as np
import pytest

import concord
from concord.arguments import ChosenSampler
from concord.laws import exact, paths
from concord.laws.law import laws_of_updates
from concord.laws.read_off import NoLaw, StepReader
from concord.loop import run
from concord.networks.network import Network
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampler import FullGradientSampler, Positions, Sampler, langevin_noise
from concord.samplers.de_sgld import DESGLD

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
    ("local_sgld", {"step_size": POWER, "period": 3, "common_noise": 0.4}, "star"),
    ("local_sgld", {"step_size": 0.02, "renewal": 1.0}, "star"),
    ("local_sgld", {"step_size": 0.02, "communication": 0.3}, "star"),
    ("local_sgld", {"step_size": POWER, "period": 2, "communication": 0.3, "renewal": 0.2}, "ring"),
    ("dg_lmc", {"step_size": POWER, "tolerance": 0.1, "local_steps": 2}, "server"),
    (
        "dg_lmc",
        {"step_size": 0.02, "tolerance": 0.2, "coupling": [[1.0, 0.5], [0.2, 2.0]]},
        "server",
    ),
    ("graph_gibbs", {"tolerance": 0.1}, "star"),
    ("graph_gibbs", {"tolerance": 0.1, "step_size": POWER}, "ring"),
    ("fsgld", {"step_size": POWER}, "server"),
    ("fsgld", {"step_size": 0.02, "surrogates": "laplace", "local_steps": 2}, "server"),
    ("gossip_ula", {"step_size": POWER, "fusion": 0.4}, "star"),
    ("gossip_ula", {"step_size": 0.02, "communication": "never", "drift": "whole"}, "ring"),
]


def drawn(agents: int, dim: int) -> QuadraticProblem:
    """Return a problem drawn at random."""
    rng = np.random.default_rng(3)
    roots = rng.standard_normal((agents, dim, 2 * dim))
    return QuadraticProblem(roots @ roots.swapaxes(1, 2) / 2, rng.standard_normal((agents, dim)))


def read(
    kind: str, options: dict[str, Any], topology: str, **conditions: Any
) -> tuple[Any, Any, Any, StepReader]:
    """Return sampler, problem, network and its reader."""
    agents = 1 if topology == "single" else 5
    chosen = ChosenSampler.parse({"kind": kind, **options}, "sampler")
    problem = drawn(agents, 2)
    if topology == "single":
        topology = "no_edges"
    network = concord.network(topology, agents, **conditions)
    network = Network(network.graph, network.conditions, "network", chosen.order)
    return chosen.params, problem, network, StepReader(chosen.params, problem, network)


def same(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("kind", "options", "topology"), CASES)
@pytest.mark.parametrize("k", [0, 1, 5])
def test_a_step_is_that_of_the_papers_matrices(
    kind: str, options: dict[str, Any], topology: str, k: int
) -> None:
    sampler, problem, network, reader = read(kind, options, topology)
    law = matrices.LAWS[kind](sampler, k, problem, network)
    choices = reader.read_step(k).choices
    same(choices.probability, law.probability)
    for part in ("matrix", "offset", "noise"):
        same(getattr(choices, part), [getattr(step, part) for step in law.steps])
    size = problem.agents * problem.dim
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
    problem = drawn(3, 1)
    network = concord.network("star", 3, loss=LOSS, on_loss=on_loss, awake=awake)
    arcs, steps, sleeps = 4, 2, 3 * (awake < 1)
    bits = np.array(list(np.ndindex((2,) * (steps * (arcs + sleeps)))))
    each = np.tile([0.3] * arcs + [1 - awake] * sleeps, steps)
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
    marginals = law.marginals_at([1, 2])
    for place, state in enumerate(states[1:]):
        got = state.x[..., 0].reshape(len(bits), len(units), 3)
        mean = weight @ got[:, 0]
        apart = got[:, 1:] - got[:, :1]
        cov = np.einsum("m,mui,muj->ij", weight, apart, apart)
        cov += np.einsum("m,mi,mj->ij", weight, got[:, 0], got[:, 0]) - np.outer(mean, mean)
        same(marginals.mean[place, 0, :, 0], mean)
        same(marginals.cov[place, 0, :, 0, 0], np.diag(cov))
        same(marginals.average_cov[place, 0], cov.mean())
    assert chains == len(x0)


def over_losses(network: Any, reader: StepReader, mean: Any, sd: float) -> paths.RandomPath:
    update = reader.update()
    start = exact.initial_moments(3, 1, (mean, sd), update.start)
    return laws_of_updates([update], [start], network, 1)


TOP_K = {"kind": "top_k", "share": 0.5}
REFUSED = [
    ("d_mala", {"drift": "half", "correction": "mala"}, "star", "other than normal ones"),
    ("choco_sgld", {"compression": TOP_K}, "ring", "not affine"),
    ("consensus_mc", {}, "server", "not the positions"),
    ("qlsd", {"compression": TOP_K, "participants": 2}, "server", "draws random"),
]


@pytest.mark.parametrize(("kind", "options", "topology", "why"), REFUSED)
def test_what_is_not_affine_is_refused_with_its_reason(
    kind: str, options: dict[str, Any], topology: str, why: str
) -> None:
    with pytest.raises(NoLaw, match=why):
        read(kind, {"step_size": 0.1, **options}, topology)[-1].read_step(0)


class Triggered(Sampler):
    """It sends its neighbors what it is at only where that is far from the origin."""

    threshold: float

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x = state.x
        far = np.abs(x).max(axis=-1, keepdims=True) > self.threshold
        sent = np.where(far, x, 0.9 * x)
        noise = langevin_noise(rng, 0.01, x)
        return Positions(network.mix("metropolis", sent) - 0.01 * problem.gradient(x) + noise)


@pytest.mark.parametrize("threshold", [1e-4, 1e-2, 1.0, 100.0, 1e4])
def test_a_trigger_is_noticed_wherever_its_threshold_is(threshold: float) -> None:
    problem, network = drawn(5, 2), concord.network("ring", 5)
    with pytest.raises(NoLaw, match="not affine"):
        StepReader(Triggered(threshold=threshold), problem, network).read_step(0)


class Clocked(NamedTuple):
    """Positions, and a number that grows with the iterations."""

    x: np.ndarray
    age: np.ndarray


class Ageing(Sampler):
    """Its steps shrink by what it keeps of its age."""

    def init(self, x0: Any, problem: Any, network: Any, rng: Any) -> Any:
        return Clocked(x0, np.ones(len(x0)))

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x, age = state
        eta = (0.1 / age)[:, None, None]
        noise = np.sqrt(2 * eta) * rng.standard_normal(x.shape)
        return Clocked(x - eta * problem.gradient(x) + noise, np.minimum(age + 1, 4))


class ByType(Sampler):
    """Its steps are smaller where they are given another number than a plain one."""

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        eta = 0.1 if type(k) is int else 0.01
        x = state.x
        return Positions(x - eta * problem.gradient(x) + langevin_noise(rng, eta, x))


def test_what_is_the_same_for_all_chains_is_followed() -> None:
    problem, network = drawn(5, 2), concord.network("ring", 5)
    reader = StepReader(Ageing(), problem, network)
    for k in (7, 2, 0, 100):
        eta = 0.1 / min(k + 1, 4)
        same(reader.read_step(k).update.noise, 2 * eta * np.eye(10))


class Sleepy(Sampler):
    """Its state has a coordinate that chance reaches late."""

    def init(self, x0: Any, problem: Any, network: Any, rng: Any) -> Any:
        return Clocked(x0, np.zeros(x0.shape))

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x, age = state
        noise = rng.standard_normal(x.shape)
        return Clocked(0.9 * x + 0.1 * age + noise, x if k > 20 else age)


def test_chance_that_comes_late_is_noticed() -> None:
    problem, network = drawn(5, 2), concord.network("ring", 5)
    reader = StepReader(Sleepy(), problem, network)
    one, none = np.eye(10), np.zeros((10, 10))
    for k, below in ((20, [none, one]), (21, [one, none])):
        expected = np.block([[0.9 * one, 0.1 * one], below])
        same(reader.read_step(k).update.matrix, expected)


def test_a_law_keeps_its_digits_under_a_large_offset() -> None:
    chosen = ChosenSampler.parse({"kind": "de_sgld", "step_size": 0.02}, "sampler").params
    problem = drawn(5, 2)
    far = QuadraticProblem(problem.gram, 1e8 * problem.shift)
    network = concord.network("ring", 5)
    same(
        StepReader(chosen, far, network).read_step(0).update.matrix,
        StepReader(chosen, problem, network).read_step(0).update.matrix,
    )


ROWS = np.random.default_rng(3).standard_normal((21, 2))
REGRESSION = concord.problems.linear_regression(ROWS, ROWS @ [1.0, -1.0], agents=5)


@pytest.mark.parametrize("scale", ["none", "mean"])
@pytest.mark.parametrize("pool", ["all", "all_but_last"])
def test_mini_batches_that_are_not_scaled_have_the_law_of_their_mean(scale: str, pool: str) -> None:
    problem, network = REGRESSION, concord.network("ring", 5)
    sampler = DESGLD(0.02, batch_size=2, batch_scale=scale, batch_pool=pool)  # type: ignore[arg-type]
    reader = StepReader(sampler, problem, network)
    gram, shift = problem.batch_mean(sampler)
    mix = np.kron(network.matrix("metropolis"), np.eye(2))
    same(reader.read_step(0).update.matrix, mix - 0.02 * exact.block_diagonal(gram))
    same(reader.read_step(0).update.offset, 0.02 * shift.ravel())


def test_mini_batches_in_epochs_have_no_law() -> None:
    problem, network = REGRESSION, concord.network("ring", 5)
    with pytest.raises(NoLaw, match="epochs"):
        StepReader(DESGLD(0.02, batch_size=2, batch_order="epochs"), problem, network)


class Alternating(Sampler):
    """Agents average in every seventh iteration."""

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x = state.x
        moved = x - 0.1 * problem.gradient(x) + langevin_noise(rng, 0.1, x)
        return Positions(network.mix("metropolis", moved) if k % 7 == 0 else moved)


ANSWERS: list[Callable[[StepReader], Any]] = [
    lambda reader: reader.start,
    lambda reader: reader.cycle,
    lambda reader: reader.read_step(4).choices.matrix,
    lambda reader: reader.read_step(0).choices.noise,
    lambda reader: reader.read_step(50).choices.offset,
]


@pytest.mark.parametrize("order", [(4, 3, 2, 1, 0), (2, 0, 4, 1, 3), (1, 4, 3, 0, 2)], ids=str)
@pytest.mark.parametrize("sampler", [Ageing(), ByType(), Alternating()], ids=repr)
def test_a_reader_answers_in_whatever_order_it_is_asked(sampler: Any, order: Any) -> None:
    problem, network = drawn(5, 2), concord.network("ring", 5)
    reader = StepReader(sampler, problem, network)
    for number in order:
        expected = ANSWERS[number](StepReader(sampler, problem, network))
        np.testing.assert_equal(ANSWERS[number](reader), expected)


@pytest.mark.parametrize("kind", ["de_sgld", "diging_sgld", "push_sum_sgld", "fsgld"])
def test_a_reader_on_another_problem_reads_that(kind: str) -> None:
    topology = "server" if kind == "fsgld" else "star"
    sampler, problem, network, reader = read(kind, {"step_size": 0.02}, topology)
    other = QuadraticProblem(problem.gram[::-1] + 0.1, problem.shift[::-1] - 1.0)
    moved, expected = reader.on(sampler, other), StepReader(sampler, other, network)
    assert moved.cycle == expected.cycle
    same(moved.start.matrix, expected.start.matrix)
    same(moved.start.offset, expected.start.offset)
    for k in (0, 1, 5):
        for part in ("matrix", "offset", "noise"):
            same(*(getattr(one.read_step(k).choices, part) for one in (moved, expected)))
    same(
        reader.read_step(0).choices.matrix,
        StepReader(sampler, problem, network).read_step(0).choices.matrix,
    )


class SlowerBySize(FullGradientSampler[Positions]):
    """Langevin steps of which every third one is larger where the step is large."""

    name: ClassVar[str] = "SlowerBySize"
    step_size: float

    def step(self, state: Positions, k: int, problem: Any, network: Any, rng: Any) -> Positions:
        """Return x - eta grad f(x) + w, with eta twice the step where k is a multiple."""
        is_long = self.step_size > 0.1 and k % 3 == 0
        return Positions(
            state.x
            - (2 if is_long else 1) * self.step_size * problem.gradient(state.x)
            + rng.standard_normal(state.x.shape)
        )


def test_a_reader_of_other_options_follows_steps_that_repeat_otherwise() -> None:
    problem, network = drawn(3, 1), concord.network("ring", 3)
    small, large = SlowerBySize(0.05), SlowerBySize(0.2)
    moved = StepReader(small, problem, network).on(large, problem)
    expected = StepReader(large, problem, network)
    assert moved.cycle == expected.cycle == (0, 3)
    for k in range(4):
        same(moved.read_step(k).update.matrix, expected.read_step(k).update.matrix)
