"""Normal points and products of normal laws: their posteriors, in closed form."""

from pathlib import Path

import numpy as np
import pytest

from concord import streams
from concord.errors import ConcordError
from concord.sampling.partition import Partition
from concord_studies.datasets.fetch import fetch
from concord_studies.datasets.folder import DataFolder
from concord_studies.problems import gaussian_location, gaussian_product

EQUAL = Partition.parse({"kind": "equal"}, "partition")
COVARIANCE = ((2.0, 0.5), (0.5, 1.0))


def location(agents=3, **options):
    params = gaussian_location.Params(points=60, noise=COVARIANCE, **options)
    gaussian_location.check(params, agents)
    return gaussian_location.build(
        params, agents, EQUAL, lambda what: streams.generator(1, what), Path()
    )


def test_the_mean_of_normal_points_has_the_conjugate_posterior():
    problem = location(prior=4.0)
    points = problem.data.features.reshape(-1, 2)
    precision = 60 * np.linalg.inv(COVARIANCE) + np.eye(2) / 4
    np.testing.assert_allclose(problem.posterior.cov, np.linalg.inv(precision))
    total = np.linalg.inv(COVARIANCE) @ points.sum(axis=0)
    np.testing.assert_allclose(problem.posterior.mean, np.linalg.solve(precision, total))
    flat = location()
    np.testing.assert_allclose(flat.posterior.mean, points.mean(axis=0))


def test_agents_of_other_means_differ_by_their_spread():
    """Means of 20 points vary by sqrt(cov / 20), and by the spread besides."""
    found = [location(spread=s).data.features.mean(axis=1) for s in (0.0, 5.0)]
    assert found[0].std() < 1 < 2 < (found[1] - found[0]).std() < 8


def test_covariances_that_are_none_are_refused():
    for wrong in (((1.0, 2.0), (2.0, 1.0)), ((1.0, 0.0),), ((1.0, 0.5), (0.4, 1.0))):
        with pytest.raises(ConcordError, match="noise: its rows are no symmetric"):
            gaussian_location.check(gaussian_location.Params(noise=wrong), 2)
    with pytest.raises(ConcordError, match="3 rows are no covariance of 2 coordinates"):
        location(prior=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resources")
    (folder / "fald2023_toy").mkdir()
    fetch("fald2023_toy/fald2023_toy.csv.gz", folder / "fald2023_toy" / "fald2023_toy.csv.gz")
    return folder


def product(resources, **options):
    params = gaussian_product.Params(table="fald2023_toy", **options)
    return gaussian_product.build(params, 5, EQUAL, None, DataFolder(resources))


def test_the_toy_example_has_the_target_of_its_code(resources):
    target = product(resources).posterior
    values = np.linalg.eigvalsh(target.cov)
    np.testing.assert_allclose(values[[0, -1]], [4.3665e-4, 0.56291], rtol=2e-5)
    assert np.trace(target.cov) == pytest.approx(43.012598, abs=1e-6)
    assert np.linalg.norm(target.mean) == pytest.approx(84.900640, abs=1e-6)
    step = 2 / (1 / values[0] + 1 / values[-1])
    assert step == pytest.approx(8.72628e-4, rel=1e-5)
    own = 5 * step * np.linalg.eigvalsh(product(resources).gram)[:, -1]
    np.testing.assert_allclose(own, [0.39, 0.68, 3.10, 0.40, 9.98], atol=0.006)


def test_agents_may_be_farther_apart_with_the_same_product(resources):
    """And blocks of two coordinates are independent of the others."""
    whole, kept = product(resources), [12, 13, 96, 97]
    part = product(resources, coordinates=kept, apart=10.0)
    np.testing.assert_allclose(part.posterior.mean, whole.posterior.mean[kept], rtol=1e-9)
    np.testing.assert_allclose(part.posterior.cov, whole.posterior.cov[kept][:, kept], rtol=1e-9)
    far, near = (
        p.gram @ p.posterior.mean - p.shift for p in (part, product(resources, coordinates=kept))
    )
    np.testing.assert_allclose(far, 10 * near, rtol=1e-6, atol=1e-6)
    with pytest.raises(ConcordError, match="for 5 agents, not 4"):
        gaussian_product.build(
            gaussian_product.Params(table="fald2023_toy"), 4, EQUAL, None, DataFolder(resources)
        )
