"""The arena's laws, of many versions at once, against recursions written here step by step."""

from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

import concord
from concord.arguments import ChosenSampler
from concord.laws import exact, paths
from concord.laws.law import laws_of_updates, laws_of_versions, update_of
from concord.laws.read_off import StepReader
from concord.problems.quadratic_problem import QuadraticProblem
from concord.samplers.de_sgld import DESGLD
from concord.sampling.initial import Law
from concord_arena import cells, scores, tuning
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

START = Law("normal").moments
GRAPH = concord.network("ring", 5)


def made(kind, **options):
    return ChosenSampler.parse({"kind": kind, **options}, "").params


def problem(agents, dim, points=8):
    """Return agents of so many points each, with a prior shared among them."""
    rng = np.random.default_rng([agents, dim, points])
    features = rng.standard_normal((agents, points, dim))
    gram = features.swapaxes(1, 2) @ features / points + np.eye(dim) / agents
    return QuadraticProblem(gram, rng.standard_normal((agents, dim)))


def recursion(update, start, steps, read):
    """Return mean and covariance at each step, and of the sum over (steps // 2, steps]."""
    mean, cov = start
    found, total, spread = [(mean, cov)], 0.0, 0.0
    matrices = []
    for k in range(steps):
        a = update.at(k)
        matrices.append(a.matrix)
        mean, cov = a.matrix @ mean + a.offset, a.matrix @ cov @ a.matrix.T + a.noise
        found.append((mean, cov))
    later = range(steps // 2 + 1, steps + 1)
    for s in later:
        total = total + read @ found[s][0]
        for t in later:
            low, high = min(s, t), max(s, t)
            lead = np.eye(len(mean))
            for k in range(low, high):
                lead = matrices[k] @ lead
            both = read @ lead @ found[low][1] @ read.T  # Cov(high, low)
            spread = spread + (both if s >= t else both.T)
    return found, total, spread


POWER = {"kind": "power", "a": 0.05, "b": 2.0, "exponent": 0.6}
EXACT = {
    "de_sgld": [{"step_size": 0.02}, {"step_size": POWER}],
    "de_sghmc": [{"step_size": 0.1, "friction": 2.0, "initial_velocity_sd": 0.5}],
    "d_ula": [{"step_size": 0.01, "fusion": 0.1}],
    "admm": [{"penalty": 1.0}],
    "extra_sgld": [{"step_size": 0.02}],
    "diging_sgld": [{"step_size": POWER}],
    "push_sum_sgld": [{"step_size": 0.02}],
    "local_sgld": [{"step_size": 0.02, "period": 2, "renewal": 1.0}],
    "graph_gibbs": [{"tolerance": 0.5}],
    "d_mala": [{"step_size": 0.1, "drift": "half", "correction": "none"}],
}


@pytest.mark.parametrize("kind", EXACT)
def test_every_affine_sampler_has_the_law_of_its_recursion(kind):
    for options in EXACT[kind]:
        sampler, prob, graph = made(kind, **options), problem(5, 2), concord.network("star", 5)
        update = update_of(sampler, prob, graph)
        positions = START(prob.dim)
        path = laws_of_versions([sampler] * 2, [prob] * 2, graph, positions)
        size = prob.agents * prob.dim
        start = exact.initial_moments(prob.agents, prob.dim, positions, update.start)
        read = np.eye(size, len(start[0]))
        steps = 11
        found, total, spread = recursion(update, start, steps, read)
        seen = path.marginals_at([1, 4, steps])
        for row, k in enumerate((1, 4, steps)):
            mean, cov = read @ found[k][0], read @ found[k][1] @ read.T
            wanted = exact.marginals(mean, cov, prob.agents, prob.dim)
            for part, other in zip(seen, wanted, strict=True):
                np.testing.assert_allclose(part[row, 1], other, rtol=1e-9, atol=1e-12)
        averaged, count = path.time_average(steps), steps - steps // 2
        wanted = exact.marginals(total / count, spread / count**2, prob.agents, prob.dim)
        for part, other in zip(averaged, wanted, strict=True):
            np.testing.assert_allclose(part[0], other, rtol=1e-9, atol=1e-12)
        assert (path.limit() is None) == (POWER in options.values())  # whose steps never repeat


STUDY = Study(Path(__file__).parents[2] / "config" / "studies" / "arena", load_config())
ENTRIES = list(dict.fromkeys(r.labels["entry"] for r in STUDY.runs.values()
                             if r.experiment == "tasks"))  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_has_the_law_of_a_recursion_one_by_one(entry):
    """As tuned and scored, but step by step, by products of the update's matrices alone."""
    checked = 0
    for graph in ("ring", "directed", "server"):
        run = STUDY.run("tasks", f"problem=apart+topology={graph}+entry={entry}")
        run = run.vary(arena=structs.replace(run.arena, budget={"gradients": 40}, sets=1))
        task = cells.build_task(run, Path())
        found = cells.score(run, task)
        if "gradients" not in found.choice:
            continue
        about, prob = found.choice["gradients"], task.problems[1]
        sampler = tuning.vary(run.sampler.params, about["chosen"], "")
        start, reader = START(2), StepReader(sampler, prob, task.network)
        if reader.chooses:
            mean, cov = exact.initial_moments(8, 2, start)
            for k in range(about["iterations"]):
                mean, cov = reader.read_step(k).choices.apply(mean, cov)
        else:
            update = reader.update()
            mean, cov = exact.initial_moments(8, 2, start, update.start)
            for k in range(about["iterations"]):
                at = update.at(k)
                mean, cov = at.matrix @ mean + at.offset, at.matrix @ cov @ at.matrix.T + at.noise
        errors = []
        for agent in range(8):
            own = slice(2 * agent, 2 * agent + 2)
            m, v = mean[own], np.diag(cov[own, own])
            p, q = prob.posterior.mean, np.diag(prob.posterior.cov)
            errors += [(m - p) ** 2 / q, (v + m**2 - q - p**2) ** 2 / (2 * q**2 + 4 * p**2 * q)]
        (b2,) = [row.value for row in found.rows
                 if (row.metric, row.agent) == ("b2_by_gradients", "worst")]  # fmt: skip
        assert b2 == pytest.approx(np.max(errors), rel=1e-6)
        checked += 1
    assert checked


@pytest.mark.parametrize("on_loss", ["keep_own_weight", "reuse_last"])
@pytest.mark.parametrize(
    ("kind", "options"), [("de_sghmc", {"friction": 2.0}), ("diging_sgld", {})]
)
def test_versions_on_lossy_networks_have_the_moments_of_each_alone(kind, options, on_loss):
    """DIGing sends gradients besides, of which receivers know the first: those of each data set."""
    loss = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
    network = concord.network("ring", 5, loss=loss, on_loss=on_loss)
    sets = [problem(5, 2, points=count) for count in (3, 4)]
    both = [made(kind, step_size=step, **options) for step in (0.02, 0.05)]
    seen = laws_of_versions(both, sets, network, START(2)).marginals_at([3, 20])
    for version, (prob, sampler) in enumerate(zip(sets, both, strict=True)):
        update = update_of(sampler, prob, network)
        start = exact.initial_moments(5, 2, START(2), update.start)
        law = laws_of_updates([update], [start], network, 2).law([3, 20])
        np.testing.assert_allclose(seen.mean[:, version], law.mean, rtol=1e-10)
        np.testing.assert_allclose(seen.average_cov[:, version], law.average_cov, rtol=1e-10)


@pytest.mark.parametrize(
    ("kind", "step", "small", "options", "order"),
    [
        ("extra_sgld", 2e-5, 2e-5, {}, 4),
        ("d_mala", 4e-3, 1e-3, {"drift": "half", "correction": "none"}, 16),  # the noise's sd
    ],
)
def test_limits_of_small_steps_are_not_moved_by_rounding(kind, step, small, options, order):
    """The bias of the average falls as theory says; powers move what a step conserves instead."""
    prob = problem(5, 1)

    def path_of(step):
        both = [made(kind, step_size=s, **options) for s in (step, step / 2)]
        return laws_of_versions(both, [prob] * 2, GRAPH, START(1))

    path = path_of(step)
    for level in ("worst", "average"):
        b2 = scores.bias(path.limit(), prob.posterior)[level]
        assert b2[0] / b2[1] == pytest.approx(order, rel=0.02), level
    path = path_of(small)
    own = scores.bias(path.limit(), prob.posterior)["average"]
    moved = scores.bias(paths.Path.limit(path), prob.posterior)["average"]
    assert own[1] < own[0] and moved[1] > 10 * own[1]


def test_a_law_that_diverges_scores_infinity():
    prob, samplers = problem(5, 1), [DESGLD(0.01), DESGLD(4.0)]
    path = laws_of_versions(samplers, [prob] * 2, GRAPH, START(1))
    for k in (200, 10**5):
        b2 = scores.bias(path.marginals_at([k]), prob.posterior)
        for level in scores.LEVELS:
            assert np.isfinite(b2[level][0, 0])
            assert np.isposinf(b2[level][0, 1])
    distance = scores.compare_laws(path.marginals_at([10**5]), prob.posterior)
    assert np.isposinf(distance["worst"]["w2"][0, 1])


def test_solved_means_from_there_to_the_end():
    b2 = np.array([[3.0, 0.05, 9.0, 0.01], [0.05, 9.0, 9.0, 0.01], [0.01, 0.02, np.inf, 0.01]])
    assert scores.find_solved(b2, 0.1).tolist() == [1, 2, 3, 0]
