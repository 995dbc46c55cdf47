"""The Python API: the exact laws' numbers, and the sentences of wrong input."""

import doctest
import importlib
import inspect
import operator
import re
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.laws import wasserstein
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
    "concord.models.numpyro": ("numpyro",),
    "concord.models.pymc": ("pymc",),
    "concord.sampling.trace": ("arviz_stats",),
    "concord.sampling.trace_files": ("h5netcdf",),
}
AGENTS, DIM = 5, 2


def quadratic(seed: int = 0) -> concord.Problem:
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((AGENTS, DIM, DIM))
    gram = roots @ roots.swapaxes(1, 2) / 2 + 0.3 * np.eye(DIM)
    return concord.problems.quadratic(gram, rng.standard_normal((AGENTS, DIM)))


def mine(problem=None, **more) -> concord.Problem:
    """The same problem, as somebody else's functions."""
    problem = problem or quadratic()
    gram, shift = problem.gram, problem.shift

    def gradient(x):
        return np.einsum("ade,cae->cad", gram, x) - shift

    def prox(v, step):
        matrices = gram + np.eye(DIM) / step[:, None, None]
        return np.linalg.solve(matrices, (shift + v / step[:, None])[..., None])[..., 0]

    given = {"gradient": gradient, "prox": prox, "agents": AGENTS, "dim": DIM, **more}
    return concord.Problem(posterior=problem.posterior, **given)


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
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed


def test_few_chains_are_refused_draw_by_draw_and_pooled_after_a_warm_up():
    """The truth is the law's: 357 of 360 such intervals contain it (60 seeds)."""
    pytest.importorskip("arviz_stats")
    problem, steps = quadratic(), {"step_size": 0.2, "iterations": 2000}
    few = concord.sample("de_sgld", problem, "ring", chains=4, seed=3, **steps)
    with pytest.raises(ConcordError, match=r"4 chains are too few .* dimension 2 draw by draw"):
        concord.w2(few, problem.posterior)
    law = concord.law("de_sgld", problem, "ring", **steps)
    exact = concord.w2(law, problem.posterior, warm_up=200).value
    found = concord.w2(few, problem.posterior, warm_up=200)
    assert ((found.lo <= exact) & (exact <= found.hi)).all()
    assert (found.draws < 4 * 1800).all() and (found.floor > 0).all()
    assert abs(found.value - exact).max() < 3 * found.floor.max()
    with pytest.raises(ConcordError, match=r"worth \d+ independent ones, too few"):
        concord.w2(few, problem.posterior, warm_up=1990)
    table = concord.compare({"few": few, "law": law}, problem.posterior, warm_up=200)
    assert table.w2["few"] == found.value[:AGENTS].max() and table.w2["law"] == exact[:AGENTS].max()
    assert (table.bias2_lo["few"] <= table.bias2).all()
    many = concord.sample("de_sgld", problem, "ring", chains=20, step_size=0.05, iterations=20)
    assert set(concord.w2(many, problem.posterior)) == {"value", "lo", "hi", "floor"}


def test_pooled_intervals_hold_the_distance_as_often_as_they_say():
    """Independent draws in place of time: at least 0.95 less four standard errors of 200 trials."""
    target, rng = concord.Gaussian(np.array([1.0, 0.0]), np.array([[1.0, 0.3], [0.3, 0.5]])), 0
    rng = np.random.default_rng(7)
    shift = np.array([0.3, 0.0])
    held = 0
    for _ in range(200):
        mean, cov = wasserstein.fit(target.sample(60, rng) + shift)
        fitted = concord.Gaussian(mean, cov)
        squares = wasserstein.w2(*wasserstein.refits(fitted, 60, 200, rng), target) ** 2
        lo, hi = wasserstein.correct_interval(squares, wasserstein.w2(mean, cov, target))
        held += lo <= 0.3 <= hi
    assert held / 200 >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 200)


def test_refits_are_fits_of_draws():
    """Their means, and those of the fits' squared distance, within five standard errors."""
    law, rng = concord.Gaussian(np.ones(3), np.diag([1.0, 2.0, 0.5])), np.random.default_rng(1)
    made = wasserstein.refits(law, 12, 4000, rng)
    drawn = wasserstein.fit(law.sample(12 * 4000, rng).reshape(4000, 12, 3), axis=1)
    made, drawn = ((*moments, wasserstein.w2(*moments, law)) for moments in (made, drawn))
    for one, other in zip(made, drawn, strict=True):
        error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / 4000)
        assert (abs(one.mean(axis=0) - other.mean(axis=0)) < 5 * error).all()
        assert (abs(one.std(axis=0) / other.std(axis=0) - 1) < 0.1).all()


def test_one_chain_has_no_interval():
    pytest.importorskip("arviz_stats")
    problem, steps = quadratic(), {"step_size": 0.2, "iterations": 2000, "chains": 1}
    alone = concord.sample("de_sgld", problem, "ring", **steps)
    for found in (
        concord.w2(alone, problem.posterior, warm_up=200),
        concord.bias2(alone, problem.posterior, warm_up=200),
        concord.bias2(alone, problem.posterior),
    ):
        assert np.isfinite(found.value).all()
        assert np.isnan(found.lo).all() and np.isnan(found.hi).all()
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


def diverging(step_size, **options):
    given = {"step_size": step_size, "iterations": 300, "chains": 30} | options
    return concord.sample("de_sgld", quadratic(), "ring", **given)


def test_divergence_warns_once_a_call():
    """With its share of chains and its first iteration, where the caller stands."""

    def said(function, *args, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = function(*args, **options)
        (one,) = caught
        assert one.category is concord.DivergenceWarning and issubclass(one.category, UserWarning)
        assert one.filename == __file__
        return found, str(one.message)

    problem, steps = quadratic(), {"iterations": 300, "step_size": 2.0}
    trace, text = said(lambda: concord.sample("de_sgld", problem, "ring", chains=30, **steps))
    first = trace["diverged_at"].min()
    assert f"de_sgld: 30 of 30 chains diverged, the first at iteration {first}; take a" in text
    limit = float(re.search(r"below ([\d.]+)", text)[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        concord.law("de_sgld", problem, "ring", step_size=0.98 * limit, iterations=3000)
        sound = diverging(0.98 * limit)
        concord.compare([sound], problem.posterior)
    law, text = said(lambda: concord.law("de_sgld", problem, "ring", **steps))
    assert re.search(
        r"de_sgld: the law diverges, seen first at iteration \d+; take a smaller", text
    )
    for result in (trace, law):
        assert said(lambda r=result: concord.w2(r, problem.posterior))[1].startswith("w2: ")
        assert said(lambda r=result: concord.bias2(r, problem.posterior))[1].startswith("bias2: ")
    results = {"one": trace, "sound": sound, "exact": law}
    table, text = said(lambda: concord.compare(results, problem.posterior))
    assert "of one 30 of 30 chains" in text and "of exact the law" in text and "sound" not in text
    assert np.isinf(table.w2["one"]) and np.isfinite(table.w2["sound"])


def test_a_gradient_that_is_not_a_number_warns():
    with pytest.warns(concord.DivergenceWarning, match=r"5 of 5 chains .* iteration 1; take a"):
        call(problem=shaped(lambda x: x * np.nan), chains=5)


def test_64_agents_of_ten_dimensions_have_a_law():
    """Of coordinates that nothing couples it is that of each, which is sooner computed."""
    rng = np.random.default_rng(1)
    curvatures, pulls = rng.uniform(1, 3, (64, 10)), rng.standard_normal((64, 10))
    how = {"step_size": 0.05, "iterations": 10, "record": {"at": [10]}}
    whole = concord.problems.quadratic(H=curvatures[:, :, None] * np.eye(10), b=pulls)
    law = concord.law("de_sgld", whole, "ring", **how)
    for d in (0, 9):
        part = concord.problems.quadratic(H=curvatures[:, [d], None], b=pulls[:, [d]])
        alone = concord.law("de_sgld", part, "ring", **how)
        np.testing.assert_allclose(law.mean[..., d], alone.mean[..., 0], rtol=1e-9)
        np.testing.assert_allclose(law.cov[..., d, d], alone.cov[..., 0, 0], rtol=1e-9)


def test_what_happens_on_a_network_is_sampled_and_has_its_law():
    loss = {"kind": "bernoulli", "rate": 0.2, "direction": "one_way"}
    network = concord.network("ring", AGENTS, loss=loss)
    options = {"step_size": 0.05, "iterations": 30}
    trace = concord.sample("de_sgld", quadratic(), network, chains=4000, **options)
    law = concord.law("de_sgld", quadratic(), network, **options)
    end = trace["x"][:, -1]
    z = (end.mean(axis=0) - law.mean[-1]) / np.sqrt(
        np.diagonal(law.cov[-1], axis1=1, axis2=2) / 4000
    )
    assert np.abs(z).max() < 4.5  # one of AGENTS * DIM standard normals: less than one in 1e4
    perfect = concord.law("de_sgld", quadratic(), "ring", **options)
    assert np.abs(law.cov[-1] - perfect.cov[-1]).max() > 1e-4
    with pytest.raises(concord.ConcordError, match=r"network\.loss\.rate: .* 0 to 1|network.loss"):
        concord.network("ring", 6, loss={**loss, "rate": 2})


def test_all_of_arviz_takes_a_trace():
    arviz = pytest.importorskip("arviz", minversion="1", reason="it needs Python 3.12")
    trace = concord.sample("de_sgld", quadratic(), "ring", step_size=0.05, iterations=50, chains=2)
    inference = trace.to_arviz()
    assert "x[2, 0]" in arviz.summary(inference).index
    assert arviz.plot_trace(inference, backend="none")


SAMPLERS = {
    "de_sgld": {"step_size": 0.05},
    "de_sghmc": {"step_size": 0.1, "friction": 2.0},
    "d_ula": {"step_size": 0.01, "fusion": 0.2},
    "admm": {"penalty": 1.0},
}


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("given", [quadratic, mine])
def test_chains_have_the_exact_moments(sampler, given):
    """z-scores of every mean and covariance: 5 standard errors are not exceeded by bad luck."""
    arguments = {"iterations": 24, "record": {"at": [1, 2, 8, 24]}, **SAMPLERS[sampler]}
    network = nx.path_graph(AGENTS)
    law = concord.law(sampler, quadratic(), network, **arguments)
    trace = concord.sample(sampler, given(), network, chains=2000, **arguments)
    for mean, cov, draws in (
        (law.mean, law.cov, trace["x"]),
        (law.average_mean, law.average_cov, trace["x_average"]),
    ):
        centered = draws - mean
        products = centered[..., :, None] * centered[..., None, :] - cov
        for values in (centered, products):
            errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            assert np.abs(values.mean(axis=0) / errors).max() < 5


def test_a_proximal_step_of_ones_own():
    arguments = {"penalty": 1.0, "iterations": 10, "chains": 4}
    expected, found = (
        concord.sample("admm", problem, "ring", **arguments)["x"]
        for problem in (quadratic(), mine())
    )
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    with pytest.raises(ConcordError, match=r"agent 0 has no neighbors, and a proximal step"):
        concord.sample("admm", mine(), "no_edges", **arguments)


def test_weights_of_ones_own_are_those_that_agents_mix_with():
    """One step of DE-SGLD by hand: E x' = W E x - eta (H E x - b), from E x = 0.7."""
    problem, weights = quadratic(), np.full((AGENTS, AGENTS), 0.02)
    weights[0, 1] = weights[1, 0] = 0.5
    np.fill_diagonal(weights, 0)
    np.fill_diagonal(weights, 1 - weights.sum(axis=1))
    start = {"kind": "normal", "mean": 0.7}
    law = concord.law("de_sgld", problem, weights, step_size=0.05, iterations=1, initial=start)
    x = np.full((AGENTS, DIM), 0.7)
    gradient = np.einsum("ade,ae->ad", problem.gram, x) - problem.shift
    np.testing.assert_allclose(law.mean[1], weights @ x - 0.05 * gradient)
    assert law.cov[1, 0, 0, 0] < (law.cov[1, 4, 0, 0] - 0.1) * 5  # not those of equal neighbors
    metropolis = concord.network("ring", AGENTS).graph.metropolis
    named, given = (
        concord.law("de_sgld", problem, network, step_size=0.05, iterations=3)
        for network in ("ring", metropolis)
    )
    np.testing.assert_allclose(given.cov, named.cov, rtol=1e-12)


def test_rows_go_to_agents_as_asked():
    X = np.arange(12.0).reshape(6, 2)
    y = X[:, 0]
    kept = concord.problems.linear_regression(X, y, agents=3, partition="consecutive")
    lists = concord.problems.linear_regression(np.split(X, 3)[:], y.reshape(3, 2).tolist())
    np.testing.assert_array_equal(kept.gram, lists.gram)
    np.testing.assert_array_equal(kept.shift, lists.shift)
    spread = concord.problems.linear_regression(X, y, agents=3)
    np.testing.assert_allclose(spread.posterior.mean, kept.posterior.mean)
    labels = concord.problems.logistic_regression(
        np.eye(40), np.arange(40) % 2, 2, partition={"kind": "dirichlet", "concentration": 0.2}
    )
    assert labels.counts.sum() == 40 and labels.counts[0] != 20


class Interrupted:
    """A gradient that the user interrupts at a call."""

    def __init__(self, call: int) -> None:
        self.left = call

    def __call__(self, x):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return x


@pytest.mark.parametrize(
    ("call", "chains", "last", "said"),
    [
        (13, 50, 10, "50 of 120 chains, to iteration 10 of 10"),
        (4, 50, 4, "50 of 120 chains, to iteration 4 of 10"),
        (0, 50, 0, "50 of 120 chains, to iteration 0 of 10"),
    ],
)
def test_an_interrupt_returns_what_is_there(call, chains, last, said, capsys):
    arguments = {"step_size": 0.1, "iterations": 10, "chains": 120}
    problem = concord.Problem(Interrupted(call), agents=AGENTS, dim=DIM)
    trace = concord.sample("de_sgld", problem, "ring", **arguments)
    whole = concord.sample(
        "de_sgld", concord.Problem(lambda x: x, agents=5, dim=2), "ring", **arguments
    )
    assert trace.chains == chains and trace.draw.tolist() == list(range(last + 1))
    np.testing.assert_array_equal(trace["x"], whole["x"][:chains, : last + 1])
    assert last == 0 or trace["broadcasts"].shape == (last + 1, AGENTS)
    assert capsys.readouterr().err == f"concord: interrupted; here are {said}\n"


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
    own = concord.sample(DESGLD(0.1), quadratic(), "ring", **options)
    np.testing.assert_array_equal(own["x"], one)


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
        found = distance(exact_draws(target), target).isel(draw=0, agent=0)
        assert found.lo == 0 and 0 < found.value < 0.1 and found.value < found.hi
    shift = 3 * np.sqrt(target.cov[0, 0]) * np.array([1, 0])
    shifted = concord.Gaussian(target.mean + shift, target.cov)
    found = concord.bias2(exact_draws(shifted), target).isel(draw=0, agent=0)
    second = ((shifted.mean[0] ** 2 - target.mean[0] ** 2) ** 2) / (
        2 * target.cov[0, 0] ** 2 + 4 * target.mean[0] ** 2 * target.cov[0, 0]
    )
    assert found.lo < max(9, second) < found.hi
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
    given = {"step_size": 0.01, "iterations": 3, "chains": 2} | options
    given = {key: value for key, value in given.items() if value is not ...}
    return concord.sample(sampler, quadratic() if problem is None else problem, network, **given)


def shaped(function):
    return concord.Problem(function, agents=AGENTS, dim=DIM)


# Wrong options of ``call``, and what is said.
WRONG_OPTIONS = [
    ({"step_size": np.float64(-1)}, "sampler.step_size: -1.0 is not positive; give a positive"),
    ({"step_size": ...}, "sampler: the key 'step_size' is missing; add it (step size eta_k)"),
    ({"step_sise": 1}, "sampler.step_sise: unknown key; did you mean 'step_size'?"),
    ({"chain": 1}, "sampler.chain: unknown key; did you mean 'chains'?"),
    ({"chains": 0}, "chains: 0 is not a positive integer; give 1 or more"),
    ({"seed": -1}, "seed: -1 is below 0; give 0 or more"),
    ({"iterations": None}, "iterations: None is not an integer"),
    ({"record": {"agents": [9]}}, "record.agents[0]: there is no agent 9; name agents 0 to 4"),
    ({"initial": {"kind": "norml"}}, "initial.kind: there is no initial law 'norml'; did you mean"),
    ({"problem": concord.problems.linear_regression}, "is no problem; make one with"),
    ({"network": nx.empty_graph(5)}, "topology 'own' is not connected, so its agents cannot agree"),
    (
        {"network": nx.DiGraph([(i, (i + 1) % 5) for i in range(5)])},
        "weights: metropolis needs neighbors that hear each other, and own is directed; use",
    ),
    ({"network": None}, "network: it is missing, and there are 5 agents; give one"),
    (
        {"problem": shaped(lambda x: x[0])},
        "gradient: it returned an array of shape (5, 2) for x of shape (2, 5, 2); return",
    ),
    ({"problem": shaped(np.sinh), "batch_size": 2}, "Problem takes no mini-batches; leave"),
    (
        {"problem": shaped(np.sinh), "record": {"probes": ["potential"]}},
        "Problem has no 'potential' to probe",
    ),
    ({"network": np.full((5, 5), 0.2 + 1j)}, "is no network; give the name of a kind"),
]
WRONG = {
    "no such sampler": (
        lambda: call("de_sgdl"),
        "sampler.kind: there is no sampler 'de_sgdl'; did you mean 'de_sgld'?",
    ),
    "weights": (
        lambda: call("d_ula", network=np.full((5, 5), 0.2), fusion=0.1),
        "sampler d_ula does not mix by weights",
    ),
    "no law": (
        lambda: concord.law("gossip_ula", quadratic(), "ring", step_size=0.1, iterations=2),
        "sampler Gossip ULA has no exact law here: it draws more than noise; sample it instead",
    ),
    "no quadratic": (
        lambda: concord.law("de_sgld", mine(), "ring", step_size=0.1, iterations=2),
        "Problem is not quadratic, so no exact law is known; take approximate=True",
    ),
    "no posterior": (
        lambda: concord.w2(call(), None),
        "posterior: it is None, as of a problem whose posterior is not Gaussian; give the problem",
    ),
    "a result alone": (
        lambda: concord.compare(call(), quadratic().posterior),
        "results: a result alone has nothing to be compared with; give a list",
    ),
    "another dimension": (
        lambda: concord.w2(call(), concord.Gaussian(np.zeros(3), np.eye(3))),
        "posterior: <Gaussian dim: 3; mean: 0, 0, 0; sd: 1, 1, 1> is no posterior of dimension 2",
    ),
    "negative covariance": (
        lambda: concord.Gaussian(np.zeros(2), -np.eye(2)),
        "Gaussian: cov is not positive definite; give one whose eigenvalues are positive",
    ),
    "number for a mean": (
        lambda: concord.Gaussian(0, -np.eye(2)),
        "Gaussian: mean of shape () and cov of shape (2, 2) do not fit; give (dim,) and (dim, dim)",
    ),
    "complex mean": (
        lambda: concord.Gaussian([0, 1j], np.eye(2)),
        "Gaussian: mean: its numbers are complex; give real ones",
    ),
    "no function": (
        lambda: concord.Problem(np.eye(2), agents=2, dim=2),
        "gradient: array([[1., 0.], [0., 1.]]) is no function; give one of x",
    ),
    "posterior of another dimension": (
        lambda: concord.Problem(np.sinh, agents=2, dim=2, posterior=concord.Gaussian([0], [[1]])),
        "posterior: it has dimension 1, and dim is 2; make them equal",
    ),
    "complex data": (
        lambda: concord.problems.linear_regression(np.eye(3) + 1j, [1, 2, 3], 1),
        "X: its numbers are complex; give real ones",
    ),
    "huge data": (
        lambda: concord.problems.linear_regression(np.diag([1, 1e200, 1]), [1, 2, 3], 1),
        "X[1, 1]: 1e+200 is beyond 1e+100, where sums of squares are not finite; use larger units",
    ),
    "no such file": (
        lambda: concord.load("nope.nc"),
        "nope.nc: it cannot be read (No such file or directory); name the draws.nc of a run",
    ),
    "rows": (
        lambda: concord.problems.linear_regression(np.eye(3), [1, 2], 2),
        "X of shape (3, 3) and y of shape (2,) do not fit; give (rows, dim) and (rows,)",
    ),
    "text": (
        lambda: concord.problems.linear_regression([["a"]], [1], 1),
        "X: [['a']] is no array of numbers; give one",
    ),
    "agents": (
        lambda: concord.problems.linear_regression(np.eye(3), [1, 2, 3]),
        "agents is missing; give their number",
    ),
    "labels": (
        lambda: concord.problems.logistic_regression(np.eye(2), [1, -1], 1),
        "y: -1 is no label; give 0 and 1",
    ),
    "options of data": (
        lambda: concord.problems.linear_regression(np.eye(2), [1, 1], 1, noise_sd=0),
        "noise_sd: 0 is not positive; give a positive number",
    ),
    "skew": (
        lambda: concord.problems.quadratic([[[1, 1], [0, 1]]], [[1, 1]]),
        "H[0] is not symmetric",
    ),
    "flat": (
        lambda: concord.problems.quadratic([[[1, 0], [0, 0]]], [[1, 1]]),
        "the sum of H is not positive definite",
    ),
}


@pytest.mark.parametrize(("options", "said"), WRONG_OPTIONS)
def test_a_wrong_option_ends_in_a_sentence(options, said):
    with pytest.raises(ConcordError, match=re.escape(said)):
        call(**options)


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_ends_in_a_sentence(name):
    function, said = WRONG[name]
    with pytest.raises(ConcordError) as caught:
        function()
    assert said in str(caught.value)


def test_a_gradient_cannot_move_the_chains():
    def gradient(x):
        x -= 1
        return x

    with pytest.raises(ValueError, match="read-only"):
        call(problem=shaped(gradient))


def test_a_directed_graph_is_sampled_by_push_sum():
    cycle = nx.cycle_graph(AGENTS, create_using=nx.DiGraph)
    given = [cycle, nx.to_numpy_array(cycle), concord.network("directed_ring", AGENTS)]
    assert len({concord.network(graph).edges for graph in given}) == 1
    options = {"step_size": 0.01, "iterations": 20, "chains": 400}
    traces = [concord.sample("push_sum_sgld", quadratic(), graph, **options) for graph in given]
    assert all((trace["x"] == traces[0]["x"]).all() for trace in traces)
    law = concord.law("push_sum_sgld", quadratic(), cycle, step_size=0.01, iterations=20)
    draws = traces[0]["x"][:, -1]
    assert (abs(draws.mean(axis=0) - law.mean[-1]) < 5 * draws.std(axis=0) / 20).all()


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
    made = [concord.problems.linear_regression(X, X[:, 0], 4, seed=s) for s in (None, None, 1, 1)]
    means = [str(problem.gram) for problem in made]
    assert means[0] != means[1] and means[2] == means[3]
    made = [concord.problems.gaussian(agents=4, seed=s) for s in (None, None, 1, 1)]
    means = [str(problem.posterior.mean) for problem in made]
    assert means[0] != means[1] and means[2] == means[3]


def test_rng_takes_the_place_of_a_seed():
    np.testing.assert_array_equal(call(rng=5)["x"], call(seed=5)["x"])
    rngs = np.random.default_rng(7), np.random.default_rng(7)
    one, other = (call(rng=rng) for rng in rngs)
    np.testing.assert_array_equal(one["x"], other["x"])
    np.testing.assert_array_equal(call(seed=int(one.attributes["seed"]))["x"], one["x"])
    assert (call(rng=rngs[0])["x"] != one["x"]).any()
    np.testing.assert_array_equal(call(rng=None)["x"], call()["x"])
    X = np.random.default_rng(0).standard_normal((40, 2))
    split = partial(concord.problems.linear_regression, X, X[:, 0], 4)
    made = [split(rng=3), split(seed=3)]
    np.testing.assert_array_equal(made[0].gram, made[1].gram)
    assert concord.problems.gaussian(agents=4, rng=rngs[0]).agents == 4


@pytest.mark.parametrize("seed", [1, 2, None])
def test_rng_and_seed_at_once_are_refused(seed):
    with pytest.raises(ConcordError, match=f"^rng: seed is {seed} besides; give one of the two$"):
        call(seed=seed, rng=2)
    with pytest.raises(ConcordError, match=r"^rng: 'x' is not an integer$"):
        call(rng="x")


class Stray:
    def step(self, state, k, problem, network, rng):
        return state


@pytest.mark.parametrize("sampler", [Stray, Stray()])
def test_a_class_of_no_sampler_is_refused(sampler):
    with pytest.raises(ConcordError, match=r"^sampler: .*Stray.* is none; give its name, or a"):
        call(sampler)


def test_an_option_beside_a_sampler_that_has_it_is_refused():
    sentence = r"^sampler.step_size: DESGLD\(step_size=.* has its own; leave it out of the call$"
    with pytest.raises(ConcordError, match=sentence):
        call(DESGLD(0.01), step_size=0.5)
