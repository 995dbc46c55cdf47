"""The toy example of fald2023."""

import numpy as np
import pytest

import everything
from concord.errors import ConcordError
from concord.sampling.partition import Partition
from concord_studies.datasets.fetch import fetch
from concord_studies.datasets.folder import DataFolder

gaussian_product = everything.kind("problems", "gaussian_product")
EQUAL = Partition.parse({"kind": "equal"}, "partition")


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
