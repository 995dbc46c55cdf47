"""Laws of DSGLD and FSGLD whose chains visit shards, against all outcomes of visits and batches."""

from itertools import product

import numpy as np
import pytest
from numpy.random import default_rng

import everything
from concord.networks.construction import network
from concord.samplers.fsgld import FSGLD
from concord.sampling.schedules import Schedule
from steps import steps_of

theory = everything.shared("fsgld2021", "theory")
means = everything.kind("problems", "shards_of_means")
coin = everything.kind("problems", "coin_shards")
draws = everything.kind("metrics", "shard_draws")
METHODS = pytest.mark.parametrize("surrogates", ["none", "laplace"])
CHAINS, LIMIT = 20_000, 5.0  # standard errors


def build(shards=3, points=4, **options):
    def stream(label):
        return default_rng(len(label))

    return means.build(means.Params(points=points, **options), shards, None, stream, None)


def sampler(surrogates="none", updates=2, batch=2, gamma=0.02):
    return FSGLD(Schedule(gamma), surrogates=surrogates, local_steps=updates, batch_size=batch)


def all_outcomes(problem, options, batch):
    """Yield each shard and mini-batch with A and b of its drift b - A theta, by the print."""
    shards, count = problem.data.features.shape[:2]
    centers = problem.data.features.mean(axis=1)
    for s in range(shards):
        for rows in product(range(count), repeat=batch):
            # N_s / (f_s m) sum of (x - theta) - theta + g_s, equations (4) and (5)
            likelihood = shards * count / batch * problem.data.features[s, list(rows)].sum(axis=0)
            slope, shift = 1 + shards * count, likelihood
            if options.surrogates != "none":  # grad log q - grad log q_s / f_s
                shift = shift + count * centers.sum(axis=0) - shards * count * centers[s]
                slope += count * shards - shards * count
            yield s, slope, shift


def by_outcomes(problem, options, batch):
    """Return the shrinking factor of an update, and by shard the mean and covariance it adds."""
    gamma, kept = options.step_size(0), {}
    for s, _, shift in all_outcomes(problem, options, batch):
        kept.setdefault(s, []).append(gamma * shift)
    added = [np.array(shifts) for shifts in kept.values()]
    noise = 2 * gamma * np.eye(2)
    slope = next(all_outcomes(problem, options, batch))[1]
    return (
        1 - gamma * slope,
        [shifts.mean(axis=0) for shifts in added],
        [np.cov(shifts.T, bias=True) + noise for shifts in added],
    )


def run_visits(a, pulls, noises, updates, visits):
    """Return mean, covariance and chance of each history of shards, from 0, update by update."""
    histories = []
    for shards in product(range(len(pulls)), repeat=visits):
        mean, cov, seen = np.zeros(2), np.zeros((2, 2)), []
        for s in shards:
            for _ in range(updates):
                mean, cov = a * mean + pulls[s], a**2 * cov + noises[s]
                seen.append((mean, cov))
        histories.append(seen)
    return histories


@METHODS
@pytest.mark.parametrize("updates", [1, 2, 3])
def test_the_law_is_that_of_all_histories_of_visits(surrogates, updates):
    problem, options = build(), sampler(surrogates, updates)
    visits = theory.Visits.of(problem, options)
    a, pulls, noises = by_outcomes(problem, options, 2)
    assert visits.shrink == pytest.approx(a)
    histories = run_visits(a, pulls, noises, updates, 7 if updates > 1 else 8)
    left = abs(a) ** (updates * (7 if updates > 1 else 8))
    for update in range(1, updates + 1):
        place = update - updates - 1
        ends = np.array([seen[place][0] for seen in histories])
        covs = np.array([seen[place][1] for seen in histories])
        scale = np.abs(ends).max()
        np.testing.assert_allclose(visits.mean, ends.mean(axis=0), atol=3 * left * scale)
        law = covs.mean(axis=0) + np.cov(ends.T, bias=True)
        np.testing.assert_allclose(visits.cov(update), law, atol=9 * left * scale**2)
    shards = np.array([h[-1] for h in product(range(3), repeat=7 if updates > 1 else 8)])
    given = visits.given_shard(updates)
    for s in range(3):
        of = shards == s
        np.testing.assert_allclose(given[0][s], ends[of].mean(axis=0), atol=3 * left * scale)
        law = covs[of].mean(axis=0) + np.cov(ends[of].T, bias=True)
        np.testing.assert_allclose(given[1][s], law, atol=9 * left * scale**2)


@METHODS
@pytest.mark.parametrize(("updates", "update"), [(1, 1), (3, 1), (3, 2), (3, 3)])
def test_the_error_of_a_mean_is_that_of_its_covariances(surrogates, updates, update):
    """Sum the covariances of the draws, of the joint linear map of shards and noise."""
    problem, options = build(), sampler(surrogates, updates)
    visits = theory.Visits.of(problem, options)
    a, pulls, noises = by_outcomes(problem, options, 2)
    apart, count = 2, 4  # visits between draws, and draws
    before = 40  # visits, after which the start is forgotten
    total = (before + apart * count) * updates
    between, noise = np.cov(np.array(pulls).T, bias=True), np.mean(noises, axis=0)
    taken = [(before + apart * n) * updates + update for n in range(count)]  # updates made by then
    weights = np.zeros(total)  # of the update in the mean of the draws
    for made in taken:
        weights[:made] += a ** (made - 1 - np.arange(made)) / count
    of_visits = weights.reshape(-1, updates).sum(axis=1)
    expected = (weights**2).sum() * np.trace(noise) + (of_visits**2).sum() * np.trace(between)
    error = visits.mean_error(update, apart, np.array([count]))
    np.testing.assert_allclose(error, expected, rtol=1e-9)


@METHODS
def test_the_sampler_moves_as_the_print_says(surrogates):
    problem, options = build(), sampler(surrogates, updates=1)
    theta = np.array([1.0, -2.0])
    x0 = np.tile(theta, (CHAINS, 3, 1))
    moved = steps_of(options, problem, network("server", 3), 1, x0=x0).x[1][:, 0]
    once = draws.update_once(problem, options, x0[:, 0], default_rng(3))
    outcomes = list(all_outcomes(problem, options, 2))
    ends = np.array([theta - 0.02 * (slope * theta - shift) for _, slope, shift in outcomes])
    cov = np.cov(ends.T, bias=True) + 0.04 * np.eye(2)
    for found in (moved, once):
        z = (found.mean(axis=0) - ends.mean(axis=0)) / np.sqrt(cov.diagonal() / CHAINS)
        assert np.abs(z).max() < LIMIT
        root = np.linalg.inv(np.linalg.cholesky(cov))
        assert np.abs(root @ np.cov(found.T) @ root.T - np.eye(2)).max() < LIMIT * np.sqrt(
            2 / CHAINS
        )


@pytest.mark.parametrize("corrects", [False, True])
def test_an_estimators_moments_are_those_of_all_mini_batches(corrects):
    problem, theta = build(shards=2, points=3), np.array([0.3, -0.7])
    points, slopes = problem.point_gradients(theta), problem.surrogate_gradients(theta)
    conducive = slopes.sum(axis=0) - 2 * slopes if corrects else np.zeros((2, 2))
    estimates = [
        [
            6 / 2 * points[s, list(rows)].sum(axis=0) + conducive[s]
            for rows in product(range(3), repeat=2)
        ]
        for s in range(2)
    ]
    mean, within, between = theory.estimator_moments(points, 2, conducive)
    np.testing.assert_allclose(mean, np.mean(estimates, axis=(0, 1)))
    np.testing.assert_allclose(mean, points.sum(axis=(0, 1)))
    np.testing.assert_allclose(within + between, np.reshape(estimates, (-1, 2)).var(axis=0))
    np.testing.assert_allclose(between, np.mean(estimates, axis=1).var(axis=0), atol=1e-20)
    assert (between.max() < 1e-20) == corrects


def test_surrogates_are_the_likelihoods_of_shards():
    problem, theta = build(), np.array([0.3, -0.7])
    slopes = problem.surrogate_gradients(theta)
    np.testing.assert_allclose(slopes, problem.point_gradients(theta).sum(axis=1))
    prior = problem.gradient(np.tile(theta, (1, 3, 1)))[0] + slopes
    np.testing.assert_allclose(prior, np.tile(theta / 3, (3, 1)))
    sizes = np.abs(build(shards=500, width=2.0).data.features.mean(axis=1)).max()
    assert 2 < sizes < 2 + 3  # means within the square, with the noise of four points


def test_slopes_of_tosses_are_those_of_their_likelihood():
    problem = coin.build(coin.Params(), 3, None, None, None)
    theta, near = np.array([0.3]), 1e-6
    heads = np.array([1, 5, 9])

    def log(at):
        return heads * np.log(at) + (10 - heads) * np.log(1 - at)

    slopes = (log(theta + near) - log(theta - near)) / (2 * near)
    np.testing.assert_allclose(problem.point_gradients(theta).sum(axis=(1, 2)), slopes, rtol=1e-8)
    x = np.full((1, 3, 1), 0.3)
    np.testing.assert_allclose(problem.gradient(x)[0, :, 0], -slopes, rtol=1e-8)
    all_rows = np.tile(np.arange(10), (1, 3, 1))
    np.testing.assert_allclose(problem.batch_gradient(x, all_rows), problem.gradient(x))
    with pytest.raises(Exception, match=r"heads: 3 shards.*give each agent"):
        coin.check(coin.Params(), 2)


def test_deviations_of_fig_1_are_those_worked_out_by_hand():
    """At theta = 1/2 a toss has the slope 2 or -2, and a shard's mean slope is -1.6, 0 or 1.6."""
    distributed = coin.build(coin.Params(), 3, None, None, None)
    _, within, between = theory.estimator_moments(distributed.point_gradients(np.array([0.5])), 5)
    np.testing.assert_allclose(within, 900 / 5 * np.mean([4 - 2.56, 4, 4 - 2.56]))
    np.testing.assert_allclose(between, 900 * 2.56 * 2 / 3)
    whole = coin.build(coin.Params(heads=(15,), tosses=30), 1, None, None, None)
    _, within, between = theory.estimator_moments(whole.point_gradients(np.array([0.5])), 5)
    np.testing.assert_allclose([within, between], [[900 / 5 * 4], [0]])
