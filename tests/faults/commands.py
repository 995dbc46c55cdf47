"""Every command of the pipeline on the tiny project, run in a process that a fault may befall."""

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tiny_project import FIGURE, METRICS, PAPER, PROVENANCE, RUNS, TABLE, TinyProject

from concord_cli.__main__ import main
from concord_studies import experiment, provenance

# Imported here, so that the forks need not.
for module in (
    *("pandas", "h5netcdf", "jinja2", "matplotlib.backends.backend_pdf"),
    *(
        "matplotlib.backends.backend_svg",
        "concord_studies.figures.curves",
        "concord_studies.figures.style",
    ),
    *(f"concord_studies.stages.{stage}" for stage in ("draw", "judge")),
):
    import_module(module)

SETTINGS = ["--scale", "smoke"]
FOLDER = f"config/papers/{PAPER}"
DRAWS = RUNS.replace("runs.yaml", "draws.nc")


def beside(path: str, *endings: str) -> tuple[str, ...]:
    return tuple(str(Path(path).with_suffix(ending)) for ending in endings)


@dataclass(frozen=True)
class Command:
    """What is typed before -o, the outputs that are named there, and what else is written."""

    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def writes(self) -> tuple[str, ...]:
        return self.outputs + self.others


SIDECARS = (".json", ".caption.md")
CLAIMS = beside(f"results/smoke/{PAPER}/claims.csv", ".csv", ".md")
LEDGER = beside("results/smoke/claims.csv", ".csv", ".md")
COMMANDS = {
    "sample": Command(("sample", RUNS), (DRAWS,)),
    "measure": Command(("measure", RUNS, DRAWS), (METRICS,), (PROVENANCE,)),
    "draw": Command(
        ("draw", FIGURE.replace(".pdf", ".yaml")),
        beside(FIGURE, ".pdf", ".svg", ".png"),
        beside(FIGURE, *SIDECARS),
    ),
    "tabulate": Command(
        ("tabulate", TABLE.replace(".csv", ".yaml")),
        beside(TABLE, ".csv", ".md", ".tex"),
        beside(TABLE, *SIDECARS),
    ),
    "judge": Command(
        ("judge", FOLDER, *SETTINGS, "--tables", METRICS), CLAIMS, beside(CLAIMS[0], ".json")
    ),
    "ledger": Command(("ledger", CLAIMS[0]), LEDGER, beside(LEDGER[0], ".json")),
}


def run(
    project: TinyProject, command: Command, fault: Callable[[], object] = lambda: None
) -> tuple[int, str]:
    """Run a command in a process of its own; return its exit code, or minus its signal, and stderr.

    The process is a fork, which starts at once. ``fault`` is called in it first.
    """
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        code = 99
        try:
            sys.stderr = open(writing, "w", buffering=1)  # noqa: SIM115
            os.chdir(project.folder)
            provenance.commit = lambda: None
            experiment.describe = lambda: {"time": "now"}
            fault()
            code = main([*command.arguments, "-o", *command.outputs])
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with open(reading) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), said


def disk_full_after(size: int) -> None:
    """Have the system refuse to let a file grow beyond so many bytes, as a full disk does."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def killed_after(size: int) -> None:
    """Have the system kill the process when a file grows beyond so many bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    disk_full_after(size)


def killed_at_file(number: int, put_in_place: bool) -> None:
    """Kill the process before or after it puts its file of this number in place."""
    replace, count = os.replace, iter(range(number + 1))

    def killing(*arguments: object) -> None:
        last = next(count) == number
        if put_in_place or not last:
            replace(*arguments)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = killing
