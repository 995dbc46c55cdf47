"""Laws of the initial positions; that draws have their moments, the contract of kinds says."""

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.options import build
from concord.sampling import initial


def moments(dim, **options):
    return build(initial.Law, options, "initial").moments(dim)


def test_a_laplace_law_has_the_variance_of_its_scale():
    mean, cov = moments(2, kind="laplace", mean=0.5, scale=2.0)
    assert mean == pytest.approx([0.5, 0.5]) and cov == pytest.approx(8 * np.eye(2))


def test_a_normal_law_takes_a_number_for_each_coordinate():
    mean, cov = moments(2, kind="normal", mean=[3.0, -1.0], sd=[0.5, 2.0])
    assert mean == pytest.approx([3.0, -1.0]) and cov == pytest.approx(np.diag([0.25, 4.0]))
    with pytest.raises(ConcordError, match=r"initial.mean: .* 2 entries for 3 coordinates"):
        moments(3, kind="normal", mean=[3.0, -1.0])


def test_a_random_covariance_is_one_of_its_seed_and_of_as_many_coordinates_as_its_mean():
    options = {"kind": "random_normal", "mean": [-1.0, 2.0], "high": 10.0}
    one, other = (moments(2, **options, seed=seed)[1] for seed in (3, 4))
    assert not np.allclose(one, other)
    with pytest.raises(ConcordError, match="2 entries for 3 coordinates"):
        moments(3, **options)
