"""What scores of several runs say together."""

import numpy as np
import pandas
import pytest

from concord_studies import scores
from concord_studies.results import Measured


def cell(*values):
    rows = [("worst", f"b2_set_{d}", value) for d, value in enumerate(values)]
    return Measured({}, pandas.DataFrame(rows, columns=["agent", "metric", "value"]))


def test_a_ratio_is_the_geometric_mean_over_data_sets_with_students_interval():
    found = scores.ratio(cell(2.0, 8.0), cell(1.0, 1.0), "b2", "worst")
    assert found.value == pytest.approx(4)
    half = 12.706 * np.log(8 / 2) / 2  # sd / sqrt(2) of two logarithms is half their distance
    assert np.log([found.lo, found.hi]) == pytest.approx(
        np.log(4) + np.array([-half, half]), rel=1e-4
    )
    assert not found.excludes_one and found.bound == ""


def test_an_exponent_is_the_mean_slope_over_data_sets():
    x = np.array([4.0, 8.0, 16.0, 32.0])
    y = np.column_stack([3 * x**1.9, 3 * x**2.1, np.where(x == 8, np.inf, x**2)])
    p, half = scores.exponent(x, y)
    assert p == pytest.approx(2) and half == pytest.approx(4.303 * 0.1 / np.sqrt(3), rel=1e-3)
    p, half = scores.exponent(x, y[:, :1])
    assert p == pytest.approx(1.9) and np.isnan(half)
    assert scores.exponent(x[:2], y[:2]) is None


def board(*tasks):
    """Return runs whose scores on two data sets each are stated task by task, by entry."""
    return [
        Measured(
            {"experiment": "e", "labels": {"task": task, "entry": entry}},
            pandas.DataFrame(
                [("worst", f"nll_set_{d}", v) for d, v in enumerate(values)],
                columns=["agent", "metric", "value"],
            ),
        )
        for task, entries in enumerate(tasks)
        for entry, values in entries.items()
    ]


def test_pairs_are_decided_by_the_share_of_data_sets_over_tasks():
    """a leads c by 1, 1, 1, 0.5: mean 0.875, half width 3.18 * 0.125; a and b win alike."""
    won = {"a": (1.0, 1.0), "b": (2.0, 0.5), "c": (2.0, 2.0)}
    half = {"a": (1.0, 1.0), "b": (1.0, 9.0), "c": (1.04, 2.0)}
    found = scores.decide_pairs(board(won, won, won, half), "nll", "worst")
    assert found[("a", "c")] == "a" and ("a", "b") not in found
    lost = {"a": (1.0, 1.0), "c": (0.5, 0.5)}  # which b has no score of
    found = scores.decide_pairs(board(won, won, won, half, lost), "nll", "worst")
    assert ("a", "c") not in found
    infinite = {"a": (np.inf, np.inf), "b": (np.inf, np.inf), "c": (1.0, 1.0)}
    found = scores.decide_pairs(board(infinite, infinite), "nll", "worst")
    assert found == {("a", "c"): "c", ("b", "c"): "c"}
    assert scores.decide_pairs(board(won), "nll", "worst") == {}
    near = {"a": (1.0, 1.0), "c": (1.04, 1.04)}  # a tie within 5 %, however often
    assert scores.decide_pairs(board(near, near, near), "nll", "worst") == {}
