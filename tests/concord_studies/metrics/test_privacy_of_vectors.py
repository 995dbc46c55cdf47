"""What hides what agents send: its law, and epsilon."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from concord.networks.construction import network
from concord.networks.privacy import Privacy
from concord.samplers.d_ula import DULA
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord_studies.metrics.epsilon import epsilon, sigma
from steps import Regression, chain

LIMIT = 4.5  # standard errors


@pytest.mark.parametrize(("mu", "delta"), [(0.1, 1e-5), (1.0, 1e-5), (1.0, 0.1), (6.0, 1e-8)])
def test_epsilon_of_one_release_is_where_its_densities_say(mu, delta):
    """Delta is the mass by which one density exceeds e^epsilon times the other."""
    found = epsilon(mu, delta)

    def excess(x):
        return max(norm.pdf(x, mu) - np.exp(found) * norm.pdf(x), 0.0)

    crossing = found / mu + mu / 2  # where the densities' ratio is e^epsilon
    assert quad(excess, crossing, crossing + 12, epsabs=1e-14)[0] == pytest.approx(delta, rel=1e-5)
    assert found <= mu**2 / 2 + mu * np.sqrt(2 * np.log(1 / delta))  # concentrated privacy


def test_little_noise_hides_little_and_none_is_needed_where_delta_allows_all():
    assert epsilon(0.0, 1e-5) == 0.0 and epsilon(0.01, 0.3) == 0.0
    found = [epsilon(mu, 1e-5) for mu in (0.1, 1.0, 10.0, 100.0)]
    assert (np.diff(found) > 0).all() and 5000 < found[-1] < 6000


@pytest.mark.parametrize("wanted", [0.01, 1.0, 10.0, 100.0])
def test_sigma_is_the_noise_of_an_epsilon(wanted):
    needed = sigma(wanted, 1e-5, clip=2.0, releases=600)
    assert epsilon(2 * 2.0 * np.sqrt(600) / needed, 1e-5) == pytest.approx(wanted, rel=1e-6)


def test_what_is_sent_is_shortened_and_hidden():
    own = Privacy(clip=1.0, sigma=0.5)
    x = np.broadcast_to([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], (40_000, 3, 2)).copy()
    out = own.hide(x, np.random.default_rng(1))
    error = 0.5 / np.sqrt(len(x))
    assert (abs(out.mean(axis=0) - [[0.6, 0.8], [0.3, 0.4], [0, 0]]) < LIMIT * error).all()
    assert abs(out.std(axis=0) - 0.5).max() < LIMIT * error
    assert x[0, 0, 0] == 3.0


@pytest.mark.parametrize("sampler", [DESGLD(0.02), DULA(0.02, 0.2), DESGHMC(0.02, 1.0)])
def test_as_good_as_no_noise_changes_nothing(sampler):
    problem = Regression(5, 2)
    still = chain(sampler, problem, network("ring", 5))
    for happens in ({"noise": 1e-12}, {"privacy": {"clip": 1e6, "sigma": 1e-12}}):
        found = chain(sampler, problem, network("ring", 5, **happens))
        np.testing.assert_allclose(found, still, atol=1e-9)
