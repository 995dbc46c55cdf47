"""D-MALA as its authors' code computes it: reductions, rounds, and its law."""

from math import sqrt

import numpy as np
import pytest

import everything
from concord.arguments import ChosenSampler
from concord.laws import exact
from concord.laws.read_off import StepReader
from concord.networks.construction import network
from concord.samplers.d_mala import DMALA
from concord.sampling.partition import Partition
from steps import EXACT, Quadratic, Regression, chain, start, steps_of

RING = network("ring", 5)


def sampler(**options):
    everything.use()
    return ChosenSampler.parse({"kind": "d_mala_released", **options}, "sampler").params


def test_with_one_round_it_is_d_mala():
    """Up to rounding, of which an acceptance may depend with a probability of 1e-10."""
    problem = Regression(5, 2)
    x0 = start(problem, 20)
    for correction in ("released", "none"):
        own = sampler(step_size=0.2, correct=correction != "none")
        expected = chain(DMALA(0.2, "whole", correction), problem, RING, 4, x0=x0)
        found = chain(own, problem, RING, 4, x0=x0)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=EXACT)


def test_rounds_and_burn_in_are_as_in_the_code():
    """The code's loop over agents, with plain matrices."""
    problem, chains, epsilon = Regression(5, 2), 20, 0.2
    x = start(problem, chains)
    own = sampler(step_size=epsilon, burn_in=2, milestones=[1, 2], rounds=[1, 2, 3])
    found = steps_of(own, problem, RING, 5, x0=x)
    rng, mix = np.random.default_rng(1), np.zeros((5, 5))
    for i in range(5):
        mix[i, [i - 1, i, (i + 1) % 5]] = 1 / 3
    tracked, before = np.zeros_like(x), np.zeros_like(x)
    aleph, bent, accepted_share = np.zeros((chains, 5)), np.zeros((chains, 5)), []
    for k, rounds in enumerate([1, 1, 2, 3, 3]):
        gradient = problem.shift - np.einsum("aij,caj->cai", problem.gram, x)
        z = rng.standard_normal(x.shape)
        curvature = np.einsum("cai,aij,caj->ca", z, problem.gram, z)
        for _ in range(rounds):
            tracked = np.einsum("ij,cjd->cid", mix, tracked + gradient - before)
            aleph = (aleph + curvature - bent) @ mix.T
        before, bent = gradient, curvature
        move = epsilon * z + epsilon**2 * tracked
        if k >= 2:
            change = -0.5 * epsilon**2 * (aleph + (tracked**2).sum(axis=2))
            accepted = np.log(rng.random((chains, 5))) <= np.minimum(change, 0)
            accepted_share.append(accepted.mean())
            move = move * accepted[..., None]
        else:
            aleph = np.zeros((chains, 5))
        x = np.einsum("ij,cjd->cid", np.linalg.matrix_power(mix, rounds), x + move)
    np.testing.assert_allclose(found.x[-1], x, rtol=1e-10, atol=EXACT)
    assert 0.01 < np.mean(accepted_share) < 0.99
    # x, gradients, and a number (half a vector here), in 1 + 1 + 2 + 3 + 3 rounds to two neighbors
    assert found.network.meter.unicasts.tolist() == [10 * 2 * 2.5] * 5
    moves = chains * 5 * (2 + np.sum(accepted_share))
    assert found.network.meter.activations.sum() == round(moves)


@pytest.mark.parametrize("rounds", [1, 5, 10])
def test_rounds_make_the_law_narrower(rounds):
    """Where agents average over all and accept all, the average of one dimension is an AR(1).

    y' = (1 - a) y + epsilon w / sqrt(N), a = epsilon^2 R h / N with h the sum of the curvatures, so
    that its variance is 1 / (h R (2 - a)), 1/(2 R) of the posterior's for small steps.
    """
    epsilon, agents, h = 0.3, 4, 2.0
    problem = Quadratic(np.full((agents, 1, 1), h / agents), np.zeros((agents, 1)))
    own = sampler(step_size=epsilon, correct=False, rounds=[rounds])
    x = chain(own, problem, network("complete", agents), 300, x0=start(problem, 20_000))[-1]
    a = epsilon**2 * rounds * h / agents
    expected = 1 / (rounds * (2 - a)) / h
    assert abs(x.mean(axis=1).var() / expected - 1) < 4 * sqrt(2 / 20_000)


def test_more_rounds_later_leave_the_mean_where_they_began():
    """With rounds 1, 5 and 10 the mean settles at m + 0.5 (x'' - m) + 0.4 (x' - m).

    x' and x'' are the averages when the rounds change: only the changes of the gradient after them
    count five and ten times. Within four standard errors of the mean over chains.
    """
    chains, agents, milestones = 4000, 4, [3, 8]
    problem = Quadratic(np.full((agents, 1, 1), 0.5), np.full((agents, 1), 0.5))  # m = 1
    own = sampler(step_size=0.3, correct=False, rounds=[1, 5, 10], milestones=milestones)
    x0 = np.full((chains, agents, 1), -3.0)
    x = chain(own, problem, network("complete", agents), 200, x0=x0).mean(axis=2)[..., 0]
    first, second = (x[k] - 1 for k in milestones)
    away = x[-1] - 1 - (0.5 * second + 0.4 * first)
    assert abs(away.mean()) < 4 * away.std() / sqrt(chains)
    assert x[-1].mean() < 0


def test_the_limit_does_not_depend_on_the_units_of_tracked_gradients():
    """They are 1e4 times as large as positions: no slow direction is taken for a conserved one.

    The oracle is the same update with the rest of the state in other units.
    """
    views, agents = everything.kind("problems", "partial_views"), 4
    parts = Partition.parse({"kind": "consecutive"}, "partition")
    problem = views.build(
        views.Params(), agents, parts, lambda label: np.random.default_rng(1), None
    )
    own = sampler(step_size=4e-4, correct=False, rounds=[5])
    step = StepReader(own, problem, network("complete", agents)).update().at(5)
    count, size = agents * problem.dim, len(step.offset)
    units = np.where(np.arange(size) < count, 1.0, 2.0**13)
    matrix, noise = step.matrix * units / units[:, None], step.noise / np.outer(units, units)
    start = np.zeros(size), np.zeros((size, size))
    _, found = exact.limit(step, *start)
    _, expected = exact.limit(exact.Affine(matrix, step.offset / units, noise, None), *start)
    found, expected = found[:count, :count], expected[:count, :count]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * expected.max())
    assert expected.max() > 1e-5
