"""Chains sampled in pieces, by several jobs, are the chains that one job samples."""

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
CHAINS = 2 * CHAINS_PER_BLOCK + 20


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
def test_pieces_are_the_whole(name: str) -> None:
    run = run_of(EXAMPLES[name])
    problem = run.build_problem(ROOT / "resources")
    whole = sample(run, problem)
    for begin, end in ((0, CHAINS_PER_BLOCK), (CHAINS_PER_BLOCK, CHAINS)):
        piece = sample(run, problem, chains=(begin, end))
        for variable, (dimensions, values) in whole.variables.items():
            if "chain" in dimensions:
                values = values[begin:end]
            np.testing.assert_array_equal(piece[variable], values, err_msg=variable)


def test_parts_of_an_experiment_are_all_chains_of_its_runs_once() -> None:
    run = run_of(EXAMPLES["de_sgld_linear_regression"])
    experiment = Experiment(Path("config/papers/x"), {"one": run, "other": run})
    for parts in range(1, len(experiment.blocks) + 1):
        shares = [experiment.select_part(part + 1, parts) for part in range(parts)]
        chains = [(n, k) for share in shares for n, (a, b) in share.items() for k in range(a, b)]
        assert chains == [(name, k) for name in ("one", "other") for k in range(CHAINS)]
        assert all(begin % CHAINS_PER_BLOCK == 0 for share in shares for begin, _ in share.values())
