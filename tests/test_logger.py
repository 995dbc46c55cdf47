"""What a run of the workflow says before its first job ends."""

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
    stats = {"sample_chains": 20, "sample": 60, "measure": 170, "multiverse": 1, "total": 251}
    tell(handler, LogEvent.RUN_INFO, stats=stats)
    # (20 * 8 + 60 * 8 + 170 * 6 + 2) / 2 seconds
    assert said[-1] == "251 jobs, which take about 13:51 on 2 cores"


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
    tell(handler, LogEvent.RUN_INFO, stats={"figure": 30, "measure": 40, "total": 70})
    for number in range(1, 11):  # figures, two seconds each, in four
        clock.now += 4
        about = {"rule_name": "figure", "wildcards": {}, "output": [], "jobid": number}
        tell(handler, LogEvent.JOB_INFO, **about)
        tell(handler, LogEvent.JOB_FINISHED, job_id=number)
        tell(handler, LogEvent.PROGRESS, done=number, total=70)
    told = [line for line in said if "left" in line]
    # 14 of 300 seconds of work took 28.
    assert told[-1] == " 10 %    7 of 70 jobs, about 09:32 left"
    before = len(told)
    clock.now += 121
    tell(handler, LogEvent.PROGRESS, done=11, total=70)
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


def test_an_experiment_is_told_once_when_jobs_go_on_to_others(said, handler, tmp_path):
    """From the rules and wildcards of jobs alone; of how many runs, the files of batches tell."""
    numbers = iter(range(100))

    def begin(rule, batch="", **wildcards):
        output = tmp_path / f"{next(numbers)}.json"
        output.write_text('{"a/1": "x", "a/2": "y"}')
        number = next(numbers)
        wildcards |= {"batch": batch} if batch else {}
        about = {"rule_name": rule, "wildcards": wildcards, "output": [str(output)]}
        tell(handler, LogEvent.JOB_INFO, jobid=number, **about)
        return number

    def runs():
        return [line.removeprefix("runs").strip() for line in said if line.startswith("runs")]

    tell(handler, LogEvent.RUN_INFO, stats={"measure": 5, "sample": 1, "figure": 1, "total": 7})
    first, second = begin("measure", "p/one/batch_0"), begin("sample", "p/one/long")
    tell(handler, LogEvent.JOB_FINISHED, job_id=first)
    other = begin("measure", "p/two/batch_0")
    assert runs() == []  # one is still at work
    tell(handler, LogEvent.JOB_FINISHED, job_id=second)
    third = begin("measure", "p/one/long")
    assert runs() == []
    tell(handler, LogEvent.JOB_FINISHED, job_id=third)
    figure = begin("figure", paper="p", section="figures", name="fig1")
    assert runs() == ["p/one"]
    again = begin("measure", "p/one/batch_1")
    for job in (other, again, figure):
        tell(handler, LogEvent.JOB_FINISHED, job_id=job)
    assert runs() == ["p/one"]
    tell(handler, LogEvent.JOB_FINISHED, job_id=begin("measure", "p/multiverse/seed_2/small-runs"))
    assert runs() == ["p/one", "p/two", "p/multiverse"]
    handler.close()
    assert said[-1].startswith("Made 1 figure, 10 runs (7 jobs) in ")
