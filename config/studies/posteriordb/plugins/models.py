"""Models of posteriordb for NumPyro: densities, features made of the data, converted draws.

Each model is a Stan program of posteriordb: the same density of the same parameters, features
standardized over all rows before they are split. Two are sampled in other parameters than those
that were drawn (theta_trans, f_tilde), and the draws are converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpyro
from jax import numpy as jnp
from numpyro import distributions as law
from numpyro import sample

JITTER = 1e-10  # of the Gaussian process's covariance, as in the Stan program
FLAT = law.ImproperUniform(law.constraints.positive, (), ())
Data = Mapping[str, Any]


class Posterior(NamedTuple):
    """A model, its arguments made of the data, and draws of its own parameters."""

    model: Callable[..., None]
    arguments: Callable[[Data], dict[str, Any]]
    draws: Callable[[Data, Data], dict[str, Any]] = lambda draws, data: dict(draws)


def _normal(count: int) -> Any:
    """Return the law N(0, 10) of so many coefficients."""
    return law.Normal(0, 10).expand([count]).to_event(1)


def _observe(y: Any, mean: Any, sigma: Any) -> None:
    """Sample the rows y, (rows,), from normal laws."""
    with numpyro.plate("row", len(y)):
        sample("y", law.Normal(mean, sigma), obs=y)


def _regress(X: Any, y: Any, scale: Any) -> None:
    """Flat on beta; sigma of the law ``scale``."""
    beta = sample("beta", law.ImproperUniform(law.constraints.real_vector, (), (X.shape[1],)))
    _observe(y, X @ beta, sample("sigma", scale))


def flat_regression(X: Any, y: Any) -> None:
    """Flat on beta and sigma: earnings, nes, mesquite, kidiq_z."""
    _regress(X, y, FLAT)


def kidiq(X: Any, y: Any) -> None:
    """Flat on beta, half-Cauchy on sigma."""
    _regress(X, y, law.HalfCauchy(2.5))


def blr(X: Any, y: Any) -> None:
    """N(0, 10) on beta, half-normal on sigma."""
    beta = sample("beta", _normal(X.shape[1]))
    _observe(y, X @ beta, sample("sigma", law.HalfNormal(10.0)))


def autoregression(X: Any, y: Any) -> None:
    """N(0, 10) on alpha and beta, half-Cauchy on sigma; X has the lagged values."""
    alpha = sample("alpha", law.Normal(0, 10))
    beta = sample("beta", _normal(X.shape[1]))
    _observe(y, alpha + X @ beta, sample("sigma", law.HalfCauchy(2.5)))


def diamonds(X: Any, y: Any) -> None:
    """N(0, 1) on b, Student's t on the intercept and half of it on sigma."""
    b = sample("b", law.Normal(0, 1).expand([X.shape[1]]).to_event(1))
    intercept = sample("Intercept", law.StudentT(3, 8, 10))
    sigma = sample("sigma", FLAT)
    numpyro.factor("prior_of_sigma", law.StudentT(3, 0, 10).log_prob(sigma) + np.log(2.0))
    _observe(y, intercept + X @ b, sigma)


def kilpisjarvi(x: Any, y: Any, pmualpha: Any, psalpha: Any, pmubeta: Any, psbeta: Any) -> None:
    """Normal on alpha and beta, flat on sigma."""
    alpha = sample("alpha", law.Normal(pmualpha, psalpha))
    beta = sample("beta", law.Normal(pmubeta, psbeta))
    _observe(y, alpha + beta * x, sample("sigma", FLAT))


def eight_schools(y: Any, sigma: Any) -> None:
    """Schools' effects are mu + tau theta_trans; each theta_trans is of its school's row."""
    mu = sample("mu", law.Normal(0, 5))
    tau = sample("tau", law.HalfCauchy(5))
    with numpyro.plate("row", len(y)):
        theta = sample("theta_trans", law.Normal(0, 1))
        sample("y", law.Normal(mu + tau * theta, sigma), obs=y)


def gauss_mix(y: Any) -> None:
    """Two normal laws, their means in order; half-normal scales, Beta(5, 5) on the share."""
    mu = sample("mu", law.ImproperUniform(law.constraints.ordered_vector, (), (2,)))
    numpyro.factor("prior_of_mu", law.Normal(0, 2).log_prob(mu).sum())
    sigma = sample("sigma", law.HalfNormal(2).expand([2]).to_event(1))
    theta = sample("theta", law.Beta(5, 5))
    both = law.Categorical(probs=jnp.stack([theta, 1 - theta]))
    with numpyro.plate("row", len(y)):
        sample("y", law.MixtureSameFamily(both, law.Normal(mu, sigma)), obs=y)


def gp_pois_regr(k: Any, point: Any, x: Any) -> None:
    """Counts of log rate f = L f_tilde; the prior of f joins all points, whose places all know."""
    rho = sample("rho", law.Gamma(25, 4))
    alpha = sample("alpha", law.HalfNormal(2))
    tilde = sample("f_tilde", law.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    cov = alpha**2 * jnp.exp(-((x.T - x) ** 2) / (2 * rho**2)) + JITTER * jnp.eye(x.shape[1])
    f = jnp.linalg.cholesky(cov) @ tilde
    with numpyro.plate("row", len(k)):
        sample("k", law.Poisson(jnp.exp(f[point])), obs=k)


def _table(y: Any, *features: Any) -> dict[str, Any]:
    """Return targets y, (rows,), and features, (rows, 1 + features): ones come first."""
    X = np.column_stack(np.broadcast_arrays(1.0, *features))
    return {"X": X, "y": y}


def _standardize(values: Any, width: float) -> Any:
    """Return values less their mean, in so many of their standard deviations."""
    return (values - values.mean()) / (width * values.std(ddof=1))


def _ark_table(data: Data) -> dict[str, Any]:
    """Return the values and as many earlier ones of each as there are lags."""
    y, lags = np.asarray(data["y"]), int(data["K"])
    features = np.column_stack([y[lags - k : len(y) - k] for k in range(1, lags + 1)])
    return {"X": features, "y": y[lags:]}


def _diamonds_table(data: Data) -> dict[str, Any]:
    """Return targets and centered features, without the intercept."""
    features = np.asarray(data["X"])[:, 1:]
    return {"X": features - features.mean(axis=0), "y": data["Y"]}


def _earnings_table(data: Data) -> dict[str, Any]:
    """Return log earnings; height, sex and their product."""
    height, male = _standardize(data["height"], 1), data["male"]
    return _table(np.log(data["earn"]), height, male, height * male)


def _kidiq_z_table(data: Data) -> dict[str, Any]:
    """Return scores; standardized features of the mother and their product."""
    school, iq = (_standardize(data[name], 2) for name in ("mom_hs", "mom_iq"))
    return _table(data["kid_score"], school, iq, school * iq)


def _mesquite_table(data: Data) -> dict[str, Any]:
    """Return log weights; logarithms of volume, area, shape, height and density; and the group."""
    first, second = np.log(data["diam1"]), np.log(data["diam2"])
    volume = first + second + np.log(data["canopy_height"])
    sizes = np.log(data["total_height"]), np.log(data["density"])
    return _table(
        np.log(data["weight"]), volume, first + second, first - second, *sizes, data["group"]
    )


def _nes_table(data: Data) -> dict[str, Any]:
    """Return party identification; opinions, groups of age, education, sex and income."""
    ages = [data["age_discrete"] == age for age in (2, 3, 4)]
    names = ("real_ideo", "race_adj"), ("educ1", "gender", "income")
    first, last = ([data[name] for name in part] for part in names)
    return _table(data["partyid7"], *first, *ages, *last)


def _gp_table(data: Data) -> dict[str, Any]:
    """Return counts, and the points of all rows for each."""
    return {"k": data["k"], "point": np.arange(11), "x": np.array([data["x"]])}


def _convert_schools(draws: Data, data: Data) -> dict[str, Any]:
    """Return draws with theta_trans in place of theta."""
    theta = (draws["theta"] - draws["mu"][:, None]) / draws["tau"][:, None]
    return {"mu": draws["mu"], "tau": draws["tau"], "theta_trans": theta}


def _convert_process(draws: Data, data: Data) -> dict[str, Any]:
    """Return draws with f_tilde in place of f."""
    x, rho, alpha = np.asarray(data["x"]), draws["rho"], draws["alpha"]
    shape = np.exp(-((x[:, None] - x) ** 2) / (2 * rho[:, None, None] ** 2))
    roots = np.linalg.cholesky(alpha[:, None, None] ** 2 * shape + JITTER * np.eye(len(x)))
    tilde = np.linalg.solve(roots, draws["f"][..., None])[..., 0]
    return {"rho": rho, "alpha": alpha, "f_tilde": tilde}


def _pick(*names: str) -> Callable[[Data], dict[str, Any]]:
    """Return a function that takes arguments from the data by their names."""
    return lambda data: {name: data[name] for name in names}


POSTERIORS = {
    "ark": Posterior(autoregression, _ark_table),
    "diamonds": Posterior(diamonds, _diamonds_table),
    "earnings": Posterior(flat_regression, _earnings_table),
    "eight_schools": Posterior(eight_schools, _pick("y", "sigma"), _convert_schools),
    "gauss_mix": Posterior(gauss_mix, _pick("y")),
    "gp_pois_regr": Posterior(gp_pois_regr, _gp_table, _convert_process),
    "kidiq": Posterior(
        kidiq, lambda data: _table(data["kid_score"], data["mom_hs"], data["mom_iq"])
    ),
    "kidiq_z": Posterior(flat_regression, _kidiq_z_table),
    "kilpisjarvi": Posterior(
        kilpisjarvi, _pick("x", "y", "pmualpha", "psalpha", "pmubeta", "psbeta")
    ),
    "mesquite": Posterior(flat_regression, _mesquite_table),
    "nes1980": Posterior(flat_regression, _nes_table),
    "nes2000": Posterior(flat_regression, _nes_table),
    "sblrc": Posterior(blr, _pick("X", "y")),
    "sblri": Posterior(blr, _pick("X", "y")),
}
