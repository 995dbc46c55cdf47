"""Mini-batch estimators: which rows they draw, and when."""

from types import SimpleNamespace

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.sampling.gradients import estimator


def drawn(counts, batch, chains, order, steps, seed=0):
    """Rows of every step, (steps, chains, agents, batch), from a problem that only notes them."""
    seen = []
    problem = SimpleNamespace(agents=len(counts), counts=np.array(counts))
    problem.batch_gradient = lambda chains, size: lambda x, rows, out: seen.append(rows.copy())
    estimate = estimator(problem, batch, chains, order)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        estimate(None, rng, None)
    return np.array(seen)


@pytest.mark.parametrize(("count", "batch"), [(12, 4), (13, 4), (5, 5), (3, 7), (1, 2)])
def test_every_epoch_visits_each_row_once(count, batch):
    """Batches joined together are whole permutations, whatever the remainder of a division."""
    epochs = 6
    rows = drawn([count], batch, 3, "epochs", -(-epochs * count // batch))
    walk = np.moveaxis(rows[:, :, 0], 1, 0).reshape(3, -1)[:, : epochs * count]
    assert (np.sort(walk.reshape(3, epochs, count), axis=2) == np.arange(count)).all()


def test_epochs_of_whole_batches_leave_the_rest_until_the_next_shuffle():
    """Of 14 and 11 rows three and two batches of 4, in which no row is twice, then new ones."""
    rows = drawn([14, 11], 4, 3, "whole_batches", 60)
    for agent, batches in enumerate((3, 2)):
        walks = np.moveaxis(rows[:, :, agent], 1, 0).reshape(3, -1, 4 * batches)
        assert (np.diff(np.sort(walks)) > 0).all()
        assert len(np.unique(walks)) == (14, 11)[agent]  # none is left out for good
    with pytest.raises(ConcordError, match=r"whole_batches of 4 points .* agent 1 has 3"):
        drawn([14, 3], 4, 1, "whole_batches", 1)


def test_agents_with_different_numbers_of_rows_keep_their_own_epochs():
    counts = [6, 7, 6]
    rows = drawn(counts, 2, 2, "epochs", 21)
    for agent, count in enumerate(counts):
        walk = np.moveaxis(rows[:, :, agent], 1, 0).reshape(2, -1)[:, : 42 // count * count]
        assert (np.sort(walk.reshape(2, -1, count), axis=2) == np.arange(count)).all()


def test_orders_differ_between_chains_agents_and_epochs():
    rows = drawn([50, 50], 50, 2, "epochs", 2)
    walks = {tuple(walk) for walk in rows.reshape(-1, 50)}
    assert len(walks) == 8


def test_with_replacement_repeats_rows_and_stays_in_range():
    rows = drawn([5, 3], 4, 2, "with_replacement", 200)
    assert rows[:, :, 0].max() == 4 and rows[:, :, 1].max() == 2 and rows.min() == 0
    assert any(len(set(batch)) < 4 for batch in rows[:, 0, 0])


def test_every_row_is_as_likely_in_a_batch_that_joins_two_epochs():
    """A batch of 3 from 4 rows: each row 3/4 of the time, within 4.5 standard errors."""
    chains, steps = 2000, 5
    rows = drawn([4], 3, chains, "epochs", steps)
    for step in rows[:, :, 0]:
        expected = chains * 3 / 4
        counts = np.bincount(step.ravel(), minlength=4)
        assert np.abs(counts - expected).max() < 4.5 * np.sqrt(chains * 3 / 4 * 1 / 4)
