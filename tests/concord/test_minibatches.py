"""Mini-batch estimators: which rows they draw, and what they estimate."""

from types import SimpleNamespace

import numpy as np
import pytest

from concord.batch_gradients import MiniBatches
from concord.errors import ConcordError
from concord.minibatches import Batches
from concord.problem import CountedProblem
from steps import EXACT, Regression, start

ORDERS = ["with_replacement", "epochs", "whole_batches"]


def drawn(counts, batch, chains, order, steps, seed=0, pool="all"):
    """Return rows of every step, (steps, chains, agents, batch), of a problem that notes them."""
    seen = []
    problem = SimpleNamespace(agents=len(counts), counts=np.array(counts))
    problem.batch_gradient = lambda x, rows: seen.append(rows.copy())
    batches = Batches(batch_size=batch, batch_order=order, batch_pool=pool)
    estimate = MiniBatches(problem, batches, chains, np.random.default_rng(seed))
    for _ in range(steps):
        estimate.gradient(None)
    return np.array(seen)


@pytest.mark.parametrize(("count", "batch"), [(12, 4), (13, 4), (5, 5), (3, 7), (1, 2)])
def test_every_epoch_visits_each_row_once(count, batch):
    """Batches joined together are whole permutations, whatever the remainder of a division."""
    epochs = 6
    rows = drawn([count, batch], batch, 3, "epochs", -(-epochs * count // batch))
    walk = np.moveaxis(rows[:, :, 0], 1, 0).reshape(3, -1)[:, : epochs * count]
    assert (np.sort(walk.reshape(3, epochs, count), axis=2) == np.arange(count)).all()


def test_epochs_of_whole_batches_leave_the_rest_until_the_next_shuffle():
    """Of 14 and 11 rows three and two batches of 4, in which no row is twice, then new ones."""
    rows = drawn([14, 11], 4, 3, "whole_batches", 60)
    for agent, batches in enumerate((3, 2)):
        walks = np.moveaxis(rows[:, :, agent], 1, 0).reshape(3, -1, 4 * batches)
        assert (np.diff(np.sort(walks)) > 0).all()
        assert len(np.unique(walks)) == (14, 11)[agent]  # none is left out for good


def test_every_row_is_drawn_as_often_and_no_padding():
    """Frequencies of 5 and of 4 rows within five standard errors."""
    rows = drawn([5, 4], 2, 2, "with_replacement", 400)
    for agent, count in enumerate((5, 4)):
        found = np.bincount(rows[:, :, agent].ravel(), minlength=count)
        expected = found.sum() / count
        assert len(found) == count
        assert np.abs(found - expected).max() < 5 * np.sqrt(expected * (1 - 1 / count))


@pytest.mark.parametrize("order", ORDERS)
def test_all_but_the_last_is_never_the_last(order):
    rows = drawn([5, 4], 2, 2, order, 200, pool="all_but_last")
    assert rows[:, :, 0].max() == 3 and rows[:, :, 1].max() == 2


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("scale", "stands"), [("data", None), ("none", 2), ("mean", 1)])
def test_on_average_it_is_the_gradient_of_as_many_points_as_it_stands_for(scale, stands, order):
    """The prior's part is exact: (grad f - prior) n' / n + prior, within standard errors."""
    problem, chains = Regression(3, 2), 20_000
    x = np.repeat(start(problem, 1), chains, axis=0)
    batches = Batches(batch_size=2, batch_order=order, batch_scale=scale)
    assert batches.points_stood_for == stands
    found = MiniBatches(problem, batches, chains, np.random.default_rng(1)).gradient(x)
    prior, share = problem.prior_gradient(x[0]), 1 if stands is None else stands / problem.counts
    expected = (problem.gradient(x[:1])[0] - prior) * np.reshape(share, (-1, 1)) + prior
    error = found.std(axis=0) / np.sqrt(chains)
    assert (np.abs(found.mean(axis=0) - expected) < 5 * error + 1e-9).all()
    assert error.max() > 1e-4


def test_a_difference_is_of_the_same_points_and_costs_two():
    problem, chains = Regression(3, 2), 4
    x, reference = start(problem, chains), start(problem, chains, seed=5)
    two = Batches(batch_size=2)
    batches = [MiniBatches(problem, two, chains, np.random.default_rng(1)) for _ in range(2)]
    counted = CountedProblem(batches[0], chains)
    rows = (np.random.default_rng(1).random((chains, 3, 2)) * problem.counts[:, None]).astype(int)
    expected = problem.batch_gradient(x, rows) - problem.batch_gradient(reference, rows)
    np.testing.assert_allclose(counted.difference(x, reference), expected, rtol=0, atol=EXACT)
    assert counted.take() == 2
    np.testing.assert_allclose(counted.full_gradient(x), problem.gradient(x), rtol=0, atol=EXACT)
    np.testing.assert_array_equal(counted.take(), [2, 2, 2])  # of three or four points, in batches
    # Of a few agents: the points that they have in a mini-batch of all.
    few = np.array([[0], [2], [1], [2]])
    found = batches[1].gradient_of(few, x[np.arange(4)[:, None], few])
    whole = problem.batch_gradient(x, rows)[np.arange(4)[:, None], few]
    np.testing.assert_allclose(found, whole, rtol=0, atol=EXACT)


@pytest.mark.parametrize(
    ("options", "counts", "lacks", "message"),
    [
        (
            {"batch_order": "whole_batches"},
            [14, 3],
            "",
            "whole_batches of 4 points .* agent 1 has 3",
        ),
        ({"batch_pool": "all_but_last"}, [3, 1], "", "agent 1 has one point, so batch_pool"),
        ({}, [3, 2], "", "batch_size: 4 is more points than any agent has, .* 3 of agent 0; take"),
        ({"batch_scale": "none"}, [3, 3], "", "SimpleNamespace does not give its prior's gradient"),
        (
            {},
            [3, 3],
            "batch_gradient",
            "SimpleNamespace takes no mini-batches; leave the sampler's",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, counts, lacks, message):
    problem = SimpleNamespace(agents=2, dim=1, counts=np.array(counts), batch_gradient=len)
    if lacks:
        delattr(problem, lacks)
    with pytest.raises(ConcordError, match=message):
        MiniBatches(problem, Batches(batch_size=4, **options), 2, np.random.default_rng(1))
