"""Noise of channels, and what hides what agents send: their laws, and epsilon."""

from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import concord
from concord import metrics
from concord.laws import paths
from concord.laws.arrivals import Losses
from concord.metrics import Measurement, privacy
from concord.networks import topology
from concord.networks.channel import connect
from concord.networks.edges import Edges
from concord.networks.moments import chances
from concord.networks.network import drawing
from concord.networks.privacy import Privacy, epsilon, sigma
from concord.samplers import de_sgld

LIMIT = 4.5  # standard errors


def problem(agents=5, dim=2):
    b = np.random.default_rng(0).standard_normal((agents, dim))
    return concord.problems.quadratic(H=[np.eye(dim) / agents] * agents, b=b)


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
    out = np.empty_like(x)
    own.hider(x.shape, x.dtype)(x, np.random.default_rng(1), out)
    error = 0.5 / np.sqrt(len(x))
    assert (abs(out.mean(axis=0) - [[0.6, 0.8], [0.3, 0.4], [0, 0]]) < LIMIT * error).all()
    assert abs(out.std(axis=0) - 0.5).max() < LIMIT * error
    assert x[0, 0, 0] == 3.0


def run(sampler="de_sgld", iterations=10, dim=2, chains=4, **happens):
    options = {"d_ula": {"fusion": 0.2}, "de_sghmc": {"friction": 1.0}}.get(sampler, {})
    return concord.sample(
        sampler,
        problem(dim=dim),
        concord.network("ring", 5, **happens),
        step_size=0.02,
        iterations=iterations,
        chains=chains,
        progress=False,
        **options,
    )


def test_epsilon_grows_with_what_is_sent():
    hidden = {"clip": 2.0, "sigma": 50.0, "delta": 1e-6}
    network = concord.network("ring", 5, privacy=hidden)
    trace = run(privacy=hidden)
    m = Measurement(trace, problem(), network, None, None, None, 10, None)
    rows = {(row.agent, row.iteration): row for row in privacy.rows(m)}
    assert rows["3", 0].value == 0
    assert rows["3", 10].value == pytest.approx(epsilon(2 * 2.0 * np.sqrt(10) / 50.0, 1e-6))
    assert rows["network", 10].value == rows["3", 10].value and not rows["3", 10].chance
    open_to_all = Measurement(trace, problem(), topology.build("ring", 5), *[None] * 3, 10, None)
    with pytest.raises(concord.ConcordError, match="privacy needs a network with privacy"):
        metrics.measure(["privacy"], open_to_all)


@pytest.mark.parametrize("sampler", ["de_sgld", "d_ula", "de_sghmc"])
def test_as_good_as_no_noise_changes_nothing(sampler):
    still = run(sampler)["x"]
    for happens in ({"noise": 1e-12}, {"privacy": {"clip": 1e6, "sigma": 1e-12}}):
        np.testing.assert_allclose(run(sampler, **happens)["x"], still, atol=1e-9)


def test_neighbors_hear_the_same_hidden_vector_and_noise_of_their_own():
    """Of agent 0's vector, on a star: what the others hear differs by the channel's noise alone."""
    x = np.ones((3, 4, 2))
    for happens, alike in (
        ({"privacy": {"clip": 9.0, "sigma": 1.0}}, True),
        ({"noise": 1.0}, False),
    ):
        network = drawing(concord.network("star", 4, **happens), np.random.default_rng(1))
        channel = connect(network, x)
        mix = partial(channel.mixer(network.metropolis(), "simultaneous"), plus=0 * x)
        heard, _ = channel.through(lambda s, k, r, mix=mix: (mix(s, out=0 * x), None))(x, 0, None)
        assert (abs(heard[:, 1] - heard[:, 2]).max() < 1e-12) == alike
        assert abs(heard - 1).max() > 0.05


@pytest.mark.parametrize("policy", ["keep_own_weight", "reuse_last", "sender_keeps"])
def test_the_channels_noise_in_the_exact_law_of_a_step(policy):
    r"""After a step from 0 of which a share p is lost: 2 eta + (1 - p) s^2 sum_j W_ij^2.

    Over neighbors j; nothing that is lost brings noise to anybody.
    """
    loss = {"kind": "bernoulli", "rate": 0.25, "direction": "one_way"}
    network = concord.network("star", 4, noise=0.7, loss=loss, on_loss=policy)
    update = de_sgld.affine(problem(4), network, de_sgld.Params(step_size=0.02))
    ends = Edges(network).receivers, Edges(network).senders
    losses = Losses(chances(network), ends, policy, 0.49)
    law = paths.lossy([update], losses, [(np.zeros(8), np.zeros((8, 8)))], 4, 2).law([1])
    weights = network.metropolis().dense()
    heard = (weights - np.diag(weights.diagonal())) ** 2
    expected = (0.04 + 0.75 * 0.49 * heard.sum(axis=1))[:, None, None] * np.eye(2)
    np.testing.assert_allclose(law.cov[0], expected, atol=1e-14)


@pytest.mark.parametrize("policy", ["keep_own_weight", "reuse_last", "skip", "sender_keeps"])
@pytest.mark.parametrize("sampler", ["de_sgld", "d_ula", "de_sghmc", "diging_sgld"])
def test_chains_have_the_moments_with_noise(sampler, policy):
    """Under losses too; means and products of coordinates within standard errors."""
    chains, k = 6000, 4
    loss = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
    happens = {"noise": 1.5, "loss": loss, "on_loss": policy}
    draws = run(sampler, iterations=k, dim=1, chains=chains, **happens)
    options = {"d_ula": {"fusion": 0.2}, "de_sghmc": {"friction": 1.0}}.get(sampler, {})
    network = concord.network("ring", 5, **happens)
    law = concord.law(sampler, problem(dim=1), network, step_size=0.02, iterations=k, **options)
    x = np.concatenate([draws["x"][:, k, :, 0], draws["x_average"][:, k]], axis=1)
    mean = np.append(law.mean[-1, :, 0], law.average_mean[-1])
    var = np.append(law.cov[-1, :, 0, 0], law.average_cov[-1])
    for found, expected in ((x - mean, 0.0), ((x - mean) ** 2, var)):
        error = found.std(axis=0) / np.sqrt(chains)
        assert (abs(found.mean(axis=0) - expected) < LIMIT * error).all()
    still = concord.network("ring", 5, loss=loss, on_loss=policy)
    less = concord.law(sampler, problem(dim=1), still, step_size=0.02, iterations=k, **options)
    assert (less.cov[-1, :, 0, 0] < 0.9 * var[:5]).all()  # the noise is seen


def test_there_is_no_law_of_what_is_hidden_or_heard_late():
    free = {"barrier": False, "compute": {"seconds": 1.0}, "on_loss": "reuse_last"}
    for happens in ({"privacy": {"clip": 1.0, "sigma": 1.0}}, free):
        network = concord.network("ring", 5, **happens)
        with pytest.raises(concord.ConcordError, match="has no exact law"):
            concord.law("de_sgld", problem(), network, step_size=0.02, iterations=3)
