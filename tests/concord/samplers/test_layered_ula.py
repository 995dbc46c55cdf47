"""Layered ULA: its quantizer against one written forwards, its law, and what it counts."""

import numpy as np
import pytest
from scipy import stats

import concord
from concord.networks.construction import network
from concord.samplers.layered_ula import LayeredULA, count_bits, find_layer
from concord.sampling.schedules import Schedule
from steps import CONSTANT, Regression, steps_of

SERVER, CHAINS, SERVER_STEP = network("server", 4), 20_000, 0.02
LIKELY = 1e-4  # of a test's P value: below it something is wrong


def quantize(x, sd, rng):
    """Return the integers and the decoded numbers of a layered quantizer with its own dither."""
    left, right = find_layer(sd * rng.standard_normal(x.shape), rng.random(x.shape), sd)
    width, dither = right - left, rng.random(x.shape)
    integers = np.ceil(x / width - dither)
    return integers, (integers + dither) * width + left


def test_the_error_of_a_layered_quantizer_is_normal_whatever_is_quantized():
    rng, sd = np.random.default_rng(1), 0.7
    x = 3 * rng.standard_normal(CHAINS)
    _, decoded = quantize(x, sd, rng)
    error = decoded - x
    assert stats.kstest(error / sd, "norm").pvalue > LIKELY
    assert abs(np.corrcoef(error, x)[0, 1]) < 5 / np.sqrt(CHAINS)
    assert abs(np.corrcoef(np.abs(error), np.abs(x))[0, 1]) < 5 / np.sqrt(CHAINS)


@pytest.mark.parametrize("x", [0.3, 5.0])
def test_integers_take_as_many_bits_as_those_of_the_quantizer(x):
    rng, sd, numbers = np.random.default_rng(2), 0.5, np.full(CHAINS, x)
    integers, _ = quantize(numbers, sd, rng)
    zigzag = np.where(integers > 0, 2 * integers, 1 - 2 * integers).astype(int)
    expected = np.array([len(2 * f"{number:b}") - 1 for number in zigzag])
    bits = count_bits(numbers, sd * rng.standard_normal(CHAINS), rng.random(CHAINS), sd)
    spread = np.sqrt((bits.var() + expected.var()) / CHAINS)
    assert abs(bits.mean() - expected.mean()) < 5 * spread


def test_layers_are_no_narrower_than_those_of_which_the_levels_are_counted():
    """A level of s - 2 of the largest coordinate is the least width of a layer."""
    rng = np.random.default_rng(3)
    sampler = LayeredULA(step_size=CONSTANT, levels=6)
    gradient = np.array([[[2.0, -8.0]]])
    sd = sampler.error_sd(gradient, 0.1)
    left, right = find_layer(
        sd * rng.standard_normal((CHAINS, 1, 2)), rng.random((CHAINS, 1, 2)), sd
    )
    width = right - left
    assert 2.0 <= width.min() < 2.001  # 8 / (6 - 2)


@pytest.mark.parametrize("decaying", [False, True])
def test_its_law_is_that_of_langevin_steps_along_the_whole_gradient(decaying):
    problem = Regression(4, 2)
    given = {"kind": "power", "a": 0.02, "b": 2.0, "exponent": 0.7} if decaying else SERVER_STEP
    start = {"kind": "normal", "sd": 0.5}
    law = concord.law("layered_ula", problem, SERVER, step_size=given, iterations=30, initial=start)
    hessian, shift = problem.gram.sum(axis=0), problem.shift.sum(axis=0)
    mean, cov = law.mean[0, 0], law.cov[0, 0]
    for k in range(30):
        gamma = 0.02 / (2 + k) ** 0.7 if decaying else SERVER_STEP
        move = np.eye(2) - gamma * hessian
        mean, cov = move @ mean + gamma * shift, move @ cov @ move.T + 2 * gamma * np.eye(2)
    np.testing.assert_allclose(law.mean[-1], np.tile(mean, (4, 1)), rtol=1e-10)
    np.testing.assert_allclose(law.cov[-1], np.tile(cov, (4, 1, 1)), rtol=1e-10)


def test_with_levels_a_step_is_normal_with_the_variance_of_a_langevin_step():
    """The server adds what the errors, which are as large as the gradients, leave."""
    problem = Regression(4, 2)
    theta = np.tile([1.0, -2.0], (CHAINS, 4, 1))
    sampler = LayeredULA(step_size=Schedule(SERVER_STEP), levels=4)
    gradient = problem.gradient(theta[:1])
    share = (sampler.error_sd(gradient, SERVER_STEP) ** 2).sum() * SERVER_STEP / 2
    assert 0.05 < share < 0.95  # so that both noises matter
    moved = steps_of(sampler, problem, SERVER, 1, x0=theta).x[1][:, 0]
    drift = theta[0, 0] - SERVER_STEP * gradient[0].sum(axis=0)
    for number in ((moved - drift) / np.sqrt(2 * SERVER_STEP)).T:
        assert stats.kstest(number, "norm").pvalue > LIKELY


@pytest.mark.parametrize(("levels", "scale"), [(None, 0), (16, 8)])
def test_a_message_is_as_long_as_its_integers(levels, scale):
    """A gradient of zeros is rounded to zeros, whose codes have one bit."""
    problem = Regression(4, 2)
    sampler = LayeredULA(step_size=Schedule(SERVER_STEP), levels=levels)
    problem.gradient = np.zeros_like
    found = steps_of(sampler, problem, SERVER, 1, x0=np.zeros((5, 4, 2)))
    each = found.network.meter.unicast_bytes / found.network.meter.unicasts
    np.testing.assert_allclose(8 * (2 * each - 16 - scale), np.full((5, 4), 2.0), atol=1e-9)
    assert found.gradients.tolist() == [1] * 4


def test_steps_are_not_compiled_since_messages_differ_in_length():
    pytest.importorskip("numba")
    trace = concord.sample(
        "layered_ula", Regression(4, 2), SERVER, step_size=0.02, iterations=2000, chains=3
    )
    assert trace.attributes["steps"] == "plain"
