"""Exact laws of FALD and VR-FALD* over rounds, and the sampler as printed."""

from itertools import product

import numpy as np
import pytest
import yaml

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


@pytest.mark.parametrize(
    ("renewal", "bound"),
    [
        (None, min(0.5 / 64, 0.2 * 0.5 / (38 * 0.8 * np.sqrt(3) * 64))),  # of Theorem 20
        (0.2, min(0.5 / (192 * 64), 0.2 * 0.5 / (96 * 64))),  # of Theorem 28
    ],
)
def test_the_smallest_part_of_a_theorem_bounds_the_step(renewal, bound):
    gram = np.array([np.diag([0.5, 8.0]), np.diag([1.0, 2.0])])  # m = 0.5, L = 8
    rounds = theory.Rounds(1.0, 0.2, renewal, 1.0, 0.0)
    np.testing.assert_allclose(theory.step_bound(gram, rounds), bound)


def printed_row(name):
    """Return a row of Table 1, an array of p_c by the step, largest first."""
    text = (everything.ROOT / "config/papers/fald2023/figures.yaml").read_text()
    rows = yaml.safe_load(text)["tables"]["table1"]["options"]["rows"]
    (row,) = (row for row in rows if row["name"] == name)
    return np.array(row["printed"], dtype=float).reshape(3, 3)


# Draws of the clients' laws, as stiff as chance has it, milder, and without common axes.
@pytest.mark.parametrize("options", [{}, {"least": 0.1}, {"least": 0.5}, {"axes": "all"}])
@pytest.mark.parametrize("renews", [False, True])
def test_bias_falls_with_the_square_of_the_step_at_least(options, renews):
    problem = clients.build(clients.Params(dim=4, **options), 20, None, None, None)
    mean, cov = problem.posterior.mean, problem.posterior.cov
    slopes = problem.gram @ mean - problem.shift
    for p, tau in product((0.2, 0.05), (0.0, 1.0)):
        steps, biases = (0.5, 0.2, 0.1), []
        for part in steps:
            sampler = FALD(part=part, communication=p, common_noise=tau, renews=renews)
            away, of_average = theory.average_moments(problem.gram, slopes, sampler.rounds(problem))
            biases.append((np.trace(of_average) + away @ away - np.trace(cov)) ** 2)
        falls = -np.diff(np.log(biases)) / -np.diff(np.log(steps))
        assert (falls > 2).all(), (p, tau, falls)


@pytest.mark.parametrize("name", ["VR-FALD*, tau = 0", "VR-FALD*, tau = 1"])
def test_no_bias_and_chance_have_the_printed_rows_of_vr_fald(name):
    # With bias ~ step^2 or more and chance ~ 1/step, of steps 1/2, 1/5 and 1/10.
    largest, middle, smallest = printed_row(name).T
    most = (2 / 5) ** 2 * largest + 1 / 2 * smallest
    error = np.sqrt(2 / 100)  # relative, of the mean square of 100 normal numbers
    sds = error * np.sqrt(middle**2 + (0.16 * largest) ** 2 + (0.5 * smallest) ** 2)
    assert (middle - most > 2 * sds).all()
    row = printed_row("FALD")  # which is bias
    np.testing.assert_allclose(row[:, 2] / row[:, 0], (1 / 5) ** 4, rtol=0.7)
