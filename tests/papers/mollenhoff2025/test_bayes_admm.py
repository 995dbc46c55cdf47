"""BayesADMM on quadratic losses: fixed points, rounds in closed form, and the usual ADMM."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import everything
from concord.arguments import ChosenSampler
from concord.errors import ConcordError
from concord.networks.construction import network
from concord.problem import CountedProblem
from concord.problems.quadratic_problem import QuadraticProblem
from concord_studies.metrics.stationary import compare_gaussians

AGENTS, DIM, PRIOR = 4, 3, 2.5
FAMILIES = ["full", "diagonal", "isotropic", "point"]


def problem():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((AGENTS, 6, DIM)) @ np.array([[1, 0.5, 0], [0, 1, 0.3], [0, 0, 0.4]])
    found = QuadraticProblem(
        np.einsum("anp,anq->apq", X, X) + PRIOR / AGENTS * np.eye(DIM),
        np.einsum("anp,an->ap", X, rng.standard_normal((AGENTS, 6))),
    )
    found.prior_precision = PRIOR / AGENTS
    return found


TARGET, LOSSES = problem(), problem().gram - PRIOR / AGENTS * np.eye(DIM)
PRECISION = TARGET.gram.sum(axis=0)


def sampler(**options):
    everything.use()
    return ChosenSampler.parse({"kind": "bayes_admm", **options}, "sampler").params


def states(rounds, chains=1, **options):
    """Return the states after each round, the first before any, and the network."""
    own, rng = sampler(**options), np.random.default_rng(1)
    x0 = np.zeros((chains, AGENTS, DIM))
    net, counted = network("server", AGENTS).start(x0), CountedProblem(TARGET, chains)
    found = [own.init(x0, counted, net, rng)]
    for k in range(rounds):
        found.append(own.step(found[-1], k, counted, net, rng))
    return found, net


def duals(state):
    """Return the dual variables, (agents, dim) and (agents, dim, dim)."""
    return state.dual[:, :DIM], state.dual[:, DIM:].reshape(LOSSES.shape)


def test_one_round_from_the_prior_is_the_posterior():
    """With rho = 1/N; agents have it when they have heard the server."""
    found = states(2)[0]
    np.testing.assert_allclose(found[1].tightness, PRECISION, rtol=1e-12)
    np.testing.assert_allclose(found[1].center, TARGET.posterior.mean, rtol=1e-10)
    np.testing.assert_allclose(found[2].precision[0], PRECISION, rtol=1e-12)
    np.testing.assert_allclose(found[2].mean[0], TARGET.posterior.mean, rtol=1e-10)


@pytest.mark.parametrize("penalty", [0.05, 0.25, 3.0])
def test_later_rounds_leave_the_same_part(penalty):
    """Duals are the losses' natural parameters at once, and errors shrink by 1 - alpha."""
    found = states(6, penalty=penalty, start=0.7)[0]
    v, V = duals(found[1])
    np.testing.assert_allclose(V, LOSSES, atol=1e-12)
    np.testing.assert_allclose(v, TARGET.shift, atol=1e-12)
    off = [state.tightness - PRECISION for state in found[1:]]
    pull = [s.tightness @ s.center - TARGET.shift.sum(axis=0) for s in found[1:]]
    left = AGENTS * penalty / (1 + AGENTS * penalty)
    for errors in (off, pull):
        for before, after in pairwise(errors):
            np.testing.assert_allclose(after, left * before, atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES[:3])
def test_an_agent_minimizes_its_objective(family):
    """E_q[loss + v'x - x'Vx/2] + rho KL(q || server), stationary in m and the free part of S."""
    before, after = states(3, family=family, penalty=0.4, damping=0.6)[0][2:]
    (v, V), center, tightness, rho = duals(before), before.center, before.tightness, 0.4

    def objective(m, S, agent):
        cov, H = np.linalg.inv(S), LOSSES[agent] - V[agent]
        linear = v[agent] - TARGET.shift[agent]
        loss = 0.5 * m @ H @ m + 0.5 * np.trace(H @ cov) + linear @ m
        away = m - center
        kl = 0.5 * (np.trace(tightness @ cov) + away @ tightness @ away + np.linalg.slogdet(S)[1])
        return loss + rho * kl

    rng = np.random.default_rng(8)
    for agent in range(AGENTS):
        m, S = after.mean[agent], after.precision[agent]
        root = rng.standard_normal((DIM, DIM))
        way = {
            "full": root + root.T,
            "diagonal": np.diag(rng.standard_normal(DIM)),
            "isotropic": np.eye(DIM),
        }[family]
        for dm, dS in ((rng.standard_normal(DIM), 0 * S), (0 * m, way)):
            up, down = (objective(m + e * dm, S + e * dS, agent) for e in (1e-4, -1e-4))
            assert abs(up - down) / 2e-4 < 1e-6
            assert up + down > 2 * objective(m, S, agent)


@pytest.mark.parametrize("family", FAMILIES)
def test_fixed_points_have_the_posteriors_mean(family):
    """And of its precision the part that the family has."""
    last = states(400, family=family, penalty=1.0)[0][-1]
    np.testing.assert_allclose(last.mean, np.tile(TARGET.posterior.mean, (AGENTS, 1)), rtol=1e-6)
    whole = PRECISION - PRIOR * np.eye(DIM)
    wanted = {
        "full": whole,
        "diagonal": np.diag(np.diag(whole)),
        "isotropic": np.trace(whole) / DIM * np.eye(DIM),
        "point": 0 * whole,
    }[family]
    np.testing.assert_allclose(last.precision[0], wanted + PRIOR * np.eye(DIM), rtol=1e-9)


def test_bregman_admm_has_the_same_fixed_point():
    """Slowly; with the sign that the released code has it does not come near."""
    away = {}
    for dual in ("expectation", "second_moments"):
        last = states(1000, dual=dual, penalty=5.0)[0][-1]
        away[dual] = np.abs(last.center - TARGET.posterior.mean).max()
        away[dual, "precision"] = np.abs(last.tightness - PRECISION).max()
    assert away["expectation"] < 1e-3 and away["expectation", "precision"] < 0.02
    assert away["second_moments"] > 0.5 and away["second_moments", "precision"] > 5


def test_points_move_as_federated_admm():
    """The usual updates of mean, dual and server, with the penalty rho times the prior's."""
    rho = 0.8 * PRIOR
    server, v = np.zeros(DIM), np.zeros((AGENTS, DIM))
    found = states(5, chains=2, family="point", penalty=0.8)[0]
    for state in found[1:]:
        mean = np.stack(
            [
                np.linalg.solve(H + rho * np.eye(DIM), b - u + rho * server)
                for H, b, u in zip(LOSSES, TARGET.shift, v, strict=True)
            ]
        )
        v = v + rho * (mean - server)
        alpha = 1 / (PRIOR + AGENTS * rho)
        server = (1 - PRIOR * alpha) * mean.mean(axis=0) + alpha * v.sum(axis=0)
        np.testing.assert_allclose(state.mean, mean, rtol=1e-9)
        np.testing.assert_allclose(state.x, np.stack([mean, mean]), rtol=1e-9)
        np.testing.assert_allclose(state.center, server, rtol=1e-9)


def test_the_codes_solver_leaves_a_part():
    exact, rough = (states(1, solver_steps=n)[0][1] for n in (None, 51))
    left = np.prod(1 - (1 / AGENTS) / (1 + np.arange(51) / 10))
    away = PRIOR * np.eye(DIM) - exact.precision
    np.testing.assert_allclose(rough.precision - exact.precision, left * away, rtol=1e-9)
    assert 0.005 < left < 0.02
    np.testing.assert_allclose(rough.mean, exact.mean, atol=0.1)


def test_draws_have_the_laws_moments():
    """Within four standard errors of 20 000 chains."""
    chains = 20_000
    last = states(2, chains=chains)[0][-1]
    x, cov = last.x[:, 0], TARGET.posterior.cov
    sd = np.sqrt(np.diag(cov))
    assert (np.abs(x.mean(axis=0) - TARGET.posterior.mean) < 4 * sd / np.sqrt(chains)).all()
    error = np.sqrt((np.outer(sd, sd) ** 2 + cov**2) / chains)
    assert (np.abs(np.cov(x.T) - cov) < 4 * error).all()


@pytest.mark.parametrize(
    ("options", "numbers"),
    [({}, 9), ({"family": "diagonal"}, 6), ({"family": "isotropic"}, 4), ({"family": "point"}, 3),
     ({"dual": "expectation"}, 18)],
)  # fmt: skip
def test_what_a_round_sends(options, numbers):
    """Up and down a mean and the free entries of a precision, and of Bregman ADMM twice."""
    net = states(3, **options)[1]
    np.testing.assert_allclose(net.meter.unicast_bytes, 3 * 2 * numbers * 8)


def rows_of(rounds, draw, agents, **options):
    everything.use()
    trace = SimpleNamespace(draw=np.array(draw), agent=np.array(agents), chains=0)
    m = SimpleNamespace(
        sampler=sampler(**options), problem=TARGET, iterations=rounds, trace=trace,
        network=network("server", AGENTS),
    )  # fmt: skip
    return list(everything.kind("metrics", "admm_law").rows(m))


def test_the_metric_reads_the_laws():
    found = states(3, family="diagonal")[0]
    rows = rows_of(3, [0, 1, 3], [0, 2], family="diagonal")
    values = {(row.iteration, row.agent, row.metric): row.value for row in rows}
    expected = compare_gaussians(
        found[3].mean[2], np.linalg.inv(found[3].precision[2]), TARGET.posterior
    )
    assert values[3, "2", "admm_w2"] == pytest.approx(expected[0])
    assert values[3, "2", "admm_bias"] == pytest.approx(expected[-1])
    at_mean = np.tile(found[1].mean[0], (1, AGENTS, 1))
    assert values[1, "0", "global_loss"] == pytest.approx(TARGET.potential(at_mean).sum())
    assert (2, "0", "admm_w2") not in values and not any(row.chance for row in rows)


def test_a_precision_that_belongs_to_no_law_has_no_finite_number():
    options = {"dual": "second_moments", "penalty": 1.0}
    found = states(40, **options)[0]
    lost = [k for k, state in enumerate(found) if np.linalg.eigvalsh(state.precision[0])[0] <= 0]
    assert lost and np.isfinite(found[lost[0]].mean).all()
    rows = rows_of(40, lost[:1], [0], **options)
    of_law = {row.metric: row.value for row in rows if row.metric.startswith("admm_")}
    assert np.isfinite(of_law.pop("admm_bias"))  # of the mean alone
    assert len(of_law) == 4 and np.isinf([*of_law.values()]).all()


def test_what_it_refuses():
    with pytest.raises(ConcordError, match="needs a server"):
        sampler().check(TARGET, network("ring", AGENTS))
    with pytest.raises(ConcordError, match="use family: full"):
        sampler(family="point", dual="expectation").check(TARGET, network("server", AGENTS))
