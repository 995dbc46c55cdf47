"""Hold draws, laws, metrics and verdicts against recorded ones (docs/development.md).

    python tests/golden/compare.py [-k PART]                      the cases of cases.py
    python tests/golden/compare.py FOLDER --scale smoke           results of the workflow
    python tests/golden/compare.py FOLDER --scale paper --make    runs of paper_runs.txt
    ... --record                                                  record instead of comparing

Numbers have a name (a case, or ``study/experiment/labels/metric/agent``) and columns. A folder of
results has a metrics.csv for each experiment, or for a run of it, in which labels are columns.
"""

import argparse
import fnmatch
import lzma
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas
import yaml

HERE = Path(__file__).parent
Numbers = dict[str, dict[str, np.ndarray]]

TOLERANCES = {"*/sinkhorn*/*": 1e-6}  # an iteration that stops at a tolerance; all else:
TOLERANCE = 1e-10
COLUMNS = ("iteration", "value", "lo", "hi", "trials")
OF_ROWS = {*COLUMNS, "agent", "metric", "run"}


def save(numbers: Numbers, path: Path) -> None:
    """Write numbers with 13 digits; compressed, with all names before all numbers."""
    heads, rows = [], []
    for name, columns in sorted(numbers.items()):
        for column, values in columns.items():
            kind = values.dtype.kind
            shape = ",".join(map(str, values.shape))
            heads.append("\t".join((name, column, kind, shape)))
            text = (f"{v:.13g}" if kind == "f" else str(v) for v in values.ravel())
            rows.append(" ".join(text))
    path.write_bytes(lzma.compress("\n".join([*heads, "", *rows]).encode(), preset=9))


def load(path: Path) -> Numbers:
    """Read what ``save`` wrote."""
    heads, _, rows = lzma.decompress(path.read_bytes()).decode().partition("\n\n")
    numbers: Numbers = {}
    for head, row in zip(heads.split("\n"), rows.split("\n"), strict=True):
        name, column, kind, shape = head.split("\t")
        values = np.array(row.split(), dtype={"i": int, "f": float, "U": str}[kind])
        sizes = tuple(int(size) for size in shape.split(",") if size)
        numbers.setdefault(name, {})[column] = values.reshape(sizes)
    return numbers


def difference(wanted: np.ndarray, found: np.ndarray) -> float:
    """Return the largest difference relative to numbers and their array's largest.

    It is infinite between integers, texts, shapes, or places of infinite numbers that differ.
    """
    if wanted.shape != found.shape:
        return np.inf
    if wanted.dtype.kind != "f" or not wanted.size:
        return 0.0 if np.array_equal(wanted, found) else np.inf
    finite = np.isfinite(wanted)
    if not np.array_equal(wanted[~finite], found[~finite], equal_nan=True):
        return np.inf
    a, b = wanted[finite], found[finite]
    if not np.isfinite(b).all():
        return np.inf
    scale = max(np.abs(a).max(initial=0.0), np.finfo(float).tiny)
    return float((np.abs(a - b) / np.maximum(np.abs(b), scale)).max(initial=0.0))


def allows(exception: dict, wanted: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> bool:
    """Tell whether an exception's tolerance covers all columns: relative, or "absolute" numbers."""
    tolerance = exception["tolerance"]
    if tolerance in ("changed", "gone"):
        return tolerance == "changed" or not found
    if wanted.keys() - found.keys():
        return False
    if exception.get("absolute"):
        return all(
            values.shape == found[column].shape
            and np.allclose(found[column], values, rtol=0, atol=float(tolerance), equal_nan=True)
            for column, values in wanted.items()
        )
    worst = max(difference(values, found[column]) for column, values in wanted.items())
    return worst <= float(tolerance)


def compare(
    wanted: Numbers, found: Numbers, exceptions: Iterable[dict], whole: bool = True
) -> tuple[list[str], list[str]]:
    """Return a report, and what is wrong: differences, and exceptions that nothing uses."""
    largest: dict[str, float] = {}
    used: dict[int, int] = {}
    exceptions, report, wrong = list(exceptions), [], []
    for name, columns in wanted.items():
        found_columns = found.get(name, {})
        differences = {
            column: difference(values, found_columns[column]) if column in found_columns else np.inf
            for column, values in columns.items()
        }
        column, worst = max(differences.items(), key=lambda item: item[1])
        tolerance = next((t for p, t in TOLERANCES.items() if fnmatch.fnmatch(name, p)), TOLERANCE)
        group = name.split("/")[0]
        if worst > tolerance:
            for number, own in enumerate(exceptions):
                if fnmatch.fnmatchcase(name, own["pattern"]) and allows(
                    own, columns, found_columns
                ):
                    used[number] = used.get(number, 0) + 1
                    break
            else:
                missing = "" if name in found else ": it is missing"
                wrong.append(f"{name}: {column} differs by {worst:.2g}{missing}")
        else:
            largest[group] = max(largest.get(group, 0.0), worst)
    counts = {group: sum(name.split("/")[0] == group for name in wanted) for group in largest}
    report += [f"{g:24} {counts[g]:8} alike to {worst:.1e}" for g, worst in largest.items()]
    for number, own in enumerate(exceptions):
        report.append(f"{used.get(number, 0):8} excepted: {own['pattern']}: {own['reason']}")
        if whole and number not in used:
            wrong.append(f"exceptions.yaml: {own['pattern']}: nothing needs it; remove it")
    new = found.keys() - wanted.keys()
    report += [f"{len(new):8} not recorded, such as {min(new)}"] if new else []
    return report, wrong


def exceptions_of(part: str) -> list[dict]:
    """Return the exceptions of draws, smoke or paper: patterns with a tolerance and a reason."""
    return (yaml.safe_load((HERE / "exceptions.yaml").read_text()) or {}).get(part) or []


def computed(part: str = "") -> Numbers:
    """Return the outcomes of the cases whose name has a part."""
    import cases

    return {c["name"]: cases.outcome(c) for c in cases.cases() if part in c["name"]}


def read(folder: Path) -> Numbers:
    """Return all metrics and verdicts below a folder of results."""
    numbers: Numbers = {}
    for file in sorted(folder.glob("*/*/**/metrics.csv")):
        study, experiment = file.relative_to(folder).parts[:2]
        if experiment == "multiverse":
            continue
        table = pandas.read_csv(file, dtype=str, keep_default_na=False)
        labels = [column for column in table if column not in OF_ROWS]
        keys = [*sorted(labels), "metric", "agent"]
        for key, rows in table.groupby(keys, sort=False, dropna=False):
            of_run = ",".join(f"{k}={v}" for k, v in zip(keys, key[:-2], strict=False))
            name = "/".join((study, experiment, of_run, *key[-2:]))
            numbers[name] = {c: rows[c].replace("", "nan").to_numpy(float) for c in COLUMNS}
    for file in sorted(folder.glob("*/claims.csv")):
        for row in pandas.read_csv(file, dtype=str, keep_default_na=False).to_dict("records"):
            key = (row[column] for column in ("claim", "reading", "case"))
            name = "/".join((file.parent.name, "verdicts", *key))
            numbers[name] = {"verdict": np.array([row["verdict"].replace(" ", "_")])}
    return numbers


def make(folder: Path) -> None:
    """Make the runs of paper_runs.txt anew, by the commands of the package."""

    def run(line: str) -> None:
        study, experiment, name = line.split()
        config = next(Path("config").glob(f"*/{study}"))
        command = [str(config), experiment, name, "--scale", "paper", "-o"]
        place = folder / study / experiment / name
        subprocess.run([sys.executable, "-m", "concord_cli", "run", *command, place], check=True)

    shutil.rmtree(folder, ignore_errors=True)
    lines = (HERE / "paper_runs.txt").read_text().splitlines()
    with ThreadPoolExecutor() as pool:
        list(pool.map(run, lines))


def main() -> int:
    """Compare or record, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="of results; none: the cases")
    parser.add_argument("--scale", choices=("smoke", "paper"), default="smoke")
    parser.add_argument("--make", action="store_true", help="make the runs of paper_runs.txt first")
    parser.add_argument("--partial", action="store_true", help="leave out studies not in FOLDER")
    parser.add_argument("--record", action="store_true", help="record instead of comparing")
    parser.add_argument("-k", default="", metavar="PART", help="cases whose name has this part")
    asked = parser.parse_args()
    part = asked.scale if asked.folder else "draws"
    if asked.make:
        make(asked.folder)
    found = read(asked.folder) if asked.folder else computed(asked.k)
    file = HERE / f"{part}.xz"
    if asked.record:
        save((load(file) if asked.k else {}) | found, file)
        print(f"{file}: {len(found)} recorded, {file.stat().st_size} bytes")
        return 0
    if not file.exists():
        print(f"{file}: nothing is recorded; make golden RECORD=1 does it")
        return 1
    wanted = {name: columns for name, columns in load(file).items() if asked.k in name}
    if asked.partial:
        there = {name.split("/")[0] for name in found}
        wanted = {name: c for name, c in wanted.items() if name.split("/")[0] in there}
    whole = not (asked.k or asked.partial)
    report, wrong = compare(wanted, found, exceptions_of(part), whole)
    if asked.k:
        worst = {
            n: max(difference(v, found.get(n, {}).get(c, np.empty(0))) for c, v in w.items())
            for n, w in wanted.items()
        }
        report = [*(f"{value:.1e} {name}" for name, value in worst.items()), *report]
    print("\n".join([f"{part}: largest relative difference", *report, *wrong[:50]]))
    print(f"{len(wanted)} compared, {len(wrong)} wrong")
    return bool(wrong or not wanted)


if __name__ == "__main__":
    sys.exit(main())
