"""Chains sampled in pieces, by several jobs, are the chains that one job samples."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.sparse import csr_array

from concord import kinds, streams
from concord.errors import ConcordError
from concord.options import build
from concord.sampling.trace import read_trace
from concord.streams import CHAINS_PER_BLOCK
from concord_cli.__main__ import main
from concord_studies.configuration.config import Config
from concord_studies.configuration.project import load_studies
from concord_studies.datasets import readers
from concord_studies.runs.run import Run
from concord_studies.runs.sample import sample

ROOT = Path(__file__).parents[3]
# Which need a table, PyTorch, and draws of a certified run.
DATA = {"numpyro", "pymc", "table", "ball", "gaussian_product", "lenet", "breast_cancer"}
CHAINS = 2 * CHAINS_PER_BLOCK + 20


def run_of(document: Mapping[str, Any]) -> Run:
    """Return the run of a document."""
    return Run.of(document, "run")


def small(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a short run of many chains which keeps sampler, problem and network."""
    run = copy.deepcopy(dict(run)) | {"chains": CHAINS, "iterations": 4}
    if run["problem"].get("data_sets", 1) > 1:
        run["problem"]["data_sets"] = 7  # neither a divisor nor a multiple of a block
    if "train_rows" in run["problem"]:
        run["problem"]["train_rows"] = 44
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
            several = "_replicates" if run["problem"].get("data_sets", 1) > 1 else ""
            name = f"{run['sampler']['kind']}_{run['problem']['kind']}{several}"
            # Cells of an arena are scored; problems of a study's own may be gone.
            known = not run.get("arena") and run["problem"]["kind"] in kinds.built_in("problems")
            if known and run["agents"] <= 20 and set(own.data_sets) <= {"a9a"}:
                found.setdefault(name, small(run))
    tried = {run["problem"]["kind"] for run in found.values()}
    like = found["de_sgld_linear_regression"]
    for kind in sorted(
        set(kinds.built_in("problems")) - tried - DATA
    ):  # that no paper has: as they are
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


def test_the_configuration_speaks_of_the_same_blocks() -> None:
    assert build(Config, {"chains_per_job": 3 * CHAINS_PER_BLOCK})
    for number in (CHAINS_PER_BLOCK - 1, CHAINS_PER_BLOCK + 1):
        with pytest.raises(ConcordError, match="chains_per_job"):
            build(Config, {"chains_per_job": number})


def test_every_kind_of_problem_is_tried() -> None:
    tried = {run["problem"]["kind"] for run in EXAMPLES.values()}
    assert tried == set(kinds.built_in("problems")) - DATA


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


def test_a_chain_does_not_depend_on_how_many_there_are() -> None:
    run = run_of(EXAMPLES["de_sgld_linear_regression"])
    problem = run.build_problem(ROOT / "resources")
    many, few = sample(run, problem), sample(replace(run, chains=50), problem)
    np.testing.assert_array_equal(many["x"][:50], few["x"])


def test_blocks_have_noise_of_their_own() -> None:
    """From one point, only the noise can make chains differ."""
    run = EXAMPLES["de_sgld_linear_regression"] | {"initial": {"kind": "normal", "sd": 0.0}}
    x = sample(run_of(run), run_of(run).build_problem(ROOT / "resources"))["x"]
    assert len(np.unique(x[:, -1, 0, 0])) == CHAINS


def test_data_sets_go_on_counting_in_the_next_piece() -> None:
    name = next(name for name in EXAMPLES if name.endswith("_replicates"))
    problem = run_of(EXAMPLES[name]).build_problem(ROOT / "resources")
    x = streams.generator(1, "test").standard_normal((CHAINS, problem.agents, problem.dim))
    piece = problem.from_chain(50).gradient(x[50:])
    np.testing.assert_array_equal(piece, problem.gradient(x)[50:])


@pytest.fixture
def pieces(tmp_path: Path) -> list[Path]:
    """A run.yaml, and the traces of its chains in three pieces."""
    run = run_of(EXAMPLES["de_sgld_linear_regression"])
    (tmp_path / "run.yaml").write_text(run.text)
    paths = [tmp_path / "run.yaml"]
    for chains in ("0:50", "50:100", f"100:{CHAINS}"):
        paths.append(tmp_path / f"chains_{chains.replace(':', '_')}.nc")
        command = ["sample", str(paths[0]), "--chains", chains, "-o", str(paths[-1])]
        assert main(command) == 0
    return paths


def test_joined_trace_is_that_of_one_job(pieces: list[Path], tmp_path: Path) -> None:
    run, *traces = map(str, pieces)
    joined, one = tmp_path / "joined.nc", tmp_path / "one.nc"
    assert main(["sample", run, *traces, "-o", str(joined)]) == 0
    assert main(["sample", run, "-o", str(one)]) == 0
    assert read_trace(joined).attributes == read_trace(one).attributes
    for variable in read_trace(one).variables:
        np.testing.assert_array_equal(read_trace(joined)[variable], read_trace(one)[variable])


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ((0, 2, 1), "it was made from another range of chains"),
        ((0, 0, 1), "it was made from another range of chains"),
        ((0, 1), f"the pieces hold 100 of the {CHAINS} chains"),
    ],
)
def test_join_refuses_what_is_not_the_run(
    pieces: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    order: tuple[int, ...],
    said: str,
) -> None:
    run, *traces = map(str, pieces)
    output = tmp_path / "joined.nc"
    assert main(["sample", run, *(traces[i] for i in order), "-o", str(output)]) == 2
    assert said in capsys.readouterr().err and not output.exists()


@pytest.mark.parametrize("chains", ["0:70", "20:50", "50:50", "0:150", "50", "one:two"])
def test_only_whole_blocks_can_be_asked_for(
    pieces: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], chains: str
) -> None:
    command = ["sample", str(pieces[0]), "--chains", chains, "-o", str(tmp_path / "trace.nc")]
    try:
        code = main(command)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert chains in capsys.readouterr().err
