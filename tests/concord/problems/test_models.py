"""Problems of a shard's log density, and what all problems of models promise, without an extra."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.models.model import make_shards

RNG = np.random.default_rng(3)
X, SHARDS = RNG.standard_normal((12, 2)), [[0, 5, 7], [1, 2, 3, 4, 6], [8], [9, 10, 11]]
Y = X @ [1.0, -2.0] + 0.3 * RNG.standard_normal(12)
LISTS = [[a[shard] for shard in SHARDS] for a in (X, Y)]
PRECISION = X.T @ X / 0.25 + np.eye(2) / 4.0
MEAN = np.linalg.solve(PRECISION, X.T @ Y / 0.25)


def regression(rows: np.ndarray, prior: float = 4.0):
    """Linear regression with noise sd 0.5 and prior N(0, 4 I)."""

    def log_density(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        error = Y[rows] - x @ X[rows].T
        value = -(error**2).sum(axis=1) / 0.5 - (x**2).sum(axis=1) / (2 * prior)
        return value, error @ X[rows] / 0.25 - x / prior

    return log_density


def exact(draws: int, center=MEAN) -> np.ndarray:
    root = np.linalg.cholesky(np.linalg.inv(PRECISION))
    return center + np.random.default_rng(1).standard_normal((draws, 2)) @ root.T


def test_shards_make_the_problem_that_is_built_in() -> None:
    built_in = concord.problems.linear_regression(*LISTS, noise_sd=0.5, prior_variance=4.0)
    problem = concord.from_shards(regression, SHARDS, dim=2)
    x = RNG.standard_normal((3, 4, 2))
    assert np.allclose(problem.gradient(x), built_in.gradient(x), rtol=1e-12, atol=1e-12)
    more = np.diff([problem.potential(x), built_in.potential(x)], axis=0)[0]
    assert np.allclose(more, more[0], atol=1e-10)  # up to a constant of each agent
    prior = problem.prior_gradient(x)
    assert np.allclose(prior, x / 16, rtol=1e-12, atol=1e-12)


def test_shards_have_coordinates_of_their_own() -> None:
    """As the built-in regression has: the prior of what is shared once, of the others N times."""
    mask, options = [True, False], {"noise_sd": 0.5, "prior_variance": 4.0}
    built_in = concord.problems.linear_regression(*LISTS, local=mask, **options)
    law = built_in.posterior.whole
    draws = law.sample(4000, np.random.default_rng(2))
    problem = concord.from_shards(regression, SHARDS, dim=2, local=mask, reference=draws)
    x = RNG.standard_normal((3, 4, 2))
    np.testing.assert_allclose(problem.gradient(x), built_in.gradient(x), atol=1e-12)
    np.testing.assert_allclose(problem.prior_gradient(x), x / [4, 16], atol=1e-12)
    np.testing.assert_array_equal(problem.reference.of(3).values, draws[:, [4, 0]])
    with pytest.raises(ConcordError, match="not draws of the model's posterior"):
        concord.from_shards(regression, SHARDS, dim=2, local=mask, reference=draws + 1)
    with pytest.raises(ConcordError, match="coordinates: with a mask of local ones"):
        concord.from_shards(regression, SHARDS, dim=2, local=mask, coordinates="laplace")

    def centered(rows: np.ndarray):
        """Rows of the second coordinate, whose prior is N(x_0, 1)."""

        def log_density(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            between, error = x[:, 1] - x[:, 0], Y[rows] - x[:, 1:]
            value = -(error**2).sum(axis=1) / 2 - between**2 / 2 - x[:, 0] ** 2 / 2
            return value, np.stack([between - x[:, 0], error.sum(axis=1) - between], axis=1)

        return log_density

    concord.from_shards(centered, SHARDS, dim=2)
    with pytest.raises(ConcordError, match="write the model non-centered"):
        concord.from_shards(centered, SHARDS, dim=2, local=[False, True])


def test_affine_coordinates_move_and_scale_everything() -> None:
    root = np.array([[2.0, 0.0], [0.5, 0.1]])
    plain = concord.from_shards(regression, SHARDS, dim=2)
    moved = concord.from_shards(regression, SHARDS, dim=2, coordinates=([1.0, -1.0], root))
    z = RNG.standard_normal((2, 4, 2))
    x = np.array([1.0, -1.0]) + z @ root.T
    assert np.allclose(moved.potential(z), plain.potential(x), rtol=1e-12)
    assert np.allclose(moved.gradient(z), plain.gradient(x) @ root, rtol=1e-10)
    assert np.allclose(moved.constrain(z)["x"], x)


def test_laplace_coordinates_make_the_posterior_standard_normal() -> None:
    problem = concord.from_shards(
        regression, SHARDS, dim=2, coordinates="laplace", reference=exact(1000)
    )
    assert problem.coordinate_names == ("laplace[0]", "laplace[1]")
    assert np.allclose(problem.center, MEAN, atol=1e-8)
    assert np.allclose(problem.root @ problem.root.T, np.linalg.inv(PRECISION), atol=1e-6)
    mean, cov = problem.reference.moments()
    assert np.abs(mean).max() < 5 / np.sqrt(1000)
    assert np.abs(cov - np.eye(2)).max() < 5 * np.sqrt(2 / 1000)


def test_a_reference_of_another_posterior_is_refused() -> None:
    shifted = exact(2000, MEAN + 0.3 * np.sqrt(np.diag(np.linalg.inv(PRECISION))))
    with pytest.raises(ConcordError, match=r"their mean score is .* standard errors away"):
        concord.from_shards(regression, SHARDS, dim=2, reference=shifted)
    wider = concord.from_shards(regression, SHARDS, dim=2, reference=exact(2000))
    assert wider.reference.draws == 2000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"shards": [[0, 1], [1, 2]]}, "they hold 4 rows, 3 of them different"),
        ({"shards": [[0.5, 1.0]]}, "is no array of row numbers"),
        ({"coordinates": "whitened"}, "use 'unconstrained', 'laplace'"),
        ({"coordinates": (np.zeros(3), np.eye(3))}, r"give shapes \(2,\) and \(2, 2\)"),
        ({"coordinates": (np.zeros(2), np.ones((2, 2)))}, "L is singular"),
        ({"reference": np.zeros((5, 3))}, "none inside of the parameters' bounds"),
        ({"reference": {"beta": np.zeros((5, 2))}}, "parameters have no names"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, sentence) -> None:
    options = {"shards": SHARDS, "dim": 2} | arguments
    with pytest.raises(ConcordError, match=sentence):
        concord.from_shards(regression, **options)


def test_terms_that_depend_on_other_rows_are_refused() -> None:
    def centered(rows: np.ndarray):
        def log_density(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            features = X[rows] - (X[rows].mean(axis=0) if len(rows) else 0.0)
            error = Y[rows] - x @ features.T
            return -(error**2).sum(axis=1) - (x**2).sum(axis=1), 2 * error @ features - 2 * x

        return log_density

    with pytest.raises(ConcordError, match="add up to another log density"):
        concord.from_shards(centered, SHARDS, dim=2)


@pytest.mark.parametrize(("make", "library"), [("from_pymc", "PyMC"), ("from_numpyro", "NumPyro")])
def test_a_library_that_is_missing_is_one_sentence(monkeypatch, make, library) -> None:
    function = getattr(concord, make)
    monkeypatch.setattr("concord.models.model.find_spec", lambda name: None)
    sentence = f"{library}, which is not installed; in a clone, install"
    with pytest.raises(ConcordError, match=sentence):
        function(lambda: None, over="row", agents=2)


def test_a_problem_takes_draws_as_its_reference() -> None:
    problem = concord.Problem(lambda x: x, agents=4, dim=2, reference=exact(500))
    assert np.allclose(problem.reference.moments()[0], MEAN, atol=0.1)
    with pytest.raises(ConcordError, match=r"give draws of shape \(draws, 3\)"):
        concord.Problem(lambda x: x, agents=4, dim=3, reference=exact(500))


def test_as_many_agents_as_rows_have_the_rows_of_their_numbers():
    shards = make_shards(5, None, (5, None, "equal", 1))
    assert [shard.tolist() for shard in shards] == [[0], [1], [2], [3], [4]]
    assert [len(shard) for shard in make_shards(6, None, (5, None, "equal", 1))] == [2, 1, 1, 1, 1]


def test_the_concentration_of_a_partition_has_other_names():
    with pytest.raises(ConcordError, match=r"partition.alpha: .* did you mean 'concentration'"):
        make_shards(6, np.arange(6), (2, None, {"kind": "dirichlet", "alpha": 0.3}, 1))
