"""A crate, and what `concord verify` says of it: as it was, with changed numbers, and with lies."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile

import pytest

from concord.__main__ import main
from concord.errors import ConcordError
from concord.stages import verify

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = "gurbuzbalaban2021/linear_step"
RUNS = ("step_size=0.003", "step_size=0.006")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """Two runs at smoke scale."""
    results, before = tmp_path_factory.mktemp("results"), os.getcwd()
    os.chdir(ROOT)
    try:
        arguments = ["config/papers/gurbuzbalaban2021", "linear_step/two", *RUNS]
        where = ["--scale", "smoke", "--results", str(results), "-o", str(results / "made.json")]
        assert main(["make", *arguments, *where]) == 0
    finally:
        os.chdir(before)
    return results


def packed(
    results: Path, to: Path, change=lambda name, body: body, lie=False, method=ZIP_STORED
) -> Path:
    """A crate as the command writes it, of metadata as few as `verify` reads.

    ``change`` files after they were listed, or with ``lie`` before.
    """
    names = [f"results/{EXPERIMENT}/{run}/{file}" for run in RUNS for file in FILES]
    bodies = {name: (results / name.removeprefix("results/")).read_bytes() for name in names}
    changed = {name: change(name, body) for name, body in bodies.items()}
    listed = changed if lie else bodies
    graph = [{"@id": "#made", "description": json.dumps({"commit": "0" * 40, "dirty": False})}]
    graph += [{"@id": n, "sha256": hashlib.sha256(b).hexdigest()} for n, b in listed.items()]
    with ZipFile(to, "w", method) as archive:
        archive.writestr("ro-crate-metadata.json", json.dumps({"@graph": graph}))
        for name, body in changed.items():
            archive.writestr(name, body)
    return to


FILES = ("run.yaml", "metrics.csv")


def said(crate: Path, capsys, monkeypatch, *options: str) -> tuple[int, str]:
    monkeypatch.chdir(ROOT)
    code = main(["verify", str(crate), "--share", "1", "--seed", "1", *options])
    out, err = capsys.readouterr()
    return code, out + err


def test_what_was_made_here_has_the_same_bytes(results, tmp_path, capsys, monkeypatch):
    table = tmp_path / "all.csv"
    crate = packed(results, tmp_path / "crate.zip")
    code, text = said(crate, capsys, monkeypatch, "-o", str(table))
    assert code == 0 and "2 of 2 runs" in text and "differ" not in text
    rows = table.read_text().splitlines()
    assert len(rows) > 100 and all(row.endswith(",the same") for row in rows[1:])


def changed_number(name: str, body: bytes) -> bytes:
    """The last number of a table, a thousandth larger."""
    if not name.endswith(f"{RUNS[1]}/metrics.csv"):
        return body
    *lines, last = body.decode().splitlines()
    cells = last.split(",")
    cells[3] = repr(float(cells[3]) * 1.001 + 1e-6)
    return "\n".join([*lines, ",".join(cells), ""]).encode()


def test_a_changed_number_is_refused(results, tmp_path, capsys, monkeypatch):
    code, text = said(packed(results, tmp_path / "crate.zip", changed_number), capsys, monkeypatch)
    assert code == 2 and "metrics.csv: it is not as it was packed" in text
    assert "made again" not in text


@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_LZMA])
@pytest.mark.parametrize("place", [0.4, 0.6, 0.8])
def test_a_file_that_was_damaged_on_its_way_is_refused(
    method, place, results, tmp_path, capsys, monkeypatch
):
    crate = packed(results, tmp_path / "crate.zip", method=method)
    body = bytearray(crate.read_bytes())
    start = int(place * len(body))
    body[start : start + 200] = bytes(200)
    crate.write_bytes(body)
    assert said(crate, capsys, monkeypatch)[1].count("crate.zip") == 1


def swapped(name: str, body: bytes) -> bytes:
    return body.replace(b"value,lo,", b"lo,value,") if name.endswith("metrics.csv") else body


def twice(name: str, body: bytes) -> bytes:
    """Another first number, which a reader may take, before the right one."""
    if not name.endswith("metrics.csv"):
        return body
    head, first, rest = body.split(b"\n", 2)
    cells = first.split(b",")
    return b"\n".join([head, b",".join([*cells[:3], b"0.5", *cells[4:]]), first, rest])


def named_runs(name: str, body: bytes) -> bytes:
    return b"" if name.endswith("run.yaml") else body


def other_parameters(name: str, body: bytes) -> bytes:
    return body.replace(b"step_size: 0.006", b"step_size: 0.007")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changed_number, r" there, .*1 numbers differ"),
        (swapped, "numbers differ"),
        (twice, "numbers differ"),
        (named_runs, "no number was compared"),
        (other_parameters, "the configuration here has other parameters"),
    ],
)
def test_what_was_changed_before_it_was_packed_differs(
    change, words, results, tmp_path, capsys, monkeypatch
):
    crate = packed(results, tmp_path / "crate.zip", change, lie=True)
    code, text = said(crate, capsys, monkeypatch)
    assert code == 2 and re.search(words, text, re.S)


def test_files_that_are_not_listed_or_lack_are_refused(results, tmp_path, capsys, monkeypatch):
    crate = packed(results, tmp_path / "crate.zip")
    with ZipFile(crate, "a") as archive:
        archive.writestr("results/more.csv", "1")
    assert "does not list it" in said(crate, capsys, monkeypatch)[1]
    (tmp_path / "no.zip").write_text("no")
    assert "it is no crate" in said(tmp_path / "no.zip", capsys, monkeypatch)[1]
    monkeypatch.chdir(tmp_path)
    assert main(["verify", str(packed(results, tmp_path / "crate.zip"))]) == 2
    assert "verify in a clone of that commit" in capsys.readouterr().err
    with ZipFile(tmp_path / "bare.zip", "w") as archive:
        archive.writestr("ro-crate-metadata.json", json.dumps({"@graph": []}))
    assert "it is no crate" in said(tmp_path / "bare.zip", capsys, monkeypatch)[1]


def test_data_that_the_project_keeps_are_put_in_place(tmp_path, monkeypatch):
    """Nothing was made in a fresh clone, not even they; what is downloaded is named."""
    monkeypatch.chdir(ROOT)
    run = verify._study("fald2023", "smoke", 1).run("edge", "f=1")
    assert "w2" in verify._again(run, tmp_path)
    assert (tmp_path / "fald2023_toy" / "fald2023_toy.csv.gz").is_file()
    run = next(r for r in verify._study("bhar2023", "smoke", 1).runs.values() if r.downloads)
    with pytest.raises(ConcordError, match=r"is not there; `concord fetch \S+ -o .*`"):
        verify._again(run, tmp_path)


@pytest.mark.parametrize(
    ("a", "b", "metric", "amplified", "wanted"),
    [
        (("1.0", "", "", "0"), ("1.0", "", "", "0"), "w2", False, verify.SAME),
        (("1.0", "", "", "0"), ("1.0000000005", "", "", "0"), "w2", False, verify.AGREES),
        (("1.0", "", "", "0"), ("1.0000005", "", "", "0"), "w2", False, verify.DIFFERS),
        (("1.0", "", "", "0"), ("1.0000005", "", "", "0"), "sinkhorn", False, verify.AGREES),
        (("0.0", "", "", "0"), ("1e-13", "", "", "0"), "w2", False, verify.AGREES),
        (("nan", "", "", "0"), ("1.0", "", "", "0"), "w2", True, verify.DIFFERS),
        (("inf", "", "", "0"), ("inf", "", "", "0"), "w2", False, verify.SAME),
        (("inf", "", "", "0"), ("1.0", "", "", "0"), "w2", False, verify.DIFFERS),
        (("1.0", "", "inf", "0"), ("1.0", "", "2.0", "0"), "w2", False, verify.DIFFERS),
        (("much", "", "", "0"), ("1.0", "", "", "0"), "w2", True, verify.DIFFERS),
        (("1.0",), ("1.0", "", "", "0"), "w2", True, verify.DIFFERS),
        (("1.0", "0.5", "2.0", "9"), ("1.8", "1.5", "2.5", "9"), "w2", True, verify.OTHER),
        (("1.0", "0.5", "2.0", "9"), ("1.8", "1.5", "2.5", "9"), "w2", False, verify.DIFFERS),
        (("1.0", "0.5", "1.2", "9"), ("1.8", "1.5", "2.5", "9"), "w2", True, verify.DIFFERS),
        (("1.0", "0.5", "1.2", "9"), ("1.0", "", "", "9"), "w2", False, verify.DIFFERS),
    ],
)
def test_the_verdict_on_a_number(a, b, metric, amplified, wanted):
    assert verify.verdict(metric, a, b, amplified) == wanted


@pytest.mark.thorough
def test_the_crate_is_valid(results, tmp_path, capsys, monkeypatch):
    """By the validator of the profile, whose own needs are at odds with the lock's."""
    rocrate = pytest.importorskip("rocrate", reason="pip install -e '.[crate]'")
    validator = ROOT / ".venv-validator" / "bin" / "python"
    if not validator.exists():
        pytest.skip(f"{validator}: a venv with roc-validator==0.13.0, which .ci/run extras makes")
    monkeypatch.chdir(ROOT)
    crate = tmp_path / "crate.zip"
    where = ("--scale", "smoke", "--results", str(results), "-o", str(crate))
    assert main(["crate", *where]) == 0
    context = Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld"
    command = [validator, Path(__file__).with_name("valid_crate.py"), context, crate]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    required, _, recommended = done.stdout.partition("RECOMMENDED\n")
    assert required.split() == ["REQUIRED", "valid"], done.stdout + done.stderr
    # A file of the crate has no absolute address, and the developers have no page.
    issues = recommended.splitlines()[1:]
    assert all("url" in i.lower() or "URI" in i for i in issues), issues
    code, text = said(crate, capsys, monkeypatch, "--seconds", "60")
    assert code == 0 and "the same" in text
