"""The formulas of Figure 1 of fald2023."""

import numpy as np
import pytest

import everything

theory = everything.shared("fald2023", "theory")


@pytest.mark.parametrize("drift", [1.0, 101.0])
def test_the_fewest_communications_meet_the_tolerance_and_no_fewer_do(drift):
    tolerance = 0.03

    def bound(time, rho):
        return theory.START * np.exp(-time / 8) + drift / rho**2

    total, time, between = theory.fewest_communications(tolerance, drift)
    assert bound(time, 1 / between) == pytest.approx(tolerance**2, rel=1e-6)
    assert total == pytest.approx(time / between)
    times = np.linspace(30, 200, 20000)
    left = tolerance**2 - theory.START * np.exp(-times / 8)
    with np.errstate(invalid="ignore"):
        others = times * np.sqrt(drift / left)
    assert np.nanmin(others) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize(("variance", "error"), [(10.0, 2.0), (0.0, 12.0)])
def test_the_fewest_iterations_meet_the_tolerance_and_no_fewer_do(variance, error):
    tolerance = 0.03
    count, time, step = theory.fewest_iterations(tolerance, variance, error)
    left = theory.START * np.exp(-time / 8) + variance * step + error * step**2
    assert left == pytest.approx(tolerance**2, rel=1e-6)
    assert count == pytest.approx(time / step)
    steps = step * np.geomspace(0.1, 2, 20000)
    rest = tolerance**2 - variance * steps - error * steps**2
    others = 8 / steps[rest > 0] * np.log(theory.START / rest[rest > 0])
    assert others.min() == pytest.approx(count, rel=1e-5)


def test_the_ends_of_figure_1_are_met():
    """The left panels end at 1e5 and 1e4 communications, and 1e7 and 3e4 iterations; time at 90."""
    fald, vr = (theory.fewest_communications(0.01, drift) for drift in (101.0, 1.0))
    assert fald[0] == pytest.approx(1e5, rel=0.05)
    assert vr[0] == pytest.approx(1e4, rel=0.05)
    assert fald[1] == pytest.approx(90, rel=0.03)
    assert theory.fewest_iterations(0.01, 10.0, 2.0)[0] == pytest.approx(1e7, rel=0.05)
