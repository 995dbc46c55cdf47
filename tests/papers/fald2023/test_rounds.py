"""Exact laws of FALD and VR-FALD* over rounds, and the sampler as printed."""

from itertools import product

import numpy as np
import pytest

import concord
import everything
from concord.laws.switching import Choices

theory = everything.shared("fald2023", "theory")
clients = everything.kind("problems", "gaussian_clients")
FALD = everything.kind("samplers", "fald")


def draw(agents=3, dim=2, **options):
    return clients.build(clients.Params(dim=dim, least=0.2, **options), agents, None, None, None)


def enumerate_outcomes(problem, rounds):
    """Return the law of (x_1, ..., x_b, y) from the mode, by all outcomes of a step."""
    b, d = problem.agents, problem.dim
    size, mode = b * d, problem.posterior.mean
    slopes = problem.gram @ mode - problem.shift
    P, mean = problem.gram, problem.gram.mean(axis=0)
    A, c, Q = np.eye(size + d), np.zeros(size + d), np.zeros((size + d, size + d))
    for i in range(b):
        rows = slice(i * d, (i + 1) * d)
        A[rows, rows] = np.eye(d) - rounds.step * P[i]
        if rounds.renewal is None:
            c[rows] = -rounds.step * slopes[i]
        else:
            A[rows, size:] = rounds.step * (P[i] - mean)
    shared = np.kron(np.ones((b, b)), np.eye(d))
    Q[:size, :size] = 2 * rounds.step * (rounds.own * np.eye(size) + rounds.common * shared)
    J = np.eye(size + d)
    J[:size, :size] = shared / b
    p, q = rounds.communication, rounds.renewal or 0.0
    chances, matrices, offsets, noises = [], [], [], []
    for averaged, renewed in product((True, False), repeat=2):
        M = A.copy()
        if renewed:  # y' is the mean of the x before the step, which uses y
            M[size:] = np.concatenate([shared[:d] / b, np.zeros((d, d))], axis=1)
        K = J if averaged else np.eye(size + d)
        chances.append((p if averaged else 1 - p) * (q if renewed else 1 - q))
        matrices.append(K @ M), offsets.append(K @ c), noises.append(K @ Q @ K.T)
    if rounds.renewal is None:  # y does not move, and nobody uses it
        matrices = [M * (np.arange(size + d) < size)[:, None] for M in matrices]
    choices = Choices(np.array(chances), *map(np.array, (matrices, offsets, noises)))
    law = choices.stationary()
    if law is None:
        return None
    mean, cov = law[0][:size].reshape(b, d), law[1][:size, :size].reshape(b, d, b, d)
    return mean.mean(axis=0), cov.mean(axis=(0, 2))


@pytest.mark.parametrize("renewal", [None, 0.3, 1.0])
@pytest.mark.parametrize(("own", "common"), [(1.0, 0.0), (0.0, 0.5), (0.4, 0.6)])
@pytest.mark.parametrize("axes", ["pairs", "all"])
def test_moments_of_the_average_are_those_of_all_outcomes(renewal, own, common, axes):
    problem = draw(axes=axes, dim=4 if renewal is None else 2)
    mean = problem.posterior.mean
    slopes = problem.gram @ mean - problem.shift
    rounds = theory.Rounds(0.05, 0.2, renewal, own, common)
    found = theory.average_moments(problem.gram, slopes, rounds)
    for ours, expected in zip(found, enumerate_outcomes(problem, rounds), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("renewal", [None, 0.3])
def test_moments_that_grow_are_refused(renewal):
    problem = draw()
    stiffest = np.linalg.eigvalsh(problem.gram).max()
    slopes = problem.gram @ problem.posterior.mean - problem.shift
    for step in np.array([1.5, 1.9, 2.5, 4.0]) / stiffest:
        rounds = theory.Rounds(step, 0.2, renewal, 1.0, 0.0)
        found = theory.average_moments(problem.gram, slopes, rounds)
        assert (found is None) == (enumerate_outcomes(problem, rounds) is None), step


@pytest.mark.parametrize(("renews", "noise"), [(False, "supplement"), (True, "body")])
def test_chains_have_the_exact_moments(renews, noise):
    problem = draw()
    sampler = FALD(part=1.0, communication=0.5, common_noise=0.5, renews=renews, noise=noise)
    chains = 4000
    run = concord.sample(
        sampler, problem, "server", iterations=300, chains=chains, record={"every": 300}
    )
    x = run["x"][:, -1].mean(axis=1) - problem.posterior.mean
    slopes = problem.gram @ problem.posterior.mean - problem.shift
    mean, cov = theory.average_moments(problem.gram, slopes, sampler.rounds(problem))
    sd = np.sqrt(np.diag(cov))
    assert (np.abs(x.mean(axis=0) - mean) < 4.5 * sd / np.sqrt(chains)).all()
    # The relative standard error of a variance of normal draws; a mixture has somewhat more.
    np.testing.assert_allclose(x.var(axis=0), sd**2, rtol=6 * np.sqrt(2 / chains))
