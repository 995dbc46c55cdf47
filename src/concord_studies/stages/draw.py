"""draw: from metrics to a figure (pdf, svg, png) or a table (csv, md, tex).

A job reads the entry that planning wrote (``results/<study>/figures/<name>.yaml``, in JSON): its
kind, options, runs and caption. Beside a figure or table are its caption (``.caption.md``) and its
provenance (``.json``), with the caption as data.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concord import kinds
from concord.errors import ConcordError
from concord.options import build, plain
from concord_studies import results
from concord_studies.configuration.study import Study
from concord_studies.digests import state_code
from concord_studies.io import read_text, write_whole
from concord_studies.pages import captions
from concord_studies.provenance import AGAIN, sha256, write_provenance
from concord_studies.results import Measured, is_smoke


def state_inputs(study: Study, section: str, name: str) -> dict[str, Any]:
    """Return the inputs of a figure or table by name, the text of its runs included."""
    entry, (_, params) = study.output(section, name), study.kind_of(section, name)
    return {
        "study": str(study.path),
        "section": section,
        "kind": entry.kind,
        "options": plain(params),
        "caption": captions.describe_output(study, section, name),
        "runs": [[run.experiment, run.name] for run in study.output_runs(section, name)],
        "seed": study.config["seed"],
        **state_code(__name__, kinds.location(section, entry.kind)),
    }


class Entry:
    """A figure or table to be made: its module and options, and the runs that it shows."""

    def __init__(self, path: Path) -> None:
        """Read an entry's stated inputs (a YAML file) and the metrics of its runs."""
        self.path = path
        try:
            self.stated = json.loads(read_text(path))
            self.section = self.stated["section"]
            shown = [(experiment, name) for experiment, name in self.stated["runs"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ConcordError(f"{path}: it is no entry as planning writes it; {AGAIN}") from error
        if not kinds.studies:
            kinds.use(Path(self.stated["study"]))
        self.module = kinds.find(self.section, self.stated["kind"], str(path))
        self.params = build(self.module.Params, self.stated["options"], f"{path}: options")
        folder = path.parents[1]
        found = {key: results.read(folder / key) for key in dict(shown)}
        self.tables = {folder / key / "metrics.csv" for key in found}
        self.runs: list[Measured] = [found[experiment][name] for experiment, name in shown]
        for run in self.runs:  # plug-ins say what readers call them
            kinds.find("samplers", run.run["sampler"]["kind"], str(path))
            for family in run.run["metrics"]:
                kinds.find("metrics", family, str(path))

    def finish(self, outputs: Sequence[Path]) -> None:
        """Write the caption, and the provenance of the outputs."""
        text = self.path.with_suffix(".caption.md")
        write_whole(text, captions.markdown(self.stated["caption"]))
        inputs = {str(path): sha256(path) for path in sorted(self.tables)}
        write_provenance(
            [*outputs, text],
            **{key: self.stated[key] for key in ("seed", "code", "libraries", "caption")},
            inputs=inputs,
        )


def draw(path: Path, outputs: Sequence[Path]) -> None:
    """Draw a figure from its entry and its runs' metrics into outputs (.pdf, .svg, .png)."""
    from concord_studies.figures import style  # matplotlib, half a second

    entry = Entry(path)
    figure = entry.module.draw(entry.params, entry.runs)
    style.save(figure, outputs, watermark=is_smoke(entry.runs))
    entry.finish(outputs)


def tabulate(path: Path, outputs: Sequence[Path]) -> None:
    """Build a table from its entry and its runs' metrics into outputs (.csv, .md, .tex)."""
    entry = Entry(path)
    table = entry.module.tabulate(entry.params, entry.runs)
    texts = {
        ".csv": table.csv,
        ".md": table.markdown,
        ".tex": lambda: table.latex(entry.stated["caption"]["title"]),
    }
    for output in outputs:
        write_whole(output, texts[output.suffix]())
    entry.finish(outputs)
