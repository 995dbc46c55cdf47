"""draw: from metrics to a figure (pdf, svg, png) or a table (csv, md), with caption and provenance.

Beside every figure or table stand its caption (``.caption.md``) and its provenance (``.json``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from concord import captions, seals
from concord.experiment import Paper
from concord.figures.data import Measured, is_smoke, read
from concord.files import whole
from concord.pages import page
from concord.parameters import build
from concord.plugins import plugin
from concord.provenance import describe, digest


def draw(paper: Paper, name: str, results: Path, outputs: Sequence[Path]) -> None:
    """Draw a figure from the metrics below ``results`` into ``outputs`` (.pdf, .svg, .png)."""
    from concord.figures import style

    entry = paper.output("figures", name)
    where = f"{paper.path}: figures.{name}"
    kind = plugin("figures", entry["kind"], where)
    params = build(kind.Params, entry.get("options"), f"{where}.options")
    runs = _measured(paper, "figures", name, results)
    figure = kind.draw(params, runs)
    with ExitStack() as stack:
        temporary = [stack.enter_context(whole(path)) for path in outputs]
        style.save(figure, temporary, watermark=is_smoke(runs))
    _sidecars(paper, "figures", name, results, outputs[0].with_suffix(""))


def tabulate(paper: Paper, name: str, results: Path, outputs: Sequence[Path]) -> None:
    """Build a table from the runs below ``results`` into ``outputs`` (.csv, .md, .html)."""
    entry = paper.output("tables", name)
    where = f"{paper.path}: tables.{name}"
    kind = plugin("tables", entry["kind"], where)
    params = build(kind.Params, entry.get("options"), f"{where}.options")
    table = kind.tabulate(params, _measured(paper, "tables", name, results))
    texts = {
        ".csv": table.csv,
        ".md": table.markdown,
        ".html": lambda: page(entry["title"], "", [table.section()]),
    }
    for output in outputs:
        with whole(output) as path:
            path.write_text(texts[output.suffix](), encoding="utf-8")
    _sidecars(paper, "tables", name, results, outputs[0].with_suffix(""))


def _measured(paper: Paper, section: str, name: str, results: Path) -> list[Measured]:
    measured = []
    for run in paper.output_runs(section, name):
        run_yaml, metrics_csv = (
            results / run.folder / file for file in ("run.yaml", "metrics.csv")
        )
        measured.append(read(run_yaml, metrics_csv, expected=digest(run.mapping)))
        seals.check(run_yaml, metrics_csv)
    return measured


def _sidecars(paper: Paper, section: str, name: str, results: Path, stem: Path) -> None:
    runs = paper.output_runs(section, name)
    inputs = [results / run.folder / file for run in runs for file in ("run.yaml", "metrics.csv")]
    caption: dict[str, Any] = paper.caption(section, name)
    provenance = describe(
        inputs, paper=paper.key, section=section, name=name, seed=paper.config["seed"], **caption
    )
    with whole(stem.with_suffix(".json")) as path:
        path.write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")
    with whole(stem.with_suffix(".caption.md")) as path:
        path.write_text(captions.markdown(caption), encoding="utf-8")
