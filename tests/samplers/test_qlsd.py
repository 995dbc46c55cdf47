"""QLSD: Langevin where nothing is lost, unbiased where something is, and what it sends."""

import numpy as np
import pytest

import concord
from concord.networks import topology
from concord.networks.compressions import Compression
from concord.samplers import c_ula, qlsd
from concord.sampling.schedules import Schedule
from concord.testing.variants import Still
from variants import problem

SERVER = topology.build("server", 4)
WHOLE = {"kind": "top_k", "share": 1.0}
QSGD = {"kind": "qsgd", "bits": 3}
STEP = 0.02


class Rounding(Still):
    """No normal noise; other numbers are random."""

    def __init__(self, chains, seed=1):
        super().__init__(chains)
        self.rng = np.random.default_rng(seed)

    def random(self, out, dtype=float):
        return self.rng.random(out=out, dtype=dtype)


def advance(steps, chains=3, **options):
    """States of a run without normal noise from theta = (1, -2)."""
    prob = problem(4, 2)
    params = qlsd.Params(Schedule(STEP), **options)
    x0, rng = np.tile([1.0, -2.0], (chains, 4, 1)), Rounding(chains)
    state, step = qlsd.init(prob, SERVER, params, x0, rng)
    found = []
    for k in range(steps):
        state, info = step(state, k, rng)
        found.append((state.x.copy(), state.m.copy(), info.gradients.copy(), info.unicasts.copy()))
    return prob, found


@pytest.mark.parametrize("memory", [0.0, 0.5])
def test_without_compression_it_is_langevin_on_the_sum(memory):
    prob, found = advance(5, compression=WHOLE, memory_rate=memory)
    theta = np.array([1.0, -2.0])
    for x, *_ in found:
        theta = theta - STEP * (prob.gram.sum(axis=0) @ theta - prob.shift.sum(axis=0))
        np.testing.assert_allclose(x, np.broadcast_to(theta, x.shape), rtol=1e-12)


def test_its_noise_is_that_of_langevin():
    """One agent: the law of centralized ULA."""
    prob, chains = problem(1, 2), 20_000
    law = concord.law("c_ula", prob, iterations=15, step_size=STEP, record={"at": [15]})
    trace = concord.sample(
        "qlsd", prob, compression=WHOLE, step_size=STEP, iterations=15, chains=chains,
        record={"at": [15]},
    )  # fmt: skip
    assert c_ula.affine is not None
    x = trace["x"][:, 0, 0]
    variance = law.cov[0, 0].diagonal()
    assert np.abs((x.mean(axis=0) - law.mean[0, 0]) / np.sqrt(variance / chains)).max() < 4
    assert np.abs(x.var(axis=0) / variance - 1).max() < 4 * np.sqrt(2 / chains)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": QSGD},
        {"compression": {"kind": "rand_k", "share": 0.5}, "memory_rate": 0.3},
        {"compression": QSGD, "memory_rate": 0.3, "participants": 2},
        {"compression": QSGD, "quantized": "twice", "memory_rate": 0.3},
        {"compression": WHOLE, "participants": 1},
    ],
)
def test_on_average_the_drift_is_that_of_the_posterior(options):
    chains, steps = 20_000, 3
    prob, found = advance(steps, chains, **options)
    theta = np.array([1.0, -2.0])
    for x, *_ in found:
        theta = theta - STEP * (prob.gram.sum(axis=0) @ theta - prob.shift.sum(axis=0))
        assert np.ptp(x, axis=1).max() == 0
        error = x[:, 0].mean(axis=0) - theta
        assert np.abs(error / (x[:, 0].std(axis=0) / np.sqrt(chains))).max() < 4
    assert found[0][0][:, 0].std(axis=0).min() > 1e-3


def test_a_memory_follows_the_gradients_and_makes_the_drift_vary_less():
    """At the mode of the posterior the agents' gradients are not zero, what is left of them is."""
    spread = {}
    for rate in (0.0, 0.2):
        prob, found = advance(300, 200, compression=QSGD, memory_rate=rate)
        spread[rate] = found[-1][0][:, 0].std(axis=0)
    assert (spread[0.2] < 0.05 * spread[0.0]).all()
    x, m = found[-1][:2]
    gradients = np.einsum("aij,caj->cai", prob.gram, x) - prob.shift
    np.testing.assert_allclose(m, gradients, atol=0.02 * np.abs(gradients).max())
    assert not advance(1, compression=QSGD)[1][0][1].any()


def test_control_variates_of_a_renewed_point_leave_less_than_plain_mini_batches():
    """The drift is the posterior's on average, exactly after a renewal, and varies less later."""
    rng = np.random.default_rng(1)
    problem = concord.problems.linear_regression(
        rng.standard_normal((40, 2)), rng.standard_normal(40), agents=4
    )
    x0, found = np.tile([1.0, -2.0], (4000, 4, 1)), {}
    for renewal in (None, 3):
        params = qlsd.Params(
            Schedule(STEP), compression=Compression("top_k", share=1.0), batch_size=2,
            renewal=renewal,
        )  # fmt: skip
        rng = Rounding(len(x0))
        rng.integers = rng.rng.integers
        state, step = qlsd.init(problem, SERVER, params, x0, rng)
        theta = np.array([1.0, -2.0])
        for k in range(5):
            state, info = step(state, k, rng)
            theta = theta - STEP * (problem.gram.sum(axis=0) @ theta - problem.shift.sum(axis=0))
            ends = state.x[:, 0]
            assert np.abs((ends.mean(axis=0) - theta) / (ends.std(axis=0) / 63 + 1e-9)).max() < 4
            assert (info.gradients == (1 if renewal is None else 7 if k % 3 == 0 else 2)).all()
            found.setdefault(renewal, []).append(ends.std(axis=0).max())
    assert found[3][0] < 1e-12
    assert found[3][1] < found[None][1] / 2


def test_who_takes_part_pays():
    _, found = advance(40, 50, compression=QSGD, participants=3)
    for _, _, gradients, unicasts in found:
        assert (gradients.sum(axis=1) == 3).all()
        assert np.array_equal(unicasts, 2 * gradients)
    shares = np.mean([gradients for _, _, gradients, _ in found], axis=(0, 1))
    assert np.abs(shares - 0.75).max() < 4 * np.sqrt(0.75 * 0.25 / 2000)


def test_bytes_are_those_of_compressed_gradients_and_of_theta():
    """A float and 3 bits for each of 12 numbers up, 12 floats down."""
    params = qlsd.Params(Schedule(STEP), compression=Compression("qsgd", bits=3))
    assert qlsd.size(params, 12, 8) == (8 + np.ceil(3 * 12 / 8) + 12 * 8) / 2


def test_differences_to_the_gradients_at_the_mode_vanish_there():
    """Without noise the mode is kept exactly, which whole gradients, rounded, do not."""
    prob = problem(4, 3)
    x0 = np.tile(prob.posterior.mean, (5, 4, 1))
    for start, kept in (("mode", True), ("zero", False)):
        params = qlsd.Params(
            Schedule(STEP), compression=Compression("qsgd", bits=3), memory_start=start
        )
        rng = Rounding(5)
        state, step = qlsd.init(prob, SERVER, params, x0, rng)
        state = step(state, 0, rng)[0]
        assert np.allclose(state.x, x0, atol=1e-12) == kept
