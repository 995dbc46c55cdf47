"""The stages as commands: each reads files, writes one result whole, and tells mistakes."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import by_hand
import concord
from concord.sampling.trace_files import load
from concord.values import FINITE_RANGE
from concord_cli.__main__ import main
from concord_studies import io
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.io import load_yaml
from processes import python

SOURCE = Path(concord.__file__).parents[1]
CONFIG = SOURCE.parent / "config" / "config.yaml"
# gram is near 10 I: a step of 5 multiplies every iterate by about -50
PAPER = yaml.safe_load(Path(__file__).with_name("staged.yaml").read_text())
CALM, WILD = "step=0.02", "step=5"


def command(*arguments):
    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with a paper of two runs, of which one diverges; they were made by commands."""
    folder = tmp_path_factory.mktemp("project")
    study = folder / "config" / "papers" / "x" / "study.yaml"
    study.parent.mkdir(parents=True)
    study.write_text(yaml.safe_dump(PAPER, sort_keys=False))
    shutil.copy(CONFIG, folder / "config")
    study = Study(study.parent, load_config(folder / "config" / "config.yaml"))
    for name, experiment in by_hand.experiments(study).items():
        results = place(folder).with_name(name)
        runs = by_hand.write(experiment, results)
        command("sample", runs, "-o", results / "draws.nc")
        command("measure", runs, "-o", results / "metrics.csv")
    for section, name in (("figures", "fig1"), ("tables", "end")):
        by_hand.plan_entry(study, folder / "results", section, name)
    return folder


def place(project):
    return project / "results" / "x" / "steps"


def document(project, run):
    return json.loads((place(project) / "runs.yaml").read_text())["runs"][run]


def trace_of(project, run):
    return load(place(project) / "draws.nc", run)


def rows(project, run, metric):
    with open(place(project) / "metrics.csv") as file:
        return [r for r in csv.DictReader(file) if (r["run"], r["metric"]) == (run, metric)]


def edited(project, folder, **changes):
    """Write a runs.yaml with one run that was edited by hand; return its path."""
    stated = json.loads((place(project) / "runs.yaml").read_text())
    stated["runs"] = {CALM: stated["runs"][CALM] | changes}
    path = folder / "runs.yaml"
    path.write_text(json.dumps(stated))
    return path


def test_runs_yaml_states_everything_and_the_draws_carry_it(project):
    run = document(project, CALM)
    assert run["sampler"] == {
        **{"kind": "de_sgld", "step_size": 0.02},
        **{"batch_size": None, "batch_order": "with_replacement"},
        **{"batch_scale": "data", "batch_pool": "all"},
        **{"weights": "metropolis", "update_order": "simultaneous"},
    }
    assert run["problem"]["noise_sd"] == 1.0 and run["record"]["burn_in"] == -1
    assert run["seed"] == 1 and run["labels"] == {"step": "0.02"}
    assert json.loads(trace_of(project, CALM).attributes["run"]) == run
    assert load_yaml(place(project) / "runs.yaml")["runs"][CALM] == run


def test_data_and_start_are_shared(project):
    one, other = (trace_of(project, run) for run in (CALM, WILD))
    np.testing.assert_array_equal(one["x"][:, 0], other["x"][:, 0])


def test_divergence_is_a_result(project):
    """The iteration at which the first chain left is the first one beyond the range."""
    (fraction,) = rows(project, WILD, "diverged")
    assert (fraction["agent"], fraction["value"]) == ("network", "1.0")
    (first,) = rows(project, WILD, "diverged_first")
    trace = trace_of(project, WILD)
    assert int(first["iteration"]) == trace["diverged_at"].min() == float(first["value"])
    assert 3 <= int(first["iteration"]) <= 7  # 50^k passes 1e8 near k = 5
    size = np.abs(trace["x"]).max(axis=(0, 2, 3))
    assert size[trace.draw.tolist().index(0)] < 10 and size[-1] > FINITE_RANGE
    (calm,) = rows(project, CALM, "diverged")
    assert calm["value"] == "0.0" and rows(project, CALM, "diverged_first") == []
    assert float(rows(project, WILD, "w2")[-1]["value"]) > 1e8


def test_a_figure_with_a_run_that_diverged_is_drawn_with_its_sidecars(project):
    folder = project / "results" / "x" / "figures"
    outputs = [folder / f"fig1.{ending}" for ending in ("pdf", "svg", "png")]
    command("draw", folder / "fig1.yaml", "-o", *outputs)
    assert all(path.stat().st_size > 1000 for path in outputs)
    assert "step size 0.02 or 5" in (folder / "fig1.caption.md").read_text()
    sidecar = json.loads((folder / "fig1.json").read_text())
    assert len(sidecar["inputs"]) == 2 and sidecar["seed"] == 1
    assert "diverged" in outputs[1].read_text()


def test_a_caption_says_the_numbers_of_its_runs_and_no_others(project):
    """What diverged, or is out of its bounds, is left out; of another experiment it is read."""
    folder = project / "results" / "x" / "figures"
    command("draw", folder / "fig1.yaml", "-o", folder / "fig1.pdf")
    caption = json.loads((folder / "fig1.json").read_text())["caption"]
    ends = [row for row in rows(project, CALM, "w2_exact") if row["iteration"] == "25"]
    low, high = sorted(float(row["value"]) for row in ends if row["agent"] != "average")
    found = re.fullmatch(
        r"4 agents, 30 chains, 25 iterations: ([\d.]+)(?: to ([\d.]+))?\.", caption["caption"]
    )
    assert [float(found[1]), float(found[2] or found[1])] == pytest.approx([low, high], rel=0.1)
    assert re.fullmatch(r"Alone 0\.\d+\.", caption["ours"])
    for suffix in ("caption.md", "caption.rst"):
        text = (folder / f"fig1.{suffix}").read_text()
        assert "30 chains" in text and "ends at" not in text and "times as far" not in text


def test_a_table_is_written_in_three_forms(project):
    folder = project / "results" / "x" / "tables"
    outputs = [folder / f"end.{ending}" for ending in ("csv", "md", "tex")]
    command("tabulate", folder / "end.yaml", "-o", *outputs)
    long, page, latex = (path.read_text() for path in outputs)
    row = page.splitlines()[2].strip("| ").split(" | ")
    assert len(long.splitlines()) > len(row) > 0
    for cell in row:
        assert cell.partition(" ")[0] in latex


def test_a_run_by_itself_gives_the_same_bytes_in_another_process(project, tmp_path):
    """Made at once, in parts, or from the draws of a run alone, by ``concord run``."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": "7"}
    study, config = project / "config/papers/x", project / "config/config.yaml"
    runs, parts = place(project) / "runs.yaml", [tmp_path / f"{part}.csv" for part in (1, 2)]
    for arguments in (
        ["measure", runs, "-o", tmp_path / "once.csv"],
        *(["measure", runs, "--part", p.stem, "--of", 2, "-o", p] for p in parts),
        ["gather", runs, *parts, "-o", tmp_path / "parts.csv"],
        ["run", study, "steps", CALM, "--config", config, "-o", tmp_path / "alone"],
    ):
        command_line = [sys.executable, "-m", "concord_cli", *map(str, arguments)]
        subprocess.run(command_line, env=environment, check=True)
    whole = (place(project) / "metrics.csv").read_text()
    assert (tmp_path / "once.csv").read_text() == (tmp_path / "parts.csv").read_text() == whole
    alone = (tmp_path / "alone" / "metrics.csv").read_text()
    assert whole.startswith(alone) and len(alone) > 1000


def refused(capsys, *arguments):
    """Run a command that must be refused; return its sentence."""
    assert main([str(argument) for argument in arguments]) == 2
    text = capsys.readouterr().err
    assert text.startswith("concord: ") and text.count("\n") == 1
    return text


def test_a_part_of_other_runs_is_refused_and_so_is_one_in_the_place_of_another(
    project, tmp_path, capsys
):
    output, runs = tmp_path / "metrics.csv", place(project) / "runs.yaml"
    part, other = tmp_path / "1.csv", edited(project, tmp_path, seed=2)
    command("measure", runs, "--part", 1, "--of", 2, "-o", part)
    text = refused(capsys, "gather", other, part, "-o", output)
    assert f"{part}: it has metrics of other runs; delete the file to have it made again" in text
    for parts, wrong in (([part], "1 of 1"), ([part, part], "2 of 2")):
        text = refused(capsys, "gather", runs, *parts, "-o", output)
        assert f"{part}: it is not part {wrong}; name the tables of all parts, in order" in text
    assert not output.exists()


def test_metrics_of_another_runs_yaml_are_not_shown(project, tmp_path, capsys):
    copy = tmp_path / "project"
    shutil.copytree(project, copy)
    runs, entry = place(copy) / "runs.yaml", copy / "results/x/tables/end.yaml"
    runs.write_text(runs.read_text().replace('"seed": 1', '"seed": 2'))
    for _ in range(2):
        text = refused(capsys, "tabulate", entry, "-o", tmp_path / "end.csv")
        assert "metrics.csv: it was made from another runs.yaml; delete the file" in text
        runs.unlink(missing_ok=True)


@pytest.mark.parametrize(("part", "parts"), [(0, 1), (3, 2), (1, 3)])
def test_a_part_that_is_none_is_refused(part, parts, project, tmp_path, capsys):
    runs, output = place(project) / "runs.yaml", tmp_path / "x.csv"
    text = refused(capsys, "measure", runs, "--part", part, "--of", parts, "-o", output)
    assert "the experiment has at most 2 parts, numbered from 1; choose among these" in text


@pytest.mark.parametrize(
    "content", ["", "[]", "a: [", "[" * 100_000, '{"study": "x"}', '{"study": 1, "runs": {}}']
)
def test_a_broken_runs_yaml_is_refused(content, tmp_path, capsys):
    (tmp_path / "runs.yaml").write_text(content)
    text = refused(capsys, "sample", tmp_path / "runs.yaml", "-o", tmp_path / "draws.nc")
    assert f"{tmp_path / 'runs.yaml'}: it is not as planning writes it (" in text
    assert [path.name for path in tmp_path.iterdir()] == ["runs.yaml"]


def test_a_result_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "metrics.csv"
    (tmp_path / "plain").touch()

    def fail():
        with io.whole_file(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(path.parent.iterdir()) == []
    with io.whole_file(path) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
    assert [p.name for p in path.parent.iterdir()] == ["metrics.csv"]
    assert path.stat().st_mode & 0o777 == (tmp_path / "plain").stat().st_mode & 0o777


def test_what_a_killed_process_left_is_removed_by_a_later_attempt(tmp_path):
    """And nothing else of that folder: no other file, and nothing that may be written right now."""
    left, young = (f".a.{c * 16}.concord-part.csv" for c in "01")
    names = {young, ".a.csv", "a.csv~", left.replace(".csv", ".nc")}
    for name in (left, *names):
        (tmp_path / name).write_text("half of more than will be written")
    for name in {left, *names} - {young}:
        os.utime(tmp_path / name, (0, 0))
    io.write_whole(tmp_path / "a.csv", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", *names}


STARTED = """
import sys
import concord.chains
def started(*arguments, **options):
    print(*sys.modules)
    sys.exit(0)
concord.chains.run = started
from concord_cli.__main__ import main
main(["sample", sys.argv[1], "-o", "never.nc"])
"""


def test_sampling_loads_no_heavy_library_before_its_first_step(project):
    loaded = {*python(STARTED, place(project) / "runs.yaml").split()}
    heavy = {"matplotlib", "pandas", "sklearn", "ot", "torch", "scipy", "jsonschema", "xarray"}
    heavy |= {"networkx", "importlib.metadata"}
    assert loaded & heavy == set() and "numpy" in loaded
