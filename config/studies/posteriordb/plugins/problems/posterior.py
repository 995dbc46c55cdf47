r"""A posterior of posteriordb, its rows split over agents, with its reference draws.

Each function below is a Stan program of posteriordb, written for NumPyro: the same density of the
same parameters, features standardized over all rows before they are split. Two are sampled in other
parameters than those that were drawn (theta_trans, f_tilde), and the draws are converted. Problems
are sampled in coordinates in which a Gaussian fit to the posterior is standard normal.

Source: M. Magnusson, P. Bürkner and A. Vehtari, posteriordb, version 0.5, 2023.
Needs: NumPyro (the extra ``numpyro``) and the data sets posteriordb_<posterior>.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from concord.contracts import DataSets, Stream
from concord.models.model import install_hint, of_studies
from concord.models.numpyro import from_numpyro
from concord.options import Options
from concord.problems import arrays
from concord.sampling.partition import Partition, check_rows
from concord_studies.datasets import registry
from concord_studies.datasets.registry import verify

from .. import readers

JOB = {"environment": "models", "mem_mb": 2000, "runtime": 15}
JITTER = 1e-10  # of the Gaussian process's covariance, as in the Stan program


class Posterior(NamedTuple):
    """A model: rows, its arguments made of the data, and draws of its own parameters."""

    rows: int
    model: Callable[..., None]
    arguments: Callable[[Mapping[str, Any]], dict[str, Any]]
    draws: Callable[..., dict[str, Any]] = lambda draws, data: draws


def _flat(name: str, count: int) -> Any:
    import numpyro
    from numpyro import distributions as law

    return numpyro.sample(name, law.ImproperUniform(law.constraints.real_vector, (), (count,)))


def _scale(half: Any = None) -> Any:
    """Return sigma: of a law of positive numbers, or flat on them."""
    import numpyro
    from numpyro import distributions as law

    flat = law.ImproperUniform(law.constraints.positive, (), ())
    return numpyro.sample("sigma", flat if half is None else half(law))


def _normal(y: Any, mean: Any, sigma: Any) -> None:
    import numpyro

    with numpyro.plate("row", len(y)):
        numpyro.sample("y", numpyro.distributions.Normal(mean, sigma), obs=y)


def flat_regression(X: Any, y: Any) -> None:
    """Flat on beta and sigma: earnings, nes, mesquite, kidiq_z."""
    _normal(y, X @ _flat("beta", X.shape[1]), _scale())


def kidiq(X: Any, y: Any) -> None:
    """Flat on beta, half-Cauchy on sigma."""
    beta = _flat("beta", X.shape[1])
    _normal(y, X @ beta, _scale(lambda law: law.HalfCauchy(2.5)))


def blr(X: Any, y: Any) -> None:
    """N(0, 10) on beta, half-normal on sigma."""
    import numpyro
    from numpyro import distributions as law

    beta = numpyro.sample("beta", law.Normal(0, 10).expand([X.shape[1]]).to_event(1))
    _normal(y, X @ beta, _scale(lambda law: law.HalfNormal(10.0)))


def autoregression(X: Any, y: Any) -> None:
    """N(0, 10) on alpha and beta, half-Cauchy on sigma; X has the lagged values."""
    import numpyro
    from numpyro import distributions as law

    alpha = numpyro.sample("alpha", law.Normal(0, 10))
    beta = numpyro.sample("beta", law.Normal(0, 10).expand([X.shape[1]]).to_event(1))
    _normal(y, alpha + X @ beta, _scale(lambda law: law.HalfCauchy(2.5)))


def diamonds(X: Any, y: Any) -> None:
    """N(0, 1) on b, Student's t on the intercept and half of it on sigma."""
    import numpyro
    from numpyro import distributions as law

    b = numpyro.sample("b", law.Normal(0, 1).expand([X.shape[1]]).to_event(1))
    intercept = numpyro.sample("Intercept", law.StudentT(3, 8, 10))
    positive = law.constraints.positive
    sigma = numpyro.sample("sigma", law.ImproperUniform(positive, (), ()))
    numpyro.factor("prior_of_sigma", law.StudentT(3, 0, 10).log_prob(sigma) + np.log(2.0))
    _normal(y, intercept + X @ b, sigma)


def kilpisjarvi(x: Any, y: Any, pmualpha: Any, psalpha: Any, pmubeta: Any, psbeta: Any) -> None:
    """Normal on alpha and beta, flat on sigma."""
    import numpyro
    from numpyro import distributions as law

    alpha = numpyro.sample("alpha", law.Normal(pmualpha, psalpha))
    beta = numpyro.sample("beta", law.Normal(pmubeta, psbeta))
    _normal(y, alpha + beta * x, _scale())


def eight_schools(y: Any, sigma: Any) -> None:
    """Schools' effects are mu + tau theta_trans; each theta_trans is of its school's row."""
    import numpyro
    from numpyro import distributions as law

    mu = numpyro.sample("mu", law.Normal(0, 5))
    tau = numpyro.sample("tau", law.HalfCauchy(5))
    with numpyro.plate("row", len(y)):
        theta = numpyro.sample("theta_trans", law.Normal(0, 1))
        numpyro.sample("y", law.Normal(mu + tau * theta, sigma), obs=y)


def gauss_mix(y: Any) -> None:
    """Two normal laws, their means in order; half-normal scales, Beta(5, 5) on the share."""
    import numpyro
    from jax import numpy as jnp
    from numpyro import distributions as law

    mu = numpyro.sample("mu", law.ImproperUniform(law.constraints.ordered_vector, (), (2,)))
    numpyro.factor("prior_of_mu", law.Normal(0, 2).log_prob(mu).sum())
    sigma = numpyro.sample("sigma", law.HalfNormal(2).expand([2]).to_event(1))
    theta = numpyro.sample("theta", law.Beta(5, 5))
    both = law.Categorical(probs=jnp.stack([theta, 1 - theta]))
    with numpyro.plate("row", len(y)):
        numpyro.sample("y", law.MixtureSameFamily(both, law.Normal(mu, sigma)), obs=y)


def gp_pois_regr(k: Any, point: Any, x: Any) -> None:
    """Counts of log rate f = L f_tilde; the prior of f joins all points, whose places all know."""
    import numpyro
    from jax import numpy as jnp
    from numpyro import distributions as law

    rho = numpyro.sample("rho", law.Gamma(25, 4))
    alpha = numpyro.sample("alpha", law.HalfNormal(2))
    tilde = numpyro.sample("f_tilde", law.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    cov = alpha**2 * jnp.exp(-((x.T - x) ** 2) / (2 * rho**2)) + JITTER * jnp.eye(x.shape[1])
    f = jnp.linalg.cholesky(cov) @ tilde
    with numpyro.plate("row", len(k)):
        numpyro.sample("k", law.Poisson(jnp.exp(f[point])), obs=k)


def _table(
    y: str, *columns: Callable[[Mapping[str, Any]], Any] | str | float
) -> Callable[..., Any]:
    """Return what makes features and targets of the data: names of columns, or functions."""

    def arguments(data: Mapping[str, Any]) -> dict[str, Any]:
        def column(of: Any) -> Any:
            if isinstance(of, str):
                return data[of]
            return of(data) if callable(of) else np.full(int(data["N"]), of)

        return {"X": np.column_stack([column(of) for of in columns]).astype(float), "y": data[y]}

    return arguments


def _z(name: str, width: float) -> Callable[[Mapping[str, Any]], Any]:
    return lambda data: (data[name] - data[name].mean()) / (width * data[name].std(ddof=1))


def _product(one: Callable[..., Any], other: Any) -> Callable[[Mapping[str, Any]], Any]:
    return lambda data: one(data) * (other(data) if callable(other) else data[other])


def _logged(arguments: Callable[..., Any]) -> Callable[[Mapping[str, Any]], Any]:
    """Return arguments whose targets are logarithms."""
    return lambda data: (made := arguments(data)) | {"y": np.log(made["y"])}


def _log(*names: str, over: str | None = None) -> Callable[[Mapping[str, Any]], Any]:
    def log(data: Mapping[str, Any]) -> Any:
        found = sum(np.log(data[name]) for name in names)
        return found if over is None else found - np.log(data[over])

    return log


def _is(name: str, value: int) -> Callable[[Mapping[str, Any]], Any]:
    return lambda data: (data[name] == value).astype(float)


def _lagged(data: Mapping[str, Any]) -> dict[str, Any]:
    y, lags = np.asarray(data["y"]), int(data["K"])
    features = np.column_stack([y[lags - k : len(y) - k] for k in range(1, lags + 1)])
    return {"X": features, "y": y[lags:]}


def _centered(data: Mapping[str, Any]) -> dict[str, Any]:
    features = np.asarray(data["X"])[:, 1:]
    return {"X": features - features.mean(axis=0), "y": data["Y"]}


def _schools(draws: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    theta = (draws["theta"] - draws["mu"][:, None]) / draws["tau"][:, None]
    return {"mu": draws["mu"], "tau": draws["tau"], "theta_trans": theta}


def _process(draws: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    x, rho, alpha = np.asarray(data["x"]), draws["rho"], draws["alpha"]
    shape = np.exp(-((x[:, None] - x) ** 2) / (2 * rho[:, None, None] ** 2))
    roots = np.linalg.cholesky(alpha[:, None, None] ** 2 * shape + JITTER * np.eye(len(x)))
    tilde = np.linalg.solve(roots, draws["f"][..., None])[..., 0]
    return {"rho": rho, "alpha": alpha, "f_tilde": tilde}


_height, _hs, _iq = _z("height", 1), _z("mom_hs", 2), _z("mom_iq", 2)
_ages = [_is("age_discrete", age) for age in (2, 3, 4)]
_nes = _table("partyid7", 1.0, "real_ideo", "race_adj", *_ages, "educ1", "gender", "income")
_bushes = _table(
    "weight",
    *(1.0, _log("diam1", "diam2", "canopy_height"), _log("diam1", "diam2")),
    *(_log("diam1", over="diam2"), _log("total_height"), _log("density"), "group"),
)
_trend = ("x", "y", "pmualpha", "psalpha", "pmubeta", "psbeta")

POSTERIORS = {
    "ark": Posterior(195, autoregression, _lagged),
    "diamonds": Posterior(5000, diamonds, _centered),
    "earnings": Posterior(
        1192,
        flat_regression,
        _logged(_table("earn", 1.0, _height, "male", _product(_height, "male"))),
    ),
    "eight_schools": Posterior(
        8, eight_schools, lambda data: {"y": data["y"], "sigma": data["sigma"]}, _schools
    ),
    "gauss_mix": Posterior(1000, gauss_mix, lambda data: {"y": data["y"]}),
    "gp_pois_regr": Posterior(
        11,
        gp_pois_regr,
        lambda data: {"k": data["k"], "point": np.arange(11), "x": np.array([data["x"]])},
        _process,
    ),
    "kidiq": Posterior(434, kidiq, _table("kid_score", 1.0, "mom_hs", "mom_iq")),
    "kidiq_z": Posterior(
        434, flat_regression, _table("kid_score", 1.0, _hs, _iq, _product(_hs, _iq))
    ),
    "kilpisjarvi": Posterior(62, kilpisjarvi, lambda data: {name: data[name] for name in _trend}),
    "mesquite": Posterior(46, flat_regression, _logged(_bushes)),
    "nes1980": Posterior(701, flat_regression, _nes),
    "nes2000": Posterior(476, flat_regression, _nes),
    "sblrc": Posterior(100, blr, lambda data: {"X": data["X"], "y": data["y"]}),
    "sblri": Posterior(100, blr, lambda data: {"X": data["X"], "y": data["y"]}),
}


class Params(Options):
    """Which posterior."""

    posterior: Annotated[Literal[tuple(POSTERIORS)], "its name"]  # type: ignore[valid-type]


def check(params: Params, agents: int) -> None:
    """Refuse more agents than rows."""
    check_rows(POSTERIORS[params.posterior].rows, agents)


def needs(params: Params) -> tuple[str, ...]:
    """Name the data set with data and draws."""
    return (f"posteriordb_{params.posterior}",)


def unavailable() -> str | None:
    """Say what to install where it cannot be computed."""
    return install_hint("NumPyro")


_BUILT: dict[tuple[Any, ...], Any] = {}


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Any:
    """Return the problem, which runs of a process share: it takes seconds to compile."""
    of_rows, resources = arrays.partition_arguments(partition, stream), data_sets.folder
    key = params.posterior, agents, repr(partition.options.plain()), of_rows["seed"], str(resources)
    if key not in _BUILT:
        _BUILT.clear()
        _BUILT[key] = made(params, agents, resources, **of_rows)
    return _BUILT[key]


def made(
    params: Params,
    agents: int,
    resources: Path,
    coordinates: Any = "laplace",
    **more: Any,
) -> Any:
    """Read data and draws, and split the model's rows."""
    of_studies("NumPyro", resources)
    (dataset,), found = needs(params), POSTERIORS[params.posterior]
    names = registry.load_registry()[dataset].files
    files = [verify(f"{dataset}/{name}", resources / dataset / name) for name in names]
    data, draws = readers.posteriordb(*files)
    return from_numpyro(
        found.model,
        **found.arguments(data),
        over="row",
        agents=agents,
        coordinates=coordinates,
        reference=found.draws(draws, data),
        **more,
    )
