"""draw: from metrics to a figure (pdf, svg, png) or a table (csv, md, tex).

Beside every figure or table are its caption (``.caption.md``) and a ``.json``: its provenance, its
caption as data (``pages.captions.Caption``) and, of a table, its layout (``Table.data``).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concord import kinds
from concord.options import plain
from concord_studies import integrity
from concord_studies.configuration.study import Study
from concord_studies.integrity import Made
from concord_studies.io import write_whole
from concord_studies.make import at
from concord_studies.pages import captions
from concord_studies.provenance import code, describe, digest
from concord_studies.results import Measured, is_smoke
from concord_studies.stages.measured import checked, metrics_digest


def made(study: Study, section: str, name: str, results: Path) -> Made:
    """Return the digests from which a figure or table is made."""
    entry = study.output(section, name)
    named = {"names": study.sections.names} if study.sections.names else {}
    return {
        "entry": digest({**plain(entry), **named, "caption": captions.of(study, section, name)}),
        "code": code(__name__, kinds.location(section, entry.kind)),
        "metrics": metrics_digest(study.output_runs(section, name), results),
    }


def draw(study: Study, name: str, results: Path, outputs: Sequence[Path]) -> None:
    """Draw a figure from the metrics below ``results`` into ``outputs`` (.pdf, .svg, .png)."""
    from concord_studies.figures import style  # matplotlib, half a second

    kind, params = study.kind_of("figures", name)
    runs = _measured(study, "figures", name, results)
    figure = kind.draw(params, runs)
    style.save(figure, outputs, watermark=is_smoke(runs))
    _finish(study, "figures", name, results, outputs)


def tabulate(study: Study, name: str, results: Path, outputs: Sequence[Path]) -> None:
    """Build a table from the runs below ``results`` into ``outputs`` (.csv, .md, .tex)."""
    kind, params = study.kind_of("tables", name)
    table = kind.tabulate(params, _measured(study, "tables", name, results))
    texts = {
        ".csv": table.csv,
        ".md": table.markdown,
        ".tex": lambda: table.latex(study.output("tables", name).title),
    }
    for output in outputs:
        write_whole(output, texts[output.suffix]())
    _finish(study, "tables", name, results, outputs, table=table.data())


def _measured(study: Study, section: str, name: str, results: Path) -> list[Measured]:
    """Return the runs that a figure or table shows, with their checked metrics."""
    return [checked(at(run, results)) for run in study.output_runs(section, name)]


def _finish(
    study: Study, section: str, name: str, results: Path, outputs: Sequence[Path], **more: Any
) -> None:
    """Write the caption of a figure or table, and seal the outputs with their provenance."""
    caption = captions.of(study, section, name)
    text = outputs[0].with_suffix(".caption.md")
    write_whole(text, captions.markdown(caption))
    runs = study.output_runs(section, name)
    inputs = [results / run.folder / "metrics.csv" for run in runs]
    about = {"paper": study.key, "section": section, "name": name, "seed": study.config["seed"]}
    integrity.seal(
        [*outputs, text],
        made(study, section, name, results),
        **describe(inputs, **about, **more, caption=caption),
    )
