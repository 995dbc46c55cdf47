"""The plan: what Snakemake's rules ask about a project, its files, and what each is made from.

What a result is made from is stated in a small file, such as the ``runs.yaml`` of an experiment:
parameters, options and texts, the digest of the code and the versions of the libraries that are
used. Planning writes it if it differs. It is an input of the rule, and its digest is one of the
rule's ``params``: whatever changes, Snakemake makes again what rests on it, and nothing else.
"""

import gc
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from concord.errors import ConcordError, nearest
from concord_studies import digests, provenance
from concord_studies.catalog import describe_kind
from concord_studies.configuration.config import results_folder
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse
from concord_studies.datasets.registry import load_registry
from concord_studies.experiment import Experiment
from concord_studies.failures import exit_with_sentence
from concord_studies.io import write_whole
from concord_studies.pages import captions
from concord_studies.runs.run import Run
from concord_studies.stages import draw, judge, survey

Wildcards = Any  # of Snakemake: an attribute for each

RESOURCES = Path("resources")
EXPECTED = Path("config/expected_verdicts.yaml"), Path("config/expected_multiverse.yaml")
UNIVERSES = "multiverse/"  # experiments of a study's universes are called so
FILES = {"figures": "pdf", "tables": "csv"}  # the first of an entry's


class Statement(NamedTuple):
    """The inputs of a result: the file that states them, and its text."""

    path: Path
    text: str

    @property
    def stands(self) -> bool:
        """Return whether the file has this text."""
        return self.path.is_file() and self.path.read_bytes() == self.text.encode()


class Plan:
    """A project's studies, with the inputs, params and resources of Snakemake's rules.

    changes: what Snakemake's ``--config`` sets.
    writes: whether statements are written, and the configuration checked: where jobs are planned,
    not where they run.
    studies: the papers and studies, by key.
    results: the folder of the results, as rules write it.
    """

    @exit_with_sentence
    def __init__(self, changes: Mapping[str, Any], writes: bool = True) -> None:
        """Load the configuration in ``config``, with changes, and all papers and studies."""
        gc.set_threshold(
            100_000
        )  # what planning makes stays; to look for more took an eighth of it
        self.writes = writes
        self.config, self.studies = load_studies(Path("config"), changes, checked=not writes)
        self.papers = [key for key, study in self.studies.items() if study.printed]
        self.place = results_folder(self.config)
        self.results = self.place.as_posix()
        self.mirror = os.environ.get("CONCORD_DATA_MIRROR") or self.config["data_mirror"]
        self.registry = load_registry()

    @property
    def prefix(self) -> str:
        """Return the shell commands that each job begins with: they find Python and the package.

        In an environment that was made for a job nothing else is found; elsewhere jobs use the
        Python that runs Snakemake, whatever the shell's path says.
        """
        given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        folders = [os.path.abspath(folder) for folder in given if folder]
        own, all_of_them = (
            shlex.quote(os.pathsep.join(dict.fromkeys([str(digests.SOURCE), *chosen])))
            for chosen in ([], folders)
        )
        mirror = f"CONCORD_DATA_MIRROR={shlex.quote(self.mirror)}" if self.mirror else ""
        conda = shlex.quote(os.environ.get("CONDA_PREFIX", ""))
        python = shlex.quote(str(Path(sys.executable).parent))
        text = (
            f"export PYTHONSAFEPATH=1 PYTHONPATH={own} {mirror}; "
            f'if [ "${{CONDA_PREFIX-}}" = {conda} ]; '
            f"then export PYTHONPATH={all_of_them} PATH={python}:$PATH; fi; "
        )
        return text.replace("{", "{{").replace("}", "}}")

    # What results are made from.

    @exit_with_sentence
    def study(self, wildcards: Wildcards) -> Study:
        """Return the study that a file belongs to."""
        key = wildcards.study
        if key not in self.studies:
            raise ConcordError(f"config/papers: there is no {key!r}; {nearest(key, self.studies)}")
        return self.studies[key]

    @exit_with_sentence
    def experiment(self, wildcards: Wildcards) -> Experiment:
        """Return the experiment, or the universe, that a file belongs to."""
        return self._experiment(self.study(wildcards).key, wildcards.experiment)

    @cache  # noqa: B019  # there is one plan in a process
    def _experiment(self, key: str, name: str) -> Experiment:
        study = self.studies[key]
        if not name.startswith(UNIVERSES):
            runs = study.select(name, "experiments")
            return Experiment(study.path, {run.name: run for run in runs})
        universe, known = name.removeprefix(UNIVERSES), self._universes(key).experiments
        if universe not in known:
            remedy = nearest(universe, known)
            raise ConcordError(f"{study.path}: no universe {universe!r} computes runs; {remedy}")
        return known[universe]

    @cache  # noqa: B019
    def _universes(self, key: str) -> Multiverse:
        return Multiverse(self.studies[key])

    def write_statement(self, kind: str) -> Callable[[Wildcards], str]:
        """Return an input function: it writes the statement of a result, and returns its path."""

        def path(wildcards: Wildcards) -> str:
            """Write the statement if it differs from what stands, and return its path."""
            statement = self.statement(kind, wildcards)
            if self.writes and not statement.stands:
                write_whole(statement.path, statement.text)
            return str(statement.path)

        return exit_with_sentence(path)

    def digest(self, kind: str) -> Callable[[Wildcards], str]:
        """Return a function for ``params``: the digest of a result's stated inputs."""
        return exit_with_sentence(lambda w: digests.digest(self.statement(kind, w).text))

    def statement(self, kind: str, wildcards: Wildcards) -> Statement:
        """Return the stated inputs of a result. kind: runs, figures, tables, claims, ..."""
        name = wildcards.get("experiment") if kind == "runs" else wildcards.get("name")
        return self._statement(kind, wildcards.get("study", ""), name or "")

    @cache  # noqa: B019
    def _statement(self, kind: str, key: str, name: str = "") -> Statement:
        """Return a statement; one of a whole study is the claims', the multiverse's or scores'."""
        if kind == "runs":
            path = self.place / key / name / "runs.yaml"
            return Statement(path, self._experiment(key, name).text(self._at_hand))
        path, study = self.place / key / f"{kind}.yaml", self.studies.get(key)
        if study is None:
            path, stated = self.place / "claims.yaml", judge.state_ledger_inputs()
        elif kind in FILES:
            path = path.with_suffix("") / f"{name}.yaml"
            stated = draw.state_inputs(study, kind, name)
        elif kind == "scores":
            stated = _stated_scores(study)
        elif kind == "multiverse":
            names = self._experiments_of_claims(study)
            runs = {own: self._statement("runs", key, own).text for own in names}
            stated = {**survey.state_inputs(study), "runs": digests.digest(runs)}
        else:
            stated = judge.state_inputs(study, varied=bool(self._find_survey(key)))
        lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in stated.items())
        return Statement(path, "{" + ",\n".join(lines) + "}\n")

    # Inputs.

    def table(self, key: str, name: str) -> str:
        """Return the file of the metrics of an experiment or universe."""
        return f"{self.results}/{key}/{name}/metrics.csv"

    @exit_with_sentence
    def parts(self, wildcards: Wildcards) -> list[str]:
        """Return the files of draws, or of scores, in which a long experiment is made."""
        experiment = self.experiment(wildcards)
        name = "scores.{}-of-{}.json" if experiment.is_arena else "draws.{}-of-{}.nc"
        folder = f"{self.results}/{wildcards.study}/{wildcards.experiment}"
        count = experiment.part_count
        return [f"{folder}/{name.format(part + 1, count)}" for part in range(count)]

    @exit_with_sentence
    def data(self, wildcards: Wildcards) -> list[str]:
        """Return the data files that an experiment reads: those needed, and optional ones at hand.

        What a file is its SHA-256 says, which the experiment's statement has.
        """
        names: dict[str, None] = {}
        for run in self.experiment(wildcards).runs.values():
            names |= dict.fromkeys(run.data_sets)
            names |= dict.fromkeys(filter(self._at_hand, run.optional_data_sets))
        return [f"{RESOURCES}/{name}/{f}" for name in names for f in self.registry[name].files]

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each data file, ``<data set>/<file>``."""
        files = ((name, entry.files.items()) for name, entry in self.registry.items())
        return {f"{name}/{file}": facts.sha256 for name, own in files for file, facts in own}

    @cache  # noqa: B019
    def _at_hand(self, name: str) -> bool:
        """Return whether all files of a data set are in place or in the data mirror."""
        # Unlike Path's, this expanduser knows what to do without such a user.
        mirror = [Path(os.path.expanduser(self.mirror))] if self.mirror else []
        folders, files = [RESOURCES / name, *mirror], self.registry[name].files
        return all(any((folder / file).is_file() for folder in folders) for file in files)

    @exit_with_sentence
    def find_shown_tables(self, wildcards: Wildcards) -> list[str]:
        """Return the metrics of the experiments that a figure or table shows."""
        study = self.study(wildcards)
        names = self._experiments(study, wildcards.section, wildcards.name)
        return [self.table(study.key, name) for name in names]

    def _experiments(self, study: Study, section: str, name: str) -> list[str]:
        return list(dict.fromkeys(run.experiment for run in study.output_runs(section, name)))

    @exit_with_sentence
    def caption(self, wildcards: Wildcards) -> str:
        """Return the caption of a figure or table for Snakemake's report."""
        return captions.rst(
            json.loads(self.statement(wildcards.section, wildcards).text)["caption"]
        )

    @exit_with_sentence
    def find_claims_tables(self, wildcards: Wildcards) -> list[str]:
        """Return the metrics that a study's claims read, made or makeable without a download.

        Claims on other experiments get the verdict "not run" instead of stopping the ledger. A
        study of one's own has its data downloaded.
        """
        study = self.study(wildcards)
        return [self.table(study.key, name) for name in self._experiments_of_claims(study)]

    def _experiments_of_claims(self, study: Study) -> list[str]:
        """Return the experiments that a study's claims read and that can be made."""
        names = dict.fromkeys(run.experiment for run in study.claim_runs())
        return [name for name in names if self._readable(study.key, name, not study.printed)]

    def _readable(self, key: str, name: str, downloads: bool = False) -> bool:
        """Return whether an experiment is up to date, or can be made, if allowed by downloads."""
        runs = self._experiment(key, name).runs.values()
        needed = (data for run in runs for data in run.downloads)
        if not any(map(self._missing, runs)) and (downloads or all(map(self._at_hand, needed))):
            return True
        return self._statement("runs", key, name).stands and Path(self.table(key, name)).exists()

    def _missing(self, run: Run) -> str | None:
        """Return the remedy for what a run lacks. None if nothing lacks, or conda installs it."""
        return None if self.config["conda"] else run.unavailable

    @exit_with_sentence
    def find_multiverse_table(self, wildcards: Wildcards) -> list[str]:
        """Return the table over the multiverse if verdicts wait for it, or it is up to date."""
        return self._find_survey(self.study(wildcards).key)

    def _find_survey(self, key: str) -> list[str]:
        """Return the table over a study's universes if it is wanted, or is up to date."""
        table = self.place / key / "multiverse.csv"
        if not self.config["multiverse"]:
            try:
                stated = provenance.read_provenance(table)["planned"]
            except (ConcordError, KeyError):
                return []
            if stated != digests.digest(self._statement("multiverse", key).text):
                return []
        return [str(table)]

    @exit_with_sentence
    def find_universe_tables(self, wildcards: Wildcards) -> list[str]:
        """Return the tables that claims read, also of universes at hand or without downloads."""
        key = self.study(wildcards).key
        names = (f"{UNIVERSES}{name}" for name in self._universes(key).experiments)
        universes = [self.table(key, name) for name in names if self._readable(key, name)]
        return self.find_claims_tables(wildcards) + universes

    @exit_with_sentence
    def find_arena_tables(self, wildcards: Wildcards) -> list[str]:
        """Return the metrics of a study's arena."""
        study = self.study(wildcards)
        return [self.table(study.key, name) for name in study.arenas]

    @property
    def expected(self) -> list[str]:
        """Return the existing files of committed verdicts; a user's study may have none."""
        return [str(file) for file in EXPECTED if file.exists()]

    # Targets.

    def outputs(self, keys: Iterable[str]) -> dict[str, list[Run]]:
        """Return the main file of each figure and table of studies, with the runs it needs."""
        return {
            f"{self.results}/{key}/{section}/{name}.{suffix}": [
                run
                for experiment in self._experiments(self.studies[key], section, name)
                for run in self._experiment(key, experiment).runs.values()
            ]
            for key in keys
            for section, suffix in FILES.items()
            for name in self.studies[key].outputs(section)
        }

    @exit_with_sentence
    def without_downloads(self, wildcards: Wildcards) -> list[str]:
        """Return the papers' figures and tables whose experiments need no download."""
        found = self.outputs(self.papers)
        return [file for file, runs in found.items() if not any(run.downloads for run in runs)]

    def makeable(self, *keys: str) -> Callable[[Wildcards], list[str]]:
        """Return an input function: figures and tables for which nothing is missing.

        It prints once which it leaves out, and why.
        """

        @cache
        def files() -> list[str]:
            found, left_out = [], dict[str, list[str]]()
            for file, runs in self.outputs(keys).items():
                if missing := next(filter(None, map(self._missing, runs)), None):
                    name = f"{Path(file).parts[-3]}/{Path(file).stem}"
                    left_out.setdefault(missing, []).append(name)
                else:
                    found.append(file)
            for missing, names in left_out.items():
                print(f"concord: left out {', '.join(names)}: {missing}", file=sys.stderr)
            return found

        return exit_with_sentence(lambda wildcards: files())

    def tables(self, key: str, *names: str) -> list[str]:
        """Return the tables of verdicts, or of scores, that a study has, of those named."""
        study = self.studies[key]
        there = {"claims": study.claims, "scores": study.arenas, "multiverse": study.printed}
        return [f"{self.results}/{key}/{name}.csv" for name in names if there[name]]

    def of_study(self, key: str) -> Callable[[Wildcards], list[str]]:
        """Return an input function: what a study makes, with verdicts that no ledger joins."""
        names = ("scores",) if self.studies[key].printed else ("claims", "scores")
        makeable = self.makeable(key)
        return lambda wildcards: [*makeable(wildcards), *self.tables(key, *names)]

    @exit_with_sentence
    def find_outputs(self, wildcards: Wildcards) -> list[str]:
        """Return the figures, tables, verdicts and scores that are there."""
        tables = (table for key in self.studies for table in self.tables(key, "claims", "scores"))
        return [file for file in (*self.outputs(self.studies), *tables) if Path(file).exists()]

    @exit_with_sentence
    def refuse_target(self, wildcards: Wildcards) -> list[str]:
        """Refuse a word of the command line that is neither a study nor a rule."""
        known, word = [*self.studies, "reproduce", "everything"], wildcards.target
        raise ConcordError(f"there is no target {word!r}; {nearest(word, known)}")

    # What a job takes.

    @property
    def options(self) -> str:
        """Return the options ``--scale`` and ``--seed`` of a job's command."""
        return f"--scale {self.config['scale']} --seed {self.config['seed']}"

    @property
    def pairs(self) -> str:
        """Return the option ``--pairs`` if universes of two alternatives are configured, or ""."""
        return "--pairs" if self.config["pairs"] else ""

    def command(self, wildcards: Wildcards) -> str:
        """Return the arguments that name a job's study, scale and seed."""
        return f"{shlex.quote(str(self.study(wildcards).path))} {self.options}"

    def memory(self, wildcards: Wildcards, attempt: int) -> int:
        """Return the memory of an experiment's job in MB, which grows with every attempt."""
        return int(attempt * self.experiment(wildcards).job["mem_mb"])

    def minutes(self, wildcards: Wildcards, attempt: int) -> int:
        """Return the time of an experiment's job, which grows with every attempt."""
        return int(attempt * self.experiment(wildcards).job["runtime"])

    def environment(self, wildcards: Wildcards) -> str:
        """Return the file of the conda environment of an experiment's jobs."""
        return f"../../envs/{self.experiment(wildcards).job['environment']}.yaml"

    def priority(self, wildcards: Wildcards) -> int:
        """Return the cost of an experiment: what takes longest starts first."""
        return 1 + int(self.experiment(wildcards).cost / 1e6)

    def group(self, wildcards: Wildcards) -> str | None:
        """Return the group of short experiments, several of which make one job on a cluster."""
        return None if self.experiment(wildcards).part_count else "experiments"


def _stated_scores(study: Study) -> dict[str, Any]:
    """Return the inputs, other than metrics, of the scores and cards of an arena."""
    used = dict.fromkeys(run.sampler.kind for run in study.runs.values() if run.arena)
    about = [describe_kind("samplers", kind) for kind in used]
    code = digests.state_code("concord_arena.compete")
    return {"names": study.sections.names, "samplers": digests.digest(about), **code}
