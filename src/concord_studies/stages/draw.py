"""draw: from metrics to a figure (pdf, svg, png) or a table (csv, md, tex).

A job reads what planning wrote, in JSON: the kind, options, runs and caption. Beside a figure or
table are a copy of that (``.yaml``), its caption (``.caption.md``, ``.caption.rst``) and its
provenance (``.json``), with the caption as data. The statement has a caption's template and defines
its numbers; the job, which has the metrics, fills them in.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from concord import kinds
from concord.errors import ConcordError
from concord.options import Chosen, Options, build, plain
from concord_studies import results
from concord_studies.claims.texts import Number, fill_in, find_setting, state_number
from concord_studies.configuration.study import Study
from concord_studies.digests import digest_code
from concord_studies.guard import Guard
from concord_studies.io import read_text, write_whole
from concord_studies.pages import captions
from concord_studies.provenance import AGAIN, sha256, write_provenance
from concord_studies.results import Measured, is_smoke


def output_inputs(study: Study, section: str, name: str) -> dict[str, Any]:
    """Return the inputs of a study's figure or table, by name: its kind, options, runs and caption.

    section: ``figures`` or ``tables``.
    """
    output, (_, params) = study.output(section, name), study.kind_of(section, name)
    return {
        "study": str(study.path),
        "section": section,
        "kind": output.kind,
        "options": plain(params),
        "caption": captions.describe_output(study, section, name),
        "runs": [[run.experiment, run.name] for run in study.output_runs(section, name)],
        "numbers": {
            key: state_number(number) for key, number in study.output_numbers(section, name).items()
        },
        "seed": study.config["seed"],
        **digest_code(__name__, kinds.location(section, output.kind), *_locate_chosen(params)),
    }


def _locate_chosen(options: Any) -> Iterator[Path]:
    """Yield the source files of the kinds that options choose, such as a figure's layers."""
    for name in options.__struct_fields__:
        value = getattr(options, name)
        for part in value if isinstance(value, tuple) else [value]:
            if isinstance(part, Chosen):
                yield kinds.location(part.room, part.kind)
            elif isinstance(part, Options):
                yield from _locate_chosen(part)


class OutputToDraw:
    """A figure or table to be made: its module and options, and the runs that it shows."""

    def __init__(self, path: Path, output: Path) -> None:
        """Read the statement of an output's inputs, and the metrics of its runs.

        path: the statement. output: the first file to write. Metrics lie beside the output if the
        statement was written by the plan, and beside the statement otherwise.
        """
        try:
            self.inputs = json.loads(read_text(path))
            section = self.inputs["section"]
            shown = [(experiment, name) for experiment, name in self.inputs["runs"]]
            numbers = self.inputs.get("numbers", {})
            read = [run for number in numbers.values() for runs in number["runs"] for run in runs]
        except (ValueError, KeyError, TypeError) as error:
            raise ConcordError(f"{path}: it is no output as planning writes it; {AGAIN}") from error
        if not kinds.studies:
            kinds.use(Path(self.inputs["study"]))
        self.module = kinds.find(section, self.inputs["kind"], str(path))
        self.params = build(self.module.Params, self.inputs["options"], f"{path}: options")
        kind = kinds.location(section, self.inputs["kind"])
        roots: list[str | Path] = [__name__, kind, *_locate_chosen(self.params)]
        self.guard = Guard(path, output, roots)
        self.path = output.with_suffix(".yaml") if self.guard.compares else path
        folder, planned = self.path.parents[1], self.inputs.get("tables", {})
        experiments = {
            key: results.read(folder / key, planned=planned.get(key))
            for key in dict([*shown, *read])
        }
        self.tables = {folder / key / "metrics.csv" for key in experiments}
        self.runs: list[Measured] = [experiments[key][name] for key, name in shown]
        for run in self.runs:  # plug-ins say what readers call them
            kinds.find("samplers", run.run["sampler"]["kind"], str(path))
            for family in run.run["metrics"]:
                kinds.find("metrics", family, str(path))
        self.numbers = {
            key: build(Number, of["number"], f"{path}: numbers.{key}").describe(
                [[experiments[key][name] for key, name in runs] for runs in of["runs"]]
            )
            for key, of in numbers.items()
        }

    @cached_property
    def caption(self) -> captions.Caption:
        """Return the caption, with the numbers and settings of its texts."""
        stated_numbers = {key: of["number"] for key, of in self.inputs.get("numbers", {}).items()}
        options = {"options": self.inputs["options"], **stated_numbers}
        documents = [*(run.run for run in self.runs), options]
        stated: captions.Caption = self.inputs["caption"]

        def find(name: str) -> str | None:
            """Return the text that takes the place of a placeholder. None without one."""
            return self.numbers[name] if name in self.numbers else find_setting(documents, name)

        caption, ours = (fill_in(stated[key], find) for key in ("caption", "ours"))
        return {**stated, "caption": caption, "ours": ours}

    def finish(self, outputs: Sequence[Path]) -> None:
        """Write the statement, if it is not there, the caption, and the outputs' provenance."""
        if self.guard.compares:
            write_whole(self.path, self.guard.text)
        texts = {
            self.path.with_suffix(".caption.md"): captions.markdown(self.caption),
            self.path.with_suffix(".caption.rst"): captions.rst(self.caption),
        }
        for place, text in texts.items():
            write_whole(place, text)
        inputs = {str(path): sha256(path) for path in sorted(self.tables)}
        self.guard.check_again()
        write_provenance(
            [*outputs, *texts],
            **{key: self.inputs[key] for key in ("seed", "code", "libraries")},
            caption=self.caption,
            inputs=inputs,
            planned=self.guard.digest,
        )


def draw(path: Path, outputs: Sequence[Path]) -> None:
    """Draw a figure from its stated inputs and its runs' metrics (.pdf, .svg, .png)."""
    from concord_studies.figures import style  # matplotlib, half a second

    output = OutputToDraw(path, outputs[0])
    figure = style.styled(output.module.draw)(output.params, output.runs)
    style.lay_out(figure)
    style.save(figure, outputs, watermark=is_smoke(output.runs))
    output.finish(outputs)


def tabulate(path: Path, outputs: Sequence[Path]) -> None:
    """Build a table from its stated inputs and its runs' metrics (.csv, .md, .tex)."""
    output = OutputToDraw(path, outputs[0])
    table = output.module.tabulate(output.params, output.runs)
    texts = {
        ".csv": table.csv,
        ".md": table.markdown,
        ".tex": lambda: table.latex(output.inputs["caption"]["title"]),
    }
    for place in outputs:
        write_whole(place, texts[place.suffix]())
    output.finish(outputs)
