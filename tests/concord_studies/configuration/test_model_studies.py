"""Studies that name a table or a model of their own: files of theirs, which count as data."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas
import pytest

import concord
from concord import kinds
from concord.errors import ConcordError
from concord_cli.__main__ import main
from concord_studies import digests
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

STUDY = """
paper: {{ title: Own, authors: Somebody, year: 2026 }}
experiments:
  one:
    problem: {problem}
    agents: 3
    topology: ring
    chains: 4
    iterations: 5
    sampler: {{ kind: de_sgld, step_size: 0.01 }}
"""
MODEL = """
import numpyro
from numpyro import distributions as law

def model(x, y):
    slope = numpyro.sample("slope", law.Normal(0, 2))
    with numpyro.plate("row", len(y)):
        numpyro.sample("y", law.Normal(slope * x, 1), obs=y)
"""
ROWS = np.round(np.random.default_rng(2).standard_normal((9, 2)), 3)
TABLE = "{ kind: table, model: linear_regression, data: rows.csv, target: y }"
OWN = "{ kind: numpyro, file: model.py, data: rows.csv, over: row }"


@pytest.fixture
def folder(tmp_path: Path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own/rows.csv").write_text(
        "x,y\n" + "".join(f"{x},{y}\n" for x, y in ROWS.tolist())
    )
    (tmp_path / "own/model.py").write_text(MODEL)
    yield tmp_path / "own"
    kinds.use()


def run_of(folder: Path, problem: str):
    (folder / "study.yaml").write_text(STUDY.format(problem=problem))
    (run,) = Study(folder, load_config()).runs.values()
    return run


def test_a_table_makes_the_problem_that_arrays_make(folder) -> None:
    run = run_of(folder, TABLE)
    made = run.build_problem(Path("resources"))
    own = concord.problems.linear_regression(ROWS[:, :1], ROWS[:, 1], agents=1)
    assert np.allclose(made.posterior.mean, own.posterior.mean)
    assert made.agents == 3


def test_columns_of_a_table_may_be_an_agents_own(folder) -> None:
    """By their names, with errors before anything is read."""
    (folder / "rows.csv").write_text(
        "one,x,y\n" + "".join(f"1,{x},{y}\n" for x, y in ROWS.tolist())
    )
    run = run_of(folder, TABLE.replace("target: y", "target: y, local: [one]"))
    problem = run.build_problem(Path("resources"))
    assert problem.local.tolist() == [True, False]
    assert concord.share_all(problem).coordinate_names[-1] == "one of agent 2"
    for wrong, words in (("[two]", "no column 'two'"), ("[x, one]", "share no coordinate")):
        with pytest.raises(ConcordError, match=words):
            run_of(folder, TABLE.replace("target: y", f"target: y, local: {wrong}"))
    rates = TABLE.replace("linear_regression", "gamma_poisson").replace("y }", "y, local: [x] }")
    with pytest.raises(ConcordError, match="local: coordinates of gamma_poisson are all shared"):
        run_of(folder, rates)


def test_a_table_without_the_target_is_refused_before_anything_is_read(folder) -> None:
    with pytest.raises(ConcordError, match=r"target: \S+rows.csv has no column 'z'; choose one of"):
        run_of(folder, TABLE.replace("target: y", "target: z"))
    (folder / "rows.csv").write_text("y\n1\n")
    with pytest.raises(ConcordError, match=r"rows.csv: it has no column beside the target"):
        run_of(folder, TABLE)


def test_the_answer_is_given_for_a_table_of_ones_own(folder, capsys) -> None:
    """With mini-batches too, which the same arrays take in Python."""
    run = run_of(folder, TABLE)
    table = folder / "answer.csv"
    command = ["recommend", str(folder), "one", "--budget", "gradients=50", "--batch-size", "2"]
    assert main([*command, "-o", str(table)]) == 0
    assert "batch size 2" in capsys.readouterr().out
    problem = run.build_problem(Path("resources"))
    own = concord.recommend(problem, run.network_of_agents, budget={"gradients": 50}, batch_size=2)
    found = pandas.read_csv(table)
    assert (found["law"].dropna() == "exact").all()
    assert found["b2"][0] == pytest.approx(own.table["b2"][0], rel=1e-9)


@pytest.mark.parametrize("problem", [TABLE, OWN])
def test_a_file_counts_as_what_runs_are_made_from(folder, problem) -> None:
    before = run_of(folder, problem).data_digest()
    assert run_of(folder, problem).data_digest() == before
    (folder / "rows.csv").write_text((folder / "rows.csv").read_text() + "1.0,2.0\n")
    after = run_of(folder, problem).data_digest()
    assert after != before
    (folder / "model.py").write_text(MODEL + "\n# other\n")
    assert (run_of(folder, OWN).data_digest() != after) or problem == TABLE


def test_models_are_not_executed_where_studies_are_checked(folder) -> None:
    (folder / "model.py").write_text("raise SystemExit('executed')")
    assert run_of(folder, OWN).files == (folder / "model.py", folder / "rows.csv")


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (TABLE.replace("rows.csv", "none.csv"), "there is no file .*none.csv"),
        (TABLE.replace("rows.csv", "../other.csv"), "is not in the study's folder"),
        (TABLE.replace("target: y", "target: z"), "has no column 'z'"),
        (
            TABLE.replace("target: y", "target: y, options: { noise: 1.0 }"),
            "options: linear_regression has no option 'noise'; did you mean 'noise_sd'",
        ),
    ],
)
def test_files_that_do_not_fit_are_one_sentence(folder, problem, sentence) -> None:
    (folder.parent / "other.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ConcordError, match=sentence):
        run_of(folder, problem).build_problem(Path("resources"))


def test_a_model_without_its_library_is_one_sentence(folder) -> None:
    run = run_of(folder, OWN)
    if importlib.util.find_spec("numpyro") is None:
        assert "NumPyro, which is not installed" in run.unavailable
        with pytest.raises(ConcordError, match="NumPyro, which is not installed"):
            run.build_problem(Path("resources"))


PYMC = """
import numpy as np
import pymc

def model(x, seed):
    with pymc.Model(coords={"row": range(len(x))}) as made:
        slope = pymc.Normal("slope", 0, np.float64(2))
        features = pymc.Data("x", x, dims="row")
        pymc.Normal("y", slope * features, 1, observed=seed, dims="row")
    return made
"""


@pytest.mark.thorough
@pytest.mark.parametrize("library", ["numpyro", "pymc"])
def test_a_model_of_a_study_is_that_of_python(folder, library) -> None:
    """A column may have the name of an option of the problem's."""
    jax = pytest.importorskip("jax")
    pytest.importorskip(library)
    code = MODEL.replace("(x, y)", "(x, seed)").replace("len(y)", "len(x)")
    (folder / "model.py").write_text(PYMC if library == "pymc" else code.replace("=y", "=seed"))
    (folder / "rows.csv").write_text((folder / "rows.csv").read_text().replace("x,y", "x,seed"))
    own = OWN.replace("numpyro", library)
    made = run_of(folder, own).build_problem(folder / "resources")
    kept = Path(jax.config.jax_compilation_cache_dir)  # for other jobs of this machine
    assert kept.parent == folder / "resources/compiled"
    x = np.ones((1, 3, 1))
    slope = made.gradient(x).sum()
    assert np.isclose(slope, (ROWS[:, 0] * (ROWS[:, 0] - ROWS[:, 1])).sum() + 0.25)
    with pytest.raises(ConcordError, match="it defines no function 'other'"):
        run_of(folder, own.replace("over: row", "over: row, function: other")).build_problem(
            folder / "resources"
        )
    (folder / "rows.csv").write_text("x,y,z\n1,2,3\n")
    with pytest.raises(ConcordError, match=r"called with the table's columns .x, y, z.: .*'seed'"):
        run_of(folder, own).build_problem(folder / "resources")


NETWORKS = {
    "torch": """
import torch
from .plugins.shapes import HIDDEN

def network(x, y, noise_sd=1.0):
    module = torch.nn.Sequential(
        torch.nn.Linear(1, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 2)
    )
    rows = x[:, None].astype("float32"), (y > 0).astype(int)
    return {"module": module, "data": rows, "prior_sd": 2.0, "test": rows}
""",
    "jax": """
import jax
from .plugins.shapes import HIDDEN

def network(x, y, noise_sd=1.0):
    def log_likelihood(params, x, y):
        return jax.nn.log_softmax(jax.numpy.tanh(x @ params["U"]) @ params["V"])[y]

    def predict(params, X):
        return jax.nn.softmax(jax.numpy.tanh(X @ params["U"]) @ params["V"])

    def draw(key):
        U, V = jax.random.normal(key, (1, HIDDEN)), jax.random.normal(key, (HIDDEN, 2))
        return {"U": U, "V": V}

    rows = x[:, None], (y > 0).astype(int)
    test = {"own": rows, "other": (rows[0][:4], rows[1][:4])}
    return {"log_likelihood": log_likelihood, "params": draw, "predict": predict, "data": rows,
            "prior_sd": 2.0, "test": test, "examples": {"own": {"first": 0}}}
""",
}
NETWORK = "{ kind: KIND, file: net.py, data: rows.csv }"


@pytest.fixture
def with_network(folder):
    def write(kind: str, code: str = "") -> str:
        (folder / "plugins").mkdir(exist_ok=True)
        (folder / "plugins/shapes.py").write_text("HIDDEN = 3\n")
        (folder / "net.py").write_text(code or NETWORKS[kind])
        return NETWORK.replace("KIND", kind)

    return write


@pytest.fixture
def precision():
    """Put JAX's precision back, which a study's problems set for all of a process."""
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["torch", "jax"])
def test_a_network_of_a_study_is_that_of_python(folder, with_network, precision, kind) -> None:
    """With the study's rows of each agent; gradients do not depend on which way is faster."""
    pytest.importorskip(kind)
    run = run_of(folder, with_network(kind))
    problem = run.build_problem(folder / "resources")
    assert problem.summary()["evaluated by"] == "vmap" and problem.counts.tolist() == [3, 3, 3]
    x = problem.initial((2, 3, problem.dim), np.random.default_rng(0))
    labels = (ROWS[:, 1] > 0).astype(int)
    chances = problem.predict(x, ROWS[:, :1].astype(problem.dtype))
    likelihood = np.log(np.take_along_axis(chances, labels[None, None, :, None], -1))[..., 0]
    prior = 0.5 * (x.astype(float) ** 2).sum(axis=-1) / 4 / 3
    at_one_place = np.repeat(x[:, :1], 3, axis=1)
    found = problem.potential(at_one_place).sum(axis=1)
    np.testing.assert_allclose(found, 3 * prior[:, 0] - likelihood[:, 0].sum(axis=-1), rtol=1e-5)
    tests = {"torch": ["test"], "jax": ["own", "other"]}[kind]
    assert list(problem.tests) == tests
    assert problem.predictive(x).shape == (2, 3, 9 + 4 * (kind == "jax"), 2)
    np.testing.assert_array_equal(problem.predictive(x)[:, :, :9], chances)


@pytest.mark.thorough
def test_a_regression_of_a_study_predicts_at_its_targets(folder, with_network) -> None:
    pytest.importorskip("torch")
    code = NETWORKS["torch"].replace("HIDDEN, 2)", "HIDDEN, 1)")
    code = code.replace("(y > 0).astype(int)", "y.astype('float32')").replace(
        '"test": rows}', '"likelihood": "normal", "noise_sd": 0.5,'
        ' "test": {"own": rows, "validation": (rows[0][:4], rows[1][:4])}}'
    )  # fmt: skip
    problem = run_of(folder, with_network("torch", code)).build_problem(folder / "resources")
    assert list(problem.tests) == ["own"] and len(problem.validation[1]) == 4
    x = problem.initial((2, 3, problem.dim), np.random.default_rng(0))
    mean, sd = problem.predict(x, ROWS[:, :1].astype("float32"))
    y = ROWS[:, 1].astype("float32")
    found, z = problem.predictive(x), (y - mean) / 0.5
    assert (sd == 0.5).all() and found.shape == (2, 3, 9, 3)
    np.testing.assert_allclose(found[..., 0], mean, rtol=1e-6)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) / 0.5
    np.testing.assert_allclose(found[..., 1], density, rtol=1e-5)


def test_what_a_study_s_file_imports_counts_as_code_of_its_runs(folder, with_network) -> None:
    def digest() -> object:
        digests.forget_files()
        return digests.digest_code(*run_of(folder, problem).modules)

    problem = with_network("torch")
    before = digest()
    assert digest() == before
    (folder / "plugins/shapes.py").write_text("HIDDEN = 4\n")
    assert digest() != before


@pytest.mark.parametrize(
    ("code", "options", "sentence"),
    [
        ("def network(x, y):\n    return 1", "", r"net.py: network returned 1; return the argum"),
        (
            "def network(x, y):\n    return {'module': 1, 'data': 2, 'shards': 3}",
            "",
            r"net.py: network returned an argument 'shards'; choose one of data",
        ),
        ("def network(x):\n    return {}", "", r"network cannot be called with .*\(x, y\)"),
        (
            "def network(x, y):\n    return {}",
            ", options: { y: 2 }",
            "options: y is a column of .*rows.csv, too; rename one",
        ),
        ("def net(x, y):\n    return {}", "", "it defines no function 'network'"),
    ],
)
def test_networks_that_do_not_fit_are_one_sentence(
    folder, with_network, code, options, sentence
) -> None:
    pytest.importorskip("torch")
    problem = with_network("torch", code).replace(" }", f"{options} }}")
    with pytest.raises(ConcordError, match=sentence):
        run_of(folder, problem).build_problem(folder / "resources")


def test_a_network_without_its_library_is_one_sentence(folder, with_network, monkeypatch) -> None:
    run = run_of(folder, with_network("torch"))
    monkeypatch.setattr("concord.models.model.find_spec", lambda name: None)
    assert "PyTorch, which is not installed" in run.unavailable
    with pytest.raises(ConcordError, match=r"PyTorch, which is not installed.*'\.\[torch\]'"):
        run.build_problem(Path("resources"))
