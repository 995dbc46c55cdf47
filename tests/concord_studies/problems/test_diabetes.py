"""Linear regression on the rows of the diabetes data set."""

import numpy as np

import concord
import concord_studies  # noqa: F401  which adds the kind


def test_diabetes_is_a_least_squares_fit_of_the_standardized_rows():
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)  # which scales to columns of length 1
    problem = concord.problems.diabetes(7)
    rows = np.vstack([X * np.sqrt(442) / 0.7, np.eye(10)])
    target = np.concatenate([(y - y.mean()) / y.std() / 0.7, np.zeros(10)])
    np.testing.assert_allclose(
        problem.posterior.mean, np.linalg.lstsq(rows, target, rcond=None)[0], rtol=1e-8
    )
    assert problem.counts.sum() == 442 and np.ptp(problem.counts) == 1
    split = concord.problems.diabetes(7, test_fraction=0.25)
    assert split.counts.sum() == 442 - 110 and split.test[0].shape == (110, 10)


def test_held_out_rows_have_the_mean_density_over_a_law():
    problem = concord.problems.diabetes(agents=4, test_fraction=0.1)
    rng = np.random.default_rng(3)
    root = rng.standard_normal((10, 10)) / 5
    mean = rng.standard_normal(10) / 5
    log = problem.held_out_log_density(mean, root @ root.T)
    draws = mean + rng.standard_normal((200_000, 10)) @ root.T
    density = np.exp(problem.held_out_log_density(draws, np.zeros((10, 10))))
    # Five standard errors of the mean over the draws, at each of the 44 rows.
    error = 5 * density.std(axis=0) / np.sqrt(len(draws))
    assert log.shape == (44,) and (np.abs(np.exp(log) - density.mean(axis=0)) < error).all()
