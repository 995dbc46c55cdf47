"""The targets: files that Snakemake makes for a study's name, and errors for unknown words."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from concord.errors import ConcordError, nearest
from concord_studies.failures import exit_with_sentences
from concord_studies.plan import Plan
from concord_studies.result_kinds import KINDS, Result
from concord_studies.runs.run import Run

TARGET = re.compile(r"[^-{}][^{}]*")  # what a target that is typed may look like; no option


@exit_with_sentences
class Targets:
    """The results of a plan that are made by the name of a study, or of all papers.

    plan: the plan.
    """

    def __init__(self, plan: Plan) -> None:
        """List the targets of a plan."""
        self.plan = plan

    def _list_results(self, keys: Iterable[str], *kinds: str) -> Iterator[Result]:
        """Yield the results of studies: figures, tables, scores, and those of other kinds."""
        for key in keys:
            for kind in ("figures", "tables", *kinds, "scores"):
                names = KINDS[kind].names(self.plan.studies[key])
                yield from (Result(kind, key, name) for name in names)

    def _find_runs(self, result: Result) -> list[Run]:
        """Return all runs of the experiments that a result needs."""
        row, study = KINDS[result.kind], self.plan.studies[result.study]
        names = [] if row.partial else row.experiments(study, result.name)
        return [run for name in names for run in study.runs_of(name)]

    def _list_files(self, results: Iterable[Result]) -> list[str]:
        """Return all files of results."""
        return [file for result in results for file in result.files(self.plan.results)]

    def list_offline(self, wildcards: Any) -> list[str]:
        """Return the files of papers' figures and tables whose experiments need no download."""
        results = self._list_results(self.plan.papers)
        return self._list_files(
            result
            for result in results
            if not any(run.downloads for run in self._find_runs(result))
        )

    def list_makeable(self, *keys: str) -> Callable[[Any], list[str]]:
        """Return an input function for Snakemake: the files of studies' results that can be made.

        They are of figures, tables, scores, and verdicts that no ledger joins. The function prints
        once which results it leaves out, and why.
        """

        @cache
        def files() -> list[str]:
            """Return the files of results that can be made; print why others are left out."""
            complete, left_out = list[Result](), dict[str, list[str]]()
            for result in self._list_results(keys, *[] if papers else ["claims"]):
                remedies = map(self.plan.find_remedy, self._find_runs(result))
                if remedy := next(filter(None, remedies), None):
                    left_out.setdefault(remedy, []).append(f"{result.study}/{result.name}")
                else:
                    complete.append(result)
            for remedy, names in left_out.items():
                print(f"concord: left out {', '.join(names)}: {remedy}", file=sys.stderr)
            return self._list_files(complete)

        papers = {*keys} <= {*self.plan.papers}
        return lambda wildcards: files()

    def list_existing(self, wildcards: Any) -> list[str]:
        """Return the files of the figures, tables, verdicts and scores that exist."""
        results = self._list_results(self.plan.studies, "claims")
        return self._list_files(
            result for result in results if Path(result.files(self.plan.results)[0]).exists()
        )

    # Words that name nothing.

    def list_unknown(self, words: Iterable[str], workflow: Any) -> list[str]:
        """Return the words of a command line that are no rule, and no file that a rule makes.

        workflow: Snakemake's, with the rules read so far.
        """
        paths = dict.fromkeys(map(os.path.normpath, filter(TARGET.fullmatch, words)))
        return [p for p in paths if not workflow.is_rule(p) and not _list_makers(p, workflow)]

    def refuse(self, unknown: Iterable[str], workflow: Any) -> str:
        """Refuse an unknown word that Snakemake is to make, unless a rule read later makes it.

        Then return the path of no file, as an input of the rule of the unknown words, so that the
        other rule is taken.
        """
        for word in map(os.path.normpath, workflow.dag_settings.targets):
            if word in unknown and len(makers := _list_makers(word, workflow)) == 1:
                names = [r.name for r in workflow.rules if not r.has_wildcards()]
                self._refuse_word(word, {*names} - {*makers})
        return "what another rule makes"

    def _refuse_word(self, word: str, rules: Iterable[str]) -> NoReturn:
        """Raise a ConcordError with the most similar rule, or file, to an unknown word."""
        plan = self.plan
        key, _, rest = word.removeprefix(f"{plan.results}/").partition("/")
        section, _, file = rest.partition("/")
        if "=" in word and word.partition("=")[0] in plan.config:
            remedy = f"to set it, type: --config {word}"
        elif scale := self._find_other_scale(word):
            remedy = f"for results of this scale, add: --config scale={scale}"
        elif not word.startswith(f"{plan.results}/"):
            files = (r.files(plan.results)[0] for r in self._list_results(plan.studies))
            remedy = nearest(word, files if "/" in word else rules)
        else:
            study = plan.find_study(key)
            if section in ("figures", "tables") and file:
                study.output(section, file.partition(".")[0])
            elif file:
                study.runs_of(section)
            remedy = nearest(word, [r.files(plan.results)[0] for r in self._list_results([key])])
        raise ConcordError(f"there is no target {word!r}; {remedy}")

    def _find_other_scale(self, path: str) -> str | None:
        """Return the scale whose results a path is among, if it is not the plan's."""
        config = self.plan.config
        others = {"smoke", "full"} - {config["scale"]}
        return next((of for of in others if path.startswith(f"{config['results']}/{of}/")), None)


def _list_makers(path: str, workflow: Any) -> list[str]:
    """Return the names of the rules of Snakemake's workflow that make a file."""
    return [
        rule.name for rule in workflow.rules if _may_make(rule, path) and rule.is_producer(path)
    ]


def _may_make(rule: Any, path: str) -> bool:
    """Return whether a path begins and ends as an output of a rule, whose pattern takes longer."""
    ends = ((str(file.constant_prefix()), str(file.constant_suffix())) for file in rule.products())
    return any(path.startswith(first) and path.endswith(last) for first, last in ends)
