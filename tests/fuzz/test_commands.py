"""Any arguments of any command: an exit code of 0, 1 or 2, one sentence, never a traceback."""

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from harness import call, sentence
from hypothesis import strategies as st
from mutations import dumped
from pieces import CONFIG, small_papers

from concord_cli.__main__ import _parser, main
from concord_studies import provenance
from concord_studies.datasets import fetch

pytestmark = pytest.mark.thorough

RULE = "exit code 0, 1 or 2 and one sentence, nothing outside the folder"
TINY = "gurbuzbalaban2021.linear_network"
STUDY = "config/papers/x/study.yaml"


def commands() -> dict[str, argparse.ArgumentParser]:
    (action,) = (a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def not_asked(url: str, *_: object) -> None:
    raise fetch.Refused("is not asked")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder deep in another, with files of all kinds in it; the process stands in it."""
    here = tmp_path / "a" / "b"
    (here / "config" / "papers" / "x").mkdir(parents=True)
    for path in CONFIG.glob("*.yaml"):
        shutil.copy(path, here / "config")
    (here / STUDY).write_text(dumped(small_papers()[TINY]))
    (here / "empty").touch()
    (here / "binary").write_bytes(bytes(range(256)) * 9)
    (here / "folder").mkdir()
    (here / "a b.csv").write_text("a,b\n1,2\n")
    (here / "README.md").write_text("no marks\n")
    (here / "dangling").symlink_to("nowhere")
    monkeypatch.chdir(here)
    monkeypatch.delenv(fetch.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr(fetch, "_download", not_asked)
    monkeypatch.setattr(provenance, "commit", lambda: None)
    return here


FILES = (
    *("config/papers/x", "config/config.yaml", "config/datasets.yaml", "README.md", "empty"),
    *("config/expected_verdicts.yaml", "binary", "folder", "a b.csv", "dangling", "dangling/x"),
    *("no/such/file", "empty/below", "runs.yaml", "out.csv", "out.svg", "new/out.md", "out"),
)
WORDS = (
    *(
        "",
        " ",
        ".",
        "..",
        "../..",
        "./",
        "é ü.csv",
        "𝔘.svg",
        "$(touch pwned)",
        "; touch pwned",
        "%s",
    ),
    *(
        "x" * 300,
        "a/" * 50,
        "a\nb",
        "-o",
        "--",
        "-",
        "-1",
        "0",
        "1",
        "9" * 30,
        "nan",
        "*",
        "?",
        "~",
    ),
    *("linear_network", "topology=ring", "fig1", "smoke", "paper", "a9a/a9a", "a9a", "mnist/x"),
    *("../../etc/x.csv", "0:50", "50:0", "-5:x", "{paper}", "'", '"', "\\", "\u202e", "CON", "a:b"),
)
# The system passes no NUL.
anything = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=6)
words = st.one_of(st.sampled_from(FILES), st.sampled_from(WORDS), anything)


@st.composite
def arguments(draw: Any) -> list[str]:
    """Return a command with arguments: mostly as many as it takes, of all kinds."""
    if draw(st.integers(0, 99)) == 1:  # few others are right by chance
        return ["check", "config/papers/x"]
    parsers = commands()
    name = draw(st.sampled_from(sorted(parsers)))
    found = [name]
    for action in parsers[name]._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        if action.option_strings:
            wanted = action.required or not draw(st.integers(0, 2))
            if not wanted or not draw(st.integers(0, 9)):
                continue
            found.append(action.option_strings[0])
            if action.nargs == 0:
                continue
        count = 1 if action.nargs is None else draw(st.integers(0, 3))
        offered = words | st.sampled_from([*action.choices]) if action.choices else words
        found += [draw(offered) for _ in range(count)]
    if not draw(st.integers(0, 9)):
        found.insert(draw(st.integers(0, len(found))), draw(words))
    return found


def told(arguments: list[str]) -> int:
    """Run a command; usage errors of argparse end the process with exit code 2, and say so."""
    output, errors = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            return call(*arguments)
    except SystemExit as end:
        assert end.code in (0, 2)
        return 3


def test_any_arguments(folder, tries):
    outside = folder.parents[1]
    seen: Counter[int] = Counter()

    def check(words: list[str]) -> None:
        # No slash at the start, so that nothing can be written elsewhere even if it is wrong.
        seen[told([word.lstrip("/") for word in words])] += 1
        strays = {path.name for path in outside.iterdir()} - {"a"}
        strays |= {path.name for path in (outside / "a").iterdir()} - {"b"}
        assert strays <= {"etc"}, strays  # where "../../etc/x.csv" was asked for
        assert not list(outside.rglob("pwned"))

    tried = tries("arguments of all commands", RULE, 600, check, arguments())
    assert seen[2] > tried / 10 and seen[3] > tried / 20, seen


@pytest.mark.parametrize("name", commands())
def test_no_arguments_and_help(name, capsys):
    for more, code in (([], None), (["--help"], 0), (["--no-such-option"], 2)):
        try:
            found = main([name, *more]) if more else None
        except SystemExit as end:
            found = end.code
        assert found == code
    printed = capsys.readouterr()
    assert printed.out.startswith("usage: concord") and "Traceback" not in printed.err


@pytest.mark.parametrize(
    "names",
    [
        ("check", b"caf\xe9.yaml"),
        ("check", "na\u00efve file.yaml"),
        ("check", "two\nlines.yaml"),
        ("sample", "no.yaml", "-o", b"\xff.nc"),
        ("fetch", b"\xff/\xfe", "-o", "x"),
        ("draw", "x.yaml", "fig1", "-o", "/dev/null"),
    ],
)
def test_names_that_are_not_text(names, tmp_path):
    """Through the real command line, where names are bytes."""
    environment = {**os.environ, "PYTHONPATH": str(CONFIG.parent / "src"), "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-m", "concord_cli", *names],
        *(),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode in (1, 2)
    assert done.stderr.startswith(b"concord: ") and done.stderr.count(b"\n") == 1, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_not_replaced(folder, tmp_path):
    """As root, a result written to /dev/null would take its place."""
    os.mkfifo(tmp_path / "device.csv")
    output = tmp_path / "device.csv"
    assert call("measure", "runs.yaml", "-o", output) == 2
    assert output.is_fifo()
    assert call("measure", "runs.yaml", "-o", "folder") == 2
    assert Path("folder").is_dir()


@pytest.mark.parametrize("suffix", ["", ".txt", ".PDF", ".gz"])
def test_outputs_of_other_formats(suffix, folder):
    paper = "config/papers/x"
    for command in (
        ("draw", "fig1.yaml"),
        ("tabulate", "t.yaml"),
        ("judge", paper),
        ("ledger", "a b.csv"),
    ):
        code, told = sentence(*command, "-o", f"out{suffix}")
        assert code == 2 and f"out{suffix}: the output must end in ." in told
    assert not Path(f"out{suffix}").exists()
