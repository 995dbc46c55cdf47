"""NumPyro's latents of rows stay with the agent of these rows."""

from typing import Any

import numpy as np
import pytest

import concord

jax = pytest.importorskip("jax")
numpyro = pytest.importorskip("numpyro")

Y = np.array([2.8, 0.8, -0.3, 0.7, -0.1, 0.1])
SHARDS = [[0, 3, 5], [1], [2, 4]]


def model(y: Any) -> None:
    """Rows around a common mean, with an effect of each row, all variances known."""
    normal = numpyro.distributions.Normal
    mu = numpyro.sample("mu", normal(0, 2))
    with numpyro.plate("row", len(y)):
        effect = numpyro.sample("effect", normal(mu, 1.5))
        numpyro.deterministic("double", 2 * effect)
        numpyro.sample("y", normal(effect, 1), obs=y)


def build(**options: Any) -> Any:
    """Return the model of three agents, of 3, 1 and 2 rows."""
    jax.config.update("jax_enable_x64", True)
    return concord.from_numpyro(model, Y, over="row", shards=SHARDS, **options)


def whole_posterior() -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of mu and the six effects."""
    precision = np.zeros((7, 7))
    precision[0, 0] = 1 / 4 + 6 / 1.5**2
    precision[0, 1:] = precision[1:, 0] = -1 / 1.5**2
    precision[1:, 1:] = np.eye(6) * (1 + 1 / 1.5**2)
    cov = np.linalg.inv(precision)
    return cov @ np.append(0, Y), cov


@pytest.mark.parametrize("coordinates", ["unconstrained", "laplace"])
def test_latents_of_rows_stay_with_their_agent(coordinates: str) -> None:
    """Agents share mu, and are compared with what they hold; padding is standard normal."""
    problem = build(local=True, coordinates=coordinates)
    assert (problem.agents, problem.dim) == (3, 4)
    assert problem.local.tolist() == [False, True, True, True]
    x, step = np.random.default_rng(0).standard_normal((2, 3, 4)), 1e-6
    for j, move in enumerate(step * np.eye(4)):
        slope = (problem.potential(x + move) - problem.potential(x - move)) / (2 * step)
        np.testing.assert_allclose(problem.gradient(x)[..., j], slope, rtol=1e-6, atol=1e-6)
    mean, cov = whole_posterior()
    draws = np.random.default_rng(1).multivariate_normal(mean, cov, 20_000)
    named = {"mu": draws[:, 0], "effect": draws[:, 1:]}
    problem = build(local=True, coordinates=coordinates, reference=named)
    trace = concord.sample("de_sgld", problem, "complete", step_size=0.03, iterations=1000,
                           chains=100, record={"every": 10})  # fmt: skip
    found = problem.constrain(trace["x"][:, 30:])
    assert found["effect"].shape == (100, 71, 3, 6)
    for agent, rows in enumerate(SHARDS):
        others = np.setdiff1d(np.arange(6), rows)
        assert np.isnan(found["effect"][..., agent, others]).all()
        own = found["effect"][..., agent, rows].reshape(-1, len(rows))
        sd = np.sqrt(np.diag(cov)[1:])[rows]
        # 100 chains, and a bias of the step of some percent
        assert (np.abs(own.mean(axis=0) - mean[1:][rows]) < 0.2 * sd).all()
        assert (np.abs(own.std(axis=0) / sd - 1) < 0.15).all()
        np.testing.assert_allclose(
            found["double"][..., agent, rows], 2 * found["effect"][..., agent, rows]
        )
    assert concord.bias2(trace, problem, warm_up=300).value.max() < 0.2
    posterior = trace.to_arviz().posterior
    assert posterior["effect"].shape[-2:] == (3, 6)
    assert posterior["effect"].dims[-2:] == ("agent", "row")


def test_models_without_both_kinds_of_latents_are_refused() -> None:
    """All shared, or coordinates that would mix hospitals."""

    def plain(y: Any) -> None:
        mu = numpyro.sample("mu", numpyro.distributions.Normal(0, 2))
        with numpyro.plate("row", len(y)):
            numpyro.sample("y", numpyro.distributions.Normal(mu, 1), obs=y)

    jax.config.update("jax_enable_x64", True)
    with pytest.raises(concord.ConcordError, match="needs both"):
        concord.from_numpyro(plain, Y, over="row", agents=2, local=True)
    with pytest.raises(concord.ConcordError, match="'laplace'"):
        build(local=True, coordinates=(np.zeros(7), np.eye(7)))
