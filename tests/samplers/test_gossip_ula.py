"""Gossip ULA against enumeration, exact moment recursions, and itself without triggering."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from chains import errors

import concord
from concord.errors import ConcordError
from concord.networks import topology
from concord.options import build
from concord.samplers import gossip_ula
from concord.sampling.loop import simulate
from concord.sampling.recorder import Record, Recorder

GRAPHS = {
    "star": topology.build("star", 5),
    "path": topology.build("path", 4),
    "ring": topology.build("ring", 6),
    "erdos_renyi": topology.build("erdos_renyi", 7, probability=0.5, seed=3),
    "pair": topology.build("complete", 2),
}


def params(**options):
    return build(gossip_ula.Params, {"step_size": 0.01, "fusion": 0.3, **options}, "sampler")


def pair_laws(graph):
    """Every ordered pair (i, j) of the definition with its probability, by plain loops."""
    for i in range(graph.agents):
        around = [j for a, b in graph.edges for i_, j in ((a, b), (b, a)) if i_ == i]
        for j in around:
            yield i, j, 1 / graph.agents / len(around)


class Quadratic:
    """Potentials 1/2 x^T H_i x - s_i^T x."""

    def __init__(self, agents: int, dim: int = 2) -> None:
        rng = np.random.default_rng(1)
        features = rng.standard_normal((agents, 6, dim))
        self.agents, self.dim = agents, dim
        self.gram = features.swapaxes(1, 2) @ features
        self.shift = 3 * rng.standard_normal((agents, dim))

    def gradient(self, chains: int):
        def gradient(x, out):
            out[:] = np.einsum("ade,cae->cad", self.gram, x) - self.shift
            return out

        return gradient


def run(problem, graph, options, x0, ticks, seed=0, every=1):
    rng = np.random.default_rng(seed)
    state, step = gossip_ula.init(problem, graph, options, x0.copy(), rng)
    recorder = Recorder(Record(every=every), problem, x0.shape, ticks)
    return simulate(state, step, ticks, recorder, rng)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_activity_is_the_enumerated_probability(graph) -> None:
    exact = np.zeros(graph.agents)
    for i, j, probability in pair_laws(graph):
        exact[[i, j]] += probability
    assert np.allclose(gossip_ula.activity(graph), exact, rtol=0, atol=1e-14)
    assert exact.sum() == pytest.approx(2)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_drawn_pairs_have_the_enumerated_law(graph) -> None:
    ticks, chains = 4000, 10
    drawn = gossip_ula.pairs(graph)(ticks, chains, np.random.default_rng(2)).reshape(-1, 2)
    count = np.zeros((graph.agents, graph.agents))
    np.add.at(count, tuple(drawn.T), 1)
    exact = np.zeros_like(count)
    for i, j, probability in pair_laws(graph):
        exact[i, j] = probability
    assert not count[exact == 0].any()
    # Five binomial standard errors for every pair.
    error = np.sqrt(exact * (1 - exact) / len(drawn))
    assert (np.abs(count / len(drawn) - exact) <= 5 * error).all()


def test_each_chain_has_its_own_pairs() -> None:
    drawn = gossip_ula.pairs(GRAPHS["ring"])(50, 2, np.random.default_rng(4))
    assert (drawn[:, 0] != drawn[:, 1]).any()


@pytest.mark.parametrize("communication", ["always", "never"])
@pytest.mark.parametrize("graph", [GRAPHS["star"], GRAPHS["erdos_renyi"]], ids=["star", "er"])
def test_moments_follow_the_exact_recursion(graph, communication) -> None:
    """Mean and second moment over random pairs, tick by tick, from the matrices of eq. (10)."""
    problem = Quadratic(graph.agents)
    alpha, beta, ticks, chains = 2e-3, 0.3, 12, 20_000
    n, d = graph.agents, 2
    maps = []
    activity = np.zeros(n)
    for i, j, probability in pair_laws(graph):
        activity[[i, j]] += probability
    for i, j, probability in pair_laws(graph):
        matrix, offset, noise = np.eye(n * d), np.zeros(n * d), np.zeros((n * d, n * d))
        for a, b in ((i, j), (j, i)):
            rows, other = slice(a * d, a * d + d), slice(b * d, b * d + d)
            gain = n * alpha / (2 * activity[a])
            matrix[rows, rows] -= gain * problem.gram[a]
            offset[rows] = gain * problem.shift[a]
            noise[rows, rows] = alpha * n**2 * np.eye(d)
            if communication == "always":
                matrix[rows, rows] -= beta * np.eye(d)
                matrix[rows, other] += beta * np.eye(d)
        maps.append((probability, matrix, offset, noise))
    rng = np.random.default_rng(5)
    x0 = rng.standard_normal((chains, n, d))
    mean, second = np.zeros(n * d), np.eye(n * d)
    for _ in range(ticks):
        steps = [
            (
                p,
                a @ mean + c,
                a @ second @ a.T
                + np.outer(a @ mean, c)
                + np.outer(c, a @ mean)
                + np.outer(c, c)
                + q,
            )
            for p, a, c, q in maps
        ]
        mean = sum(p * m for p, m, _ in steps)
        second = sum(p * s for p, _, s in steps)
    options = params(step_size=alpha, communication=communication)
    law = np.zeros(n * d), np.eye(n * d)
    for k in range(ticks):
        law = gossip_ula.choices(problem, graph, options)(k).step(*law)
    assert np.allclose(law[0], mean, rtol=1e-10, atol=1e-12)
    assert np.allclose(law[1] + np.outer(mean, mean), second, rtol=1e-10, atol=1e-12)
    trace = run(problem, graph, options, x0, ticks)
    assert errors(trace["x"][:, -1].reshape(chains, n * d), *law) < 5


@pytest.mark.parametrize(("drift", "power"), [("half", 0.5), ("whole", 1.0)])
@pytest.mark.parametrize("graph", [GRAPHS["star"], GRAPHS["ring"]], ids=["star", "ring"])
def test_drift_is_half_the_gradient_as_printed(graph, drift, power) -> None:
    """From consensus at x, the network average moves by -power alpha grad f(x) on average."""
    problem = Quadratic(graph.agents)
    chains, alpha = 4000, 1e-3
    x = np.array([0.7, -1.2])
    x0 = np.broadcast_to(x, (chains, graph.agents, 2)).copy()
    moved = run(problem, graph, params(step_size=alpha, drift=drift), x0, 1)["x_average"][:, 1] - x
    expected = -power * alpha * (problem.gram @ x - problem.shift).sum(axis=0)
    error = moved.std(axis=0) / np.sqrt(chains)
    assert (np.abs(moved.mean(axis=0) - expected) < 5 * error).all()


@pytest.mark.parametrize(("drift", "power"), [("half", 0.5), ("whole", 1.0)])
def test_stationary_law_is_the_posterior_to_that_power(drift, power) -> None:
    """Equal potentials 1/2 h |x|^2: the average is an AR(1) of variance 1/(power N h)."""
    graph = GRAPHS["ring"]
    problem = Quadratic(6)
    problem.gram[:] = np.eye(2)
    problem.shift[:] = 0
    alpha, ticks, chains = 5e-3, 250, 1500
    x0 = np.random.default_rng(15).standard_normal((chains, 6, 2)) / np.sqrt(6 * power)
    options = params(step_size=alpha, drift=drift)
    average = run(problem, graph, options, x0, ticks, every=ticks)["x_average"][:, -1]
    # Bias of a few times alpha N h = 0.03; chance, of 3000 numbers, 0.026. Powers differ by 2.
    assert average.var() == pytest.approx(1 / (6 * power), rel=0.2)


def test_triggering_has_no_choices() -> None:
    """Who communicates depends on where agents are, so the update is not affine."""
    options = params(communication="triggered", threshold=1.0, decay=0.5)
    assert gossip_ula.choices(Quadratic(6), GRAPHS["ring"], options) is None


def test_zero_threshold_is_gossip_without_triggering() -> None:
    graph = GRAPHS["erdos_renyi"]
    problem = Quadratic(graph.agents)
    x0 = np.random.default_rng(6).standard_normal((3, graph.agents, 2))
    plain = run(problem, graph, params(), x0, 400)
    options = params(communication="triggered", threshold=0.0, decay=0.5)
    triggered = run(problem, graph, options, x0, 400)
    assert np.array_equal(plain["x"], triggered["x"])
    assert np.array_equal(plain["broadcasts"], triggered["broadcasts"])
    # Two vectors per tick, one per activation.
    assert (plain["broadcasts"].sum(axis=-1) == 2 * plain.draw).all()
    assert np.array_equal(plain["broadcasts"], plain["activations"])


def test_huge_threshold_means_one_message() -> None:
    graph = GRAPHS["ring"]
    options = params(communication="triggered", threshold=1e100, decay=0.1)
    x0 = np.random.default_rng(7).standard_normal((4, 6, 2))
    trace = run(Quadratic(6), graph, options, x0, 300)
    assert (trace["activations"][:, -1] > 1).all()
    assert (trace["broadcasts"][:, -1] == 1).all()


def test_isolated_agents_send_nothing_and_ignore_others() -> None:
    problem = Quadratic(6)
    x0 = np.random.default_rng(8).standard_normal((2, 6, 2))
    options = params(communication="never")
    trace = run(problem, GRAPHS["ring"], options, x0, 200)
    assert not trace["broadcasts"].any()
    far = x0.copy()
    far[:, 3] += 5
    other = run(problem, GRAPHS["ring"], options, far, 200)
    same = np.delete(np.arange(6), 3)
    assert np.array_equal(trace["x"][:, :, same], other["x"][:, :, same])


@pytest.mark.parametrize("known", ["nothing", "start"])
def test_triggering_by_plain_loops(known) -> None:
    """Eqs. (7)-(9) for one chain, agent by agent, from the sampler's own pairs and noise."""
    graph = GRAPHS["erdos_renyi"]
    problem = Quadratic(graph.agents)
    n, alpha, beta, mu, delta, ticks = graph.agents, 0.01, 0.3, 0.9, 0.4, 300
    x0 = np.random.default_rng(9).standard_normal((1, n, 2))
    options = params(communication="triggered", threshold=mu, decay=delta, known=known)
    trace = run(problem, graph, options, x0, ticks, seed=10)

    rng = np.random.default_rng(10)
    block = gossip_ula.BLOCK // 4
    who = gossip_ula.pairs(graph)(block, 1, rng)[:, 0]
    noise = n / np.sqrt(2) * rng.standard_normal((block, 2, 2))
    p = gossip_ula.activity(graph)
    w, tau, sent = x0[0].copy(), [0] * n, [0] * n
    hat = list(w.copy()) if known == "start" else [None] * n
    for k in range(ticks):
        active = who[k]
        for a in active:
            if hat[a] is None or ((w[a] - hat[a]) ** 2).sum() > mu / (tau[a] + 1) ** delta:
                hat[a] = w[a].copy()
                sent[a] += 1
            tau[a] += 1
        new = w.copy()
        for place, (a, b) in enumerate((active, active[::-1])):
            gradient = problem.gram[a] @ w[a] - problem.shift[a]
            new[a] = w[a] - beta * (hat[a] - hat[b]) - n * alpha / (2 * p[a]) * gradient
            new[a] += np.sqrt(2 * alpha) * noise[k, place]
        w = new
        # Same arithmetic in another order: rounding only.
        assert np.allclose(trace["x"][0, k + 1], w, rtol=1e-9, atol=1e-9)
    assert trace["broadcasts"][0, -1].tolist() == sent
    assert trace["activations"][0, -1].tolist() == tau
    assert 0 < sum(sent) < sum(tau)


def test_blocks_do_not_repeat(monkeypatch) -> None:
    monkeypatch.setattr(gossip_ula, "BLOCK", 16)  # two ticks for 2 chains of dimension 2
    x0 = np.zeros((2, 6, 2))
    problem = Quadratic(6)
    problem.gram[:] = 0
    problem.shift[:] = 0
    x = run(problem, GRAPHS["ring"], params(communication="never"), x0, 40)["x"]
    steps = np.diff(x, axis=1)
    values = steps[steps != 0]
    assert values.size == 40 * 2 * 2 * 2
    # Increments x' - x carry rounding, so equal noise would agree to 1e-9 and not more.
    assert np.unique(np.round(values, 9)).size == values.size


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        ("no_edges", {}, "no_edges.* add edges"),
        ("ring", {"communication": "triggered"}, "needs threshold and decay, but has neither"),
        ("ring", {"communication": "triggered", "decay": 1.0}, "but has .*decay"),
        ("ring", {"threshold": 1.0}, "always does not use threshold"),
        ("ring", {"known": "start"}, "always does not use known"),
    ],
)
def test_unsuited_options_are_refused(graph, options, message) -> None:
    with pytest.raises(ConcordError, match=message):
        gossip_ula.check(None, topology.build(graph, 4), params(**options))


def test_problems_without_gradient_at_give_the_same_draws() -> None:
    graph = GRAPHS["star"]
    plain = Quadratic(5)
    at = SimpleNamespace(agents=5, dim=2, gradient=plain.gradient)

    def gradient_at(chains, width):
        def gradient(x, agents, out):
            for c, place in itertools.product(range(chains), range(width)):
                a = agents[c, place]
                out[c, place] = plain.gram[a] @ x[c, place] - plain.shift[a]
            return out

        return gradient

    at.gradient_at = gradient_at
    x0 = np.random.default_rng(14).standard_normal((3, 5, 2))
    first, second = (run(p, graph, params(), x0, 60)["x"] for p in (plain, at))
    assert np.allclose(first, second, rtol=0, atol=1e-10)


@pytest.mark.parametrize("communication", ["always", "never"])
def test_with_local_steps_a_pair_fuses_first_and_moves_then(communication) -> None:
    """Without noise, chain by chain, from who was active: three steps from where each has led."""
    graph, alpha = GRAPHS["star"], 2e-3
    problem, quiet = Quadratic(graph.agents), np.random.default_rng(7)
    options = params(step_size=alpha, communication=communication, local_steps=3)
    x0 = quiet.standard_normal((40, graph.agents, 2))
    law = gossip_ula.choices(problem, graph, options)(0)

    class Silent:
        integers, random = quiet.integers, quiet.random

        def standard_normal(self, out, dtype):
            out.fill(0.0)

    state, step = gossip_ula.init(problem, graph, options, x0.copy(), Silent())
    state, info = step(state, 0, Silent())
    assert (info.gradients == 3 * info.active).all() and (info.gradients.sum(axis=1) == 6).all()
    assert (info.broadcasts == info.active * (communication == "always")).all()
    gain = graph.agents * alpha / (2 * gossip_ula.activity(graph))
    for x, moved, active in zip(x0, state.x, info.active, strict=True):
        pair, expected = np.flatnonzero(active), x.copy()
        if communication == "always":
            expected[pair] -= 0.3 * (x[pair] - x[pair[::-1]])
        for _ in range(3):
            for a in pair:
                expected[a] -= gain[a] * (problem.gram[a] @ expected[a] - problem.shift[a])
        assert np.allclose(moved, expected, rtol=0, atol=1e-12)
        place = graph.edges.index(tuple(pair.tolist()))
        assert np.allclose(law.matrix[place] @ x.ravel() + law.offset[place], expected.ravel())


def test_chains_with_local_steps_have_the_moments_over_who_gossips() -> None:
    graph, chains = GRAPHS["path"], 20_000
    problem, rng = Quadratic(graph.agents), np.random.default_rng(8)
    options = params(step_size=2e-3, local_steps=3)
    x0 = rng.standard_normal((chains, graph.agents, 2))
    choices, law = gossip_ula.choices(problem, graph, options), (np.zeros(8), np.eye(8))
    for k in range(10):
        law = choices(k).step(*law)
    last = run(problem, graph, options, x0, 10)["x"][:, -1].reshape(chains, 8)
    assert errors(last, *law) < 5


def test_no_local_steps_are_refused() -> None:
    with pytest.raises(ConcordError, match=r"^sampler.local_steps: 0 is not a positive integer;"):
        params(local_steps=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"local_steps": 2},
        {"communication": "never"},
        {"communication": "triggered", "threshold": 2.0, "decay": 0.3},
        {"step_size": 1.0},  # diverges
    ],
    ids=str,
)
def test_where_only_the_last_pair_is_copied_nothing_changes(monkeypatch, options) -> None:
    """On large networks a tick costs what a pair costs; the numbers are those of copying all."""
    graph, problem = GRAPHS["ring"], Quadratic(6)
    x0 = np.random.default_rng(3).standard_normal((4, 6, 2))
    monkeypatch.setattr(gossip_ula, "BLOCK", 64)  # several blocks of ticks
    traces, told = [], [[], []]
    for few, infos in zip((10**9, 0), told, strict=True):
        monkeypatch.setattr(gossip_ula, "FEW", few)
        traces.append(run(problem, graph, params(**options), x0, 50))
        rng = np.random.default_rng(0)
        state, step = gossip_ula.init(problem, graph, params(**options), x0, rng)
        for k in range(20):
            state, info = step(state, k, rng)
            infos.append([np.copy(part).tolist() for part in info[:4]])
    assert told[0] == told[1]
    whole, pairs = traces
    for name, (_, values) in whole.variables.items():
        assert values.tobytes() == pairs[name].tobytes(), name
    assert whole["unicasts"].any() == (options.get("communication") != "never")


def test_triggers_amplify_rounding_over_thousands_of_ticks() -> None:
    """Of two starts that differ in the last digit the chains part, but not without triggers."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((100, 2))
    data = concord.problems.linear_regression(x, x @ [1.0, -1.0] + rng.standard_normal(100), 5)
    rare = {"communication": "triggered", "threshold": 8.0, "decay": 0.25}
    for options, least, most in (({}, 0.0, 1e-12), (rare, 1e-6, np.inf)):
        ends = [
            concord.sample(
                *("gossip_ula", data, "ring"), step_size=1e-4, fusion=0.1, iterations=12_000,
                chains=20, record={"at": [12_000]}, initial={"kind": "normal", "sd": sd}, **options
            )["x"]
            for sd in (1.0, 1.0 + 2.0**-52)
        ]  # fmt: skip
        apart = np.abs(ends[0] - ends[1]).max()
        assert least <= apart <= most
        stated = build(gossip_ula.Params, {"step_size": 1e-4, "fusion": 0.1, **options}, "sampler")
        assert gossip_ula.amplifies(stated, 5, 12_000) == bool(options)
