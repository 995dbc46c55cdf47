"""Chains are the same whichever others are sampled with them, and so are runs in parts."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.sparse import csr_array

import everything
from concord import kinds
from concord.streams import CHAINS_PER_BLOCK
from concord_studies.configuration.project import load_studies
from concord_studies.experiment import Experiment
from concord_studies.runs.run import Run
from concord_studies.runs.sample import sample

readers = everything.shared("parayil2020", "readers")

ROOT = Path(__file__).parents[3]
# Which need a table, a file, and draws of a certified run.
DATA = {
    *("numpyro", "pymc", "torch", "jax", "posterior", "table", "ball", "gaussian_product"),
    *("breast_cancer", "linear_regression_data", "ridge_digits"),
}
CHAINS = CHAINS_PER_BLOCK + 20


def run_of(document: Mapping[str, Any]) -> Run:
    """Return the run of a document."""
    return Run.from_document(document, "run")


def small(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a short run of many chains which keeps sampler, problem and network."""
    run = copy.deepcopy(dict(run)) | {"chains": CHAINS, "iterations": 4}
    if run["problem"].get("data_sets", 1) > 1:
        run["problem"]["data_sets"] = 7  # neither a divisor nor a multiple of a block
    if "train_rows" in run["problem"]:
        run["problem"]["train_rows"] = 59
    run["record"] = {key: run["record"][key] for key in ("probes",) if key in run["record"]}
    return run


def examples() -> dict[str, dict[str, Any]]:
    """Return a run of each sampler with each kind of problem, as documents.

    Of downloads only a9a, made up.
    """
    found = {}
    for paper in load_studies(ROOT / "config", {"scale": "smoke"})[1].values():
        for own in paper.runs.values():
            run = own.document
            name = f"{run['sampler']['kind']}_{run['problem']['kind']}"
            # Cells of an arena are scored; problems of a study's own may be gone.
            known = not run.get("arena") and run["problem"]["kind"] in kinds.names("problems")
            if known and run["agents"] <= 20 and set(own.data_sets) <= {"a9a"}:
                found.setdefault(name, small(run))
    tried = {run["problem"]["kind"] for run in found.values()}
    like = found["de_sgld_linear_regression"]
    for kind in sorted({*kinds.names("problems")} - tried - DATA):  # that no paper has: as they are
        params = msgspec.structs.asdict(kinds.find("problems", kind, "tests").Params())
        agents = 8 if kind == "eight_schools" else like["agents"]
        own = {"problem": {"name": kind, "kind": kind, **params}, "agents": agents}
        found[f"de_sgld_{kind}"] = copy.deepcopy(like) | own
    return found


EXAMPLES = examples()


@pytest.fixture(autouse=True)
def made_up_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty rows in place of a9a's."""
    rng = np.random.default_rng(0)
    table = csr_array((rng.random((60, 8)) < 0.4).astype(float)), rng.integers(0, 2, 60)
    monkeypatch.setattr(readers, "a9a", lambda path: table)


def test_every_kind_of_problem_is_tried() -> None:
    tried = {run["problem"]["kind"] for run in EXAMPLES.values()}
    assert tried == set(kinds.names("problems")) - DATA


@pytest.mark.parametrize("name", EXAMPLES)
def test_fewer_chains_are_the_first_of_more(name: str) -> None:
    run = run_of(EXAMPLES[name])
    problem = run.build_problem(ROOT / "resources")
    whole = sample(run, problem)
    block = sample(run_of({**EXAMPLES[name], "chains": CHAINS_PER_BLOCK}), problem)
    for variable, (dimensions, values) in whole.variables.items():
        if "chain" in dimensions:
            values = values[:CHAINS_PER_BLOCK]
        np.testing.assert_array_equal(block[variable], values, err_msg=variable)


@pytest.mark.parametrize("jobs", [None, 1, 2, 3, 5, 7])
def test_parts_of_an_experiment_are_all_its_runs_once(jobs: int | None) -> None:
    run = run_of(EXAMPLES["de_sgld_linear_regression"])
    experiment = Experiment(Path("config/papers/x"), dict.fromkeys("abcde", run), jobs)
    parts = experiment.part_count
    assert parts == {None: 0, 1: 0, 7: 5}.get(jobs, jobs)
    shares = [experiment.select_part(part + 1, parts).runs for part in range(parts)]
    assert all(shares) and [name for runs in shares for name in runs] == list("abcde")[: 5 * parts]
