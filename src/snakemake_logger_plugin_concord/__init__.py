"""What a run of the workflow says: a line per figure and experiment, and how long it will take.

Snakemake finds this logger by the package's name; ``make`` asks for it (``--logger concord``).
Snakemake's own words are in its log file; ``--logger-concord-full``, ``--verbose`` and
``--printshellcmds`` bring them back, and a dry run has them anyway.
"""

import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from logging import INFO, LogRecord
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase
from tqdm import tqdm

# What a job of a rule has made: as its line begins, and several.
MADE = {
    "figure": ("figure", "figures"),
    "table": ("table", "tables"),
    "judge": ("verdicts", "judgements"),
    "measure": ("", "runs"),
    "site": ("site", "sites"),
}
# What a job of a rule takes in the mean, at paper scale on a core; of others, two seconds.
SECONDS = {"sample": 8.0, "sample_chains": 8.0, "measure": 6.0, "judge": 5.0, "survey": 10.0}
SAYING = 120.0  # seconds until it says how far it is, where no bar does
PREPARING = ("Building DAG", "Using shell", "Assuming", "Conda environments", "Group jobs")
LOGS, NOTHING = "Complete log(s): ", "Nothing to be done"
BAR = "{percentage:3.0f} % |{bar}| {desc}, {remaining} left"
CHANGED = "changed_verdicts.txt"


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Settings of the command line, ``--logger-concord-<name>``."""

    full: bool = field(
        default=False, metadata={"help": "say all that Snakemake says, not a line per figure"}
    )


def _seconds(rule: str) -> float:
    """Return about how long a job of a rule takes."""
    return SECONDS.get(rule, 2.0)


def _experiment(job: LogRecord) -> str:
    """Return study and experiment of a job that makes a batch of runs; of others nothing."""
    batch = dict(job.__dict__["wildcards"] or {}).get("batch", "")
    return "/".join(str(batch).split("/")[:2])


class LogHandler(LogHandlerBase):
    """Says what is made; as ``full`` it leaves the word to Snakemake's own handler."""

    def __post_init__(self) -> None:
        """Start with nothing made."""
        common = self.common_settings
        assert isinstance(self.settings, LogHandlerSettings)
        loud = common.dryrun or common.verbose or common.printshellcmds
        self.full = self.settings.full or loud
        self.begun = self.said = time.monotonic()
        self.cores, self.expected, self.spent = 0, 0.0, 0.0  # in seconds of a core
        self.jobs: dict[int, LogRecord] = {}
        self.measured: dict[str, bool] = {}  # experiments, and whether that has been said
        self.batches = 0  # that are to be measured
        self.made: Counter[str] = Counter()
        self.finished = 0
        self.outputs: list[Path] = []
        self.log = ""
        self.started = time.monotonic()
        self.bar: tqdm[Any] | None = None
        if not self.full:
            self._say("Reading the configuration; planning what is missing or no longer stands.")

    writes_to_file = False
    has_filter = True
    has_formatter = False
    needs_rulegraph = False

    @property
    def writes_to_stream(self) -> bool:
        """Whether Snakemake leaves the terminal to this handler."""
        return not self.full

    def emit(self, record: LogRecord) -> None:
        """Say what a record means to somebody who waits for results."""
        event = getattr(record, "event", None)
        if self.full:
            return
        if event == LogEvent.RESOURCES_INFO:
            self.cores = record.__dict__.get("cores") or self.cores
        elif event == LogEvent.RUN_INFO:
            self._begin(record.__dict__["stats"])
        elif event == LogEvent.JOB_INFO:
            self.jobs[record.__dict__["jobid"]] = record
            self._tell_experiments()
            if record.__dict__.get("rule_msg"):  # of a job that takes long
                self._say(record.__dict__["rule_msg"])
        elif event == LogEvent.JOB_FINISHED:
            self._finished(self.jobs.pop(record.__dict__["job_id"], None))
        elif event == LogEvent.PROGRESS:
            self._progress(record.__dict__["done"], record.__dict__["total"])
        elif event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR) or record.levelno > INFO:
            self._say(self.format(record))
        elif event is None and record.msg:
            self._plain(str(record.msg))

    def _plain(self, text: str) -> None:
        if text.startswith(LOGS):
            self.log = text.removeprefix(LOGS)
        elif text.startswith(NOTHING):
            self._say(text)
        elif self.bar is None and not text.startswith(PREPARING):
            self._say(text)  # what is told outside of a run: of lint, a report, a clean-up

    def _finished(self, job: LogRecord | None) -> None:
        if job is None:
            return
        rule, wildcards = job.__dict__["rule_name"], dict(job.__dict__["wildcards"] or {})
        outputs = [Path(path) for path in job.__dict__["output"]]
        self.outputs += outputs
        self.finished += 1
        self.spent += _seconds(rule)
        if rule == "measure":
            self.made[rule] += len(json.loads(outputs[0].read_bytes()))
            self.measured.setdefault(_experiment(job), False)
            self.batches -= 1
            if not self.batches:
                self._tell_experiments()
        else:
            self.made[rule] += 1
        one = MADE.get(rule, ("", ""))[0]
        if one:
            name = "/".join(wildcards[key] for key in ("paper", "name") if key in wildcards)
            self._say(f"{one:8} {name}".rstrip())

    def _tell_experiments(self) -> None:
        """Say of which experiments runs have been made, as soon as jobs go on to others."""
        at_work = set(map(_experiment, self.jobs.values()))
        for experiment, told in self.measured.items():
            if not told and experiment not in at_work:
                self.measured[experiment] = True
                self._say(f"{'runs':8} {experiment}")

    def _begin(self, stats: dict[str, int]) -> None:
        """Say how many jobs there are, and about how long they will take."""
        self.batches = stats.get("measure", 0)
        self.begun = self.said = time.monotonic()
        total = stats.get("total", 0)
        self.expected = sum(n * _seconds(rule) for rule, n in stats.items() if rule != "total")
        self.bar = tqdm(
            total=self.expected,
            desc=f"0 of {total} jobs",
            bar_format=BAR,
            disable=not sys.stderr.isatty(),
            leave=False,
        )
        if self.cores and self.expected / self.cores > SAYING:
            left = tqdm.format_interval(self.expected / self.cores)
            cores = "one core" if self.cores == 1 else f"{self.cores} cores"
            self._say(f"{total} jobs, which take about {left} on {cores}")

    def _progress(self, done: int, total: int) -> None:
        """Move the bar; where there is no terminal, say how far it is at every tenth, or so."""
        if self.bar is None:
            return
        spent = min(self.spent, self.expected)
        self.bar.set_description_str(f"{done} of {total} jobs", refresh=False)
        self.bar.update(spent - self.bar.n)
        self.bar.n = spent
        now = time.monotonic()
        tenth = done * 10 // total > (done - 1) * 10 // total or now > self.said + SAYING
        if self.bar.disable and tenth and done < total:
            self.said = now
            left = (now - self.begun) * (self.expected / max(spent, 1.0) - 1)
            left_text = tqdm.format_interval(max(left, 0.0))
            self._say(
                f"{done * 100 // total:3} %    {done} of {total} jobs, about {left_text} left"
            )

    def _say(self, text: str) -> None:
        tqdm.write(text, file=sys.stderr)

    def close(self) -> None:
        """Say what was made, where to look, and how many verdicts differ from those committed."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
            self._summary()
        super().close()

    def _summary(self) -> None:
        counted = [
            f"{self.made[rule]} {several if self.made[rule] != 1 else several.removesuffix('s')}"
            for rule, (_, several) in MADE.items()
            if self.made[rule]
        ]
        taken = tqdm.format_interval(time.monotonic() - self.started)
        done = f"{self.finished} job{'' if self.finished == 1 else 's'}"
        self._say(f"Made {', '.join(counted) or 'nothing to look at'} ({done}) in {taken}.")
        claims = [path for path in self.outputs if path.name == "claims.md"]
        above = min((len(path.parts) for path in claims), default=0)  # the ledger has all claims
        claims = [path for path in claims if len(path.parts) == above]
        folders = {p.parent for p in self.outputs if p.parent.name in ("figures", "tables")}
        site = ["site/index.html"] * self.made["site"]
        if found := [*site, *claims, *sorted(folders)]:
            self._say("Look at: " + "\n         ".join(map(str, found)))
        for path in (path for path in self.outputs if path.name == CHANGED):
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            if lines:
                more = f" {path} lists them." if lines[1:] else ""
                self._say(lines[0] + more)
        if self.log:
            self._say(f"Full log: {self.log}")
