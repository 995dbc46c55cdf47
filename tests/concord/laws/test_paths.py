"""Laws at every iteration by roots of covariances, and linearized steps that are read once."""

from typing import Any

import numpy as np
import pytest

import concord
from concord import linearized
from concord.laws import paths
from concord.laws.exact import Affine, initial_moments

AGENTS, DIM = 20, 6
RNG = np.random.default_rng(8)


def sparse_step() -> Affine:
    """Return an update by blocks on a ring, of positions and as many other numbers."""
    size, near = AGENTS * DIM, np.eye(AGENTS) + np.roll(np.eye(AGENTS), 1, axis=1)
    matrix = np.zeros((2 * size, 2 * size))
    matrix[:size, :size] = np.kron(near, 0.3 * RNG.standard_normal((DIM, DIM)) / DIM**0.5)
    matrix[:size, size:], matrix[size:, :size] = -0.1 * np.eye(size), 0.2 * np.eye(size)
    matrix[size:, size:] = 0.9 * np.eye(size)
    root = np.pad(RNG.standard_normal((size, 3)), [(0, size), (0, 0)])
    return Affine(matrix, RNG.standard_normal(2 * size), root @ root.T)


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("mixes", [False, True])
def test_laws_at_every_iteration_are_those_of_the_recursion(alike: bool, mixes: bool) -> None:
    step, size = sparse_step(), AGENTS * DIM
    mean, cov = RNG.standard_normal(2 * size), 3.0 * step.noise
    if not alike:
        cov = np.pad(initial_moments(AGENTS, DIM, (0.0, 0.5))[1], [(0, size)] * 2)
    mix = RNG.standard_normal((AGENTS, AGENTS)) if mixes else None
    start = mean[None], cov[None]
    versions = Affine(*(getattr(step, name)[None] for name in Affine.STACKED))
    path = paths.DeterministicPath(lambda k: versions, start, AGENTS, DIM, mix, (0, 1))
    law = path.law(range(2, 9))
    read = np.kron(np.eye(AGENTS) if mix is None else mix, np.eye(DIM))
    average = np.kron(np.ones((1, AGENTS)) / AGENTS, np.eye(DIM))
    for k in range(9):
        if k >= 2:
            answer, spread = read @ mean[:size], read @ cov[:size, :size] @ read.T
            blocks = spread.reshape(AGENTS, DIM, AGENTS, DIM)
            each = np.stack([blocks[i, :, i] for i in range(AGENTS)])
            np.testing.assert_allclose(law.mean[k - 2].ravel(), answer, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(law.cov[k - 2], each, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(law.average_mean[k - 2], average @ answer, atol=1e-13)
            np.testing.assert_allclose(law.average_cov[k - 2], average @ spread @ average.T,
                                       rtol=1e-11, atol=1e-13)  # fmt: skip
        mean, cov = step.matrix @ mean + step.offset, step.matrix @ cov @ step.matrix.T + step.noise


@pytest.mark.parametrize("kind", ["de_sgld", "extra_sgld"])
def test_linearized_steps_follow_from_one_reading(monkeypatch, kind: str) -> None:
    X = RNG.standard_normal((40, 2))
    y = (RNG.random(40) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    problem = concord.problems.logistic_regression(X, y, agents=4)

    def compute() -> Any:
        """Return the approximate law of a few iterations."""
        return concord.law(kind, problem, "ring", step_size=0.01, iterations=12, approximate=True)

    moved, move_to = [], linearized._move_to
    monkeypatch.setattr(linearized, "_move_to", lambda *args: moved.append(1) or move_to(*args))
    law = compute()
    assert moved
    moved.clear()
    monkeypatch.setattr(linearized, "_read_at_rest", lambda *args: [])
    read = compute()
    assert not moved
    for name in ("mean", "cov", "average_mean", "average_cov"):
        np.testing.assert_allclose(getattr(law, name), getattr(read, name), rtol=1e-10, atol=1e-13)
