"""Coordinates that belong to the agent who holds them: what is sent, and which law is sampled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import concord
from concord import kinds
from concord.arguments import ChosenSampler
from concord.laws import exact
from concord.laws.law import compose_cycle
from concord.laws.read_off import StepReader
from concord.networks.channels import Channel
from concord.networks.network import Network, weighted_sum
from concord.problem import CountedProblem
from concord.problems.gaussian_fit import fit

Y, VARIANCE, EFFECTS, PRIOR = np.array([1.0, -2.0, 3.0, 0.5]), 1.5, 2.0, 100.0


def hierarchy() -> Any:
    """Return y_i ~ N(mu + u_i, 1.5), u_i ~ N(0, 2), mu ~ N(0, 100), with u_i at home."""
    tie, n = 1 / VARIANCE, len(Y)
    H = [[tie + 1 / (n * PRIOR), tie], [tie, tie + 1 / EFFECTS]]
    return concord.problems.quadratic([H] * n, np.stack([Y, Y], 1) / VARIANCE, local=[False, True])


def test_posterior_is_that_of_the_whole_hierarchy() -> None:
    """Without u_i it is y_i ~ N(mu, 3.5); given mu, u_i is N(4/7 (y_i - mu), 6/7)."""
    posterior, width, n = hierarchy().posterior, VARIANCE + EFFECTS, len(Y)
    precision = n / width + 1 / PRIOR
    mu, variance = Y.sum() / width / precision, 1 / precision
    share = EFFECTS / width
    for i, y in enumerate(Y):
        law = posterior.of(i)
        np.testing.assert_allclose(law.mean, [mu, share * (y - mu)], rtol=1e-12)
        own = share * VARIANCE + share**2 * variance
        cov = [[variance, -share * variance], [-share * variance, own]]
        np.testing.assert_allclose(law.cov, cov, rtol=1e-12)
    average = posterior.of("average")
    np.testing.assert_allclose(average.mean, [mu, share * (Y.mean() - mu)], rtol=1e-12)
    own = share * VARIANCE / n + share**2 * variance  # of the effects' mean
    np.testing.assert_allclose(average.cov[1, 1], own, rtol=1e-12)
    stacked = posterior.moments()
    np.testing.assert_allclose(stacked[0][-1], average.mean)
    np.testing.assert_allclose(stacked[1][2], posterior.of(2).cov)
    draws = posterior.sample(10**5, np.random.default_rng(0))
    error = 5 * np.sqrt(np.diagonal(stacked[1], axis1=1, axis2=2) / 10**5)  # standard errors
    assert (np.abs(draws.mean(axis=0) - stacked[0]) < error).all()


def limit_b2(kind: str, network: Any, options: Mapping[str, Any], problem: Any = None) -> Any:
    """Return b^2 of each agent and the average, of the law that settles, read off the step."""
    problem = problem or hierarchy()
    agents, dim = problem.agents, problem.dim
    sampler = ChosenSampler.choose(kind, options).params
    sampler.check(problem, network)
    reader = StepReader(sampler, problem, network)
    if reader.chooses:
        moments = reader.read_step(0).choices.stationary()
    else:
        update = reader.update()
        start = exact.initial_moments(agents, dim, (0.0, 1.0), update.start)
        moments = exact.limit(compose_cycle(update, 0)[0], *start)
    parts = exact.marginals(*moments, agents, dim)
    law = exact.Law(np.array([0]), *(part[None] for part in parts))
    return concord.bias2(law, problem.posterior).value.values[0]


ALLOWED: dict[str, tuple[str, str, dict[str, Any], float]] = {
    "DE-SGLD": ("de_sgld", "ring", {}, 1),
    "DE-SGLD, complete": ("de_sgld", "complete", {}, 1),
    "DE-SGLD, server": ("de_sgld", "server", {}, 1),
    "DE-SGLD, path": ("de_sgld", "path", {}, 1),
    "DE-SGLD, in place": ("de_sgld", "ring", {"update_order": "in_place"}, 1),
    "EXTRA-SGLD": ("extra_sgld", "ring", {}, 1),
    "DIGing-SGLD": ("diging_sgld", "ring", {}, 1),
    "D-ULA": ("d_ula", "ring", {"fusion": 0.2}, 0.25),
    "DE-SGHMC": ("de_sghmc", "ring", {"friction": 1.0}, 1),
    "Local SGLD": ("local_sgld", "ring", {"period": 3}, 1),
    "FALD": ("local_sgld", "server", {"communication": 0.5}, 1),
    "VR-FALD": ("local_sgld", "ring", {"renewal": 0.3}, 1),
    "D-MALA": ("d_mala", "ring", {"correction": "none", "drift": "half"}, 100),
    "Gossip ULA": ("gossip_ula", "ring", {"drift": "whole"}, 0.25),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_small_steps_sample_the_whole_model(name: str) -> None:
    """b^2 of every agent falls with the square of the step, below 1e-8 at 1.25e-5.

    D-ULA's and gossip's gradients are N times as long, so that their steps are an N-th.
    """
    kind, graph, options, factor = ALLOWED[name]
    network = concord.network(graph, 4)
    small, smaller = (
        limit_b2(kind, network, {**options, "step_size": factor * step}).max()
        for step in (5e-5, 1.25e-5)
    )
    assert smaller < 1e-8
    assert smaller < small / 12


@pytest.mark.parametrize("step", [0.1, 0.5])
def test_agents_of_a_server_have_the_law_of_a_centralized_sampler(step: float) -> None:
    """Averaged after each step, mu moves by eta / N: ULA of the whole model in sqrt(N) mu and u.

    The centralized law is read off C-ULA's own step, of one agent that has all data.
    """
    problem, n = hierarchy(), len(Y)
    whole = concord.share_all(problem)
    scale = np.append(1 / np.sqrt(n), np.ones(n))
    H, b = scale[:, None] * whole.gram.sum(axis=0) * scale, scale * whole.shift.sum(axis=0)
    central = concord.problems.quadratic([H], [b])
    run: dict[str, Any] = {"step_size": step, "iterations": 4000, "record": {"at": [4000]}}
    one = concord.law("c_ula", central, **run)
    law = concord.law("local_sgld", problem, "server", **run)
    mean, cov = scale * one.mean[0, 0], scale[:, None] * one.cov[0, 0] * scale
    for agent in range(n):
        own = [0, 1 + agent]
        np.testing.assert_allclose(law.mean[0, agent], mean[own], atol=1e-10)
        np.testing.assert_allclose(law.cov[0, agent], cov[np.ix_(own, own)], atol=1e-10)


def test_the_limit_of_one_agent_is_that_of_a_plain_problem() -> None:
    """With the data of one agent alone there is nobody to share with."""
    whole = hierarchy()
    alone = concord.problems.quadratic(whole.gram[:1], whole.shift[:1], local=[False, True])
    no_edges = concord.network("no_edges", 1)
    plain = concord.problems.quadratic(whole.gram[:1], whole.shift[:1])
    for problem in (alone, plain):
        value = limit_b2("de_sgld", no_edges, {"step_size": 1e-3}, plain)
        assert limit_b2("de_sgld", no_edges, {"step_size": 1e-3}, problem)[0] == pytest.approx(
            value[0], rel=1e-6
        )


def test_local_coordinates_that_are_shared_do_not_have_this_law() -> None:
    """Mixed like others, effects agree: without the mask agents are another posterior's."""
    wrong = concord.problems.quadratic(hierarchy().gram, hierarchy().shift)
    network = concord.network("ring", 4)
    law = concord.law("de_sgld", wrong, network, step_size=0.01, iterations=5000)
    assert concord.bias2(law, hierarchy().posterior).value[-1].max() > 0.1


LOSSES: dict[str, dict[str, Any]] = {
    "loss": {"loss": {"kind": "bernoulli", "rate": 0.2, "direction": "link"}},
    "last": {
        "loss": {"kind": "bernoulli", "rate": 0.2, "direction": "link"},
        "on_loss": "reuse_last",
    },
    "sender": {
        "loss": {"kind": "bernoulli", "rate": 0.2, "direction": "one_way"},
        "on_loss": "sender_keeps",
    },
    "sleep": {"awake": 0.7},
    "noise": {"noise": 0.1},
}


@pytest.mark.parametrize("kind", ["de_sgld", "diging_sgld", "extra_sgld"])
@pytest.mark.parametrize("happens", LOSSES)
def test_laws_over_losses_are_those_of_chains(kind: str, happens: str) -> None:
    """Means and variances of 2000 chains are within five standard errors of the exact ones."""
    problem, network = hierarchy(), concord.network("ring", 4, **LOSSES[happens])
    run = {"step_size": 0.1, "iterations": 30, "record": {"at": [30]}}
    law = concord.law(kind, problem, network, **run)
    x = concord.sample(kind, problem, network, chains=2000, **run)["x"][:, 0]
    variance = np.diagonal(law.cov[0], axis1=1, axis2=2)
    assert (np.abs(x.mean(axis=0) - law.mean[0]) < 5 * np.sqrt(variance / 2000)).all()
    spread = ((x - law.mean[0]) ** 2).mean(axis=0)
    assert (np.abs(spread / variance - 1) < 5 * np.sqrt(2 / 2000) * 1.3).all()  # and mixtures


@pytest.mark.parametrize("kind", ["de_sgld", "diging_sgld"])
def test_links_that_lose_leave_the_limit_right(kind: str) -> None:
    """b^2 falls with the square of the step where whole links lose a fifth."""
    network = concord.network("ring", 4, **LOSSES["loss"])
    values = [
        concord.bias2(
            concord.law(
                kind, hierarchy(), network, step_size=step, iterations=n, record={"at": [n]}
            ),
            hierarchy().posterior,
        ).value.max()
        for step, n in ((0.1, 400), (0.025, 1600))
    ]
    assert values[1] < values[0] / 12


REFUSED: dict[str, dict[str, Any]] = {
    "admm": {"penalty": 1.0},
    "choco_sgld": {"step_size": 0.1, "compression": {"kind": "qsgd", "bits": 8}},
    "consensus_mc": {},
    "de_psgld": {"step_size": 0.1, "constraint": {"kind": "ball", "radius": 1}, "smoothing": 0.1},
    "dg_lmc": {"step_size": 0.1, "tolerance": 1.0},
    "d_mala": {"step_size": 0.1, "drift": "half", "correction": "mala"},
    "fsgld": {"step_size": 0.1},
    "gossip_ula": {"step_size": 0.1, "communication": "triggered", "threshold": 1, "decay": 0.1},
    "graph_gibbs": {"tolerance": 1.0},
    "layered_ula": {"step_size": 0.1},
    "local_sgld": {"step_size": 0.1, "common_noise": 0.5},
    "push_sum_sgld": {"step_size": 0.1},
    "qlsd": {"step_size": 0.1, "compression": {"kind": "qsgd", "bits": 8}},
}
SERVER = ("consensus_mc", "dg_lmc", "fsgld", "layered_ula", "qlsd")


@pytest.mark.parametrize("kind", REFUSED)
def test_samplers_that_are_not_right_are_refused(kind: str) -> None:
    """The sentence says why, and what to use. It is the mask that is refused."""
    network = "server" if kind in SERVER else "ring"
    with pytest.raises(concord.ConcordError, match="share all coordinates, or use a sampler"):
        concord.sample(kind, hierarchy(), network, iterations=1, **REFUSED[kind])
    shared = concord.problems.quadratic(hierarchy().gram, hierarchy().shift)
    concord.sample(kind, shared, network, iterations=1, chains=1, **REFUSED[kind])


def test_every_sampler_is_allowed_or_refused() -> None:
    """Those of a single agent have nobody to send to."""
    every = {kind: kinds.find("samplers", kind, "") for kind in kinds.built_in("samplers")}
    alone = {kind for kind, of in every.items() if getattr(of.needs, "network", "") == "alone"}
    allowed = {kind for kind, *_ in ALLOWED.values()}
    assert every.keys() == allowed | alone | REFUSED.keys()


def test_gossip_is_refused_where_agents_move_unequally_often() -> None:
    """Agents of a star have other chances to move: the law of its effects would be wrong."""
    with pytest.raises(concord.ConcordError, match="regular graphs alone"):
        concord.sample("gossip_ula", hierarchy(), "star", iterations=1, step_size=0.1)


# What is sent


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Return a list of all arrays that networks mix, send over channels or compare."""
    vectors: list[np.ndarray] = []

    def note(matrix: Any, x: np.ndarray) -> np.ndarray:
        vectors.append(x.copy())
        return weighted_sum(matrix, x)

    plain_send, plain_difference = Channel.send, Network.select_shared

    def send(self: Channel, x: np.ndarray, *more: Any) -> np.ndarray:
        vectors.append(x.copy())
        return plain_send(self, x, *more)

    def select(self: Network, x: np.ndarray) -> np.ndarray:
        shared = plain_difference(self, x)
        vectors.append(shared.copy())
        return shared

    monkeypatch.setattr("concord.networks.network.weighted_sum", note)
    monkeypatch.setattr(Channel, "send", send)
    monkeypatch.setattr(Network, "select_shared", select)
    return vectors


HAPPENS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "qsgd": {"compression": {"kind": "qsgd", "bits": 8}},
    "top_k": {"compression": {"kind": "top_k", "share": 0.5}},
    "delay": {"delay": {"iterations": 2}},
    "matchings": {"schedule": {"kind": "matchings"}},
    **LOSSES,
}
# These send gradients, or positions after they have moved, in which the own effect has its part.
AT_ONCE = ("DE-SGLD, in place", "DIGing-SGLD", "D-MALA", "Local SGLD", "FALD", "VR-FALD")


@pytest.mark.parametrize("happens", HAPPENS)
@pytest.mark.parametrize("name", ALLOWED)
def test_no_local_number_leaves_its_agent(name: str, happens: str, sent: list[np.ndarray]) -> None:
    """Effects of another size than everything that is shared are in no vector that is sent.

    A local coordinate of one agent, moved before a step, changes nothing that is sent in it, and
    of what others hold after it nothing, unless the sampler sends what has just moved.
    """
    kind, graph, options, factor = ALLOWED[name]
    problem = hierarchy()
    try:
        sampler = ChosenSampler.choose(kind, {**options, "step_size": 0.01 * factor})
        plain = concord.network(graph, 4, **HAPPENS[happens])
        network = Network(plain.graph, plain.conditions, order=sampler.order)
        sampler.params.check(problem, network)
    except concord.ConcordError as error:
        pytest.skip(str(error))

    def take(moved: float) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Take three steps, the last with an effect of agent 1 moved before it.

        Return positions before and after it, and what is sent in it.
        """
        x0 = np.random.default_rng(1).standard_normal((3, 4, 2))
        x0[..., 1] += 1000.0
        rng, counted = np.random.default_rng(2), CountedProblem(problem, 3)
        running = network.start(x0, np.random.default_rng(3), None, problem.local)
        state = sampler.params.init(x0, counted, running, rng)
        for k in range(3):
            state = state._replace(x=state.x.copy())
            state.x[:, 1, 1] += moved if k == 2 else 0
            before = state.x
            running.begin(k)
            sent.clear()
            state = sampler.params.step(state, k, counted, running, rng)
        return before, state.x, [*sent]

    before, after, before_sent = take(0.0)
    assert before_sent
    local = np.concatenate([before[..., 1], after[..., 1]], axis=None)
    for vectors in before_sent:
        assert vectors.shape[-1] == 1  # of two coordinates
        assert not np.isin(vectors, local).any()
    if name not in AT_ONCE:
        _, other, then_sent = take(5.0)
        assert all(map(np.array_equal, before_sent, then_sent))
        others = [0, 2, 3]
        assert np.array_equal(after[:, others], other[:, others])
        assert not np.array_equal(after[:, 1], other[:, 1])


def test_bytes_are_those_of_shared_coordinates() -> None:
    """A vector has 8 bytes, not 16, and compressed those of one number."""
    problem = hierarchy()
    for happens in ({}, HAPPENS["qsgd"]):
        network = concord.network("ring", 4, **happens)
        x = np.zeros((2, 4, 2))
        running = network.start(x, np.random.default_rng(0), None, problem.local)
        running.begin(0)
        running.mix("metropolis", x)
        np.testing.assert_array_equal(running.meter.unicasts, 2)
        size = network.conditions.size(1, 8)
        np.testing.assert_array_equal(running.meter.unicast_bytes, 2 * size)
    pairs = network.start(x, np.random.default_rng(0), None, problem.local)
    pairs.begin(0)
    ends = np.array([[0, 1], [2, 3]])
    apart = pairs.difference(ends, np.arange(8.0).reshape(2, 2, 2))
    np.testing.assert_array_equal(apart[..., 1], 0)
    np.testing.assert_array_equal(apart[..., 0], [[-2, 2], [-2, 2]])
    assert pairs.meter.unicast_bytes.max() == 8


def test_a_vector_longer_than_a_position_is_refused() -> None:
    """As of a sampler that sends positions and velocities at once: what is local is not known."""
    x = np.zeros((2, 4, 2))
    running = concord.network("ring", 4).start(x, local=np.array([False, True]))
    with pytest.raises(concord.ConcordError, match=r"of 4 numbers would send .*; send positions"):
        running.mix("metropolis", np.concatenate([x, x], axis=-1))


def test_a_server_averages_what_is_shared() -> None:
    """Agents get the average of shared coordinates beside their own local ones."""
    x = np.arange(8.0).reshape(1, 4, 2)
    running = concord.network("server", 4).start(x, local=np.array([False, True]))
    np.testing.assert_array_equal(running.average(x)[0], [[3, 1], [3, 3], [3, 5], [3, 7]])


# Problems


def test_share_all_has_the_same_posterior() -> None:
    """The whole model's Gaussian, and gradients of a problem of functions."""
    problem = hierarchy()
    whole = concord.share_all(problem)
    np.testing.assert_allclose(whole.posterior.mean, problem.posterior.whole.mean)
    functions = concord.Problem(problem.gradient, agents=4, dim=2, local=[False, True])
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    np.testing.assert_allclose(concord.share_all(functions).gradient(x), whole.gradient(x))
    assert concord.share_all(whole) is whole


def test_posterior_of_gradients_alone_is_estimated_as_a_whole() -> None:
    """16,384 weighted points give moments to 0.02 of a standard deviation; w2 of traces, too."""
    problem = hierarchy()
    functions = concord.Problem(problem.gradient, agents=4, dim=2, local=[False, True])
    law = concord.law("de_sgld", problem, "ring", step_size=0.05, iterations=200)
    known, estimated = (concord.w2(law, p).value[-1] for p in (problem, functions))
    np.testing.assert_allclose(known, estimated, atol=0.02)
    trace = concord.sample("de_sgld", functions, "ring", step_size=0.05, iterations=200, chains=300)
    for found in (
        concord.w2(trace, problem).sel(draw=200),
        concord.w2(trace, problem, warm_up=100),
    ):
        assert found.agent.values.tolist() == [0, 1, 2, 3, "average"]
        assert (found.lo <= known.values + 1e-9).all() and (known.values <= found.hi + 0.05).all()
    table = concord.compare({"law": law, "trace": trace}, problem.posterior)
    assert table.bias2["law"] == pytest.approx(
        float(concord.bias2(law, problem).value[-1, :4].max())
    )


@pytest.mark.parametrize("kind", ["linear_regression", "logistic_regression"])
def test_regressions_take_coefficients_of_an_agent(kind: str) -> None:
    """The potentials add up to the density with each agent's prior once, by differences."""
    rng = np.random.default_rng(0)
    X = [np.column_stack([np.ones(n), rng.standard_normal(n)]) for n in (5, 9, 30)]
    y = [(rng.random(len(rows)) < 0.5).astype(float) for rows in X]
    scale = {"linear_regression": "prior_variance", "logistic_regression": "prior_scale"}[kind]
    problem = getattr(concord.problems, kind)(X, y, local=[True, False], **{scale: 2.0})
    x, step = rng.standard_normal((4, 3, 2)), 1e-5
    for j in range(2):
        move = step * np.eye(2)[j]
        slope = (problem.potential(x + move) - problem.potential(x - move)) / (2 * step)
        np.testing.assert_allclose(problem.gradient(x)[..., j], slope, rtol=1e-5, atol=1e-6)
    no_rows = x.copy()  # of the gradients the priors' part
    prior = problem.prior_gradient(no_rows)
    np.testing.assert_allclose(prior[..., 0], x[..., 0] / 2)
    np.testing.assert_allclose(prior[..., 1], x[..., 1] / 6)
    law = problem.posterior if kind == "linear_regression" else problem.reference
    assert law.of(2).moments()[1][0, 0] < law.of(0).moments()[1][0, 0]  # of 30 rows and 5
    with pytest.raises(concord.ConcordError, match="prior_share: whole"):
        getattr(concord.problems, kind)(X, y, local=[True, False], prior_share="whole")


@pytest.mark.parametrize(
    ("local", "words"),
    [([True], "no mask of 2"), ([1, 0], "no mask of 2"), ([True, True], "share no coordinate")],
)
def test_masks_that_do_not_fit_are_refused(local: Any, words: str) -> None:
    """A sentence says what a mask is."""
    with pytest.raises(concord.ConcordError, match=words):
        concord.problems.quadratic(hierarchy().gram, hierarchy().shift, local=local)


def test_a_mask_of_no_coordinate_is_none() -> None:
    """All are shared then, and the posterior is a plain one."""
    problem = concord.Problem(lambda x: x, agents=3, dim=2, local=[False, False])
    assert problem.local is None
    reference = np.random.default_rng(0).standard_normal((50, 4))
    local = concord.Problem(lambda x: x, agents=3, dim=2, local=[False, True], reference=reference)
    np.testing.assert_array_equal(local.reference.of(2).values, reference[:, [0, 3]])
    with pytest.raises(concord.ConcordError, match="dimension 4"):
        concord.Problem(lambda x: x, agents=3, dim=2, local=[False, True], reference=np.eye(2))


def test_the_fit_is_of_what_each_agent_holds() -> None:
    """Of gradients alone Hessians and shifts are the hierarchy's own, and laws the posterior's."""
    problem = hierarchy()
    functions = concord.Problem(problem.gradient, agents=4, dim=2, local=[False, True])
    for normal_fit in (fit(functions), fit(problem)):
        np.testing.assert_allclose(normal_fit.hessians, problem.gram, atol=1e-8)
        np.testing.assert_allclose(normal_fit.shift, problem.shift, atol=1e-8)
        mean, cov = problem.posterior.moments()
        np.testing.assert_allclose(normal_fit.mean, mean[:-1], atol=1e-8)
        np.testing.assert_allclose(normal_fit.cov, cov[:-1], atol=1e-7)
        np.testing.assert_allclose(normal_fit.law.of("average").cov, cov[-1], atol=1e-7)


@pytest.mark.parametrize("kind", ["de_sgld", "extra_sgld", "diging_sgld"])
def test_approximate_laws_of_affine_gradients_are_exact(kind: str) -> None:
    """Linearized at every agent's law, gradients of the hierarchy are what they are."""
    problem = hierarchy()
    functions = concord.Problem(problem.gradient, agents=4, dim=2, local=[False, True])
    run: dict[str, Any] = {"step_size": 0.1, "iterations": 30}
    exact_law = concord.law(kind, problem, "ring", **run)
    approximate = concord.law(kind, functions, "ring", approximate=True, **run)
    np.testing.assert_allclose(approximate.mean, exact_law.mean, atol=1e-6)
    np.testing.assert_allclose(approximate.cov, exact_law.cov, atol=1e-6)


def test_approximate_laws_are_near_those_of_chains() -> None:
    """Counts with an effect of each agent; within five standard errors and a tenth of a variance.

    f_i = 6 exp(mu + u_i) - y_i (mu + u_i) + u_i^2 / 2 + mu^2 / 8.
    """
    y = np.array([1.0, 6.0, 15.0, 4.0])

    def gradient(x: np.ndarray) -> np.ndarray:
        slope = 6 * np.exp(x.sum(axis=-1)) - y
        return np.stack([slope + x[..., 0] / 4, slope + x[..., 1]], axis=-1)

    problem = concord.Problem(gradient, agents=4, dim=2, local=[False, True])
    run: dict[str, Any] = {"step_size": 0.02, "iterations": 200, "record": {"at": [200]}}
    law = concord.law("de_sgld", problem, "ring", approximate=True, **run)
    assert law.approximate
    x = concord.sample("de_sgld", problem, "ring", chains=2000, **run)["x"][:, 0]
    variance = np.diagonal(law.cov[0], axis1=1, axis2=2)
    assert (np.abs(x.mean(axis=0) - law.mean[0]) < 5 * np.sqrt(variance / 2000) + 0.02).all()
    assert (np.abs(x.var(axis=0) / variance - 1) < 5 * np.sqrt(2 / 2000) + 0.1).all()
