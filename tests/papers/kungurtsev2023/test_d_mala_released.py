"""D-MALA as its authors' code computes it: reductions, rounds, and its law."""

import numpy as np

import everything
from concord.arguments import ChosenSampler
from concord.laws import exact
from concord.laws.read_off import StepReader
from concord.networks.construction import network
from concord.samplers.d_mala import DMALA
from concord.sampling.partition import Partition
from steps import EXACT, Regression, chain, start, steps_of

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
