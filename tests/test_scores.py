"""What scores of several runs say together."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from concord import scores
from concord.results import Measured


def cell(*values, floor=None, applicable=1.0):
    names = ["b2"] if len(values) == 1 else [f"b2_set_{d}" for d in range(len(values))]
    rows = [("network", "applicable", applicable)]
    rows += [("worst", name, value) for name, value in zip(names, values, strict=True)]
    rows += [
        ("worst", name.replace("b2", "floor.b2"), floor) for name in names if floor is not None
    ]
    return Measured({}, pandas.DataFrame(rows, columns=["agent", "metric", "value"]))


def test_a_ratio_is_the_geometric_mean_over_data_sets_with_students_interval():
    found = scores.ratio(cell(2.0, 8.0), cell(1.0, 1.0), "b2", "worst")
    assert found.value == pytest.approx(4)
    half = 12.706 * np.log(8 / 2) / 2  # sd / sqrt(2) of two logarithms is half their distance
    assert np.log([found.lo, found.hi]) == pytest.approx(
        np.log(4) + np.array([-half, half]), rel=1e-4
    )
    assert not found.sure and found.bound == ""


@pytest.mark.parametrize(
    ("one", "base", "bound", "sure"),
    [
        (cell(0.5, floor=0.1), cell(1.0), "", True),
        (cell(0.5, floor=0.5), cell(1.0), "<", True),  # at most a half
        (cell(2.0, floor=2.0), cell(1.0), "<", False),
        (cell(2.0), cell(1.0, floor=1.0), ">", True),
        (cell(0.5), cell(1.0, floor=1.0), ">", False),
    ],
)
def test_a_score_at_its_floor_makes_a_bound(one, base, bound, sure):
    found = scores.ratio(one, base, "b2", "worst")
    assert (found.bound, found.sure) == (bound, sure)


def test_what_there_is_no_ratio_of():
    assert scores.ratio(None, cell(1.0), "b2", "worst") == "not run"
    assert scores.ratio(cell(1.0), cell(applicable=0.0), "b2", "worst") == "not applicable"
    assert scores.ratio(cell(1.0), cell(np.inf), "b2", "worst") is None
    assert scores.ratio(cell(np.inf), cell(1.0), "b2", "worst").value == np.inf


def test_an_exponent_is_the_mean_slope_over_data_sets():
    x = np.array([4.0, 8.0, 16.0, 32.0])
    y = np.column_stack([3 * x**1.9, 3 * x**2.1, np.where(x == 8, np.inf, x**2)])
    p, half = scores.exponent(x, y)
    assert p == pytest.approx(2) and half == pytest.approx(4.303 * 0.1 / np.sqrt(3), rel=1e-3)
    p, half = scores.exponent(x, y[:, :1])
    assert p == pytest.approx(1.9) and np.isnan(half)
    assert scores.exponent(x[:2], y[:2]) is None
