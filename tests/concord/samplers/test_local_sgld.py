"""Local SGLD (FALD, VR-FALD) against its equations by hand, and what it sends."""

import itertools

import numpy as np
import pytest

from concord.networks.construction import network
from concord.samplers.local_sgld import LocalSGLD
from steps import CONSTANT, EXACT, Regression, Still, steps_of

STAR, LIMIT = network("star", 4), 5.0  # standard errors


@pytest.mark.parametrize("batch_size", [None, 2])
def test_variance_reduction_is_by_the_same_mini_batch_and_what_all_have(batch_size):
    """Without noise; references are renewed at first, and then in every second iteration."""
    problem, rows, turns = Regression(4, 2), [], itertools.count()
    sampler = LocalSGLD(CONSTANT, period=2, renewal=0.5, batch_size=batch_size)

    class Draws(Still):
        def random(self, size):
            if isinstance(size, int):
                return np.full(size, 0.1 if next(turns) % 2 else 0.9)
            drawn = self.rng.random(size)
            rows.append((drawn * problem.counts[:, None]).astype(int))
            return drawn

    found = steps_of(sampler, problem, STAR, rng=Draws())
    x, weights = found.x[0], STAR.matrix("metropolis")
    for k in range(5):
        if k % 2 == 0:  # at first always, and then as drawn
            reference = weights @ x
            control = weights @ problem.gradient(reference)
        for t in range(2):
            if batch_size is None:
                gradient = problem.gradient(x) - problem.gradient(reference)
            else:
                chosen = rows[2 * k + t]
                gradient = problem.batch_gradient(x, chosen)
                gradient = gradient - problem.batch_gradient(reference, chosen)
            x = x - 0.013 * (gradient + control)
        x = weights @ x
        np.testing.assert_allclose(found.x[k + 1], x, rtol=0, atol=EXACT)


def test_what_is_sent_and_computed_is_counted():
    problem, degrees = Regression(4, 2), np.array([3, 1, 1, 1])

    def taken(steps=1, chains=6, **options):
        x0 = np.ones((chains, 4, 2))
        found = steps_of(LocalSGLD(CONSTANT, **options), problem, STAR, steps, x0=x0)
        return (
            np.array(found.network.meter.broadcasts),
            found.network.meter.unicasts,
            found.gradients,
        )

    sent, copies, gradients = taken(period=5)
    assert sent.tolist() == [1] * 4 and copies.tolist() == [3, 1, 1, 1] and (gradients == 5).all()
    sent, copies, gradients = taken(period=5, renewal=1.0)
    assert (sent == 3).all() and (copies == 3 * degrees).all() and (gradients == 6).all()
    gradients = taken(period=5, renewal=1.0, batch_size=2)[2]
    assert (gradients == 10 + np.ceil(problem.counts / 2)).all()
    sent, copies, _ = taken(communication=0.5, chains=200)
    assert set(sent[:, 0]) == {0, 1} and (copies == sent[:, :1] * degrees).all()
    assert abs(sent[:, 0].mean() - 0.5) < LIMIT * 0.5 / np.sqrt(200)
    sent, _, gradients = taken(steps=40, renewal=0.25, chains=50)  # of the first one always
    renewed = gradients[:, 0] - 40
    assert (sent[:, 0] == 40 + 2 * renewed).all()
    assert abs(renewed.mean() - (1 + 39 / 4)) < LIMIT * np.sqrt(39 * 3 / 16 / 50)
