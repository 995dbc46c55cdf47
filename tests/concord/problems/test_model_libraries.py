"""Models of PyMC and NumPyro: their sums, what does not split, and posteriors that are known."""

import functools
import warnings

import numpy as np
import pytest

import concord
from concord.errors import ConcordError

pytestmark = pytest.mark.thorough
jax = pytest.importorskip("jax")
pm = pytest.importorskip("pymc")
numpyro = pytest.importorskip("numpyro")
law = numpyro.distributions
jax.config.update("jax_enable_x64", True)

N = 12
RNG = np.random.default_rng(7)
X, Z = RNG.standard_normal((N, 2)), RNG.standard_normal((N, 3))
Y, S = X @ [1.0, -0.5] + 0.4 * RNG.standard_normal(N), RNG.uniform(0.5, 2.0, N)
B, K, G = (Y > 0).astype(int), RNG.poisson(3.0, N), RNG.integers(0, 3, N)
COORDS = {"row": range(N), "feature": range(2), "group": range(3), "place": range(3)}
FIVE, TWO = np.float64(5), np.float64(2)  # which PyTensor does not make single ones
SHARDS = [[0, 5], [1, 2, 3, 6, 7, 11], [8], [4, 9, 10]]


def data(name, values, *more):
    return pm.Data(name, values, dims=("row", *more))


def of_pymc(name):
    """Eight models: local latents, constraints, groups, exposures, several observations a row."""
    with pm.Model(coords=COORDS) as model:
        if name == "regression":
            beta, sigma = pm.Normal("beta", 0, TWO, dims="feature"), pm.HalfCauchy("sigma", 1)
            pm.Normal("y", data("X", X, "feature") @ beta, sigma, observed=Y, dims="row")
        elif name == "logistic":
            beta = pm.Normal("beta", 0, TWO, dims="feature")
            pm.Bernoulli("y", logit_p=data("X", X, "feature") @ beta, observed=B, dims="row")
        elif name == "groups":
            a = pm.Normal("a", 0, pm.HalfNormal("tau", 1), dims="group")
            pm.Normal("y", a[data("g", G)], 1, observed=Y, dims="row")
        elif name == "schools":  # a latent of each row, centered
            mu, tau = pm.Normal("mu", 0, FIVE), pm.HalfCauchy("tau", FIVE)
            theta = pm.Normal("theta", mu, tau, dims="row")
            pm.Normal("y", theta, data("s", S), observed=Y, dims="row")
        elif name == "rates":  # positive latents of each row
            rate = pm.Gamma("rate", 2, pm.Exponential("b", 1), dims="row")
            pm.Poisson("y", rate * data("e", S), observed=K, dims="row")
        elif name == "interval":  # bounds that depend on another parameter
            top = pm.Uniform("top", 1, 3)
            pm.Normal("y", pm.Uniform("mu", -1, top), 1, observed=Y, dims="row")
        elif name == "simplex":
            w = pm.Dirichlet("w", np.ones(3), dims="group")
            pm.NormalMixture("y", w, np.array([-1.0, 0.0, 2.0]), 1, observed=Y, dims="row")
        elif name == "vectors":  # several numbers a row, which depend on each other
            mu = pm.Normal("mu", 0, 1, dims="place")
            pm.MvNormal("y", mu, 0.5 * np.eye(3) + 0.5, observed=Z, dims=("row", "place"))
    return concord.from_pymc, (model,)


def of_numpyro(name):
    """The same models."""
    sample, plate = numpyro.sample, numpyro.plate

    def regression(X, y):
        beta = sample("beta", law.Normal(0, 2).expand([2]).to_event(1))
        sigma = sample("sigma", law.HalfCauchy(1))
        with plate("row", len(y)):
            sample("y", law.Normal(X @ beta, sigma), obs=y)

    def logistic(X, y):
        beta = sample("beta", law.Normal(0, 2).expand([2]).to_event(1))
        with plate("row", len(y)):
            sample("y", law.Bernoulli(logits=X @ beta), obs=y)

    def groups(g, y):
        tau = sample("tau", law.HalfNormal(1))
        with plate("group", 3):
            a = sample("a", law.Normal(0, tau))
        with plate("row", len(y)):
            sample("y", law.Normal(a[g], 1), obs=y)

    def schools(s, y):
        mu, tau = sample("mu", law.Normal(0, 5)), sample("tau", law.HalfCauchy(5))
        with plate("row", len(y)):
            sample("y", law.Normal(sample("theta", law.Normal(mu, tau)), s), obs=y)

    def rates(e, y):
        b = sample("b", law.Exponential(1))
        with plate("row", len(y)):
            sample("y", law.Poisson(sample("rate", law.Gamma(2, b)) * e), obs=y)

    def interval(y):
        top = sample("top", law.Uniform(1, 3))
        mu = sample("mu", law.Uniform(-1, top))
        with plate("row", len(y)):
            sample("y", law.Normal(mu, 1), obs=y)

    def simplex(y):
        w = sample("w", law.Dirichlet(np.ones(3)))
        parts = law.Normal(np.array([-1.0, 0.0, 2.0]), 1)
        with plate("row", len(y)):
            sample("y", law.MixtureSameFamily(law.Categorical(w), parts), obs=y)

    def vectors(y):
        mu = sample("mu", law.Normal(0, 1).expand([3]).to_event(1))
        with plate("row", len(y)):
            sample("y", law.MultivariateNormal(mu, 0.5 * np.eye(3) + 0.5), obs=y)

    arguments = {"regression": (X, Y), "logistic": (X, B), "groups": (G, Y)}
    arguments |= {"schools": (S, Y), "rates": (S, K), "vectors": (Z,)}
    return concord.from_numpyro, (locals()[name], *arguments.get(name, (Y,)))


MODELS = ("regression", "logistic", "groups", "schools", "rates", "interval")
MODELS += ("simplex", "vectors")
HALF_CAUCHY = ("regression", "schools")
LIBRARIES = {"pymc": of_pymc, "numpyro": of_numpyro}


def problem_of(library, name, **more):
    make, arguments = LIBRARIES[library](name)
    return make(*arguments, over="row", **{"shards": SHARDS, **more})


compiled_of = functools.cache(problem_of)  # which takes seconds


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_sums_are_the_joint_density(library, name) -> None:
    problem = compiled_of(library, name)
    x = 0.7 * RNG.standard_normal((5, problem.dim))
    everywhere = np.repeat(x[:, None], 4, axis=1)
    total, joint = -problem.potential(everywhere).sum(axis=1), [problem._split.joint(p) for p in x]
    assert np.abs(total / np.array(joint) - 1).max() < 1e-12
    # and each potential has its gradient
    at, step = RNG.standard_normal((2, 4, problem.dim)) * 0.5, 1e-6 * np.eye(problem.dim)
    rises = [problem.potential(at + h) - problem.potential(at - h) for h in step]
    slope = problem.gradient(at)
    assert np.allclose(np.stack(rises, axis=-1) / 2e-6, slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "simplex"])
def test_the_libraries_agree(name) -> None:
    one, other = compiled_of("pymc", name), compiled_of("numpyro", name)
    x = 0.5 * RNG.standard_normal((2, 4, one.dim))
    apart = one.potential(x) - other.potential(x)
    # PyTensor takes the logarithm of 2 in PyMC's half-Cauchy law in single precision.
    single = abs(float(np.log(np.float32(2))) - np.log(2)) / 4 if name in HALF_CAUCHY else 0.0
    assert np.abs(np.abs(apart) - single).max() < 1e-12 and np.ptp(apart) < 1e-12
    assert np.allclose(one.gradient(x), other.gradient(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["logistic", "schools"])
def test_products_batches_and_minimizers(library, name) -> None:
    problem = problem_of(library, name, shards=None, agents=4)  # three rows each
    x = 0.5 * RNG.standard_normal((2, 4, problem.dim))
    v = RNG.standard_normal(x.shape)
    product = problem.hessian_product(x, v)
    rise = (problem.gradient(x + 1e-5 * v) - problem.gradient(x - 1e-5 * v)) / 2e-5
    assert np.allclose(product, rise, rtol=1e-5, atol=1e-5)
    drawn = [problem.batch_gradient(x, np.full((2, 4, 1), k)) for k in range(3)]
    assert np.allclose(np.mean(drawn, axis=0), problem.gradient(x), rtol=1e-9, atol=1e-9)
    curvature, b = np.full(4, 2.0), RNG.standard_normal(x.shape)
    minimum, cost = problem.minimize(b, curvature, x)
    assert np.abs(problem.gradient(minimum) + 2 * minimum - b).max() < 1e-7
    assert cost.shape == (2, 4) and (cost > 0).all()
    one, alone = problem.minimize(b[:, [2]], curvature, x[:, [2]], [2])
    assert np.allclose(one, minimum[:, [2]], rtol=1e-9) and (alone == cost[:, [2]]).all()
    b[0, 1] = np.nan
    minimum, _ = problem.minimize(b, curvature, x)
    assert np.isnan(minimum[0, 1]).all() and np.isfinite(minimum[1]).all()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("shards", [SHARDS, [[row] for row in range(N)]])
def test_latents_of_all_rows_that_have_no_dimension_are_refused(library, shards) -> None:
    """Beside one row they would broadcast, and every agent count all of them."""
    if library == "pymc":
        with pm.Model(coords=COORDS) as model:
            pm.Normal("y", pm.Normal("a", 0, 1, shape=N), 1, observed=Y, dims="row")
        case = concord.from_pymc, (model,)
    else:

        def model(y):
            a = numpyro.sample("a", law.Normal(0, 1).expand([N]).to_event(1))
            with numpyro.plate("row", len(y)):
                numpyro.sample("y", law.Normal(a, 1), obs=y)

        case = concord.from_numpyro, (model, Y)
    with pytest.raises(ConcordError, match="cannot be computed of an agent's rows alone"):
        case[0](*case[1], over="row", shards=shards)


@pytest.mark.parametrize("library", LIBRARIES)
def test_chains_are_those_of_the_same_built_in_problem(library) -> None:
    names = {"shards": None, "agents": 3, "partition": "consecutive"}
    ours = problem_of(library, "logistic", **names)
    built_in = concord.problems.logistic_regression(
        X, B, agents=3, partition="consecutive", prior_scale=4.0
    )
    steps = {"step_size": 0.05, "iterations": 60, "chains": 20}
    trace = concord.sample("de_sgld", ours, "ring", **steps)
    expected = concord.sample("de_sgld", built_in, "ring", **steps)
    assert np.allclose(trace["x"], expected["x"], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("library", LIBRARIES)
def test_parameters_come_by_name_and_go_back(library) -> None:
    draws = {"rate": RNG.gamma(2, size=(50, N)), "b": RNG.exponential(size=50)}
    make, arguments = LIBRARIES[library]("rates")
    problem = make(*arguments, over="row", shards=SHARDS)
    x = problem.unconstrain(draws)
    back = problem.constrain(x)
    assert all(np.allclose(back[name], draws[name], rtol=1e-12) for name in draws)
    trace = concord.sample("de_sgld", problem, "ring", step_size=1e-3, iterations=20, chains=4)
    posterior = trace.to_arviz().posterior
    assert posterior.rate.dims == ("chain", "draw", "agent", "row")
    assert float(posterior.b.min()) > 0 and "x" not in posterior
    with pytest.raises(ConcordError, match="it has no draws of b; give draws of the model's own"):
        make(*arguments, over="row", shards=SHARDS, reference={"rate": draws["rate"]})


def test_what_is_derived_comes_by_name() -> None:
    """As of docs/your-model.md: both libraries have effects of hospitals."""
    with pm.Model(coords=COORDS) as model:
        mu, z = pm.Normal("mu", 0, FIVE), pm.Normal("z", 0, FIVE, dims="row")
        effect = pm.Deterministic("effect", mu + z, dims="row")
        pm.Normal("y", effect, data("s", S), observed=Y, dims="row")

    def same(s, y):
        mu = numpyro.sample("mu", law.Normal(0, 5))
        with numpyro.plate("row", len(y)):
            z = numpyro.sample("z", law.Normal(0, 5))
            effect = numpyro.deterministic("effect", mu + z)
            numpyro.sample("y", law.Normal(effect, s), obs=y)

    one = concord.from_pymc(model, over="row", shards=SHARDS)
    other = concord.from_numpyro(same, S, Y, over="row", shards=SHARDS)
    x = RNG.standard_normal((2, 3, N + 1))
    for values in (one.constrain(x), other.constrain(x)):
        assert np.allclose(values["effect"], x[..., :1] + x[..., 1:], rtol=1e-12)


def test_agents_and_effects_have_the_hospitals_names() -> None:
    """In the trace, in ArviZ's arrays, in errors, and where all hold all; in two groups, too."""
    names = ["Bern", "Como", "Linz"]
    with pm.Model(coords={"hospital": names, "agent": range(2)}) as model:
        pm.Normal("both", 0, FIVE, dims="agent")
        z = pm.Normal("z", 0, FIVE, dims="hospital")
        pm.Normal("y", z, FIVE, observed=np.arange(3.0), dims="hospital")
    shards = [[2], [0], [1]]
    for local in (False, True):
        problem = concord.from_pymc(model, over="hospital", shards=shards, local=local)
        assert problem.agent_names == ("Linz", "Bern", "Como")
        trace = concord.sample("de_sgld", problem, "ring", step_size=0.1, iterations=9, chains=4)
        posterior = trace.to_arviz().posterior
        assert posterior.z.dims == ("chain", "draw", "agent", "hospital")
        assert posterior.both.dims[3:] == ("both_dim_0",)
        own = posterior.z.sel(agent="Como", hospital="Como")
        assert np.isfinite(own).all()
        assert np.isnan(posterior.z.sel(agent="Como", hospital="Linz")).all() == local
    assert concord.share_all(problem).coordinate_names[2:] == (
        "x[2] of Linz",
        "x[2] of Bern",
        "x[2] of Como",
    )
    with pytest.raises(ConcordError, match="the draws of Linz after iteration 6"):
        concord.w2(trace, problem, warm_up=6)
    pair = concord.from_pymc(model, over="hospital", shards=[[0, 1], [2]], local=True)
    assert pair.agent_names is None


def test_numbers_that_are_of_no_row_are_data_without_a_dimension() -> None:
    """Three places, and three rows: nothing says of which the numbers are."""

    def model(wrap):
        with pm.Model(coords={"row": range(3), "place": range(3)}) as pymc_model:
            cov = wrap(0.5 * np.eye(3) + 0.5)
            mu = pm.Normal("mu", 0, 1, dims="place")
            pm.MvNormal("y", mu, cov, observed=Z[:3], dims=("row", "place"))
        return pymc_model

    with pytest.raises(ConcordError, match="if its entries are no rows"):
        concord.from_pymc(model(lambda cov: cov), over="row", agents=3)
    pymc_model = model(lambda cov: pm.Data("cov", cov))
    assert concord.from_pymc(pymc_model, over="row", agents=3).agents == 3


def test_missing_features_are_said_to_be() -> None:
    """PyMC refuses them itself, where they are made data."""

    def model(X, y):
        beta = numpyro.sample("beta", law.Normal(0, 2).expand([2]).to_event(1))
        with numpyro.plate("row", len(y)):
            numpyro.sample("y", law.Normal(X @ beta, 1), obs=y)

    features = np.where(np.arange(2 * N).reshape(N, 2) == 3, np.nan, X)
    with pytest.raises(ConcordError, match="is nan near its start; remove missing values"):
        concord.from_numpyro(model, features, Y, over="row", agents=3)


def mistaken_pymc(what):
    """Return a PyMC model that does not split, and what is said of it."""
    coords = {} if what == "no dims" else COORDS
    with pm.Model(coords=coords) as model:
        mu, features = pm.Normal("mu", 0, 1), pm.Normal("beta", 0, 1, shape=2)
        if what == "no dims":
            pm.Normal("y", mu, 1, observed=Y)
            return model, "has no dimension 'row'"
        if what == "observed without":
            pm.Normal("y", mu, 1, observed=Y)
            return model, "y is observed and has no dimension 'row'"
        if what == "constants":
            pm.Normal("y", X @ features, 1, observed=Y, dims="row")
            return model, "constant of shape .12, 2. .*wrap it, pymc.Data"
        if what == "centered":
            x = data("X", X, "feature")
            pm.Normal("y", (x - x.mean(axis=0)) @ features, 1, observed=Y, dims="row")
            return model, "add up to another log density"
        if what == "discrete":
            z = pm.Bernoulli("z", 0.5)
            pm.Normal("y", mu + z, 1, observed=Y, dims="row")
            return model, "z is a discrete latent"
        if what == "one number":
            pm.MvNormal("y", mu, np.eye(N), observed=Y, dims="row")
            return model, "one number for all rows"
        if what == "total size":
            pm.Normal("y", mu, 1, observed=Y, dims="row", total_size=100)
            return model, "y has total_size"
        missing = np.ma.masked_array(Y, np.arange(N) == 3)
        with pytest.warns(pm.exceptions.ImputationWarning):
            pm.Normal("y", mu, 1, observed=missing, dims="row")
        return model, "y has missing values"


MISTAKES = ("no dims", "observed without", "constants", "centered", "discrete", "one number")


@pytest.mark.parametrize("what", [*MISTAKES, "total size", "missing"])
def test_pymc_models_that_do_not_split(what) -> None:
    model, sentence = mistaken_pymc(what)
    with pytest.raises(ConcordError, match=sentence):
        concord.from_pymc(model, over="row", agents=4)


def mistaken_numpyro(what):
    """Return a NumPyro model that does not split, its arguments, and what is said of it."""
    sample, plate = numpyro.sample, numpyro.plate

    def model(X, y):
        mu = sample("mu", law.Normal(X[:, 0].mean() if what == "prior" else 0.0, 1))
        if what == "discrete":
            mu = mu + sample("z", law.Bernoulli(0.5))
        if what == "one number":
            return sample("y", law.MultivariateNormal(mu * np.ones(N), np.eye(N)), obs=y)
        if what == "observed without":
            return sample("y", law.Normal(mu, 1).expand([len(y)]).to_event(1), obs=y)
        if what == "constants":
            with plate("row", N):
                return sample("y", law.Normal(mu + S, 1), obs=y)
        if what == "subsampled":
            with plate("row", len(y), subsample_size=4):
                return sample("y", law.Normal(mu, 1), obs=numpyro.subsample(y, event_dim=0))
        if what == "centered":
            mu = mu * (X - X.mean(axis=0))[:, 0]
        with plate("rows" if what == "no plate" else "row", len(y)):
            return sample("y", law.Normal(mu, 1), obs=y)

    y = np.where(np.arange(N) == 3, np.nan, Y) if what == "missing" else Y
    return model, (X, y)


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("no plate", r"has no plate 'row' \(it has: rows\)"),
        ("observed without", "has no plate 'row'"),
        ("one number", "has no plate 'row'"),
        ("constants", "cannot be computed of an agent's rows alone"),
        ("subsampled", r"the plate row is subsampled \(4 of 12\)"),
        ("centered", "add up to another log density"),
        ("prior", "add up to another log density"),
        ("discrete", "z is a discrete latent"),
        ("missing", "y has missing values"),
    ],
)
def test_numpyro_models_that_do_not_split(what, sentence) -> None:
    model, arguments = mistaken_numpyro(what)
    with pytest.raises(ConcordError, match=sentence):
        concord.from_numpyro(model, *arguments, over="row", agents=4)


def test_an_observation_outside_of_the_plate_beside_one_inside() -> None:
    def model(y):
        mu = numpyro.sample("mu", law.Normal(0, 1))
        numpyro.sample("extra", law.Normal(mu, 1), obs=0.3)
        with numpyro.plate("row", len(y)):
            numpyro.sample("y", law.Normal(mu, 1), obs=y)

    with pytest.raises(ConcordError, match="extra is observed outside of the plate 'row'"):
        concord.from_numpyro(model, Y, over="row", agents=3)


@pytest.mark.parametrize("library", LIBRARIES)
def test_single_precision_is_refused(library) -> None:
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ConcordError, match="jax_enable_x64"):
            problem_of(library, "interval")
    finally:
        jax.config.update("jax_enable_x64", True)


EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCALES = np.array([1.0, 300.0, 0.1])  # of columns
FIRST = {"network": "ring", "step_size": 0.05, "iterations": 400, "chains": 4}


def eight_schools(centered, **options):
    def model(y, s):
        mu, tau = numpyro.sample("mu", law.Normal(0, 5)), numpyro.sample("tau", law.HalfCauchy(5))
        with numpyro.plate("row", len(y)):
            around = law.Normal(mu, tau) if centered else law.Normal(0, 1)
            z = numpyro.sample("z", around)
            numpyro.sample("y", law.Normal(z if centered else mu + tau * z, s), obs=y)

    return concord.from_numpyro(model, EFFECTS, ERRORS, over="row", agents=8, **options)


def unlike_columns(library, **options):
    """Logistic regression, whose columns have spreads from 0.1 to 300."""
    rng = np.random.default_rng(0)
    X, coefficients = rng.standard_normal((200, 3)), np.array([1.0, -1.0, 1.0])
    y = (rng.random(200) < 1 / (1 + np.exp(-X @ coefficients))).astype(int)
    X = X * SCALES

    def model(X, y):
        beta = numpyro.sample("beta", law.Normal(0, 100).expand([3]).to_event(1))
        with numpyro.plate("row", len(y)):
            numpyro.sample("y", law.Bernoulli(logits=X @ beta), obs=y)

    if library == "numpyro":
        return concord.from_numpyro(model, X, y, over="row", agents=4, **options)
    with pm.Model(coords={"row": range(200), "feature": range(3)}) as other:
        beta = pm.Normal("beta", 0, np.float64(100), dims="feature")
        features = pm.Data("X", X, dims=("row", "feature"))
        pm.Bernoulli("y", logit_p=features @ beta, observed=y, dims="row")
    return concord.from_pymc(other, over="row", agents=4, **options)


def test_a_first_fit_of_eight_schools_does_not_diverge():
    with pytest.raises(ConcordError, match=r"there is no 'laplace' fit, since .* write them as mu"):
        eight_schools(centered=True, coordinates="laplace")
    problem = eight_schools(centered=False, coordinates="laplace")
    with warnings.catch_warnings():
        warnings.simplefilter("error", concord.DivergenceWarning)
        trace = concord.sample("de_sgld", problem, **FIRST)
    mu = problem.constrain(trace["x"][:, 200:])["mu"]
    assert 3 < mu.mean() < 6 and 2 < mu.std() < 5  # 4.4 and 3.3 by long runs of NUTS


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_first_fit_with_unlike_columns_warns_and_says_what_helps(library):
    problem = unlike_columns(library)
    with pytest.warns(
        concord.DivergenceWarning, match="do not settle; take a smaller step_size, b"
    ):
        concord.sample("de_sgld", problem, **FIRST)
    with pytest.warns(
        concord.DivergenceWarning, match=r"laplace'.* concord\.recommend\(problem, n"
    ):
        concord.sample("de_sgld", problem, **FIRST)
    fitted = unlike_columns(library, coordinates="laplace")
    with warnings.catch_warnings():
        warnings.simplefilter("error", concord.DivergenceWarning)
        trace = concord.sample("de_sgld", fitted, **FIRST)
    beta = fitted.constrain(trace["x_average"][:, 200:])["beta"].mean(axis=(0, 1))
    assert np.abs(beta * SCALES - [1, -1, 1]).max() < 0.8  # posterior sds are about 0.2
