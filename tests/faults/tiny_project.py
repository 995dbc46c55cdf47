"""The smallest project with all kinds of jobs: two runs, figure, table, verdicts, ledger."""

import shutil
import sys
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).parents[1] / "workflow"))

from smoke_project import PAPER, RESULTS, Project, of_all_runs, timeless

__all__ = [
    "ALL",
    "FIGURE",
    "METRICS",
    "PAPER",
    "PROVENANCE",
    "RESULTS",
    "RUNS",
    "TABLE",
    "TinyProject",
    "differing",
    "timeless",
]

EXPERIMENT = "linear_step"
RUNS, METRICS, PROVENANCE = (
    f"{RESULTS}/{EXPERIMENT}/{name}" for name in ("runs.yaml", "metrics.csv", "metrics.json")
)
FIGURE, TABLE = f"{RESULTS}/figures/fig4.pdf", f"{RESULTS}/tables/stationary.csv"
ALL = ("reproduce", "ledger")


def only(part: Any, several: list[str], one: str) -> Any:
    """Return a part of a study with one experiment where it names several."""
    if part == several:
        return one
    if isinstance(part, dict):
        return {key: only(value, several, one) for key, value in part.items()}
    return part


class TinyProject(Project):
    """A project in which nothing has been made, or a copy of one with its results and records."""

    def __init__(self, folder: Path, original: Path | None = None) -> None:
        if original is None:
            super().__init__(folder)
            self._keep_one_experiment()
        else:
            self.folder = folder
            shutil.copytree(original, folder)

    def _keep_one_experiment(self) -> None:
        paper = self.sections()
        figure, table = Path(FIGURE).stem, Path(TABLE).stem
        for section, name in (
            ("experiments", EXPERIMENT),
            ("figures", figure),
            ("tables", table),
        ):
            paper[section] = {name: paper[section][name]}
        paper["figures"][figure]["runs"] = [EXPERIMENT]
        paper["tables"][table]["runs"] = [EXPERIMENT]
        options = paper["figures"][figure]["options"]
        options["panels"] = [panel for panel in options["panels"] if EXPERIMENT in str(panel)]
        both = [EXPERIMENT, f"{EXPERIMENT}_released"]
        paper["claims"] = {
            name: only(claim, both, EXPERIMENT)
            for name, claim in paper["claims"].items()
            if claim["check"].get("quantity", {}).get("experiment") == both
        }
        paper["assumptions"] = of_all_runs(paper["assumptions"])
        for entry in paper.get("discrepancies", {}).values():
            entry.pop("checked_by", None)
        assert paper["claims"] and options["panels"]
        self.rewrite(paper)

    def files(self) -> dict[str, Path]:
        """Return all results but logs and benchmarks, which tell of the jobs; hidden files too."""
        folder = (self.folder / RESULTS).parent
        paths = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
        return {n: p for n, p in paths.items() if not n.startswith(("logs/", "benchmarks/"))}

    def made(self) -> dict[str, bytes]:
        return {name: path.read_bytes() for name, path in self.files().items()}

    def running_jobs(self) -> list[psutil.Process]:
        """Return the processes of jobs in this project, whoever started them."""
        found = []
        for process in psutil.process_iter():
            try:
                is_job = "concord_cli" in process.cmdline()
                if is_job and process.cwd() == str(self.folder.resolve()):
                    found.append(process)
            except psutil.Error:
                continue
        return found


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Return the names of files that are not in both, or not the same."""
    first, second = ({n: timeless(text) for n, text in some.items()} for some in (one, other))
    return [name for name in sorted({*one, *other}) if first.get(name) != second.get(name)]
