"""Intervals over chains: closed forms, and how often they hold the truth."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binomtest, norm, t

from concord.laws.intervals import mean_interval
from concord_studies.intervals import excess_interval, percentiles, spread_interval, wilson


@pytest.mark.parametrize("chains", [2, 3, 8])
def test_chains_that_agree_up_to_rounding_have_a_spread_of_no_width(chains):
    values = np.full((chains, 1), 0.982)
    values[0] = np.nextafter(0.982, 1)
    for each in (values, np.full((chains, 1), 0.982)):
        sd, lo, hi = spread_interval(each)
        assert (sd < 1e-15).all() and np.isfinite([lo, hi]).all()


@pytest.mark.parametrize("chains", [10, 20, 100])
@pytest.mark.parametrize(
    ("law", "truth", "least"),
    [
        (norm(3.0, 2.0), 2.0, 0.945),
        # As skewed as accuracies near 1; Bonett's interval is approximate there.
        (beta(9, 1), math.sqrt(9 / 1100), 0.915),
    ],
    ids=["normal", "skewed"],
)
def test_intervals_of_the_spread_hold_it_about_as_often_as_they_say(chains, law, truth, least):
    """Of 4000 at least this part, within four standard errors.

    Percentiles of resampled standard deviations have 0.78, 0.86 and 0.92 of the normal ones.
    """
    values = law.rvs((chains, 4000), random_state=np.random.default_rng(2))
    sd, lo, hi = spread_interval(values)
    np.testing.assert_allclose(sd, values.std(axis=0, ddof=1))
    assert ((lo < sd) & (sd < hi)).all()
    inside = np.mean((lo <= truth) & (truth <= hi))
    assert least - 4 * math.sqrt(least * (1 - least) / 4000) < inside < 0.99


def test_interval_of_the_spread_by_hand():
    """Five chains: 1 / (2 sqrt(5 - 4)) at either end is trimmed, which leaves the median."""
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    c = 5 / (5 - norm.ppf(0.975))
    deviations = values - values.mean()
    kurtosis = 5 * ((values - 4.0) ** 4).sum() / (deviations**2).sum() ** 2
    half = t.ppf(0.975, 4) * c * math.sqrt((kurtosis - 2 / 5) / 4)
    _, lo, hi = spread_interval(values[:, None])
    center = math.log(c * values.var(ddof=1))
    np.testing.assert_allclose([lo[0], hi[0]], np.exp([(center - half) / 2, (center + half) / 2]))


def test_one_chain_says_nothing_about_the_spread_and_equal_ones_have_none():
    assert np.isnan(spread_interval(np.full((1, 2, 2), 0.9))).all()
    assert (np.array(spread_interval(np.full((5, 2), 0.5))) == 0).all()


def test_what_is_not_finite_is_known_to_be_so():
    values = np.ones((4, 3)) * np.arange(4)[:, None]
    values[1] = [1.0, np.inf, np.nan]
    with np.errstate(all="raise"):
        mean, spread = mean_interval(values), spread_interval(values)
    assert np.isfinite([end[0] for end in (*mean, *spread)]).all()
    assert [end[1] for end in mean] == [np.inf] * 3
    assert np.isnan([end[2] for end in (*mean, *spread)]).all()
    assert np.isnan([end[1] for end in spread]).all()
    assert mean_interval(values[1:2])[1].tolist()[1] == np.inf


def test_percentiles_with_infinite_values():
    values = np.array([1.0, 2.0, 3.0, np.inf, np.inf])
    assert percentiles(values, [0, 50, 60, 75, 100]).tolist() == [1, 3, np.inf, np.inf, np.inf]
    finite = np.random.default_rng(0).random(17)
    np.testing.assert_array_equal(percentiles(finite, [3, 50]), np.percentile(finite, [3, 50]))


def test_a_statistic_that_noise_makes_larger_lies_in_its_interval():
    """The range of five means of ten chains: resampled ranges exceed it nearly always."""
    rng = np.random.default_rng(3)
    inside = covered = 0
    for _ in range(200):
        chains = rng.normal(np.arange(5) / 5, 1.0, (40, 5))
        value = float(np.ptp(chains.mean(axis=0)))
        chosen = rng.integers(0, 40, (200, 40))
        lo, hi = excess_interval(value, np.ptp(chains[chosen].mean(axis=1), axis=1))
        inside += lo <= value <= hi
        covered += lo <= 0.8 <= hi
    assert inside == 200
    # 95 % of 200 with standard error 3.1; at least, for the correction errs on the wide side.
    assert covered >= 190 - 4 * 3.1
    assert excess_interval(np.inf, np.ones(3)) == (np.inf, np.inf)


def test_wilson_interval_against_scipy():
    expected = binomtest(37, 50).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson(37 / 50, 50), tuple(expected), rtol=1e-10)
