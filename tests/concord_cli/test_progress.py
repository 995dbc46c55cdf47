"""What lasts says so on a terminal, within five seconds; what ends early is quiet."""

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import concord
from concord import progress
from concord_cli import __main__
from concord_cli.progress import announce_if_long

SOURCE = Path(concord.__file__).parents[1]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(monkeypatch) -> Callable[[], Terminal]:
    """Make the error stream a terminal (pytest has its own until the test begins)."""

    def show() -> Terminal:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(progress, "PATIENCE", 0.1)
        return terminal

    return show


def test_every_command_says_what_it_does_if_it_lasts(shown, monkeypatch):
    terminal = shown()
    for name, lasts in (("orphans", False), ("list", True)):
        work = (lambda options: time.sleep(0.3)) if lasts else (lambda options: None)
        monkeypatch.setattr(__main__, "call", lambda target, options, work=work: work(options))
        assert __main__.main([name]) == 0
        text = (
            "concord: list: list the kinds there are of samplers, problems, topologies, ... ...\n"
        )
        assert terminal.getvalue() == text * lasts


def test_a_log_has_a_line_a_minute_and_no_bar(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    for minute, lines in ((60, ""), (0, "steps: 1 of 2\nsteps: 2 of 2\n")):
        monkeypatch.setattr(progress, "MINUTE", minute)
        with announce_if_long("it"):
            for _ in progress.each(range(2), "steps"):
                time.sleep(0.1)
        assert log.getvalue() == lines


def test_a_bar_comes_when_work_lasts_and_never_where_none_is_wanted(shown):
    terminal = shown()
    assert list(progress.each("ab", "letters")) == ["a", "b"]
    with progress.progress(2, "sample", shown=False) as count:
        time.sleep(0.15)
        count()
    assert not terminal.getvalue()
    for _ in progress.each(range(4), "steps"):
        time.sleep(0.12)
    assert "steps:  " in terminal.getvalue() and "<00:00" in terminal.getvalue()


def test_a_law_that_goes_step_by_step_says_how_far_it_is(shown):
    terminal = shown()
    problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]]], b=[[1.0], [0.0]])
    steps = {"kind": "harmonic", "a": 0.1, "c": 0.1}
    concord.law("de_sgld", problem, "complete", iterations=3000, step_size=steps)
    assert "exact law:" in terminal.getvalue() and "/3000 [" in terminal.getvalue()


def test_a_reader_who_has_seen_enough_ends_a_command_quietly():
    """As ``concord list | head`` does."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "concord_cli", "list"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, env=environment
    )
    os.close(writing)
    assert done.stderr == "" and done.returncode == 141
