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
