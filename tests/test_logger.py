"""What a run of the workflow says before its first job ends."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_concord as plugin


@pytest.fixture
def handler():
    common = SimpleNamespace(dryrun=False, verbose=False, printshellcmds=False)
    found = plugin.LogHandler(common, plugin.LogHandlerSettings())
    yield found
    found.bar = None
    found.close()


@pytest.fixture
def said(monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(plugin.tqdm, "write", lambda text, file: lines.append(text))
    return lines


def tell(handler, event, message="", **about):
    record = logging.makeLogRecord({"msg": message, "levelno": logging.INFO, "event": event})
    record.__dict__.update(about)
    handler.emit(record)


def test_how_long_the_jobs_take_is_told_before_the_first(said, handler):
    tell(handler, LogEvent.RESOURCES_INFO, cores=2)
    stats = {"small": 50, "sample": 60, "measure": 60, "vary": 80, "multiverse": 1, "total": 251}
    tell(handler, LogEvent.RUN_INFO, stats=stats)
    # (50 * 3 + 60 * 8 + 60 * 7 + 80 * 20 + 2) / 2 seconds
    assert said[-1] == "251 jobs, which take about 22:06 on 2 cores"


def test_few_jobs_begin_without_a_word(said, handler):
    told = len(said)
    tell(handler, LogEvent.RESOURCES_INFO, cores=1)
    tell(handler, LogEvent.RUN_INFO, stats={"figure": 3, "total": 3})
    assert len(said) == told


def test_what_is_left_is_told_by_the_work_and_not_by_the_number_of_jobs(said, handler, monkeypatch):
    """Where there is no terminal: at a tenth of the jobs, and after two minutes without a word."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(plugin.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(plugin.sys.stderr, "isatty", lambda: False, raising=False)
    tell(handler, LogEvent.RESOURCES_INFO, cores=1)
    tell(handler, LogEvent.RUN_INFO, stats={"figure": 30, "vary": 12, "total": 42})
    for number in range(1, 11):  # figures, two seconds each, in four
        clock.now += 4
        about = {"rule_name": "figure", "wildcards": {}, "output": [], "jobid": number}
        tell(handler, LogEvent.JOB_INFO, **about)
        tell(handler, LogEvent.JOB_FINISHED, job_id=number)
        tell(handler, LogEvent.PROGRESS, done=number, total=42)
    told = [line for line in said if "left" in line]
    # 18 of 300 seconds of work took 36.
    assert told[-1] == " 21 %    9 of 42 jobs, about 09:24 left"
    before = len(told)
    clock.now += 121
    tell(handler, LogEvent.PROGRESS, done=11, total=42)
    assert len([line for line in said if "left" in line]) == before + 1


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (("a/claims.md", "b/claims.md", "claims.md"), ["Look at: results/claims.md"]),
        (("a/claims.md", "b/claims.md"), ["Look at: results/a/claims.md", "results/b/claims.md"]),
        (
            ("a/figures/fig1.svg", "a/claims.md"),
            ["Look at: results/a/claims.md", "results/a/figures"],
        ),
    ],
)
def test_in_the_end_it_says_where_to_look(said, handler, made, told):
    handler.bar = SimpleNamespace(close=lambda: None)
    handler.outputs = [plugin.Path("results", name) for name in made]
    handler.close()
    (found,) = (text for text in said if text.startswith("Look at"))
    assert [line.strip() for line in found.splitlines()] == told
