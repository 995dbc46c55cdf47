"""No command writes its output over what it reads, or in the place of a folder."""

from pathlib import Path

import pytest

from concord_cli.__main__ import main

FOLDER, READ = "folder", "reads this file"
STUDY = "config/papers/x"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with files that a command may read, which no command understands."""
    monkeypatch.chdir(tmp_path)
    for name in ("runs.yaml", "trace.nc", "metrics.csv", "a.csv", f"{STUDY}/study.yaml"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    Path("linked.nc").symlink_to("trace.nc")
    Path("also.csv").hardlink_to("a.csv")
    return tmp_path


def written(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "output", "why"),
    [
        ("sample runs.yaml", "runs.yaml", "must end in .nc"),
        ("sample runs.yaml", ".", FOLDER),
        ("measure runs.yaml trace.nc", "trace.nc", "must end in .csv"),
        ("measure runs.yaml a.csv", "./a.csv", READ),
        ("tabulate a.csv", "also.csv", READ),
        (f"judge {STUDY} --tables metrics.csv", "out.csv metrics.csv", READ),
        ("ledger --output also.csv -- a.csv", "", READ),
        ("draw a.csv", "config", FOLDER),
        ("fetch magic/magic04.data", ".", FOLDER),
        ("crate", "config", FOLDER),
        ("recommend runs.yaml", "config", FOLDER),
    ],
)
def test_an_output_is_no_input_and_no_folder(folder, capsys, command, output, why):
    before = written(folder)
    outputs = ["-o", *output.split()] if output else []
    assert main([*command.split(), *outputs]) == 2
    said = capsys.readouterr().err
    assert why in said and said.startswith("concord: ") and said.count("\n") == 1, said
    assert written(folder) == before
