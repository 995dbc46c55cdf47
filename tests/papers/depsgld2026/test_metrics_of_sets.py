"""Metrics of samplers in sets on traces whose answer is known."""

import numpy as np
import pytest

import concord
import everything
from concord import streams
from concord.errors import ConcordError
from concord.samplers.de_psgld import DEPSGLD, Box
from concord.sampling.partition import Partition
from concord.sampling.schedules import Schedule
from measurements import Positions, last_rows

average_accuracy = everything.kind("metrics", "average_accuracy")
chains_w2 = everything.kind("metrics", "chains_w2")
constraint = everything.kind("metrics", "constraint")
polynomial = everything.kind("problems", "polynomial")
EQUAL = Partition.parse({"kind": "equal"}, "partition")
BOX = Box(lower=-1.0, upper=1.0)


def stream(what):
    return streams.generator(3, what)


@pytest.fixture(scope="module")
def flat():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polynomial, "POTENTIAL", np.zeros(1))
        yield polynomial.build(polynomial.Params(), 2, EQUAL, stream, None)


def test_quantiles_have_no_distance_and_a_shift_is_the_distance(flat):
    quantiles = flat.reference.quantiles((np.arange(100) + 0.5) / 100)
    x = np.stack([quantiles, quantiles + 0.25], axis=1)[:, None]  # two agents
    rows = last_rows(chains_w2, Positions(np.random.default_rng(0).permutation(x)), problem=flat)
    assert rows["chains_w2", "0"].value == pytest.approx(0, abs=1e-9)
    assert rows["chains_w2", "1"].value == pytest.approx(0.25)
    row = rows["chains_w2", "1"]
    assert 0.05 < row.lo < 0.25 < row.hi < 0.4
    assert 0.03 < rows["chains_w2_floor", "network"].value < 0.09


def test_draws_outside_are_counted_and_measured(flat):
    sampler = DEPSGLD(Schedule(0.1), BOX, 0.01)
    x = np.array([0.5, 1.5, -3.0, 0.0])[:, None, None, None] * [[[1.0], [0.0]]]
    rows = last_rows(constraint, Positions(x), problem=flat, sampler=sampler)
    assert rows["outside_share", "0"].value == 0.5
    assert rows["outside_distance", "0"].value == pytest.approx((0.5 + 2.0) / 4)
    assert rows["outside_share", "1"].value == 0
    assert rows["outside_share", "average"].value == 0.25
    assert 0 < rows["outside_share", "1"].hi < 0.6  # Wilson's, of four


def test_the_envelope_of_a_flat_density_is_known(flat):
    """It has half-normal tails: W2 by quantiles of (1 + tails), by hand on a grid."""
    sampler = DEPSGLD(Schedule(0.1), BOX, 0.01)
    rows = last_rows(constraint, Positions(np.zeros((3, 1, 2, 1))), problem=flat, sampler=sampler)
    root = np.sqrt(0.01)
    tail = root * np.sqrt(np.pi / 2)  # mass of each, where the interval has 2
    u = (np.arange(200_000) + 0.5) / 200_000
    from scipy.special import ndtri

    at = u * (2 + 2 * tail)
    low = at < tail
    high = at > 2 + tail
    x = at - tail - 1
    x[low] = -1 + root * ndtri(0.5 * at[low] / tail)
    x[high] = 1 - root * ndtri(0.5 * (2 + 2 * tail - at[high]) / tail)
    wanted = np.sqrt(((x - (2 * u - 1)) ** 2).mean())
    assert rows["envelope_w2", "network"].value == pytest.approx(wanted, rel=2e-3)


def test_the_average_predicts_for_itself():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]])
    problem = concord.problems.logistic_regression(X, [1, 0, 1, 0], agents=2)
    x = np.array([[[[3.0, 1.0], [1.0, -3.0]]]])  # the average is (2, -1)
    rows = last_rows(average_accuracy, Positions(np.repeat(x, 3, axis=0)), problem=problem)
    assert rows["accuracy_mean", "average"].value == 1.0
    trace = Positions(x)
    del trace["x_average"]
    with pytest.raises(ConcordError, match=r"record\.average"):
        last_rows(average_accuracy, trace, problem=problem)
