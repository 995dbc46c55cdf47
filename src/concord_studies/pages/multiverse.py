"""The page of a paper's multiverse as Markdown: what its verdicts depend on, and the universes."""

from collections.abc import Sequence

from concord_studies.claims import robustness
from concord_studies.claims.ledger import SMOKE
from concord_studies.claims.robustness import BASE, Row
from concord_studies.claims.verdicts import NOT_RUN
from concord_studies.configuration.sections import Alternative
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse
from concord_studies.markup import line
from concord_studies.pages import markdown
from concord_studies.pages.markdown import Folded, Section

TEXT = (
    "A universe is the study with another defensible value in the place of an assumption's, or "
    "with another master seed. It counts for a claim if it changes a run that the claim reads; the "
    "study itself counts as one."
)


def page(multiverse: Multiverse, rows: Sequence[Row]) -> str:
    """Return the page in Markdown: what each claim depends on, then the universes."""
    paper = multiverse.study
    text = f"{SMOKE} {TEXT}" if paper.config["scale"] == "smoke" else TEXT
    sections = [_list_claims(paper, rows), _list_universes(multiverse, rows)]
    return markdown.page(f"Multiverse of {paper.about.title}", text, sections)


def names(multiverse: Multiverse) -> dict[str, str]:
    """Return texts for readers on the changes that each universe makes, by universe."""
    stated = _alternatives(multiverse.study)
    return {
        name: "; ".join(stated[part].says for part in name.split("+"))
        if universe.seed is None
        else f"master seed {universe.seed}"
        for name, universe in multiverse.universes.items()
    }


def _list_claims(paper: Study, rows: Sequence[Row]) -> Section:
    """Return the section with each claim's verdict, in the study itself and over the universes."""
    cells: list[list[str | Folded]] = []
    for (claim, reading), over in robustness.find_robustness(rows).items():
        lines = tuple(f"{name}: {verdict}" for name, verdict in over.verdicts.items())
        text = Folded(over.text, f"{len(lines)} universes", lines)
        cells.append([claim, paper.claims[claim].says, reading, over.verdicts[BASE], text])
    return Section("Claims", "", ("claim", "says", "reading", "alone", "over the universes"), cells)


def _list_universes(multiverse: Multiverse, rows: Sequence[Row]) -> Section:
    """Return the section with what each universe changes, and why some were not run."""
    stated = _alternatives(multiverse.study)
    lost: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["verdict"] == NOT_RUN:
            lost.setdefault(row["universe"], {})[row["ours"]] = None
    cells: list[list[str | Folded]] = []
    for name, says in names(multiverse).items():
        changed, not_run = f"{len(multiverse.runs[name])}", tuple(lost.get(name, ()))
        text = Folded(changed, f"{len(not_run)} not run", not_run) if not_run else changed
        why = line(stated[name].reason) if name in stated else ""
        cells.append([name, says, why, text])
    return Section("Universes", "", ("universe", "what it is", "why", "runs it changes"), cells)


def _alternatives(study: Study) -> dict[str, Alternative]:
    """Return the alternatives of assumptions, by the name of their universe."""
    return {
        f"{name}.{entry.label}": entry
        for name, assumption in study.assumptions.items()
        for entry in assumption.alternatives
    }
