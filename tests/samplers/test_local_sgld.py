"""Local SGLD (FALD, VR-FALD) against its equations by hand, its laws, and what it sends."""

from types import SimpleNamespace
from typing import Annotated, Literal

import numpy as np
import pytest
from chains import EXACT, chain, errors

from concord.errors import ConcordError
from concord.networks import topology
from concord.networks.conditions import Conditions
from concord.networks.network import under
from concord.options import Options
from concord.samplers import local_sgld
from concord.sampling.schedules import Schedule
from concord.testing import gate
from concord.testing import samplers as checks
from variants import CONSTANT, DECAYING, GRAPHS, problem

STAR = topology.build("star", 4)
LIMIT = 5.0  # standard errors


class Several(Options):
    """Options for which the contract is checked in all combinations, with several local steps."""

    step_size: Annotated[Schedule, "step size"]
    period: Annotated[Literal[1, 3], "local steps"]
    common_noise: Annotated[Literal[0, 1], "share"]
    renewal: Annotated[Literal[None, 1], "renewal"]
    communication: Annotated[float, "always"] = 1.0
    batch_size: Annotated[int | None, "none"] = None
    weights: Annotated[str, "W"] = "metropolis"


LONG = {
    *gate.CHECKS,
    checks.step_without_noise_is_the_matrix_of_the_law,
    checks.positions_have_uniform_ranks_in_their_exact_law,
}
OF_STATE = [
    pytest.param(check, marks=[pytest.mark.thorough] * (check in LONG), id=check.__name__)
    for check in checks.CHECKS[1:]
    if "read" not in check.__name__
]


@pytest.mark.parametrize("check", OF_STATE)
def test_all_options_keep_the_contract(check):
    members = {name: getattr(local_sgld, name) for name in dir(local_sgld)}
    check(SimpleNamespace(**{**members, "Params": Several}))


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name}-{g.agents}")
def test_an_iteration_is_local_steps_and_an_average(graph):
    prob, n = problem(graph.agents, 2), graph.agents
    params = local_sgld.Params(DECAYING, period=3, common_noise=0.4)
    found = chain(local_sgld, prob, graph, params, chains=2)
    rng, x, weights = np.random.default_rng(1), found[0], graph.metropolis().dense()
    for k in range(5):
        gamma = DECAYING(k)
        for _ in range(3):
            own, common = rng.standard_normal(x.shape), rng.standard_normal((2, 1, 2))
            gradient = np.einsum("ade,cae->cad", prob.gram, x) - prob.shift
            noise = np.sqrt(0.4 / n) * common + np.sqrt(0.6) * own
            x = x - gamma * gradient + np.sqrt(2 * gamma) * noise
        x = weights @ x
        np.testing.assert_allclose(found[k + 1], x, rtol=0, atol=EXACT)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_variance_reduction_is_by_the_same_mini_batch_and_what_all_have(batch_size):
    """Without noise; every draw of a mini-batch is of the first points there are."""
    prob, counts = problem(4, 2), problem(4, 2).counts
    params = local_sgld.Params(CONSTANT, period=2, renewal=0.5, batch_size=batch_size)
    rows = []

    class Draws:
        """Renews every second iteration, and keeps the mini-batches it has drawn."""

        def __init__(self):
            self.rng, self.turn = np.random.default_rng(5), 0

        def standard_normal(self, out, dtype):
            out.fill(0.0)

        def random(self, size=None, out=None):
            if out is None:
                self.turn += 1
                return np.full(size, 0.9 if self.turn % 2 else 0.1)
            self.rng.random(out=out)
            rows.append((out * counts[:, None]).astype(int))
            return out

    found = chain(local_sgld, prob, STAR, params, chains=3, rng=Draws())
    x, weights = found[0], STAR.metropolis().dense()

    def full(x):
        return np.einsum("ade,cae->cad", prob.gram, x) - prob.shift

    def batch(x, chosen):
        own = np.arange(4)[:, None]
        features, targets = prob.data.features[own, chosen], prob.data.targets[own, chosen]
        errors = np.einsum("cabd,cad->cab", features, x) - targets
        return (counts / 2)[:, None] * np.einsum("cab,cabd->cad", errors, features) + x / 4

    for k in range(5):
        if k % 2 == 0:  # at first always, and then as drawn
            reference = weights @ x
            control = weights @ full(reference)
        for t in range(2):
            if batch_size is None:
                gradient = full(x) - full(reference)
            else:
                gradient = batch(x, rows[2 * k + t]) - batch(reference, rows[2 * k + t])
            x = x - 0.013 * (gradient + control)
        x = weights @ x
        np.testing.assert_allclose(found[k + 1], x, rtol=0, atol=EXACT)


def one_step(params, chains=6):
    rng = np.random.default_rng(2)
    state, step = local_sgld.init(problem(4, 2), STAR, params, np.ones((chains, 4, 2)), rng)
    return step(state, 3, rng)[1]


def test_what_is_sent_and_computed_is_counted():
    info = one_step(local_sgld.Params(CONSTANT, period=5))
    assert info.unicasts.tolist() == [3, 1, 1, 1] and (info.gradients == 5).all()
    info = one_step(local_sgld.Params(CONSTANT, period=5, renewal=1.0))
    assert info.unicasts[0].tolist() == [9, 3, 3, 3] and (info.broadcasts == 3).all()
    assert (info.gradients == 6).all()
    info = one_step(local_sgld.Params(CONSTANT, period=5, renewal=1.0, batch_size=2))
    full = np.ceil(problem(4, 2).counts / 2)
    assert (info.gradients == 10 + full).all()
    info = one_step(local_sgld.Params(CONSTANT, communication=0.5), chains=200)
    sent = info.broadcasts[:, 0]
    assert set(sent) == {0, 1} and (info.unicasts == sent[:, None] * STAR.degrees).all()
    assert abs(sent.mean() - 0.5) < LIMIT * 0.5 / np.sqrt(200)


@pytest.mark.parametrize(
    "options",
    [
        {"communication": 0.4},
        {"renewal": 0.4, "period": 2},
        {"communication": 0.6, "renewal": 0.5, "common_noise": 0.5},
    ],
    ids=str,
)
def test_chains_have_the_exact_moments_over_what_is_chosen(options):
    """Mean and covariance of agents and control, in standard errors of 20 000 chains."""
    prob, chains = problem(4, 2), 20_000
    params = local_sgld.Params(Schedule(0.05), **options)
    assert local_sgld.affine(prob, STAR, params) is None
    rng = np.random.default_rng(3)
    x0 = 1 + rng.standard_normal((chains, 4, 2))
    state, step = local_sgld.init(prob, STAR, params, x0, rng)
    choose = local_sgld.choices(prob, STAR, params)
    size = len(choose(0).offset[0])
    law = np.zeros(size), np.zeros((size, size))
    law[0][:8], law[1][:8, :8] = 1.0, np.eye(8)
    for k in range(6):
        state, _ = step(state, k, rng)
        law = choose(k).step(*law)
    draws = np.concatenate([part.reshape(chains, -1) for part in state if part.ndim == 3], axis=1)
    assert errors(draws, *law) < LIMIT


def test_there_are_no_choices_where_nothing_is_chosen():
    prob = problem(4, 2)
    assert local_sgld.choices(prob, STAR, local_sgld.Params(CONSTANT, renewal=1.0)) is None
    batches = local_sgld.Params(CONSTANT, communication=0.5, batch_size=2)
    assert local_sgld.choices(prob, STAR, batches) is None
    assert local_sgld.affine(prob, STAR, local_sgld.Params(CONSTANT, 2, batch_size=2)) is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"renewal": 0.5}, r"^renewal: 0.5 sends .* remove it, or remove network$"),
        ({"communication": 0.5}, r"^communication: 0.5 sends .* use 1.0, or remove network$"),
    ],
)
def test_what_is_sent_now_and_then_is_refused_where_vectors_get_lost(options, sentence):
    loss = {"kind": "bernoulli", "rate": 0.1, "direction": "link"}
    lossy = under(STAR, Conditions(loss=loss), "tests")
    with pytest.raises(ConcordError, match=sentence):
        local_sgld.check(None, lossy, local_sgld.Params(CONSTANT, **options))
    local_sgld.check(None, lossy, local_sgld.Params(CONSTANT, period=4))
