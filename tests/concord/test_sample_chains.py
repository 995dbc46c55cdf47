"""A run's chains: the loop that all advance in, blocks, spans, and the streams they draw from."""

import itertools
import random
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import concord
from concord.chains import Labels, sample_chains
from concord.errors import ConcordError
from concord.laws.read_off import StepReader
from concord.loop import run
from concord.networks.construction import network
from concord.problem import CountedProblem
from concord.record import Record
from concord.sampler import Sampler
from concord.samplers.de_sgld import DESGLD
from concord.samplers.extra_sgld import EXTRASGLD
from concord.samplers.gossip_ula import GossipULA
from concord.sampling.initial import Law
from concord.streams import CHAINS_PER_BLOCK, generator
from steps import Regression, start

LOSS = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
RING = network("ring", 4)
LOSSY = network("ring", 4, loss=LOSS, awake=0.8, noise=0.1, compute={"seconds": 1.0, "spread": 0.5})
NAMES = Labels("paper", "problem", "experiment", "run")


def sample(sampler=None, net=RING, chains=7, iterations=6, seed=1, labels=NAMES, **given):
    return sample_chains(
        sampler or DESGLD(0.02), Regression(4, 2), net, law=Law("normal"), record=Record(),
        chains=chains, iterations=iterations, seed=seed, labels=labels, **given,
    )  # fmt: skip


def same(one, other, chains=slice(None)):
    """Tell whether two traces hold the same, but for the chains of the first."""
    assert one.variables.keys() == other.variables.keys()
    for name, (dims, values) in one.variables.items():
        chosen = values[chains] if dims[0] == "chain" else values
        if not np.array_equal(chosen, other[name]):
            return False
    return True


@pytest.mark.parametrize("net", [RING, LOSSY], ids=["lossless", "lossy"])
@pytest.mark.parametrize(
    "sampler",
    [DESGLD(0.02), DESGLD(0.02, batch_size=2, batch_order="epochs"), GossipULA(0.01)],
    ids=["de_sgld", "mini-batches", "gossip"],
)
def test_a_chain_is_the_same_whichever_others_there_are(sampler, net):
    """In blocks of fifty: of 130 chains, the first 50 and 100."""
    if isinstance(sampler, GossipULA) and net is LOSSY:
        return
    given = {"sampler": sampler, "net": net}
    whole = sample(chains=130, **given)
    assert whole.chains == 130 and CHAINS_PER_BLOCK == 50
    for few in (50, 100):
        assert same(whole, sample(chains=few, **given), slice(few))
    assert len(np.unique(whole["x"][:, -1, 0, 0])) == 130  # and all are others


def test_a_run_is_the_loop_from_streams_of_these_names():
    problem, x0 = Regression(4, 2), generator(1, "initial", "paper", "problem")
    x0 = x0.standard_normal((70, 4, 2))
    trace = sample(net=LOSSY, chains=70)
    np.testing.assert_array_equal(trace["x"][:, 0], x0)
    for first in (0, 50):
        later = [first] if first else []
        block = x0[first : first + 50]
        arrivals, times = (
            generator(1, what, "paper", "problem", *later) for what in ("network", "clock")
        )
        noise = generator(1, "noise", "paper", "experiment", "run", *later)
        state = run(DESGLD(0.02), problem, LOSSY.start(block, arrivals, times), block, 6, noise)
        np.testing.assert_array_equal(trace["x"][first : first + 50, -1], state.x)


def test_what_runs_share():
    """Starts and faults are the problem's, the noise the run's."""
    one, other = (sample(net=LOSSY, labels=NAMES._replace(run=name)) for name in ("run", "other"))
    assert (one["x"][:, 0] == other["x"][:, 0]).all() and (one["x"][:, 1] != other["x"][:, 1]).any()
    assert (one["activations"] == other["activations"]).all()
    assert (one["seconds"] == other["seconds"]).all()
    by_extra = sample(EXTRASGLD(0.02), LOSSY)
    assert (by_extra["x"][:, 0] == one["x"][:, 0]).all()
    assert (by_extra["activations"] == one["activations"]).all()
    for changed in ({"labels": NAMES._replace(problem="b")}, {"seed": 2}):
        assert (sample(net=LOSSY, **changed)["x"][:, 0] != one["x"][:, 0]).all()


class Interrupted(DESGLD):
    """DE-SGLD with a key pressed in the fourth step of its second block, or of its first."""

    calls = itertools.count()
    at = 9

    def step(self, *given):
        if next(Interrupted.calls) == Interrupted.at:
            raise KeyboardInterrupt
        return super().step(*given)


@pytest.mark.parametrize(("at", "chains", "last"), [(9, 50, 6), (3, 50, 3)])
def test_an_interrupt_leaves_what_is_there(at, chains, last, capsys):
    Interrupted.calls, Interrupted.at = itertools.count(), at
    trace = sample(Interrupted(0.02), chains=70, keep=True)
    assert (trace.chains, trace.draw[-1]) == (chains, last)
    whole = sample(chains=70)["x"]
    np.testing.assert_array_equal(trace["x"], whole[:50, : last + 1])
    assert f"here are 50 of 70 chains, to iteration {last} of 6" in capsys.readouterr().err
    Interrupted.calls = itertools.count()
    with pytest.raises(KeyboardInterrupt):
        sample(Interrupted(0.02), chains=70)


# The loop


def test_starts_are_not_charged_and_each_step_is():
    class Starting(DESGLD):
        def init(self, x0, problem, net, rng):
            problem.gradient(x0)
            return super().init(x0, problem, net, rng)

    problem, x0 = Regression(4, 2), start(Regression(4, 2))
    counted = CountedProblem(problem, 3)
    run(Starting(0.02), counted, RING.start(x0), x0, 4, np.random.default_rng(1))
    assert counted.total.tolist() == [4] * 4 and counted.gradients == 0


def test_a_counted_problem_counts_what_is_asked():
    """A product with a Hessian is worth two, a minimum what its solver says, one each of a few."""
    problem, x = Regression(4, 2), start(Regression(4, 2))
    counted, few = CountedProblem(problem, 3), np.array([[0, 1], [2, 3], [0, 2]])
    np.testing.assert_array_equal(counted.gradient(x), problem.gradient(x))
    assert counted.take() == 1 and counted.take() == 0
    counted.hessian_product(x, x)
    counted.minimize(x, np.ones(4), x)
    assert (counted.take() == 3).all()
    chosen = x[np.arange(3)[:, None], few]
    found = counted.gradient_of(few, chosen)
    np.testing.assert_allclose(found, problem.gradient(x)[np.arange(3)[:, None], few])
    asked = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])
    np.testing.assert_array_equal(counted.gradients, asked)
    awake = np.array([[True, False, True, True]] * 3)
    np.testing.assert_array_equal(counted.close_count(awake), asked * awake)
    np.testing.assert_array_equal(counted.total, asked * awake)
    counted.full_gradient(x, np.array([True, False, True]))
    np.testing.assert_array_equal(counted.take(), [[1], [0], [1]])
    X = np.random.default_rng(0).standard_normal((40, 2))
    counted = CountedProblem(concord.problems.logistic_regression(X, X[:, 0] > 0, agents=4), 3)
    _, cost = counted.minimize(x[:, [2]], np.ones(4), x[:, [2]], [2])
    assert cost.shape == (3, 1)
    np.testing.assert_array_equal(counted.take(), cost * [0, 0, 1, 0])


class Wrong(Sampler):
    """Its step, or its init, returns what a function makes of a state."""

    make: Any
    starts: bool = False

    def init(self, x0, problem, network, rng):
        state = super().init(x0, problem, network, rng)
        return self.make(state) if self.starts else state

    def step(self, state, k, problem, network, rng):
        return self.make(state)


NO_STATES = [
    (lambda state: None, "NoneType, but must return"),
    (lambda state: state._replace(x=state.x[:, 0]), "x of shape (7, 2) and type float64, but must"),
    (lambda state: state._replace(x=state.x.astype(int)), "x of shape (7, 4, 2) and type int64"),
]


@pytest.mark.parametrize("starts", [False, True], ids=["step", "init"])
@pytest.mark.parametrize(("make", "sentence"), NO_STATES)
def test_what_is_no_state_is_refused(make, sentence, starts):
    method = "init" if starts else "step"
    with pytest.raises(ConcordError, match=re.escape(f"Wrong.{method} returned {sentence}")):
        sample(Wrong(make, starts))
    with pytest.raises(ConcordError, match=f"^Wrong.{method} returned "):
        StepReader(Wrong(make, starts), Regression(4, 2), RING)


def write(state):
    state.x[1] += 1
    return state


def draw(state):
    return state._replace(x=state.x * np.random.random())  # noqa: NPY002


def draw_by_python(state):
    return state._replace(x=state.x * random.random())


@pytest.mark.parametrize("starts", [False, True], ids=["step", "init"])
@pytest.mark.parametrize("make", [write, draw, draw_by_python])
def test_a_method_with_another_effect_than_its_result_is_refused(make, starts):
    method, array = ("init", "x0") if starts else ("step", "x")
    effect, remedy = "drew from the global generator of numpy.random or", f"rng that {method} is"
    if make is write:
        effect, remedy = f"wrote into {array}, which", "compute a new array"
    sentence = f"^Wrong.{method}, or a gradient that it takes, {effect} .*; .*{remedy}"
    with pytest.raises(ConcordError, match=sentence):
        sample(Wrong(make, starts))


def test_the_first_step_alone_is_watched_and_its_own_errors_pass(monkeypatch):
    class Failing(DESGLD):
        def step(self, state, *given):
            raise ValueError("assignment destination is read-only")

    with pytest.raises(ValueError, match=r"^assignment destination is read-only$"):
        sample(Failing(0.02))
    calls, dumps = [], "concord.loop.pickle_global_generators"
    monkeypatch.setattr(dumps, lambda: calls.append(1))
    sample(iterations=50)
    assert len(calls) == 4  # before and after init, and the first step


def test_a_gradient_that_writes_into_positions_is_refused():
    class Shifting(Regression):
        def gradient(self, x):
            x -= 1
            return x

    problem, x0 = Shifting(4, 2), start(Regression(4, 2))
    with pytest.raises(ConcordError, match=r"^DESGLD.step, or a gradient that it takes, wrote "):
        run(DESGLD(0.02), problem, RING.start(x0), x0, 4, np.random.default_rng(1))


class Memory(NamedTuple):
    """Positions, an array of chains, one of the network's agents, and one of every agent."""

    x: np.ndarray
    clock: np.ndarray
    total: np.ndarray
    table: np.ndarray
    moves: np.ndarray


class Remembering(Sampler):
    """Agents count their moves, and chains their steps."""

    def init(self, x0, problem, network, rng):
        chains, agents, dim = x0.shape
        sizes = (chains,), (chains, 1, agents), (agents, dim, dim), (chains, agents)
        return Memory(x0, *map(np.zeros, sizes))

    def step(self, state, k, problem, network, rng):
        return Memory(*(part + 1 for part in state))


@pytest.mark.parametrize("chains", [1, 4, 7])
def test_who_sleeps_keeps_what_is_its_own_and_not_what_is_the_networks(chains):
    """Arrays of which the first axes are (chains, agents) are of agents, however many chains."""
    net, problem, states = network("ring", 4, awake=0.5), Regression(4, 2), []
    x0, masks = start(problem, chains), np.random.default_rng(1)
    running, rng = net.start(x0, masks), np.random.default_rng(2)
    run(Remembering(), problem, running, x0, 9, rng, [lambda k, state: states.append(state)])
    awake = running.meter.activations
    assert awake.shape == (chains, 4) and (awake < 9).all()
    end = states[-1]
    np.testing.assert_array_equal(end.moves, awake)
    np.testing.assert_allclose(end.x - x0, np.broadcast_to(awake[..., None], x0.shape))
    for part, started in zip(end[1:4], states[0][1:4], strict=True):
        np.testing.assert_array_equal(part, np.full(started.shape, 9))


def test_a_sampler_without_step_or_init_is_told_what_it_lacks():
    with pytest.raises(ConcordError, match=r"^Sampler has no step; write one$"):
        sample(Sampler())
    with pytest.raises(AttributeError, match="no 'v'; write an init that returns one with it"):
        sample(Wrong(lambda state: state.v))
