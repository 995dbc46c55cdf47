"""The Titanic of fald2023."""

import numpy as np
import yaml

import everything
from concord.sampling.partition import Partition

titanic = everything.kind("problems", "titanic")


def build(**options):
    partition = Partition.parse({"kind": "dirichlet", "concentration": 1.0}, "partition")
    rng = np.random.default_rng(0)
    return titanic.build(titanic.Params(**options), 10, partition, lambda *label: rng, None)


def test_people_are_those_of_the_table():
    rows, survived = titanic.people()
    assert len(rows) == 2201
    assert survived.sum() == 711
    assert survived[rows[:, 2] == 0].sum() == 344  # women and girls, of 470
    assert (rows[:, 0] == 0).sum() == 885  # crew


def test_test_rows_are_held_by_nobody_and_the_step_is_that_of_the_study():
    problem = build()
    assert problem.counts.sum() == 1760
    assert len(problem.test[1]) == 441
    Z = problem.data.features.reshape(-1, problem.dim)  # padded by zeros
    values = np.linalg.eigvalsh(Z.T @ Z)
    study = yaml.safe_load((everything.ROOT / "config/papers/fald2023/study.yaml").read_text())
    lsd = study["experiments"]["titanic"]["sweep"]["sampler"]["lsd"]["sampler"]
    np.testing.assert_allclose(2 / (values[0] + values[-1]), lsd["step_size"], rtol=1e-9)


def test_a_prior_in_each_client_is_one_prior_of_a_tenth_of_its_variance():
    problem, x = build(prior_scale=0.05), np.full((1, 10, 4), 0.3)
    without = build(prior_scale=1e12)
    np.testing.assert_allclose(problem.gradient(x) - without.gradient(x), 2 * x, rtol=1e-9)
