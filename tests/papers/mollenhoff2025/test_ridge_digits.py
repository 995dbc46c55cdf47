"""The digits of mollenhoff2025's example, and the least loss that its figure marks."""

import numpy as np
import pytest

import everything
from concord.sampling.partition import Partition
from concord_studies.datasets.fetch import fetch
from concord_studies.datasets.folder import DataFolder

ridge_digits = everything.kind("problems", "ridge_digits")
EQUAL = Partition.parse({"kind": "equal"}, "partition")


def test_losses_are_those_of_least_squares(tmp_path):
    """For weights at random, and at the minimum the line of the authors' figure."""
    (tmp_path / "mollenhoff2025_digits").mkdir()
    file = "mollenhoff2025_digits/mollenhoff2025_digits.csv.gz"
    fetch(file, tmp_path / file)
    data = DataFolder(tmp_path)
    problem = ridge_digits.build(ridge_digits.Params(), 5, EQUAL, None, data)
    table = dict(data.table("mollenhoff2025_digits"))
    labels = table.pop("digit").astype(int)
    X, Y = np.column_stack(list(table.values())) / 255, np.eye(10)[labels]
    assert X.shape == (500, 49)
    W = np.random.default_rng(1).standard_normal((5, 49, 10))
    expected = [
        0.5 * ((X[own] @ w - Y[own]) ** 2).sum() + 2.5 * (w**2).sum()
        for w, own in zip(W, (labels // 2 == i for i in range(5)), strict=True)
    ]
    np.testing.assert_allclose(problem.potential(W.reshape(1, 5, -1))[0], expected, rtol=1e-9)
    mean = np.tile(problem.posterior.mean, (1, 5, 1))
    assert problem.potential(mean).sum() == pytest.approx(161.1069, abs=5e-5)
