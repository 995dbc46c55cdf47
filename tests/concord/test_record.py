"""What is kept of a run's iterations, and when; counts, averages and divergence."""

from typing import NamedTuple

import numpy as np
import pytest

from concord.chains import Labels, sample_chains
from concord.errors import ConcordError
from concord.networks.construction import network
from concord.record import ChainDivergence, Record, RunningMoments
from concord.samplers.de_sgld import DESGLD
from concord.samplers.gossip_ula import GossipULA
from concord.samplers.push_sum_sgld import PushSumSGLD
from concord.sampling.initial import Law
from steps import Bare, Regression, recorded

CHAINS, AGENTS = 3, 4
RING = network("ring", AGENTS)


class State(NamedTuple):
    x: np.ndarray


class Adding:
    """A sampler that adds k + 1 to everything, and says it to one neighbor of agent 0."""

    def check(self, problem, net):
        pass

    def init(self, x0, problem, net, rng):
        return State(x0)

    def step(self, state, k, problem, net, rng):
        problem.pay(2)
        net.count_sent(np.zeros((len(state.x), 1), int), 1, 3)
        return State(state.x + (k + 1))


class Probed(Bare):
    """A problem that can be probed."""

    def from_chain(self, first):
        return self

    @staticmethod
    def misclassified(x):
        return np.floor(x.sum(axis=-1)).astype(int)

    @staticmethod
    def accuracy(x):
        return x.sum(axis=-1) / 100

    @staticmethod
    def potential(x):
        return (x**2).sum(axis=-1) + np.arange(AGENTS)

    @staticmethod
    def predictive(x):
        return np.stack([x.sum(axis=-1), x[..., 0]], axis=-1)


def run(iterations, sampler=None, problem=None, chains=CHAINS, **record):
    return recorded(
        sampler or Adding(), problem or Probed(AGENTS), RING, iterations, chains, **record
    )


def test_iteration_k_is_the_state_after_k_steps():
    trace = run(4)
    assert trace.draw.tolist() == [0, 1, 2, 3, 4]
    assert trace["x"].shape == (CHAINS, 5, AGENTS, 2)
    for row, total in enumerate([0, 1, 3, 6, 10]):
        np.testing.assert_allclose(trace["x"][:, row], trace["x"][:, 0] + total, atol=1e-12)


@pytest.mark.parametrize(
    ("record", "due"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"every": 3}, [0, 3, 6]),
        ({"every": 7}, [0, 7]),
        ({"at": [5, 0, 5, 2]}, [0, 2, 5]),
        ({"at": [7, 100]}, [7]),
    ],
)
def test_only_what_is_due_is_recorded(record, due):
    full, part = run(7), run(7, **record)
    assert part.draw.tolist() == due
    np.testing.assert_array_equal(part["x"], full["x"][:, due])
    for count in ("unicasts", "broadcasts", "gradients"):
        values = full[count]
        expected = values[due] if values.ndim == 2 else values[:, due]
        np.testing.assert_array_equal(part[count], expected)


def test_only_chosen_agents_are_kept_but_all_are_averaged():
    trace = run(2, agents=[3, 1], probes=["consensus_error", "accuracy", "potential"])
    full = run(2)
    assert trace.agent.tolist() == [3, 1]
    np.testing.assert_array_equal(trace["x"], full["x"][:, :, [3, 1]])
    np.testing.assert_array_equal(trace["x_average"], full["x"].mean(axis=2))
    apart = full["x"] - full["x"].mean(axis=2, keepdims=True)
    np.testing.assert_allclose(trace["consensus_error"], (apart**2).sum(axis=(2, 3)) / AGENTS)
    np.testing.assert_array_equal(trace["accuracy"], full["x"].sum(axis=-1)[:, :, [3, 1]] / 100)
    squares = (full["x"] ** 2).sum(axis=-1) + np.arange(AGENTS)  # of each agent's own data
    np.testing.assert_array_equal(trace["potential"], squares[:, :, [3, 1]])


def test_nothing_is_kept_that_was_not_asked_for():
    trace = run(3, draws=False, average=False, probes=["misclassified"])
    prices = {"unicasts", "unicast_bytes", "broadcasts", "gradients"}
    assert set(trace.variables) == {"misclassified", "diverged_at"} | prices
    assert trace["misclassified"].dtype.kind == "i"
    with pytest.raises(ConcordError, match=r"the trace has no 'x'; record it"):
        trace["x"]
    assert "x" not in trace and "misclassified" in trace


def test_counts_add_up_whether_or_not_they_are_recorded():
    """Those that are alike in all chains have no axis of chains, those of single chains do."""
    trace = recorded(DESGLD(0.01), Regression(4, 2), network("star", 4), 6, every=4)
    assert trace.variables["broadcasts"][0] == ("draw", "agent")
    np.testing.assert_array_equal(trace["broadcasts"], [[0] * 4, [4] * 4])
    np.testing.assert_array_equal(trace["unicasts"], [[0] * 4, [12, 4, 4, 4]])
    np.testing.assert_array_equal(trace["gradients"], [[0] * 4, [4] * 4])
    trace = run(6, every=3, agents=[2, 0])
    assert trace.variables["unicasts"][0] == ("chain", "draw", "agent")
    assert trace["unicasts"][1].tolist() == [[0, 0], [0, 9], [0, 18]]
    assert trace["broadcasts"][1].tolist() == [[0, 0], [0, 3], [0, 6]]
    np.testing.assert_array_equal(trace["gradients"], [[0, 0], [6, 6], [12, 12]])
    trace = recorded(GossipULA(0.01), Regression(4, 2), RING, 9, every=3)
    for count in ("unicasts", "broadcasts", "gradients", "activations"):
        dims, values = trace.variables[count]
        assert dims == ("chain", "draw", "agent")
        np.testing.assert_array_equal(values.sum(axis=2), np.tile([0, 6, 12, 18], (CHAINS, 1)))
    trace = recorded(PushSumSGLD(0.01), Regression(4, 2), RING, 2)
    assert trace["broadcasts"][-1].tolist() == [3.0] * 4  # one and a half each


def test_averages_are_of_what_was_recorded_after_burn_in():
    trace = run(9, every=2, burn_in=4, averages=["predictive"], agents=[0, 2])
    values = Probed.predictive(run(9, every=2)["x"])[:, 3:, [0, 2]]  # iterations 6, 8
    for name, expected in (("mean", values.mean(axis=1)), ("sd", values.std(axis=1, ddof=1))):
        dims, found = trace.variables[f"predictive_{name}"]
        assert dims == ("chain", "agent", "predictive_dim_0") and found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    moments = RunningMoments()
    moments.add(np.array([1.0, 3.0]))
    mean, sd = moments.mean_and_sd()
    assert mean.tolist() == [1, 3] and sd.tolist() == [0, 0]


@pytest.mark.parametrize("value", [1e9, -2e8, np.inf, -np.inf, np.nan])
def test_the_iteration_at_which_a_chain_leaves_the_finite_range_is_noted(value):
    class Leaving(Adding):
        def step(self, state, k, problem, net, rng):
            x = state.x.copy()
            if k == 2:
                x[1, 3, 0] = value
            if k == 4:
                x[1, 3, 0] = 0.0  # coming back does not undo it
                x[0] = value
            return State(x)

    trace = run(6, Leaving())
    assert trace["diverged_at"].tolist() == [5, 3, -1]
    assert np.isfinite(trace["x"][2]).all()
    assert run(6, Leaving(), at=[6])["diverged_at"].tolist() == [5, 3, -1]  # recorded or not


class Twice(DESGLD):
    """Everybody answers twice what agent 0 has, and chain 2 what is out of range."""

    def read_out(self, state):
        far = 1e9 * (np.arange(len(state.x)) == 2)[:, None, None]
        return np.broadcast_to(2 * state.x[:, :1], state.x.shape) + far


def test_what_is_read_out_is_recorded_in_place_of_x():
    problem, record = Regression(AGENTS, 2), {"at": [0, 7], "probes": ["consensus_error"]}
    plain = run(7, DESGLD(0.01), problem, at=[0, 7])
    trace = run(7, Twice(0.01), problem, **record)
    wanted = np.broadcast_to(2 * plain["x"][:2, :, :1], plain["x"][:2].shape)
    np.testing.assert_array_equal(trace["x"][:2], wanted)
    np.testing.assert_allclose(trace["x_average"][:2], wanted[:, :, 0], rtol=1e-14)
    assert np.abs(trace["consensus_error"][:2]).max() < 1e-20
    assert trace["diverged_at"].tolist() == [-1, -1, 0]


def test_a_strict_run_ends_where_a_chain_diverges():
    class Leaving(Adding):
        seen = 0

        def step(self, state, k, problem, net, rng):
            Leaving.seen = k
            return State(state.x * 1e5)

    with pytest.raises(ChainDivergence):
        sample_chains(
            Leaving(), Probed(4), RING, law=Law("normal"), record=Record(at=(50,)), chains=2,
            iterations=50, seed=1, labels=Labels(), strict=True,
        )  # fmt: skip
    assert Leaving.seen == 1


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"probes": ["__class__"]}, r"tests\.probes\[0\]: '__class__' is not allowed"),
        ({"burn_in": 2}, r"record.burn_in: no iteration is recorded after the warm-up of 2 "),
    ],
)
def test_what_cannot_be_recorded_is_refused(record, message):
    with pytest.raises(ConcordError, match=message):
        run(2, **record)


@pytest.mark.parametrize("record", [{"probes": ["accuracy"]}, {"averages": ["predictive"]}])
def test_what_a_problem_has_not_is_refused(record):
    with pytest.raises(ConcordError, match=r"Regression has no .* to probe; remove it"):
        run(2, problem=Regression(4, 2), **record)
