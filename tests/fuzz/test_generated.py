"""Generated files that were cut, edited or mixed up: the next stage tells it in one sentence."""

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import pytest
from harness import call, sealed, sentence
from hypothesis import strategies as st
from mutations import dumped, encoded, garbled, mutated
from options import options_of
from pieces import CONFIG

import by_hand
import everything
from concord.sampling.netcdf import write_traces
from concord.sampling.trace_files import read_traces
from concord_cli.__main__ import main
from concord_studies import provenance
from concord_studies.claims import checks
from concord_studies.claims.ledger import COLUMNS
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

pytestmark = pytest.mark.thorough

RULE = "used, or refused in one sentence"
PAPER = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "problems": {"linear": {"kind": "linear_regression", "points": 20}},
    "experiments": {
        "one": {
            "problem": "linear",
            "agents": 3,
            "chains": 8,
            "iterations": 6,
            "topology": "ring",
            "sampler": {"kind": "de_sgld", "step_size": 0.02},
            "metrics": ["w2", "consensus_error", "theorem2", "stationary"],
            "record": {"probes": ["consensus_error"]},
        }
    },
    "figures": {
        name: {"kind": kind, "title": "t", "runs": ["one"], "options": options}
        for name, kind, options in (
            ("curves", "curves", {"metric": "w2", "agents": [0, "average"], "y": {"scale": "log"}}),
            ("metric", "curves", {"metric": "consensus_error", "agents": ["network"]}),
            ("networks", "networks", {}),
        )
    },
    "tables": {"end": {"kind": "final_values", "title": "t", "runs": ["one"], "options": {}}},
    "claims": {
        "c": {
            "where": "w",
            "says": "s",
            "readings": ["published"],
            "reason": "r",
            "check": {
                "kind": "bound",
                "quantity": {"experiment": "one", "metric": "w2_exact_mean", "at": "all"},
                "bound": {"experiment": "one", "metric": "theorem2_bound", "at": "all"},
            },
        }
    },
}
PAPER["tables"]["end"]["options"] = {"metrics": ["w2", "theorem2.*"]}
FOLDER = Path("r", "x", "one")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a paper whose run, table and verdicts have been made; leave it as it is."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "x").mkdir()
    (folder / "x" / "study.yaml").write_text(dumped(PAPER))
    everything.copy("gurbuzbalaban2021", folder / "x")
    shutil.copy(CONFIG / "config.yaml", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "commit", lambda: None)
        study = Study(folder / "x", load_config(folder / "config.yaml"))
        by_hand.write(by_hand.experiments(study)["one"], folder / FOLDER)
        for section in ("figures", "tables"):
            for name in study.outputs(section):
                by_hand.plan_entry(study, folder / "r", section, name)
        for stage in STAGES:
            for command in STAGES[stage]:
                assert main([str(word) for word in command(folder)]) == 0
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of one's own."""
    monkeypatch.setattr(provenance, "commit", lambda: None)
    return Path(shutil.copytree(made, tmp_path / "made"))


def paper(command: str, *more: str) -> Callable[[Path], tuple[Any, ...]]:
    return lambda f: (command, f / "x", *more, "--config", f / "config.yaml")


def run(command: str, *files: str, to: str) -> Callable[[Path], tuple[Any, ...]]:
    return lambda f: (command, *(f / FOLDER / name for name in files), "-o", f / FOLDER / to)


def entry(command: str, name: str, suffix: str) -> Callable[[Path], tuple[Any, ...]]:
    place = Path("r", "x", name)
    return lambda f: (command, f / f"{place}.yaml", "-o", f / f"{place}.{suffix}")


Command = Callable[[Path], tuple[Any, ...]]
# The stages in their order, with commands as functions of the folder.
STAGES: dict[str, list[Command]] = {
    "sample": [run("sample", "runs.yaml", to="draws.nc")],
    "measure": [run("measure", "runs.yaml", "draws.nc", to="metrics.csv")],
    "show": [
        *(entry("draw", f"figures/{name}", "svg") for name in ("curves", "metric", "networks")),
        entry("tabulate", "tables/end", "csv"),
    ],
    "judge": [
        lambda f: (
            *(*paper("judge")(f), "--tables", f / FOLDER / "metrics.csv"),
            *("-o", f / "r" / "claims.csv"),
        )
    ],
    "ledger": [
        lambda f: ("ledger", f / "r" / "claims.csv", "-o", f / "ledger.csv", f / "ledger.md"),
        lambda f: ("expect", f / "r" / "claims.csv", "--expected", f / "e.yaml", *page(f)),
        lambda f: ("changes", f / "r" / "claims.csv", "--expected", f / "e.yaml", "--strict"),
    ],
}


def page(folder: Path) -> tuple[Any, ...]:
    (folder / "ledger.md").write_text("<!-- scoreboard -->\n<!-- end of scoreboard -->\n")
    return "--pages", folder


CELLS = st.one_of(
    st.sampled_from(("", "nan", "inf", "-inf", "-1", "0", "1e400", "1e-400", "x", "é", '"', "1.5")),
    st.sampled_from(("average", "network", "99", "w2", "holds", "published", "a\nb", "1" * 400)),
    st.text(max_size=5),
)


@st.composite
def edited(draw: Any, source: Callable[[], dict[str, list[list[str]]]]) -> bytes:
    """Return a CSV table with cells, rows or columns changed, removed, doubled or swapped."""
    rows = [list(row) for row in source()["table"]]
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("cell", "cell", "cell", "row", "column", "head", "constant")))
        row, column = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, len(rows[0]) - 1))
        if kind == "cell" and column < len(rows[row]):
            rows[row][column] = draw(CELLS)
        elif kind == "row":
            rows[row : row + 1] = draw(st.sampled_from(([], [rows[row]] * 2, [[]], [["x"]])))
        elif kind == "head" and column < len(rows[0]):
            rows[0][column] = draw(CELLS | st.sampled_from(rows[0]))
        elif kind == "constant":
            cell = draw(CELLS)
            for line in rows[1:]:
                line[column : column + 1] = [cell]
        elif kind == "column":
            for line in rows:
                del line[column : column + 1]
        if not rows or not rows[0]:
            break
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def table(path: Path) -> Callable[[], dict[str, Any]]:
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    return lambda: {"table": rows}


def content(path: Path) -> Callable[[], dict[str, bytes]]:
    found = path.read_bytes()
    return lambda: {"file": found}


def try_on(
    path: Path, tries: Any, what: str, count: int, texts: Any, commands: list[Command]
) -> None:
    """Try the texts as the content of a file, which the commands then read."""
    original, folder, seen = path.read_bytes(), path, Counter()
    about = path.with_suffix(".json")
    planned = json.loads(about.read_text()).get("planned") if about.exists() else None
    while not (folder / "x").exists():
        folder = folder.parent

    def check(text: bytes, command: Command, sealed: bool) -> None:
        path.write_bytes(text)
        if sealed and path.name == "metrics.csv":  # else it is not even read
            provenance.write_provenance([path], planned=planned)
        seen[bool(call(*command(folder)))] += 1

    which = st.sampled_from(commands), st.sampled_from((True, True, False))
    tried = tries(what, RULE, count, check, texts, *which)
    path.write_bytes(original)
    assert seen[True] > tried / 20, seen


def test_metrics(folder, tries):
    path = folder / FOLDER / "metrics.csv"
    texts = edited(table(path)) | garbled(content(path))
    what, commands = "metrics.csv, cells or bytes changed", [*STAGES["show"], *STAGES["judge"]]
    try_on(path, tries, what, 80, texts, commands)


def test_verdicts(folder, tries):
    path = folder / "r" / "claims.csv"
    texts = edited(table(path)) | garbled(content(path))
    try_on(path, tries, "claims.csv, cells or bytes changed", 120, texts, STAGES["ledger"])


def test_runs_yaml(folder, tries):
    path = folder / FOLDER / "runs.yaml"
    document = json.loads(path.read_text())
    texts = mutated(lambda: {"runs": document}, 1).map(
        lambda d: json.dumps(d, default=str).encode()
    )
    texts |= garbled(content(path))
    commands = [*STAGES["sample"], *STAGES["measure"], *STAGES["show"]]
    try_on(path, tries, "runs.yaml, mutated or garbled", 200, texts, commands)


def test_trace_bytes(folder, tries):
    path = folder / FOLDER / "draws.nc"
    texts = garbled(content(path))
    try_on(path, tries, "draws.nc, bytes changed", 50, texts, STAGES["measure"])


METRICS = ("w2", "w2_exact", "w2_floor", "consensus_error", "theorem2_bound", "theorem2.mu", "nix")
PLACES = (None, None, ["average"], [0], [0, 1, 2], ["network"], [7], ["nix"])
ITERATIONS = ("last", "all", 0, 6, [0, 1, 2], 99, [99], -1, "nix")


@st.composite
def claims_of_any_kind(draw: Any) -> Any:
    """Return the paper with a claim about its run, of any kind with any options."""
    kind = draw(st.sampled_from(sorted(checks.KINDS)))
    check = options_of(draw, checks.KINDS[kind])
    for quantity in check.values():
        if isinstance(quantity, dict):
            quantity.pop("runs", None)
            quantity.pop("reading", None)
            quantity.update(
                experiment="one",
                metric=draw(st.sampled_from(METRICS)),
                at=draw(st.sampled_from(ITERATIONS)),
                agents=draw(st.sampled_from(PLACES)),
            )
    if "axis" in check or "against" in check:
        name = "axis" if "axis" in check else "against"
        check[name] = draw(st.sampled_from(("iteration", "agents", "chains", "topology", "nix")))
    check["kind"] = kind
    return {**PAPER, "claims": {"c": {**PAPER["claims"]["c"], "check": check}}}


@pytest.mark.filterwarnings("ignore")
def test_claims_of_any_kind(folder, tries):
    seen: Counter[int] = Counter()

    def check(document: Any) -> None:
        (folder / "x" / "study.yaml").write_bytes(encoded(document))
        seen[call(*STAGES["judge"][0](folder))] += 1

    tried = tries("claims of all kinds, judged", RULE, 150, check, claims_of_any_kind())
    assert min(seen[0], seen[2]) > tried / 20, seen


NUMBERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "nan": lambda x: x * np.nan,
    "infinite": lambda x: x + np.inf,
    "huge": lambda x: x + 1e300,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NUMBERS)
def test_draws_of_other_numbers(name, folder):
    """They are measured, whatever they are."""
    path = folder / FOLDER / "draws.nc"
    traces = read_traces(path)
    (trace,) = traces.values()
    dimensions, x = trace.variables["x"]
    trace.variables["x"] = dimensions, NUMBERS[name](x)
    write_traces(traces, path)
    assert call(*STAGES["measure"][0](folder)) == 0


def netcdf(*coordinates: str) -> bytes:
    """Return a file with some of a trace's coordinates."""
    image = io.BytesIO()
    with h5netcdf.File(image, "w") as file:
        group = file.create_group("sample_stats")
        for name in coordinates:
            group.dimensions[name] = 3
            group.create_variable(name, (name,), data=np.arange(3))
    return image.getvalue()


def hdf5() -> bytes:
    """Return a file with a trace's coordinates, but without their dimensions."""
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        file["sample_stats/draw"] = file["sample_stats/agent"] = np.arange(3)
    return image.getvalue()


def elsewhere() -> bytes:
    """Return a file with a trace's coordinates outside its groups."""
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        file["draw"] = file["agent"] = np.arange(3)
    return image.getvalue()


NO_TRACES = {
    "nothing": lambda: b"",
    "text": lambda: b"no trace",
    "half of one": lambda: netcdf("draw", "agent")[:1000],
    "no coordinates": netcdf,
    "no agents": lambda: netcdf("draw"),
    "no draws": lambda: netcdf("agent"),
    "no dimensions": hdf5,
    "no groups": elsewhere,
}


@pytest.mark.parametrize("name", NO_TRACES)
def test_what_is_no_trace_though_its_checksum_is_right(name, folder):
    path = folder / FOLDER / "draws.nc"
    sealed(NO_TRACES[name](), path)
    code, told = sentence(*STAGES["measure"][0](folder))
    assert code == 2 and str(path) in told and "delete it to have it made again" in told


def test_sealed_is_as_a_trace_is_written(folder):
    """Otherwise the test above would see nothing but a checksum that is wrong."""
    path = folder / FOLDER / "draws.nc"
    sealed(path.read_bytes(), path)
    assert call(*STAGES["measure"][0](folder)) == 0


@pytest.mark.parametrize("name", ["runs.yaml", "draws.nc", "metrics.csv"])
@pytest.mark.parametrize("what", ["missing", "empty", "folder"])
def test_what_is_not_a_file(name, what, folder):
    path = folder / FOLDER / name
    path.unlink()
    if what == "empty":
        path.touch()
    elif what == "folder":
        path.mkdir()
    stages = {"runs.yaml": ("sample", "measure"), "draws.nc": ("measure",)}
    for stage in stages.get(name, ("show", "judge")):
        for command in STAGES[stage]:
            assert call(*command(folder)) in (1, 2)


def test_verdicts_have_all_columns(folder):
    path = folder / "r" / "claims.csv"
    for column in COLUMNS:
        rows = table(path)()["table"]
        place = rows[0].index(column)
        with open(folder / "other.csv", "w", newline="") as file:
            csv.writer(file).writerows([c for i, c in enumerate(r) if i != place] for r in rows)
        assert call("ledger", folder / "other.csv", "-o", folder / "o.md") == 2
