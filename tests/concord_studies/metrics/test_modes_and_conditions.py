"""Metrics of parayil2020 on traces whose answer is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from concord.errors import ConcordError
from concord.laws.quadrature import from_log_density
from concord_studies.metrics import condition1, posterior_draws, posterior_modes
from measurements import array_measurement, intervals, two_modes


def test_shares_of_modes_and_their_places():
    """Chains that spend known parts of their draws in a mode."""
    draw = np.arange(0, 101, 10)
    x = np.zeros((2, 11, 2, 2))
    x[..., 1] = 1.0
    x[0, 7:, 0, 1] = -1.0  # 4 of the 10 draws beyond burn-in, one crossing
    x[1, 1::2, 0, 1] = -1.0  # 5 of 10, nine crossings
    found = intervals(
        posterior_modes.rows(
            array_measurement({"x": x}, draw, SimpleNamespace(reference=two_modes()), (0, 3))
        )
    )
    assert found[100, "0", "modes_share"][0] == pytest.approx(0.45)
    assert found[100, "0", "modes_visited"][0] == 1 and found[100, "3", "modes_visited"][0] == 0
    assert found[100, "0", "modes_crossings"][0] == 5 and found[100, "3", "modes_share"][0] == 0
    assert found[100, "network", "modes_share_exact"][0] == pytest.approx(0.25, abs=1e-3)
    places = [found[100, "network", f"mode_{s}_{d}"][0] for s in ("positive", "negative")
              for d in (0, 1)]  # fmt: skip
    assert places == pytest.approx([0, 1, 1, -1], abs=0.05)  # half a cell is 0.02


def test_draws_for_pictures_are_the_first_chains():
    draw = np.arange(0, 21)
    x = np.random.default_rng(5).standard_normal((2, 21, 2, 2))
    found = intervals(posterior_draws.rows(array_measurement({"x": x}, draw, agents=(1, 4))))
    assert found[20, "4", "draw_1"][0] == x[0, 20, 1, 1]
    assert min(k for k, _, _ in found) == 2 and len(found) == 19 * 2 * 2
    with pytest.raises(ConcordError, match="two parameters, not 3"):
        list(posterior_draws.rows(array_measurement({"x": np.zeros((1, 21, 2, 3))}, draw)))


def test_the_papers_own_parameters_break_its_conditions():
    found = intervals(condition1.rows(array_measurement({}, np.array([0, 10]))))
    holds = {name.removeprefix("condition1."): row[0] for (_, _, name), row in found.items()}
    assert holds["delta_2 - delta_1 > 1/2"] == 0
    assert holds["delta_2 < 1"] == 1
    assert holds["b sigma_max < 1"] == 0 and holds["beta_0 sigma_max < 1"] == 0
    assert holds["b sigma_max < 1.value"] == pytest.approx(0.48 * (2 - 2 * np.cos(0.8 * np.pi)))
    assert holds["beta_0 sigma_max < 1.value"] == pytest.approx(1.3233, abs=1e-3)
    assert holds["beta_0 sigma_max < 2"] == 1
    kept = condition1.conditions_of(0.7, 0.1, 0.2, 0.2, 4.0)
    assert all(condition.holds for condition in kept)


def test_the_exact_share_divides_the_cell_that_zero_cuts():
    """Cells of 0.4 of N(0.1, 1) in the second parameter: 0 lies 1/4 to 1/2 within one."""
    law = from_log_density(
        lambda a, b: -0.5 * (a**2 + (b - 0.1) ** 2), ((-8.1, 8.1), (-8.05, 8.1)), 40
    )
    x = np.zeros((2, 11, 1, 2))
    rows = posterior_modes.rows(
        array_measurement({"x": x}, np.arange(0, 101, 10), SimpleNamespace(reference=law))
    )
    share = intervals(rows)[100, "network", "modes_share_exact"][0]
    # Linear within a cell: h^2 max|f'| / 8 off at most; a whole cell is 0.08 to 0.16 of the mass.
    assert share == pytest.approx(norm.cdf(-0.1), abs=law.steps[1] ** 2 * 0.242 / 8)
    whole = law.mass[:, law.centers[1] < 0].sum()
    assert abs(whole - norm.cdf(-0.1)) > 2 * law.steps[1] ** 2 * 0.242 / 8
