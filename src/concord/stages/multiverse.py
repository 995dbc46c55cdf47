"""The multiverse of a paper: its claims judged in every universe, as a table, a page and pictures.

What was not run in a universe makes claims there *not run*, for its reason; the rest is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from concord import integrity
from concord.claims import multiverse
from concord.claims.ledger import SMOKE
from concord.claims.multiverse import BASE, Row
from concord.claims.quantities import Missing
from concord.integrity import Made
from concord.io import whole
from concord.progress import each
from concord.provenance import code, digest
from concord.report.pages import Folded, Section, markdown_page, page
from concord.results import Measured, read
from concord.stages import judge, vary
from concord.studies.paper import Paper, Run
from concord.studies.universes import Multiverse

TEXT = (
    "A universe is the study with another defensible value in the place of an assumption's, or "
    "with another master seed. It counts for a claim if it changes a run that the claim reads; the "
    "study itself counts as one."
)


def survey(
    paper: Paper, results: Path, outputs: Sequence[Path], pictures: Path | None = None
) -> None:
    """Judge every claim in every universe (.csv .md .html), and draw it into a folder."""
    from concord.figures import _specifications as figures

    found = Multiverse(paper)
    rows = list(judged(found, results))
    title = f"Multiverse of {paper.mapping['paper']['title']}"
    parts = sections(found, rows, results)
    smoke = paper.config["scale"] == "smoke"
    text = f"{SMOKE} {TEXT}" if smoke else TEXT
    texts = {
        ".csv": lambda: multiverse.as_csv(rows),
        ".md": lambda: markdown_page(title, text, parts),
        ".html": lambda: page(title, text, parts),
    }
    for output in outputs:
        with whole(output) as path:
            path.write_text(texts[output.suffix](), encoding="utf-8")
    drawn: list[Path] = []
    if pictures is not None:
        says = {name: claim.says for name, claim in paper.claims.items()}
        drawn = figures.save(rows, names(found), says, pictures, smoke)
    integrity.seal([*outputs, *drawn], made(paper, results, found), seed=paper.config["seed"])


def made(paper: Paper, results: Path, found: Multiverse | None = None) -> Made:
    """Return what a paper's verdicts over the universes are made from."""
    batches = (found or Multiverse(paper)).batches
    seals = {"/".join(key): integrity.sealed(place(paper, results, *key))[1] for key in batches}
    own = {"universes": digest(seals), "survey": code(__name__, "concord.figures._specifications")}
    return {**judge.made_alone(paper, results), **own}


def place(paper: Paper, results: Path, universe: str, batch: str) -> Path:
    """Return the table of a batch of a universe."""
    return results / paper.key / "multiverse" / universe / batch / "metrics.csv"


def judged(found: Multiverse, results: Path) -> Iterator[Row]:
    """Yield every case in every reading: of the study, then of the universes that change it."""
    cases, base = judge.cases(found.paper), judge.finder(found.paper, results)
    for case in cases:
        yield multiverse.row(*case.key, BASE, case.judge(base))
    for name, changed in each(list(found.runs.items()), "universes"):
        there = _Universe(found, name, results, base)
        for case in cases:
            if any((run.experiment, run.name) in changed for run in case.runs):
                yield multiverse.row(*case.key, name, case.judge(there.find))


class _Universe:
    """Finds the metrics of runs as a universe has them."""

    def __init__(self, found: Multiverse, name: str, results: Path, base: judge.Find) -> None:
        self.found, self.name, self.results, self.base = found, name, results, base
        self.tables: dict[tuple[str, str], Mapping[str, Any] | None] = {}
        self.refused: dict[tuple[str, str], Mapping[str, str]] = {}

    def find(self, run: Run) -> Measured:
        """Return the metrics of what is in the place of a run of the study."""
        other = self.found.runs[self.name].get((run.experiment, run.name))
        if other is None:
            return self.base(run)
        found = self._computed(run, other)
        for reads in self.found.universes[self.name].reads(run):
            found = renamed(found, reads.get("metric", {}), reads.get("agent"))
        return found

    def _computed(self, run: Run, other: Run) -> Measured:
        home = self.found.home(other)
        if home[0] == BASE:
            return self.base(self.found.twin(other))
        if home not in self.tables:
            self._read(home)
        tables, name = self.tables[home], f"{run.experiment}/{run.name}"
        if tables is None:
            raise Missing(f"{self.name}: {name} was not run")
        if name in self.refused[home]:
            raise Missing(f"{self.name}: {name} cannot be run: {self.refused[home][name]}")
        return Measured(other.mapping, tables[name].reset_index(drop=True))

    def _read(self, home: tuple[str, str]) -> None:
        """Read what was computed together, where it is what would be computed now."""
        path = place(self.found.paper, self.results, *home)
        runs = [run.mapping for run in self.found.batch(*home)]
        if not vary.made(runs, Path("resources")).items() <= integrity.intact(path).items():
            self.tables[home] = None
            return
        self.refused[home] = vary.refused(path)
        table = read({}, path).metrics
        names = table["experiment"] + "/" + table["run"]
        self.tables[home] = dict(iter(table.groupby(names, sort=False)))


def renamed(run: Measured, metrics: Mapping[str, str], agent: int | None) -> Measured:
    """Return a run whose metrics are others under their names, and whose agent 0 is another."""
    table = run.metrics
    for name, other in metrics.items():
        # Also of every data set, ``<metric>_set_<d>``.
        old, new = (
            table["metric"].str.fullmatch(f"{re.escape(m)}(_set_.*)?") for m in (name, other)
        )
        texts = table["metric"].where(~new, name + table["metric"].str.slice(len(other)))
        table = table.assign(metric=texts)[~old | new]
    if agent is not None:
        agents = table["agent"].where(table["agent"] != str(agent), "0")
        table = table.assign(agent=agents)[(table["agent"] != "0") | (str(agent) == "0")]
    return Measured(run.run, table.reset_index(drop=True))


def names(found: Multiverse) -> dict[str, str]:
    """Return what universes are, in words."""
    paper, said = found.paper, {}
    for name, universe in found.universes.items():
        if universe.seed is not None:
            said[name] = f"master seed {universe.seed}"
            continue
        texts = []
        for part in name.split("+"):
            assumption, _, label = part.partition(".")
            entries = paper.assumptions[assumption]["alternatives"]
            texts.append(next(entry["says"] for entry in entries if entry["label"] == label))
        said[name] = "; ".join(texts)
    return said


def sections(found: Multiverse, rows: Sequence[Row], results: Path) -> list[Section]:
    """Return the page: claims with what they hang on, then the universes."""
    paper = found.paper
    cells: list[list[str | Folded]] = []
    for (claim, reading), robustness in multiverse.robustness(rows).items():
        lines = [f"{name}: {verdict}" for name, verdict in robustness.verdicts.items()]
        cells.append(
            [
                *(claim, paper.claims[claim].says, reading, robustness.verdicts[BASE]),
                Folded(robustness.text, f"{len(lines)} universes", tuple(lines)),
            ]
        )
    columns = ("claim", "says", "reading", "alone", "over the universes")
    claims = Section("Claims", "", columns, cells, ("reading", "alone"))
    said, reasons = names(found), _reasons(paper)
    universes: list[list[str | Folded]] = []
    lost: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["verdict"] == "not run":
            lost.setdefault(row["universe"], {})[row["ours"]] = None
    for name in found.universes:
        changed, not_run = len(found.runs[name]), tuple(lost.get(name, ()))
        text = Folded(f"{changed}", f"{len(not_run)} not run", not_run) if not_run else f"{changed}"
        universes.append([name, said[name], reasons.get(name, ""), text])
    heads = ("universe", "what it is", "why", "runs it changes")
    return [claims, Section("Universes", "", heads, universes)]


def _reasons(paper: Paper) -> dict[str, str]:
    return {
        f"{name}.{entry['label']}": " ".join(entry["reason"].split())
        for name, assumption in paper.assumptions.items()
        for entry in assumption.get("alternatives", ())
    }
