"""The kinds of results that are made from metrics: their files and their inputs.

Each kind is a row of ``KINDS``, and the name of one of Snakemake's rules.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from concord_studies.catalog import describe_kind
from concord_studies.configuration.study import Study
from concord_studies.digests import digest, digest_code
from concord_studies.runs.run import Run
from concord_studies.stages import draw, judge, survey

Inputs = dict[str, Any]


class ResultKind(NamedTuple):
    """A kind of result of a study: the whole study's, or one for each of several names.

    path: its main file below the results, with ``{study}`` and ``{name}``, without a suffix.
    suffixes: of its files; the result exists if the file with the first suffix does.
    names: lists the names of a study's results of the kind; "" is that of the whole study.
    reads: lists the runs whose metrics it is made from, by study and name.
    inputs: returns its other inputs, by study, name, and whether verdicts over the study's
    universes are used.
    partial: whether it can be made without the experiments that cannot be made here.
    """

    path: str
    suffixes: tuple[str, ...]
    names: Callable[[Study], Iterable[str]]
    reads: Callable[[Study, str], Iterable[Run]]
    inputs: Callable[[Study, str, bool], Inputs]
    partial: bool = False

    def experiments(self, study: Study, name: str) -> list[str]:
        """Return the experiments of a study that a result reads, each once."""
        return list(dict.fromkeys(run.experiment for run in self.reads(study, name)))


class Result(NamedTuple):
    """A result of a study: its kind, the study's key, and its name, "" for the whole study's."""

    kind: str
    study: str
    name: str = ""

    def files(self, folder: str) -> list[str]:
        """Return the files of the result below a folder of results, the main one first."""
        path, suffixes = KINDS[self.kind][:2]
        stem = f"{folder}/{path.format(study=self.study, name=self.name)}"
        return [f"{stem}.{suffix}" for suffix in suffixes]


def _output_kind(section: str, *suffixes: str) -> ResultKind:
    """Return the kind of result of a study's section: figures or tables."""
    return ResultKind(
        path=f"{{study}}/{section}/{{name}}",
        suffixes=(*suffixes, "json", "yaml", "caption.md", "caption.rst"),
        names=lambda study: study.outputs(section),
        reads=lambda study, name: study.output_reads(section, name),
        inputs=lambda study, name, _: draw.output_inputs(study, section, name),
    )


def _arena_runs(study: Study) -> list[Run]:
    """Return the cells of a study's arenas."""
    return [run for experiment in study.arenas for run in study.runs_of(experiment)]


def _score_inputs(study: Study) -> Inputs:
    """Return the inputs, other than metrics, of a study's scores and cards."""
    samplers = dict.fromkeys(run.sampler.kind for run in _arena_runs(study))
    about = digest([describe_kind("samplers", sampler) for sampler in samplers])
    code = digest_code("concord_arena.compete")
    return {"names": study.sections.names, "samplers": about, **code}


_VERDICTS = partial(
    ResultKind,
    suffixes=("csv", "md", "json"),
    reads=lambda study, _: study.claim_runs(),
    partial=True,
)
KINDS: dict[str, ResultKind] = {
    "figures": _output_kind("figures", "pdf", "svg", "png"),
    "tables": _output_kind("tables", "csv", "md", "tex"),
    "claims": _VERDICTS(
        path="{study}/claims",
        names=lambda study: [""] if study.claims else [],
        inputs=lambda study, _, robust: judge.verdict_inputs(study, robust),
    ),
    "multiverse": _VERDICTS(
        path="{study}/multiverse",
        names=lambda study: [""] if study.printed else [],
        inputs=lambda study, *_: survey.multiverse_inputs(study),
    ),
    "scores": ResultKind(
        path="{study}/scores",
        suffixes=("csv", "json"),
        names=lambda study: [""] if study.arenas else [],
        reads=lambda study, _: _arena_runs(study),
        inputs=lambda study, *_: _score_inputs(study),
    ),
}
