"""The plan: what Snakemake's rules ask about a project, its files, and what each is made from.

What a result is made from is stated in a small file (``statements.py``): parameters, options and
texts, the digest of the code and the versions of the libraries that are used. It is an input of the
rule, and its digest is one of the rule's ``params``: whatever changes, Snakemake makes again what
rests on it, and nothing else.
"""

import gc
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

from concord.errors import ConcordError, nearest
from concord_studies import digests, provenance, statements
from concord_studies.catalog import describe_kind
from concord_studies.configuration.config import results_folder
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse
from concord_studies.datasets.registry import load_registry
from concord_studies.experiment import Experiment
from concord_studies.failures import exit_with_sentences
from concord_studies.guard import STARTED
from concord_studies.pages import captions
from concord_studies.runs.run import Run
from concord_studies.stages import draw, judge, survey
from concord_studies.statements import Statement

Wildcards = Any  # of Snakemake: an attribute for each
Inputs = Callable[[Wildcards], list[str]]  # an input function of Snakemake's

RESOURCES = Path("resources")
EXPECTED = Path("config/expected_verdicts.yaml"), Path("config/expected_multiverse.yaml")
UNIVERSES = "multiverse/"  # experiments of a study's universes are called so
TARGET = re.compile(r"(?!-)[\w./+=-]*\w")  # what a target that is typed may look like; no option
FILES = {  # of an output; the first tells whether it is there
    "figures": ("pdf", "svg", "png", "json", "yaml", "caption.md"),
    "tables": ("csv", "md", "tex", "json", "yaml", "caption.md"),
    "claims": ("csv", "md", "json"),
    "multiverse": ("csv", "md", "json"),
    "scores": ("csv", "json"),
}


def _makers(path: str, workflow: Any) -> list[str]:
    """Return the names of the rules of Snakemake's workflow that make a file."""
    return [rule.name for rule in workflow.rules if rule.is_producer(path)]


@exit_with_sentences
class Plan:
    """A project's studies, with the inputs, params and resources of Snakemake's rules.

    changes: what Snakemake's ``--config`` sets.
    writes: whether statements are written, and the configuration checked: where jobs are planned,
    not where they run.
    submits: tells whether jobs run on other machines, where Snakemake plans them anew.
    studies: the papers and studies, by key.
    results: the folder of the results, as rules write it.
    """

    def __init__(
        self,
        changes: Mapping[str, Any],
        writes: bool = True,
        submits: Callable[[], bool] = lambda: False,
    ) -> None:
        """Load the configuration in ``config``, with changes, and all papers and studies."""
        gc.set_threshold(
            100_000
        )  # what planning makes stays; to look for more took an eighth of it
        self.writes, self.submits = writes, submits
        if writes:
            os.environ[statements.NOTES] = f"{statements.FOLDER}/{os.urandom(8).hex()}.notes"
        self.notes = {} if writes else statements.read_notes()
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
        searched = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        folders = [os.path.abspath(folder) for folder in searched if folder]
        source, all_folders = (
            shlex.quote(os.pathsep.join(dict.fromkeys([str(digests.SOURCE), *more])))
            for more in ([], folders)
        )
        mirror = f"CONCORD_DATA_MIRROR={shlex.quote(self.mirror)}" if self.mirror else ""
        conda = shlex.quote(os.environ.get("CONDA_PREFIX", ""))
        python, folder = map(shlex.quote, (sys.executable, os.path.dirname(sys.executable)))
        text = (
            f"export {STARTED}=${{EPOCHREALTIME-}} PYTHONSAFEPATH=1 PYTHONPATH={source} {mirror}; "
            f'if [ "${{CONDA_PREFIX-}}" = {conda} ]; '
            f"then export PYTHONPATH={all_folders} PATH={folder}:$PATH; "
            # Which need not be called python, as Debian's is not.
            f'if [ -x {python} ]; then python() {{ {python} "$@"; }}; fi; fi; '
        )
        return text.replace("{", "{{").replace("}", "}}")

    @property
    def experiments(self) -> list[str]:
        """Return the ids of all studies' experiments, each once."""
        return sorted({name for study in self.studies.values() for name in study.experiments})

    @property
    def output_names(self) -> list[str]:
        """Return the ids of all studies' figures and tables, each once."""
        studies = self.studies.values()
        return sorted({name for s in studies for section in FILES for name in s.outputs(section)})

    # What results are made from.

    def study(self, wildcards: Wildcards) -> Study:
        """Return the study that a file belongs to."""
        return self._find_study(wildcards.study)

    def _find_study(self, key: str) -> Study:
        """Return the study of a key. A ConcordError if there is none."""
        if key not in self.studies:
            raise ConcordError(f"config/papers: there is no {key!r}; {nearest(key, self.studies)}")
        return self.studies[key]

    def experiment(self, wildcards: Wildcards) -> Experiment:
        """Return the experiment, or the universe, that a file belongs to."""
        return self._experiment(self.study(wildcards).key, wildcards.experiment)

    @cache  # noqa: B019  # there is one plan in a process
    def _experiment(self, key: str, name: str) -> Experiment:
        """Return a study's experiment or, of a name like "multiverse/seed_2", a universe."""
        study = self.studies[key]
        if not name.startswith(UNIVERSES):
            runs = study.select(name, "experiments")
            return Experiment(study.path, {run.name: run for run in runs})
        universe, universes = name.removeprefix(UNIVERSES), self._multiverse(key).experiments
        if universe not in universes:
            remedy = nearest(universe, universes)
            raise ConcordError(f"{study.path}: no universe {universe!r} computes runs; {remedy}")
        return universes[universe]

    @cache  # noqa: B019
    def _multiverse(self, key: str) -> Multiverse:
        return Multiverse(self.studies[key])

    def write_statement(self, kind: str) -> Callable[[Wildcards], str]:
        """Return an input function: it writes the statement of a result, and returns its path."""
        return partial(self.write, kind)

    def write(self, kind: str, wildcards: Wildcards) -> str:
        """Write the statement of a result, and return its path."""
        statement = self.statement(kind, wildcards)
        if self.writes:
            statement.write()
            if self.submits():
                statement.add_to_notes(_name(kind, wildcards))
        return str(statement.path)

    def digest(self, kind: str) -> Callable[[Wildcards], str]:
        """Return a function for ``params``: the digest of a result's stated inputs."""
        return lambda wildcards: self.statement(kind, wildcards).digest

    def statement(self, kind: str, wildcards: Wildcards) -> Statement:
        """Return the stated inputs of a result. kind: runs, figures, tables, claims, ..."""
        if statement := self.notes.get(_name(kind, wildcards)):
            return statement
        name = wildcards.get("experiment") if kind == "runs" else wildcards.get("name")
        return self._statement(kind, wildcards.get("study", ""), name or "")

    @cache  # noqa: B019
    def _statement(self, kind: str, key: str, name: str = "") -> Statement:
        """Return a statement; one of a whole study is the claims', the multiverse's or scores'."""
        if kind == "runs":
            path = Path(self.metrics_file(key, name))
            return Statement(path, self._experiment(key, name).text(self._is_at_hand))
        path, study, names = self.place / key / f"{kind}.csv", self.studies.get(key), list[str]()
        if study is None:
            path, inputs = self.place / "claims.csv", digests.digest_code(judge.__name__)
        elif name:
            path = self.place / key / kind / f"{name}.{FILES[kind][0]}"
            inputs = draw.output_inputs(study, kind, name)
            names = self._experiments_of_output(study, kind, name)
        elif kind == "scores":
            names = list(study.arenas)
            samplers = dict.fromkeys(run.sampler.kind for run in study.runs.values() if run.arena)
            about = digests.digest([describe_kind("samplers", sampler) for sampler in samplers])
            code = digests.digest_code("concord_arena.compete")
            inputs = {"names": study.sections.names, "samplers": about, **code}
        else:
            names = list(dict.fromkeys(run.experiment for run in study.claim_runs()))
            inputs = (
                survey.multiverse_inputs(study)
                if kind == "multiverse"
                else judge.verdict_inputs(study, bool(self._multiverse_table(key)))
            )
        inputs = {**inputs, "tables": {n: self._statement("runs", key, n).digest for n in names}}
        lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in inputs.items())
        text = "{" + ",\n".join(lines) + "}\n"
        return Statement(path, text, None if name else study)

    # Inputs.

    def metrics_file(self, key: str, name: str) -> str:
        """Return the path of the metrics of a study's experiment, or of its universe."""
        return f"{self.results}/{key}/{name}/metrics.csv"

    def parts(self, wildcards: Wildcards) -> list[str]:
        """Return the files of draws, or of scores, in which a long experiment is made."""
        experiment = self.experiment(wildcards)
        name = "scores.{}-of-{}.json" if experiment.is_arena else "draws.{}-of-{}.nc"
        folder = f"{self.results}/{wildcards.study}/{wildcards.experiment}"
        count = experiment.part_count
        return [f"{folder}/{name.format(part + 1, count)}" for part in range(count)]

    def data(self, wildcards: Wildcards) -> list[str]:
        """Return the data files that an experiment reads: those needed, and optional ones at hand.

        What a file is its SHA-256 says, which the experiment's statement has.
        """
        names: dict[str, None] = {}
        for run in self.experiment(wildcards).runs.values():
            names |= dict.fromkeys(run.data_sets)
            names |= dict.fromkeys(filter(self._is_at_hand, run.optional_data_sets))
        return [f"{RESOURCES}/{name}/{f}" for name in names for f in self.registry[name].files]

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each data file, ``<data set>/<file>``."""
        return {
            f"{name}/{file}": facts.sha256
            for name, entry in self.registry.items()
            for file, facts in entry.files.items()
        }

    @cache  # noqa: B019
    def _is_at_hand(self, name: str) -> bool:
        """Return whether all files of a data set are in place or in the data mirror."""
        # Unlike Path's, this expanduser knows what to do without such a user.
        mirror = [Path(os.path.expanduser(self.mirror))] if self.mirror else []
        folders, files = [RESOURCES / name, *mirror], self.registry[name].files
        return all(any((folder / file).is_file() for folder in folders) for file in files)

    def list_shown_metrics(self, wildcards: Wildcards) -> list[str]:
        """Return the files of metrics of the experiments that a figure or table shows."""
        study = self.study(wildcards)
        names = self._experiments_of_output(study, wildcards.section, wildcards.name)
        return [self.metrics_file(study.key, name) for name in names]

    def _experiments_of_output(self, study: Study, section: str, name: str) -> list[str]:
        return list(dict.fromkeys(run.experiment for run in study.output_runs(section, name)))

    def caption(self, wildcards: Wildcards) -> str:
        """Return the caption of a figure or table for Snakemake's report."""
        text = self.statement(wildcards.section, wildcards).text
        return captions.rst(json.loads(text)["caption"])

    def list_claims_metrics(self, wildcards: Wildcards) -> list[str]:
        """Return the files of metrics that a study's claims read, there or made without a download.

        Claims on other experiments get the verdict "not run" instead of stopping the ledger. A
        study of one's own has its data downloaded.
        """
        study = self.study(wildcards)
        return [self.metrics_file(study.key, name) for name in self._experiments_of_claims(study)]

    def _experiments_of_claims(self, study: Study) -> list[str]:
        """Return the experiments that a study's claims read and that can be made."""
        names = dict.fromkeys(run.experiment for run in study.claim_runs())
        return [name for name in names if self._is_readable(study.key, name, not study.printed)]

    def _is_readable(self, key: str, name: str, downloads: bool = False) -> bool:
        """Return whether an experiment is up to date, or can be made, if allowed by downloads."""
        runs = self._experiment(key, name).runs.values()
        needed = (data for run in runs for data in run.downloads)
        if not any(map(self._remedy, runs)) and (downloads or all(map(self._is_at_hand, needed))):
            return True
        return self._statement("runs", key, name).has_result

    def _remedy(self, run: Run) -> str | None:
        """Return the remedy for what a run lacks. None if nothing lacks, or conda installs it."""
        return None if self.config["conda"] else run.unavailable

    def find_multiverse_table(self, wildcards: Wildcards) -> list[str]:
        """Return [the table of verdicts over a study's universes], or [] if it is not used.

        It is used if the configuration's key multiverse asks for it, or if it is up to date.
        """
        return self._multiverse_table(self.study(wildcards).key)

    def _multiverse_table(self, key: str) -> list[str]:
        """Return [a study's table of verdicts over universes], or [] if it is not used."""
        table = self.place / key / "multiverse.csv"
        if not self.config["multiverse"]:
            try:
                planned = provenance.read_provenance(table)["planned"]
            except (ConcordError, KeyError):
                return []
            if planned != self._statement("multiverse", key).digest:
                return []
        return [str(table)]

    def list_universe_metrics(self, wildcards: Wildcards) -> list[str]:
        """Return the files of metrics of a study's claims, and of the universes that can be made.

        Like those of claims, they are there or made without a download.
        """
        key = self.study(wildcards).key
        names = (f"{UNIVERSES}{name}" for name in self._multiverse(key).experiments)
        universes = [self.metrics_file(key, name) for name in names if self._is_readable(key, name)]
        return self.list_claims_metrics(wildcards) + universes

    def list_arena_metrics(self, wildcards: Wildcards) -> list[str]:
        """Return the files of metrics of a study's arena."""
        study = self.study(wildcards)
        return [self.metrics_file(study.key, name) for name in study.arenas]

    @property
    def expected(self) -> list[str]:
        """Return the existing files of committed verdicts; a user's study may have none."""
        return [str(file) for file in EXPECTED if file.exists()]

    # Targets.

    def outputs(self, keys: Iterable[str]) -> dict[str, list[Run]]:
        """Return the main file of each figure and table of studies, with the runs it needs."""
        return {
            f"{self.results}/{key}/{section}/{name}.{FILES[section][0]}": [
                run
                for experiment in self._experiments_of_output(self.studies[key], section, name)
                for run in self._experiment(key, experiment).runs.values()
            ]
            for key in keys
            for section in ("figures", "tables")
            for name in self.studies[key].outputs(section)
        }

    def _with_others(self, files: Iterable[str]) -> list[str]:
        """Return main files of results, each with all others that are made with it."""
        others: list[str] = []
        for file in map(Path, files):
            of_study = len(file.relative_to(self.place).parts) == 2
            suffixes = FILES[file.stem if of_study else file.parent.name]
            others += [f"{file.with_suffix('')}.{suffix}" for suffix in suffixes]
        return others

    def list_offline_outputs(self, wildcards: Wildcards) -> list[str]:
        """Return the files of all papers' figures and tables whose experiments need no download."""
        outputs = self.outputs(self.papers)
        offline = (file for file, runs in outputs.items() if not any(run.downloads for run in runs))
        return self._with_others(offline)

    def makeable_outputs(self, *keys: str) -> Inputs:
        """Return an input function: figures and tables of studies for which nothing is missing.

        It prints once which it leaves out, and why.
        """

        @cache
        def files() -> list[str]:
            """Return the files of outputs that can be made; print why others are left out."""
            complete, left_out = [], dict[str, list[str]]()
            for file, runs in self.outputs(keys).items():
                if remedy := next(filter(None, map(self._remedy, runs)), None):
                    name = f"{Path(file).parts[-3]}/{Path(file).stem}"
                    left_out.setdefault(remedy, []).append(name)
                else:
                    complete.append(file)
            for remedy, names in left_out.items():
                print(f"concord: left out {', '.join(names)}: {remedy}", file=sys.stderr)
            return self._with_others(complete)

        return lambda wildcards: files()

    def tables(self, key: str, *names: str) -> list[str]:
        """Return the tables of verdicts, or of scores, that a study has, of those named."""
        study = self.studies[key]
        has = {"claims": study.claims, "scores": study.arenas, "multiverse": study.printed}
        return [f"{self.results}/{key}/{name}.csv" for name in names if has[name]]

    def study_targets(self, key: str) -> Inputs:
        """Return an input function: what a study makes, with verdicts that no ledger joins."""
        names = ("scores",) if self.studies[key].printed else ("claims", "scores")
        makeable = self.makeable_outputs(key)
        tables = self._with_others(self.tables(key, *names))
        return lambda wildcards: [*makeable(wildcards), *tables]

    def list_existing_outputs(self, wildcards: Wildcards) -> list[str]:
        """Return the figures, tables, verdicts and scores that are there."""
        tables = (table for key in self.studies for table in self.tables(key, "claims", "scores"))
        files = (*self.outputs(self.studies), *tables)
        return self._with_others(file for file in files if Path(file).exists())

    def list_unknown(self, words: Iterable[str], workflow: Any) -> list[str]:
        """Return the words of a command line that are no rule and that none makes.

        workflow: Snakemake's, with the rules that it has by now.
        """
        paths = dict.fromkeys(map(os.path.normpath, filter(TARGET.fullmatch, words)))
        return [p for p in paths if not workflow.is_rule(p) and not _makers(p, workflow)]

    def refuse_targets(self, unknown: Iterable[str], workflow: Any) -> str:
        """Refuse what Snakemake is to make if it is among unknown words and no other rule makes it.

        What another rule makes, which was read later, is left to it: the path returned, an input
        of the rule of the unknown words, is none of a file.
        """
        for word in map(os.path.normpath, workflow.dag_settings.targets):
            if word in unknown and len(makers := _makers(word, workflow)) == 1:
                names = [r.name for r in workflow.rules if not r.has_wildcards()]
                self._refuse_target(word, {*names} - {*makers})
        return "what another rule makes"

    def _refuse_target(self, word: str, rules: Iterable[str]) -> NoReturn:
        """Raise a ConcordError with what is most like a word among rules, or among files."""
        key, _, rest = word.removeprefix(f"{self.results}/").partition("/")
        section, _, file = rest.partition("/")
        if "=" in word and word.partition("=")[0] in self.config:
            remedy = f"to set it, type: --config {word}"
        elif not word.startswith(f"{self.results}/"):
            remedy = nearest(word, rules)
        else:
            study = self._find_study(key)
            if section in FILES and file:
                study.output(section, file.partition(".")[0])
            elif file:
                study.runs_of(section)
            remedy = nearest(word, self.outputs([key]))
        raise ConcordError(f"there is no target {word!r}; {remedy}")

    # What a job takes.

    @property
    def options(self) -> str:
        """Return the options ``--scale`` and ``--seed`` of a job's command."""
        return f"--scale {self.config['scale']} --seed {self.config['seed']}"

    def resource(self, name: str) -> Callable[..., int]:
        """Return a function: the MB (mem_mb) or minutes (runtime) of an experiment's job.

        They grow with every attempt.
        """
        return lambda wildcards, attempt: attempt * self.experiment(wildcards).job[name]

    def environment(self, wildcards: Wildcards) -> str:
        """Return the file of the conda environment of an experiment's jobs."""
        return f"../../envs/{self.experiment(wildcards).job['environment']}.yaml"

    def priority(self, wildcards: Wildcards) -> int:
        """Return the cost of an experiment: what takes longest starts first."""
        return 1 + int(self.experiment(wildcards).cost / 1e6)

    def group(self, wildcards: Wildcards) -> str | None:
        """Return the group of short experiments, several of which make one job on a cluster."""
        return None if self.experiment(wildcards).part_count else "experiments"


def _name(kind: str, wildcards: Wildcards) -> str:
    """Return a name of the statement of a kind that a job has."""
    return "/".join([kind, *(f"{key}={wildcards[key]}" for key in sorted(wildcards.keys()))])
