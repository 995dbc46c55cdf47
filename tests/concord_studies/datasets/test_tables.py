"""Tables that are kept with the project, and the points that they give to agents."""

from pathlib import Path

import numpy as np
import pandas
import pytest

from concord.sampling.partition import Partition
from concord_studies.datasets import fetch, readers
from concord_studies.datasets.folder import DataFolder
from concord_studies.datasets.registry import load_registry
from concord_studies.datasets.tables import load_table
from concord_studies.problems import (
    gaussian_location,
    linear_regression_data,
    logistic_regression_data,
)

ROOT = Path(__file__).resolve().parents[3]
EQUAL = Partition.parse({"kind": "equal"}, "partition")


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    """Every kept table, fetched."""
    folder = tmp_path_factory.mktemp("resources")
    for name, dataset in load_registry().items():
        for file, entry in dataset.files.items():
            if entry.in_repository:
                (folder / name).mkdir(exist_ok=True)
                fetch.fetch(f"{name}/{file}", folder / name / file)
    return folder


def test_tables_are_read_as_pandas_reads_them(resources):
    kept = sorted(file.name for file in (ROOT / "config" / "recorded").glob("*.csv.gz"))
    assert len(kept) > 10
    for file in kept:
        name = file.removesuffix(".csv.gz")
        columns, frame = load_table(name, resources), pandas.read_csv(resources / name / file)
        assert list(columns) == list(frame)
        for column, values in columns.items():
            number = pandas.api.types.is_numeric_dtype(frame[column])
            np.testing.assert_array_equal(values, frame[column].to_numpy(float if number else str))
            assert values.dtype.kind == ("f" if number else "U")


@pytest.mark.parametrize("of", ["all", "held"])
def test_the_posterior_may_be_of_more_points_than_agents_hold(resources, of):
    params = linear_regression_data.Params(
        table="extra2024_linear", prior_variance=10.0, posterior_of=of
    )
    linear_regression_data.check(params, 20)
    problem = linear_regression_data.build(params, 20, EQUAL, None, DataFolder(resources))
    columns = load_table("extra2024_linear", resources)
    keep = np.isfinite(columns["agent"]) if of == "held" else np.full(5000, True)
    X, y = np.column_stack([columns["one"], columns["x"]])[keep], columns["y"][keep]
    precision = X.T @ X + np.eye(2) / 10
    np.testing.assert_allclose(problem.posterior.cov, np.linalg.inv(precision), rtol=1e-10)
    mean = np.linalg.solve(precision, X.T @ y)
    np.testing.assert_allclose(problem.posterior.mean, mean, atol=1e-10)
    assert problem.counts.tolist() == [50] * 20
    # What the potentials add up to is the law of the agents' points, whatever the posterior is of.
    assert problem.sampled.cov[0, 0] > 3 * 7.9548e-4


def test_rows_are_in_the_order_of_their_places(resources):
    """Those of scikit-learn's successive splits, the training part being the next agent's."""
    from sklearn.model_selection import train_test_split

    left, columns = np.arange(569), load_table("extra2024_cancer", resources)
    for agent, size in enumerate((0.83333, 0.8, 0.75, 0.66666666, 0.5, None)):
        own = left
        if size:
            own, left = train_test_split(left, test_size=size, random_state=42)
        mine = np.flatnonzero(columns["agent"] == agent)
        np.testing.assert_array_equal(mine[np.argsort(columns["place"][mine])], own)
    params = logistic_regression_data.Params(
        dataset="breast_cancer", table="extra2024_cancer", intercept="zeros"
    )
    problem = logistic_regression_data.build(params, 6, EQUAL, None, DataFolder(resources))
    assert problem.counts.tolist() == [94, 95, 95, 95, 95, 95]
    assert (problem.data.features[:, :, -1] == 0).all()


def test_rows_that_nobody_holds_are_for_testing_and_standardize_nothing(resources):
    """The split of depsgld2026's notebook: scikit-learn's, stratified."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    X, y = load_breast_cancer(return_X_y=True)
    seen, test = train_test_split(np.arange(569), test_size=0.2, random_state=42, stratify=y)
    params = logistic_regression_data.Params(dataset="breast_cancer", table="depsgld2026_cancer")
    problem = logistic_regression_data.build(params, 5, EQUAL, None, DataFolder(resources))
    assert problem.counts.tolist() == [91] * 5
    features = (X - X[seen].mean(axis=0)) / X[seen].std(axis=0)
    np.testing.assert_allclose(problem.data.features[0, :, :-1], features[seen[:91]], atol=1e-12)
    np.testing.assert_array_equal(np.sort(problem.test[1]), np.sort(y[test]))
    alone = logistic_regression_data.build(params, 1, EQUAL, None, DataFolder(resources))
    assert alone.counts.tolist() == [455]


def test_the_notebooks_points_are_those_of_its_law_and_seed(resources):
    from scipy.stats import multivariate_normal

    law = multivariate_normal(np.zeros(2), [[1.0, -0.5], [-0.5, 1.0]])
    drawn = law.rvs(2000, random_state=np.random.RandomState(20))
    columns = load_table("dglmc2021_gaussian", resources)
    np.testing.assert_allclose(np.column_stack([columns["y1"], columns["y2"]]), drawn, rtol=1e-12)
    params = gaussian_location.Params(
        table="dglmc2021_gaussian", noise=((1.0, -0.5), (-0.5, 1.0)), prior=((1.0, 0.5), (0.5, 1.0))
    )
    problem = gaussian_location.build(params, 10, EQUAL, None, DataFolder(resources))
    np.testing.assert_allclose(problem.posterior.mean, [0.00572135, 0.00033353], atol=1e-8)
    cov = [[4.9942e-4, -2.4946e-4], [-2.4946e-4, 4.9942e-4]]
    np.testing.assert_allclose(problem.posterior.cov, cov, rtol=2e-5)


def test_synthetic_clients_differ_in_where_their_points_lie_alone(resources):
    """Each sees the same noise, since the generator is set anew before each draw."""
    columns = load_table("qlsd2021_synthetic", resources)
    agent = columns["agent"].astype(int)
    counts = np.bincount(agent)
    sizes = (0.9 * np.random.RandomState(1994).randint(10, 50, 20)).astype(int)
    np.testing.assert_array_equal(counts, sizes)
    assert counts.sum() == 555
    X = np.column_stack([columns[f"x{j}"] for j in range(1, 11)])
    own = [X[agent == i][:9] for i in range(20)]
    np.testing.assert_allclose(np.diff(own, axis=1), np.diff(own, axis=1)[[0] * 20], atol=1e-6)


def test_bundled_tables_are_what_scikit_learn_loads():
    from sklearn import datasets

    images, digits = datasets.load_digits(return_X_y=True)
    pairs = [
        (readers.breast_cancer(), datasets.load_breast_cancer(return_X_y=True)),
        (readers.digits(), (images / 16, digits)),
        (readers.diabetes(), datasets.load_diabetes(return_X_y=True, scaled=False)),
    ]
    for found, expected in pairs:
        for table, same in zip(found, expected, strict=True):
            np.testing.assert_array_equal(table, same)
