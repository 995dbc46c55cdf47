"""The Python API: the exact laws' numbers, and the sentences of wrong input."""

import doctest
import importlib
import inspect
import operator
import re
import subprocess
import sys
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import concord
from concord import distances
from concord.errors import ConcordError
from concord.laws import wasserstein
from concord.problems.gaussian_fit import find_mode, gradient_field
from concord.samplers.de_sgld import DESGLD
from concord.sampling.trace import Trace

SOURCE = Path(concord.__file__).parent
DOCUMENTED = [
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text()
]
PROBLEMS = [f"problems.{path.stem}" for path in SOURCE.glob("problems/kinds/[a-z]*.py")]
EXTRAS = {  # libraries that examples need and the package does not
    "concord.distances": ("arviz_stats",),
    "concord.models.jax_weights": ("jax",),
    "concord.models.numpyro": ("numpyro",),
    "concord.models.pymc": ("pymc",),
    "concord.models.torch_weights": ("torch",),
    "concord.sampling.trace": ("arviz_stats",),
    "concord.sampling.trace_files": ("h5netcdf",),
}
AGENTS, DIM = 5, 2


def quadratic(seed: int = 0) -> concord.Problem:
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((AGENTS, DIM, DIM))
    gram = roots @ roots.swapaxes(1, 2) / 2 + 0.3 * np.eye(DIM)
    return concord.problems.quadratic(gram, rng.standard_normal((AGENTS, DIM)))


def quadratic_of_functions() -> concord.Problem:
    """The same problem, as somebody else's functions."""
    problem = quadratic()
    gram, shift = problem.gram, problem.shift

    def gradient(x):
        return np.einsum("ade,cae->cad", gram, x) - shift

    def prox(v, step):
        matrices = gram + np.eye(DIM) / step[:, None, None]
        return np.linalg.solve(matrices, (shift + v / step[:, None])[..., None])[..., 0]

    def hessian_product(x, v):
        return np.einsum("ade,cae->cad", gram, v)

    functions = {"prox": prox, "hessian_product": hessian_product}
    return concord.Problem(
        gradient, agents=AGENTS, dim=DIM, posterior=problem.posterior, **functions
    )


def test_import_is_fast_and_knows_its_names():
    code = "import concord, sys; print(dir(concord), *sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=SOURCE.parent
    )
    names, *loaded = done.stdout.split("\n")
    assert {"sample", "law", "problems", "Problem", "network"} <= set(eval(names))
    assert not {"numpy", "xarray", "concord_studies.runs"} & set(loaded)
    stub = (SOURCE / "__init__.pyi").read_text()
    assert set(re.findall(r" as (\w+)$", stub, re.M)) == set(concord._PUBLIC)
    with pytest.raises(AttributeError, match="no attribute 'smaple'"):
        concord.smaple  # noqa: B018


@pytest.mark.parametrize(
    "name",
    [n for n in concord._PUBLIC if n not in ("problems", "ConcordError", "DivergenceWarning")],
)
def test_what_is_public_is_documented(name):
    member = getattr(concord, name)
    for parameter in inspect.signature(member).parameters:
        assert re.search(rf"\b{parameter}\b", member.__doc__), parameter


@pytest.mark.parametrize("name", [*concord._PUBLIC, *PROBLEMS])
def test_what_is_public_has_an_example(name):
    member = operator.attrgetter(name)(concord)
    assert name == "problems" or "\nExamples\n--------\n>>> " in inspect.getdoc(member)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_of_docstrings_run(name, tmp_path, monkeypatch):
    for library in EXTRAS.get(name, ()):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted and not outcome.failed


def test_few_chains_are_refused_draw_by_draw_and_pooled_after_a_warm_up(monkeypatch):
    """The truth is the law's: 357 of 360 such intervals contain it (60 seeds)."""
    pytest.importorskip("arviz_stats")
    problem, steps = quadratic(), {"step_size": 0.2, "iterations": 2000}
    few = concord.sample("de_sgld", problem, "ring", chains=4, seed=3, **steps)
    with pytest.raises(ConcordError, match=r"4 chains are too few .* dimension 2 draw by draw"):
        concord.w2(few, problem.posterior)
    law = concord.law("de_sgld", problem, "ring", **steps)
    exact = concord.w2(law, problem.posterior, warm_up=200).value
    pooled = concord.w2(few, problem.posterior, warm_up=200)
    assert ((pooled.lo <= exact) & (exact <= pooled.hi)).all()
    assert (pooled.draws < 4 * 1800).all() and (pooled.floor > 0).all()
    assert abs(pooled.value - exact).max() < 3 * pooled.floor.max()
    with pytest.raises(ConcordError, match=r"worth \d+ independent ones, too few"):
        concord.w2(few, problem.posterior, warm_up=1990)
    monkeypatch.setattr(distances, "effective_sample_size", lambda draws: 19.6)
    with pytest.raises(ConcordError, match=r"worth 19 .* until they are worth 20"):
        concord.w2(few, problem.posterior, warm_up=200)
    monkeypatch.undo()
    table = concord.compare({"few": few, "law": law}, problem.posterior, warm_up=200)
    assert (
        table.w2["few"] == pooled.value[:AGENTS].max() and table.w2["law"] == exact[:AGENTS].max()
    )
    assert (table.bias2_lo["few"] <= table.bias2).all()
    many = concord.sample("de_sgld", problem, "ring", chains=20, step_size=0.05, iterations=20)
    assert set(concord.w2(many, problem.posterior)) == {"value", "lo", "hi", "floor"}


def test_chains_that_mini_batches_make_heavy_tailed_have_no_interval():
    """A step multiplies x by one minus that of a point, which now and then enlarges it."""
    pytest.importorskip("arviz_stats")
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((60, 1)), rng.standard_normal(60)
    problem = concord.problems.linear_regression(X, X[:, 0] + noise, agents=3)
    steps = {"step_size": 0.6 / problem.gram.max(), "iterations": 400}
    trace = concord.sample("de_sgld", problem, "complete", batch_size=1, **steps)
    for distance in (
        concord.w2(trace, problem).isel(draw=-1),
        concord.w2(trace, problem, warm_up=200),
    ):
        heavy = distance.isel(agent=[1, -1])  # agent 1 and the average
        assert np.isfinite(heavy.value).all() and (heavy.lo == 0).all() and np.isinf(heavy.hi).all()
    assert np.isinf(concord.compare([trace], problem, warm_up=200).w2_hi).all()
    sound = concord.w2(concord.sample("de_sgld", problem, "complete", **steps), problem)
    assert np.isfinite(sound.hi).all()


def test_pooled_intervals_hold_the_distance_as_often_as_they_say():
    """Independent draws in place of time: at least 0.95 less four standard errors of 200 trials."""
    target = concord.Gaussian(np.array([1.0, 0.0]), np.array([[1.0, 0.3], [0.3, 0.5]]))
    rng, shift, hits = np.random.default_rng(7), np.array([0.3, 0.0]), 0
    for _ in range(200):
        mean, cov = wasserstein.fit(target.sample(60, rng) + shift)
        fitted = concord.Gaussian(mean, cov)
        squares = wasserstein.w2(*wasserstein.refits(fitted, 60, 200, rng), target) ** 2
        lo, hi = wasserstein.correct_interval(squares, wasserstein.w2(mean, cov, target))
        hits += lo <= 0.3 <= hi
    assert hits / 200 >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 200)


def test_one_chain_has_no_interval():
    pytest.importorskip("arviz_stats")
    problem, steps = quadratic(), {"step_size": 0.2, "iterations": 2000, "chains": 1}
    alone = concord.sample("de_sgld", problem, "ring", **steps)
    for distance in (
        concord.w2(alone, problem.posterior, warm_up=200),
        concord.bias2(alone, problem.posterior, warm_up=200),
        concord.bias2(alone, problem.posterior),
    ):
        assert np.isfinite(distance.value).all()
        assert np.isnan(distance.lo).all() and np.isnan(distance.hi).all()
    table = concord.compare([alone], problem.posterior, warm_up=200)
    assert np.isfinite(table.w2).all() and np.isnan(table.w2_lo).all()


def test_arviz_gets_no_warm_up():
    problem, steps = quadratic(), {"step_size": 0.05, "iterations": 50, "chains": 2}

    def draws(trace, **options):
        return trace.to_arviz(**options).posterior.draw.values.tolist()

    trace = concord.sample("de_sgld", problem, "ring", **steps)
    assert draws(trace) == list(range(5, 51)) and draws(trace, warm_up=0) == list(range(1, 51))
    assert draws(trace, warm_up=48) == [49, 50]
    assert trace.to_arviz().sample_stats.draw.size == 46
    asked = concord.sample("de_sgld", problem, "ring", record={"burn_in": 20}, **steps)
    assert draws(asked) == list(range(21, 51))
    with pytest.raises(ConcordError, match="no iteration is recorded after 50, the last is 50"):
        trace.to_arviz(warm_up=50)


def warning_of(function):
    """Return what a function returns, and its one warning, which is of the caller's line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    (warning,) = caught
    assert warning.category is concord.DivergenceWarning and warning.filename == __file__
    return result, str(warning.message)


def test_divergence_warns_once_a_call():
    """With its share of chains, its first iteration, and the largest step that is stable."""
    problem, steps = quadratic(), {"iterations": 300, "step_size": 2.0}
    trace, text = warning_of(lambda: concord.sample("de_sgld", problem, "ring", chains=30, **steps))
    first = trace["diverged_at"].min()
    assert f"de_sgld: 30 of 30 chains diverged, the first at iteration {first}; take a" in text
    steps["step_size"] = 0.98 * float(re.search(r"below ([\d.]+)", text)[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        concord.law("de_sgld", problem, "ring", **steps)
        sound = concord.sample("de_sgld", problem, "ring", chains=30, **steps)
    steps["step_size"] = 2.0
    law, text = warning_of(lambda: concord.law("de_sgld", problem, "ring", **steps))
    assert "de_sgld: the law diverges, seen first at iteration " in text
    for result in (trace, law):
        text = warning_of(lambda one=result: concord.w2(one, problem.posterior))[1]
        assert text.startswith("w2: ")
    results = {"one": trace, "sound": sound, "exact": law}
    table, text = warning_of(lambda: concord.compare(results, problem.posterior))
    assert "of one 30 of 30 chains" in text and "of exact the law" in text and "sound" not in text
    assert np.isinf(table.w2["one"]) and np.isfinite(table.w2["sound"])


def test_divergence_without_an_exact_law_names_a_step_and_recommend():
    """The step is the stable one at the mode, below which the linearized law settles."""
    X = np.random.default_rng(0).standard_normal((60, 2))
    problem = concord.problems.logistic_regression(X, X[:, 0] > 0, agents=3)
    run = {"sampler": "de_sgld", "problem": problem, "network": "ring", "iterations": 200}
    _, text = warning_of(lambda: concord.sample(step_size=50.0, chains=3, **run))
    assert text.endswith("concord.recommend(problem, network, ...) chooses one")
    limit = float(re.search(r"below ([\d.]+) by the posterior's curvature at its mode", text)[1])
    _, hessians = find_mode(gradient_field(problem), 3, np.zeros(2))
    shifted = concord.problems.quadratic(hessians, np.zeros((3, 2)))
    spread = [
        concord.law("de_sgld", shifted, "ring", step_size=part * limit, iterations=2000).cov[-1]
        for part in (0.95, 0.98)
    ]
    assert np.isfinite(spread).all() and np.max(spread) < 100
    with pytest.warns(concord.DivergenceWarning):
        concord.law("de_sgld", shifted, "ring", step_size=1.05 * limit, iterations=2000)


def columns_of(scales):
    """Features and labels of 200 patients whose columns have these standard deviations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    return X * scales, (rng.random(200) < 1 / (1 + np.exp(-X @ [1, -1, 1]))) + 0


def test_columns_of_unlike_scales_are_warned_of_before_a_first_fit():
    """Of logistic regression, whose chains do not diverge: bounded gradients throw them about."""
    X, y = columns_of([1, 1000, 0.01])
    problem = concord.problems.logistic_regression(X, y, agents=4, prior_scale=1e4)
    run = {"sampler": "de_sgld", "network": "ring", "iterations": 300, "chains": 2}
    trace, text = warning_of(lambda: concord.sample(problem=problem, step_size=0.01, **run))
    assert (trace["diverged_at"] < 0).all()
    assert text.startswith("de_sgld: step_size 0.01 is so large that its chains do not settle; ")
    assert text.endswith(
        "; scale the columns of X to spreads that are alike; concord.recommend(problem, network, "
        "...) chooses one"
    )
    limit = float(re.search(r"smaller step_size, below (\S+) by the posterior's", text)[1])
    scaled = concord.problems.logistic_regression(*columns_of([1, 1, 1]), agents=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        concord.sample(problem=problem, step_size=0.9 * limit, **run)
        drawn = concord.sample(problem=scaled, step_size=0.01, **run)["x_average"][:, 150:]
    assert (np.abs(drawn.mean(axis=(0, 1)) - [1, -1, 1]) < 1).all()


def test_columns_so_unlike_that_no_step_suits_them_are_warned_of():
    X, y = columns_of([1, 1000, 0.01])
    problem = concord.problems.logistic_regression(
        X + np.array([0, 5000, 0]), y, agents=4, prior_scale=1e4
    )
    _, text = warning_of(lambda: call(problem=problem, chains=2))
    assert "do not settle; no step_size suits all coordinates; scale the columns of X" in text


def test_a_gradient_that_is_not_a_number_warns():
    with pytest.warns(concord.DivergenceWarning, match="5 of 5 chains .* iteration 1; gradient"):
        call(problem=shaped(lambda x: x * np.nan), chains=5)


def test_a_gradient_that_is_not_finite_is_told_with_agent_iteration_and_point():
    start = {"kind": "normal", "mean": 0.5, "sd": 0.0}

    def slope(x):  # of agent 1, whose support ends where the first step leads
        outside = (np.arange(AGENTS) == 1)[:, None] & (x < 0.4)
        return np.where(outside, np.nan, 100.0)

    names = ["Oslo", "Bergen", "Narvik", "Bodø", "Vardø"]
    for agents, whose in ((AGENTS, "1"), (names, "Bergen")):
        problem = concord.Problem(slope, agents=agents, dim=DIM)
        trace, text = warning_of(
            lambda target=problem: call(problem=target, initial=start, record={"at": [3]})
        )
        point = text.partition("x = (")[2].partition(")")[0]
        assert text.startswith(
            "de_sgld: 2 of 2 chains diverged, the first at iteration 2; gradient"
        )
        assert f"it returned [nan, nan] at iteration 1 of agent {whose}, x = ({point}), " in text
        assert text.endswith("unless the point is outside the support, which no step size mends")
        assert all(float(value) < 0.4 for value in point.split(", ")) and (trace["x"] != 0).any()


SAMPLERS = {
    "de_sgld": {"step_size": 0.05},
    "de_sghmc": {"step_size": 0.1, "friction": 2.0},
    "d_ula": {"step_size": 0.01, "fusion": 0.2},
    "admm": {"penalty": 1.0},
    "d_mala": {"step_size": 0.1, "drift": "half", "correction": "mala"},
}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_functions_of_ones_own_are_sampled_like_the_problem_that_has_them(sampler):
    options = {"iterations": 10, "chains": 4, **SAMPLERS[sampler]}
    graph = nx.path_graph(AGENTS)
    expected, draws = (
        concord.sample(sampler, problem, graph, **options)["x"]
        for problem in (quadratic(), quadratic_of_functions())
    )
    np.testing.assert_allclose(draws, expected, rtol=1e-8, atol=1e-10)


def test_rows_go_to_agents_as_asked():
    X = np.arange(12.0).reshape(6, 2)
    y = X[:, 0]
    consecutive = concord.problems.linear_regression(X, y, agents=3, partition="consecutive")
    lists = concord.problems.linear_regression(np.split(X, 3), y.reshape(3, 2).tolist())
    np.testing.assert_array_equal(consecutive.gram, lists.gram)
    np.testing.assert_array_equal(consecutive.shift, lists.shift)
    spread = concord.problems.linear_regression(X, y, agents=3)
    np.testing.assert_allclose(spread.posterior.mean, consecutive.posterior.mean)


def test_progress_changes_nothing(capsys):
    pytest.importorskip("tqdm")
    arguments = {"step_size": 0.1, "iterations": 3, "chains": 60}
    quiet = concord.sample("de_sgld", quadratic(), "ring", **arguments)
    assert capsys.readouterr().err == ""  # this is no terminal
    shown = concord.sample("de_sgld", quadratic(), "ring", progress=True, **arguments)
    np.testing.assert_array_equal(shown["x"], quiet["x"])
    assert "6/6" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("library", "use", "sentence"),
    [
        ("tqdm", lambda x, of, path: call(progress=True), "progress=True needs the package tqdm"),
        ("h5netcdf", lambda x, of, path: x.save(path), "a file of a trace needs the package"),
        ("arviz_stats", lambda x, of, path: concord.w2(x, of, warm_up=3), "warm_up needs the"),
    ],
)
def test_a_package_that_is_missing_is_named(library, use, sentence, monkeypatch, tmp_path):
    trace = call(chains=40, iterations=200)
    monkeypatch.setitem(sys.modules, library, None)
    for module in [name for name in sys.modules if name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ConcordError, match=f"^{sentence}.*, which is missing; run 'pip install"):
        use(trace, quadratic().posterior, tmp_path / "trace.nc")


def test_samplers_start_alike_and_have_noise_of_their_own():
    options = {"iterations": 1, "chains": 3, "step_size": 0.1}
    one = concord.sample("de_sgld", quadratic(), "ring", **options)["x"]
    other = concord.sample("de_sghmc", quadratic(), "star", friction=1.0, **options)["x"]
    np.testing.assert_array_equal(one[:, 0], other[:, 0])
    np.testing.assert_array_equal(concord.sample(DESGLD, quadratic(), "ring", **options)["x"], one)
    del options["step_size"]
    of_object = concord.sample(DESGLD(0.1), quadratic(), "ring", **options)
    np.testing.assert_array_equal(of_object["x"], one)


def exact_draws(target, count=4000):
    rng = np.random.default_rng(3)
    x = rng.multivariate_normal(target.mean, target.cov, (count, 1, 1))
    gone = np.full(count, -1)
    variables = {"x": (("chain", "draw", "agent", "dim"), x), "diverged_at": (("chain",), gone)}
    return Trace(variables, np.array([7]), np.array([0]))


def test_distances_of_exact_draws_and_of_a_shift():
    problem = quadratic()
    target = problem.posterior
    for distance in (concord.w2, concord.bias2):
        interval = distance(exact_draws(target), target).isel(draw=0, agent=0)
        assert interval.lo == 0 and 0 < interval.value < 0.1 and interval.value < interval.hi
    shift = 3 * np.sqrt(target.cov[0, 0]) * np.array([1, 0])
    shifted = concord.Gaussian(target.mean + shift, target.cov)
    interval = concord.bias2(exact_draws(shifted), target).isel(draw=0, agent=0)
    second = ((shifted.mean[0] ** 2 - target.mean[0] ** 2) ** 2) / (
        2 * target.cov[0, 0] ** 2 + 4 * target.mean[0] ** 2 * target.cov[0, 0]
    )
    assert interval.lo < max(9, second) < interval.hi
    trace = exact_draws(target)
    trace.variables["diverged_at"] = ("chain",), np.r_[5, np.full(3999, -1)]
    for distance in (concord.w2, concord.bias2):
        with pytest.warns(concord.DivergenceWarning, match="1 of 4000 chains"):
            assert np.isinf(distance(trace, target).value).all()


def test_bias2_of_a_law_is_that_of_its_draws():
    problem = quadratic()
    law = concord.law("de_sgld", problem, "ring", step_size=0.2, iterations=5)
    trace = concord.sample("de_sgld", problem, "ring", step_size=0.2, iterations=5, chains=3000)
    exact, drawn = (concord.bias2(result, problem.posterior) for result in (law, trace))
    inside = (drawn.lo <= exact.value) & (exact.value <= drawn.hi)
    assert inside.mean() > 0.9 and exact.value.dims == ("draw", "agent")
    assert exact.agent.values.tolist() == [0, 1, 2, 3, 4, "average"]


def test_a_comparison_has_a_row_for_each():
    problem, options = quadratic(), {"step_size": 0.02, "iterations": 20, "chains": 60}
    traces = [
        concord.sample("de_sgld", problem, "ring", **options),
        concord.sample("de_sgld", problem, "ring", seed=2, **options),
        concord.sample("gossip_ula", problem, "ring", **options),
    ]
    table = concord.compare(traces, problem.posterior)
    assert table.index.tolist() == ["de_sgld", "de_sgld (2)", "gossip_ula"]
    assert table.unicasts.iloc[0] == 40 and table.broadcasts.iloc[0] == 20
    assert table.updates.tolist() == [20, 20, 20 * 2 / AGENTS]
    worst = concord.w2(traces[0], problem.posterior).value.sel(draw=20)[:AGENTS].max()
    assert table.w2.iloc[0] == worst and (table.w2_lo <= table.w2).all()
    law = concord.law("de_sgld", problem, "ring", step_size=0.02, iterations=20)
    exact = concord.compare({"exact": law, "drawn": traces[0]}, problem.posterior)
    assert exact.chains.tolist() == [0, 60] and np.isnan(exact.w2_lo["exact"])
    assert "w2" not in concord.compare(traces)


def call(sampler="de_sgld", problem=None, network="ring", **options):
    arguments = {"step_size": 0.01, "iterations": 3, "chains": 2} | options
    return concord.sample(sampler, problem or quadratic(), network, **arguments)


def shaped(function):
    return concord.Problem(function, agents=AGENTS, dim=DIM)


def test_a_gradient_cannot_move_the_chains():
    def gradient(x):
        x -= 1
        return x

    with pytest.raises(ValueError, match="read-only"):
        call(problem=shaped(gradient))


def test_a_product_with_a_hessian_of_another_shape_is_refused():
    wrong = concord.Problem(np.sinh, agents=AGENTS, dim=DIM, hessian_product=lambda x, v: v[0])
    with pytest.raises(ConcordError, match=r"hessian_product: it returned an array of shape"):
        call("d_mala", wrong, drift="half", correction="mala")


def covered(values, *place):
    """Return a masked array, of which one entry is masked."""
    array = np.ma.masked_array(values, mask=np.zeros(np.shape(values), dtype=bool))
    array[place] = np.ma.masked
    return array


ONES, X_OF_3 = np.ones(3), np.eye(3)
MASKED = {
    "X": lambda of: concord.problems.linear_regression(of(X_OF_3, 1, 1), ONES, 1),
    "H": lambda of: concord.problems.quadratic([of(np.eye(2), 0, 1), np.eye(2)], np.ones((2, 2))),
    "Gaussian: cov": lambda of: concord.Gaussian(ONES, of(X_OF_3, 0, 1)),
    "network": lambda of: concord.network(of(1 - X_OF_3, 0, 1)),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_entries_are_refused_and_masks_of_nothing_are_not(name):
    MASKED[name](lambda values, *place: np.ma.masked_array(values))
    with pytest.raises(ConcordError) as caught:
        MASKED[name](covered)
    assert str(caught.value) == (
        f"{name}: masked entries would count as if they were not masked; give values in their "
        "place, as .filled(...) does, or leave their rows out"
    )


def test_no_seed_draws_a_fresh_one_that_the_trace_records():
    one, other = (call(seed=None) for _ in range(2))
    assert (one["x"] != other["x"]).any()
    seed = int(one.attributes["seed"])
    np.testing.assert_array_equal(call(seed=seed)["x"], one["x"])
    assert 0 <= seed < 2**53 and one.attributes["seed"] != other.attributes["seed"]


def test_no_seed_of_a_problem_splits_its_rows_anew():
    X = np.random.default_rng(0).standard_normal((40, 2))
    problems = [concord.problems.linear_regression(X, X[:, 0], 4, seed=s) for s in (None, None, 1)]
    one, other, seeded = (str(problem.gram) for problem in problems)
    assert one != other
    assert seeded == str(concord.problems.linear_regression(X, X[:, 0], 4, rng=1).gram)


def test_rng_takes_the_place_of_a_seed():
    np.testing.assert_array_equal(call(rng=5)["x"], call(seed=5)["x"])
    rngs = np.random.default_rng(7), np.random.default_rng(7)
    one, other = (call(rng=rng) for rng in rngs)
    np.testing.assert_array_equal(one["x"], other["x"])
    np.testing.assert_array_equal(call(seed=int(one.attributes["seed"]))["x"], one["x"])
    assert (call(rng=rngs[0])["x"] != one["x"]).any()


class Stray:
    def step(self, state, k, problem, network, rng):
        return state


def test_a_class_of_no_sampler_is_refused():
    with pytest.raises(
        ConcordError, match=r"^sampler: .*Stray.* is no sampler; give its name, such as"
    ):
        call(Stray)


def test_a_record_understands_the_words_of_other_libraries():
    by_others, by_ours = (
        call(iterations=40, record=record)
        for record in ({"thin": 4, "warm_up": 20}, {"every": 4, "burn_in": 20})
    )
    assert np.array_equal(by_others["x"], by_ours["x"]) and len(by_others.draw) == 11
    assert by_others.to_arviz().posterior.draw.min() == 24
    with pytest.raises(ConcordError, match="record: thin and every are one; remove one"):
        call(record={"thin": 4, "every": 2})


def test_the_default_of_a_hundred_chains_is_explained_where_it_is_seen():
    many = concord.sample("de_sgld", quadratic(), "ring", step_size=0.01, iterations=3)
    few = call(chains=4)
    assert many.chains == 100 and "chains: 100 (for the law of each draw)" in repr(many)
    assert "chains: 4;" in repr(few)
    assert "4 are enough where draws over time stand for the posterior" in " ".join(
        concord.sample.__doc__.split()
    )
