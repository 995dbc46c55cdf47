"""The plan: it answers Snakemake's rules about a project's results and the inputs of each.

The inputs of a result are recorded in a small file, its statement (``statements.py``): parameters,
options and texts, the digest of the code and the versions of the libraries. The file is an input of
the rule, and its digest one of the rule's ``params``, so that Snakemake reruns the results that
depend on a change, and no others.
"""

import gc
import json
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest
from concord_studies import digests, provenance, statements
from concord_studies.configuration.config import results_folder
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse
from concord_studies.datasets.registry import load_registry
from concord_studies.experiment import Experiment, build_experiment
from concord_studies.failures import exit_with_sentences
from concord_studies.io import read_text, signature, write_whole
from concord_studies.result_kinds import KINDS, Result
from concord_studies.runs.run import Run
from concord_studies.stages import judge
from concord_studies.statements import Statement

Wildcards = Any  # of Snakemake: an attribute for each

RESOURCES = Path("resources")
UNIVERSES = "multiverse/"  # experiments of a study's universes are called so


@exit_with_sentences
class Plan:
    """A project's studies, with the inputs, params and resources of Snakemake's rules.

    folder: the folder of the configuration: config.yaml, and the papers and studies.
    changes: the settings of Snakemake's ``--config``.
    writes: whether to write statements and check the configuration: true where jobs are planned,
    false where they run.
    installs: whether jobs run in conda environments, with libraries not installed here.
    submits: returns whether jobs run on other machines, where Snakemake plans them anew.
    studies: the papers and studies, by key.
    papers: the keys of the papers.
    results: the folder of the results, as rules write it.
    hashes: the SHA-256 of each data file, by ``<data set>/<file>``.
    """

    def __init__(
        self,
        folder: str,
        changes: Mapping[str, Any],
        writes: bool = True,
        installs: bool = False,
        submits: Callable[[], bool] = lambda: False,
    ) -> None:
        """Load the configuration, with changes, and all papers and studies."""
        # What planning makes stays; to look for more took an eighth of it.
        gc.set_threshold(100_000)
        self.writes, self.installs, self.submits = writes, installs, submits
        if writes:
            os.environ[statements.NOTES] = f"{statements.FOLDER}/{os.urandom(8).hex()}.notes"
        self.notes = {} if writes else statements.read_notes()
        check = _find_check(folder, changes) if writes else None
        contents = json.loads(read_text(check)) if check and check.exists() else {}
        is_checked = bool(contents) or not writes
        self.config, self.studies = load_studies(Path(folder), changes, is_checked, contents)
        if check and not is_checked:
            contents = {str(study.path): study.contents for study in self.studies.values()}
            write_whole(check, json.dumps(contents))
        self.papers = [key for key, study in self.studies.items() if study.printed]
        self.results = results_folder(self.config).as_posix()
        self.mirror = os.environ.get("CONCORD_DATA_MIRROR") or self.config["data_mirror"]
        self.registry = load_registry()
        self.hashes = {
            f"{name}/{file}": facts.sha256
            for name, entry in self.registry.items()
            for file, facts in entry.files.items()
        }

    @property
    def experiments(self) -> list[str]:
        """Return the ids of all studies' experiments, each once."""
        return sorted({name for study in self.studies.values() for name in study.experiments})

    @property
    def output_names(self) -> list[str]:
        """Return the ids of all studies' figures and tables, each once."""
        kinds, studies = (KINDS["figures"], KINDS["tables"]), self.studies.values()
        return sorted({name for study in studies for kind in kinds for name in kind.names(study)})

    # What results are made from.

    def find_study(self, key: str) -> Study:
        """Return the study of a key. A ConcordError if there is none."""
        if key not in self.studies:
            raise ConcordError(f"config/papers: there is no {key!r}; {nearest(key, self.studies)}")
        return self.studies[key]

    def experiment(self, wildcards: Wildcards) -> Experiment:
        """Return the experiment, or the universe, that a rule's wildcards name."""
        return self._experiment(wildcards.study, wildcards.experiment)

    @cache  # noqa: B019  # there is one plan in a process
    def _experiment(self, key: str, name: str) -> Experiment:
        """Return a study's experiment, or its universe for a name like "multiverse/seed_2"."""
        study = self.find_study(key)
        if not name.startswith(UNIVERSES):
            runs = {run.name: run for run in study.runs_of(name)}
            return build_experiment(study.path, runs, study.experiments[name].get("jobs"))
        universe, universes = name.removeprefix(UNIVERSES), self._multiverse(key).experiments
        if universe not in universes:
            remedy = nearest(universe, universes)
            raise ConcordError(f"{study.path}: no universe {universe!r} computes runs; {remedy}")
        return universes[universe]

    @cache  # noqa: B019
    def _multiverse(self, key: str) -> Multiverse:
        return Multiverse(self.studies[key])

    def write(self, kind: str, wildcards: Wildcards) -> str:
        """Write the statement of the result of a kind that wildcards name; return its path."""
        statement = self.statement(kind, wildcards)
        if self.writes:
            statement.write()
            if self.submits():
                statement.add_to_notes(_name_statement(kind, wildcards))
        return str(statement.path)

    def digest(self, kind: str, wildcards: Wildcards) -> str:
        """Return the digest of the statement of the result of a kind that wildcards name."""
        return self.statement(kind, wildcards).digest

    def statement(self, kind: str, wildcards: Wildcards) -> Statement:
        """Return the statement of the result that wildcards name.

        kind: one of ``KINDS``, "runs" for metrics, or "ledger".
        """
        if statement := self.notes.get(_name_statement(kind, wildcards)):
            return statement
        if kind == "ledger":
            path, inputs = Path(self.results, "claims.csv"), digests.digest_code(judge.__name__)
            return Statement.of_inputs(path, {**inputs, "tables": {}})
        if kind == "runs":
            return self._state_runs(wildcards.study, wildcards.experiment)
        return self._state_result(Result(kind, wildcards.study, wildcards.get("name", "")))

    @cache  # noqa: B019
    def _state_runs(self, key: str, name: str) -> Statement:
        """Return the statement of the metrics of an experiment, or of a universe."""
        text = self._experiment(key, name).text(self._is_at_hand)
        return Statement(Path(self.results, key, name, "metrics.csv"), text)

    @cache  # noqa: B019
    def _state_result(self, result: Result) -> Statement:
        """Return the statement of a result that is made from metrics."""
        (kind, key, name), study = result, self.find_study(result.study)
        inputs = KINDS[kind].inputs(study, name, kind == "claims" and self.uses_universes(key))
        names = KINDS[kind].experiments(study, name)
        tables = {name: self._state_runs(key, name).digest for name in names}
        path, whole = Path(result.files(self.results)[0]), None if name else study
        return Statement.of_inputs(path, {**inputs, "tables": tables}, whole)

    # Inputs.

    def data(self, wildcards: Wildcards) -> list[str]:
        """Return the data files that an experiment reads: those needed, and optional ones at hand.

        The experiment's statement has their SHA-256.
        """
        names: dict[str, None] = {}
        for run in self.experiment(wildcards).runs.values():
            names |= dict.fromkeys(run.data_sets)
            names |= dict.fromkeys(filter(self._is_at_hand, run.optional_data_sets))
        return [f"{RESOURCES}/{name}/{f}" for name in names for f in self.registry[name].files]

    @cache  # noqa: B019
    def _is_at_hand(self, name: str) -> bool:
        """Return whether all files of a data set are in place or in the data mirror."""
        # Unlike Path's, this expanduser knows what to do without such a user.
        mirror = [Path(os.path.expanduser(self.mirror))] if self.mirror else []
        folders, files = [RESOURCES / name, *mirror], self.registry[name].files
        return all(any((folder / file).is_file() for folder in folders) for file in files)

    def list_experiments(self, kind: str, wildcards: Wildcards) -> list[str]:
        """Return the experiments, and universes, whose metrics a result of a kind reads.

        Verdicts read those that are there or can be made, so that claims on others are "not run"
        and do not stop the ledger; data are downloaded only for a user's own study.
        """
        row, study = KINDS[kind], self.find_study(wildcards.study)
        names = row.experiments(study, wildcards.get("name", ""))
        if kind == "multiverse":
            names += [f"{UNIVERSES}{name}" for name in self._multiverse(study.key).experiments]
        if row.partial:
            return [name for name in names if self._is_readable(study.key, name, not study.printed)]
        return names

    def _is_readable(self, key: str, name: str, downloads: bool) -> bool:
        """Return whether an experiment is up to date or can be made.

        downloads: whether data may be downloaded for it.
        """
        runs = self._experiment(key, name).runs.values()
        needed = (data for run in runs for data in run.downloads)
        lacks = any(map(self.find_remedy, runs))
        if not lacks and (downloads or all(map(self._is_at_hand, needed))):
            return True
        return self._state_runs(key, name).has_result

    def find_remedy(self, run: Run) -> str | None:
        """Return the remedy for a run that cannot be made; None if it can, or conda helps."""
        return None if self.installs else run.unavailable

    def uses_universes(self, key: str) -> bool:
        """Return whether the ledger of a study, given by its key, says how robust verdicts are.

        So it does if the configuration's key multiverse asks for it, or if the table of verdicts
        over the study's universes is up to date.
        """
        if self.config["multiverse"]:
            return True
        try:
            table = Result("multiverse", key).files(self.results)[0]
            planned = provenance.read_provenance(Path(table))["planned"]
        except (ConcordError, KeyError):
            return False
        return bool(planned == self._state_result(Result("multiverse", key)).digest)


def _find_check(folder: str, changes: Mapping[str, Any]) -> Path:
    """Return the file that exists if a configuration, with its changes, was checked.

    It has the contents of the files of studies, as JSON, read ten times as fast as YAML. Its name
    has a digest of the times of all files of configuration and code, and of the folder of
    installed packages.
    """
    places = [Path(folder), digests.SOURCE]
    files = [path for place in places for path in sorted(place.rglob("*"))]
    files = [p for p in files if p.suffix != ".pyc" and p.name != "__pycache__"]
    files.append(Path(sysconfig.get_path("purelib")))
    times = [[str(path), signature(path)] for path in files]
    return statements.FOLDER / f"{digests.digest([dict(changes), sys.version, times])}.checked"


def _name_statement(kind: str, wildcards: Wildcards) -> str:
    """Return the file name under which a job's statement is noted. kind: of its result."""
    return "/".join([kind, *(f"{key}={wildcards[key]}" for key in sorted(wildcards.keys()))])
