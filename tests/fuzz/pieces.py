"""The real configuration files, and small papers cut out of them: what mutations start from."""

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"
LARGEST = 8  # runs of a small paper: each takes about a millisecond to check
MOST = 2  # figures, tables and claims each; of mappings and long texts there are enough
LONGEST = 40  # characters of a text
SECTIONS = ("figures", "tables", "claims")


@cache
def papers() -> dict[str, dict[str, Any]]:
    """Return the papers, the sections of their files joined."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted((CONFIG / "papers").glob("*/*.yaml")):
        found.setdefault(file.parent.name, {}).update(_parsed(file))
    return found


@cache
def others() -> dict[str, Any]:
    """Return the other configuration files, parsed."""
    return {p.stem: _parsed(p) for p in sorted(CONFIG.glob("*.yaml"))}


def _parsed(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


@cache
def small_papers() -> dict[str, dict[str, Any]]:
    """Return a paper for each experiment with few runs, by ``<paper>.<experiment>``.

    Those of kinds that are files of the paper's are left out: a small paper is one file.
    """
    found = {}
    for key, paper in papers().items():
        own = {path.stem for path in (CONFIG / "papers" / key / "plugins").glob("*/*.py")}
        for name, experiment in paper["experiments"].items():
            if _runs(experiment) <= LARGEST and own.isdisjoint(_words(experiment)):
                found[f"{key}.{name}"] = _cut(paper, name)
    return found


def _runs(experiment: dict[str, Any]) -> int:
    count = 1
    for axis in experiment.get("sweep", {}).values():
        count *= len(axis.get("values", axis) if isinstance(axis, dict) else axis)
    return count


def _cut(paper: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the part of a paper that has to do with one experiment only."""
    piece = {k: copy.deepcopy(v) for k, v in paper.items() if k not in ("errata", "discrepancies")}
    piece["experiments"] = {name: piece["experiments"][name]}
    words = set(_words([piece["experiments"], piece.get("defaults", {})]))
    piece["problems"] = {k: v for k, v in piece["problems"].items() if k in words}
    assumptions = [*piece["assumptions"].items()][:MOST]
    rests = {"experiment": name}
    # Alternatives name runs, and what may become of them, that are left out.
    piece["assumptions"] = {
        key: {k: v for k, v in entry.items() if k != "alternatives"} | {"rests": rests}
        for key, entry in assumptions
    }
    for section in SECTIONS:
        entries = piece.get(section, {}).items()
        own = [(key, entry) for key, entry in entries if _experiments(entry) == {name}]
        piece[section] = dict(own[:MOST])
    for claim in piece["claims"].values():
        claim.pop("figure", None)
    return _shortened(piece)


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return value[:LONGEST] if isinstance(value, str) else value


def _words(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _words(item)
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)
    elif isinstance(value, str):
        yield value


def _experiments(entry: dict[str, Any]) -> set[str]:
    """Return the experiments that a figure, table or claim reads."""
    if "runs" in entry:
        return {s if isinstance(s, str) else s["experiment"] for s in entry["runs"]}
    return set(_under("experiment", entry))


def _under(key: str, value: Any) -> Iterator[str]:
    """Yield the texts under a key, wherever it is."""
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        if name == key:
            yield from (x for x in (item if isinstance(item, list) else [item]) if type(x) is str)
        if isinstance(item, (dict, list)):
            yield from _under(key, item)


@cache
def tokens() -> list[Any]:
    """Return every key and scalar of the configuration, once, in the order of the files."""
    found: dict[tuple[str, Any], Any] = {}

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                found[type(key).__name__, key] = key
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)
        elif not (isinstance(value, str) and len(value) > LONGEST):
            found[type(value).__name__, value] = value

    for document in [*papers().values(), *others().values()]:
        collect(document)
    return list(found.values())


def of_whole_experiments(paper: dict[str, Any]) -> dict[str, Any]:
    """Let figures and tables show all runs of what they show runs of, for sweeps that change."""
    for section in ("figures", "tables"):
        for entry in paper.get(section, {}).values():
            ids = [run if isinstance(run, str) else run["experiment"] for run in entry["runs"]]
            entry["runs"] = list(dict.fromkeys(ids))
    return paper
