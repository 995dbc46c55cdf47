"""What the rules of the workflow ask: which files there are, what each is made from, what is stale.

Freshness in ten lines:

1. Each result has a seal beside it (``integrity``): what it was made from, and its digest.
2. Planning asks of each result whether its seal says what would be said now. If not, it is stale.
3. A stale result gets one more input: a file newer than it, named after the reason. So Snakemake
   makes it again, whatever its own records and triggers say, and a dry run tells why.
4. A batch of runs is stale if one of its runs is. Its job leaves alone what stands.
5. Run files are no outputs of Snakemake, which would delete them where another run fails.
6. Planning compares sizes and times, and reads only files where these differ. Whoever reads a
   result reads all of it, and refuses it if it is stale or damaged.
7. A trace that was deleted is not missed, unless its metrics have to be made again.
8. Forcing a batch leaves alone what stands: to make a run again, delete its folder.
9. Jobs do what they were started for, and compare nothing.
10. One Snakemake at a time works in a folder (``io.hold``).
"""

import atexit
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, cached_property, wraps
from inspect import signature
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, ParamSpec, TypeVar

import concord
from concord.contracts import offers
from concord.errors import ConcordError, nearest
from concord.failures import user_message
from concord_arena import compete
from concord_studies import integrity
from concord_studies.configuration import batches
from concord_studies.configuration.config import results_folder
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse
from concord_studies.contracts import Extra
from concord_studies.datasets.registry import load_registry
from concord_studies.integrity import Made
from concord_studies.io import check_folder, check_regular, check_writable, hold, temporary
from concord_studies.make import Batch, Chains, listed
from concord_studies.pages import captions
from concord_studies.provenance import sha256
from concord_studies.runs.run import Run
from concord_studies.stages import draw, judge, measured, survey

P = ParamSpec("P")
T = TypeVar("T")
Wildcards = Any  # of Snakemake: an attribute for each
Inputs = Callable[[Wildcards], list[str]]

RESOURCES = Path("resources")
EXPECTED = Path("config/expected_verdicts.yaml")
PLANNED = "CONCORD_PLANNED"  # the process that has planned the jobs of this one

# What a job takes at most. Measured at paper scale (max_rss and s in results/benchmarks): sampling
# 250 MB and 110 s, measuring 475 MB and 140 s, figures and tables 225 MB and 7 s, LeNet 815 MB and
# 155 s; on a cluster's node two Snakemakes of 130 MB each come on top.
USUAL: dict[str, Any] = {"environment": "concord", "mem_mb": 1000, "runtime": 5, "options": ""}


def told(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that an error it raises ends the workflow with a sentence.

    The decorated function keeps its signature, which Snakemake reads some thirty times a job.
    """

    @wraps(function)
    def telling(*arguments: P.args, **options: P.kwargs) -> T:
        """Call the function, and exit with one sentence for an error that has one."""
        try:
            return function(*arguments, **options)
        except BaseException as error:
            if sentence := user_message(error):
                sys.exit(f"concord: {sentence}")
            if isinstance(error, OSError):
                sys.exit(f"concord: {error.filename}: {error.strerror}; mend or remove it")
            raise

    vars(telling)["__signature__"] = signature(function)
    return telling


class Workflow:
    """A project's configuration and studies, with the inputs and resources of Snakemake's rules.

    changes: what Snakemake's ``--config`` sets.
    local: Snakemake's mark of a file that lies where it runs, wherever results are stored.
    studies: the papers and studies, by key.
    results: the folder of the results, as rules write it.
    """

    @told
    def __init__(self, changes: Mapping[str, Any], local: Callable[[str], str] = str) -> None:
        """Load the configuration in ``config``, with changes, and all papers and studies."""
        # What a job reads has been checked where it was planned.
        own = str(os.getpid())
        self.planned = os.environ.setdefault(PLANNED, own) != own
        self.local = local
        _check_place(os.getcwd())
        self.config, self.studies = load_studies(Path("config"), changes, checked=self.planned)
        self.papers = [key for key, study in self.studies.items() if study.printed]
        self.place = results_folder(self.config)
        self.results = self.place.as_posix()
        self.mirror = os.environ.get("CONCORD_DATA_MIRROR") or self.config["data_mirror"]
        check_folder(self.place)
        if not self.planned:
            check_writable(Path(".snakemake"), *Path(".snakemake").glob("*"))

    # Before and after the jobs.

    @told
    def begin(self) -> None:
        """Hold the folders in which jobs will work."""
        check_writable(self.place)
        hold(Path(".snakemake"))
        hold(Path(self.config["results"]))
        for folder in ("logs", "benchmarks"):
            found = (self.place / folder).rglob("*")
            check_regular(*(f for f in found if not f.is_dir() or f.suffix in (".log", ".tsv")))

    def failed(self) -> None:
        """Print that the disk is full, if it is: jobs cannot, since their logs are on it."""
        try:
            with TemporaryFile(dir=self.place) as probe:
                probe.write(bytes(2**20))
        except OSError as error:
            again = "mend that, and type the same command again"
            print(f"concord: {self.place}: {error.strerror}; {again}", file=sys.stderr)

    @property
    def prefix(self) -> str:
        """Return the shell commands that each job begins with: they find Python and the package.

        In an environment that was made for a job nothing else is found; elsewhere jobs use the
        Python that runs Snakemake, whatever the shell's path says.
        """
        source = str(Path(concord.__file__).parents[1])
        given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        folders = [os.path.abspath(folder) for folder in given if folder]

        def path(chosen: Iterable[str]) -> str:
            """Return the package's source and some folders as a quoted Python path."""
            unique = dict.fromkeys([source, *chosen])
            return shlex.quote(os.pathsep.join(unique))

        text = f"export PYTHONSAFEPATH=1 PYTHONPATH={path(())}; "
        if self.mirror:
            text += f"export CONCORD_DATA_MIRROR={shlex.quote(self.mirror)}; "
        here = shlex.quote(os.environ.get("CONDA_PREFIX", ""))
        python = shlex.quote(str(Path(sys.executable).parent))
        text += f'if [ "${{CONDA_PREFIX-}}" = {here} ]; then export PYTHONPATH={path(folders)} '
        return (text + f"PATH={python}:$PATH; fi; ").replace("{", "{{").replace("}", "}}")

    # Targets.

    @told
    def study(self, wildcards: Wildcards) -> Study:
        """Return the study, or paper, that a target belongs to."""
        key = wildcards.get("paper") or wildcards.batch.partition("/")[0]
        if key not in self.studies:
            raise ConcordError(f"config/papers: there is no {key!r}; {nearest(key, self.studies)}")
        return self.studies[key]

    @told
    def unknown(self, wildcards: Wildcards) -> list[str]:
        """Refuse a word of the command line that is neither a study nor a rule."""
        known = [*self.studies, "reproduce", "everything"]
        word = wildcards.target
        raise ConcordError(f"there is no target {word!r}; {nearest(word, known)}")

    @cached_property
    def targets(self) -> dict[str, list[Any]]:
        """Return the files that each target but ``reproduce`` asks for, per study and of all.

        ``made`` is what has been made, whatever was asked for: the report shows it.
        """
        claims = {key: self.table(key, "claims") for key in self.studies}
        surveys = {f"multiverse_{key}": [self.table(key, "multiverse")] for key in self.papers}
        compared = [f"{self.results}/changed_verdicts.txt"] if self.expected else []
        found: dict[str, list[Any]] = {
            "everything": [self.makeable(self.papers)],
            "ledger": [f"{self.results}/claims.csv", *compared],
            "made": [
                self.standing(self.outputs(self.studies)),
                *map(claims.__getitem__, self.papers),
            ],
            "multiverse": [table for tables in surveys.values() for table in tables],
            **surveys,
        }
        for key, study in self.studies.items():
            judged = [] if study.printed else [claims[key]]  # those of papers the ledger joins
            scored = [self.table(key, "scores")] if study.arenas else []
            found[key] = [self.makeable([key]), *judged, *scored]
        return found

    def outputs(self, keys: Iterable[str]) -> dict[str, list[Run]]:
        """Return the runs that each figure and table of studies shows, by one of its files."""
        return {
            f"{self.results}/{paper.key}/{section}/{name}.{suffix}": paper.output_runs(
                section, name
            )
            for paper in (self.studies[key] for key in keys)
            for section, suffix in (("figures", "pdf"), ("tables", "csv"))
            for name in paper.outputs(section)
        }

    @told
    def without_downloads(self, wildcards: Wildcards) -> list[str]:
        """Return the papers' figures and tables whose runs need no download."""
        found = self.outputs(self.papers)
        return [file for file, runs in found.items() if not any(run.downloads for run in runs)]

    def makeable(self, keys: Sequence[str]) -> Inputs:
        """Return an input function that lists the figures and tables for which nothing is missing.

        The function prints once which outputs it leaves out.
        """

        @cache
        def files() -> list[str]:
            """Return the files that can be made here, and print which are left out and why."""
            found, left_out = [], dict[str, list[str]]()
            for file, runs in self.outputs(keys).items():
                missing = next(filter(None, map(self._missing, runs)), None)
                if missing is None:
                    found.append(file)
                else:
                    name = f"{Path(file).parts[-3]}/{Path(file).stem}"
                    left_out.setdefault(missing, []).append(name)
            for missing, names in left_out.items():
                print(f"concord: left out {', '.join(names)}: {missing}", file=sys.stderr)
            return found

        return told(lambda wildcards: files())

    def _missing(self, run: Run) -> str | None:
        """Return what to install for a run; None if nothing lacks, or conda installs it."""
        return None if self.config["conda"] else run.unavailable

    def standing(self, files: Iterable[str]) -> Inputs:
        """Return an input function that lists the results of which a file, or its seal, exists."""
        return lambda wildcards: [
            file
            for file in files
            if Path(file).exists() or Path(file).with_suffix(".json").exists()
        ]

    @told
    def shown(self, wildcards: Wildcards) -> list[str]:
        """Return the existing figures, tables, verdicts and scores, which the site shows."""
        files = [*self.outputs(self.studies), *(self.table(key, "claims") for key in self.studies)]
        files += [self.table(key, "scores") for key, study in self.studies.items() if study.arenas]
        surveys = self.standing(self.table(key, "multiverse") for key in self.papers)
        # Whole ones may be stale, and take hours.
        whole = [table for table in surveys(wildcards) if not integrity.intact(Path(table))]
        return self.standing(files)(wildcards) + whole

    def table(self, key: str, name: str) -> str:
        """Return the file of a study's ``claims``, ``scores`` or ``multiverse``."""
        return f"{self.results}/{key}/{name}.csv"

    # Batches.

    @cache  # there is one workflow in a process
    def _measured(self, key: str) -> dict[str, Batch]:
        """Return the batches of a study's own runs, by the batch's name."""
        found = batches.batches(self.studies[key], self.config["chains_per_job"])
        return {batch.name: batch for batch in found}

    @cache  # noqa: B019  # there is one workflow in a process
    def _batch_of(self, key: str) -> dict[str, Batch]:
        """Return the batch of each run of a study, by the run's folder."""
        return {run.folder: batch for batch in self._measured(key).values() for run in batch.runs}

    @cache  # noqa: B019  # there is one workflow in a process
    def universes(self, key: str) -> Multiverse:
        """Return the universes of a study, and the batches that they compute."""
        return Multiverse(self.studies[key])

    def _long(self, run: Run) -> bool:
        """Return whether a run is sampled by a job of its own, as configured."""
        return batches.long(run, self.config["chains_per_job"])

    @told
    def batch(self, wildcards: Wildcards) -> Batch:
        """Return the batch of runs that a job makes."""
        return self._batch(self.study(wildcards).key, wildcards.batch.partition("/")[2])

    @cache  # noqa: B019  # there is one workflow in a process
    def _batch(self, key: str, name: str) -> Batch:
        """Return a study's batch by its name; a run's name stands for the run alone."""
        if name.startswith("multiverse/"):
            _, universe, batch = name.split("/", 2)
            return self.universes(key).batch(universe, batch)
        own = self._measured(key)
        if name in own:
            return own[name]
        return Batch(name, key, (self._run(key, *name.split("/", 1)),))

    def _run(self, key: str, experiment: str, name: str = "") -> Run:
        """Return a study's run by experiment and name."""
        paper = self.studies[key]
        return paper.runs.get((experiment, name)) or paper.run(experiment, name)

    @told
    def batch_of_run(self, wildcards: Wildcards) -> str:
        """Return the file of the batch that makes a run."""
        run = self._run(self.study(wildcards).key, wildcards.experiment, wildcards.run)
        return str(self._batch_of(run.paper)[run.folder].file(self.place))

    def by_hand(self, wildcards: Wildcards) -> str:
        """Return the shell command that makes a run's deleted draws; ``false`` for other files."""
        if wildcards.file != "trace.nc":
            return "false"
        folder = f"{self.results}/{wildcards.paper}/{wildcards.experiment}/{wildcards.run}"
        stated, trace = (shlex.quote(f"{folder}/{name}") for name in ("run.yaml", "trace.nc"))
        return f"python -m concord_cli sample {stated} -o {trace}"

    def metrics(self, runs: Iterable[Run]) -> list[str]:
        """Return the files of the batches that make runs."""
        files = (self._batch_of(run.paper)[run.folder].file(self.place) for run in runs)
        return list(dict.fromkeys(map(str, files)))

    @told
    def traces(self, wildcards: Wildcards) -> list[str]:
        """Return the seals of the draws of a batch's long runs, which other jobs sample."""
        batch = self.batch(wildcards)
        alone = [] if batch.variant else [run for run in batch.runs if self._long(run)]
        return [f"{self.results}/{run.folder}.{sampled()}.json" for run in alone]

    @told
    def pieces(self, wildcards: Wildcards) -> list[str]:
        """Return the seals of a run's blocks of chains that jobs sample apart, if there are any."""
        (run,), most = self.batch(wildcards).runs, self.config["chains_per_job"]
        starts = [] if most is None or run.chains <= most else range(0, run.chains, most)
        ends = [(first, min(first + most, run.chains)) for first in starts]
        return [f"{self.results}/{run.folder}.{sampled(chains)}.json" for chains in ends]

    @told
    def for_draws(self, wildcards: Wildcards) -> list[str]:
        """Return the input files for sampling a run: pieces of its chains, and data files."""
        return self.pieces(wildcards) + self.data(wildcards)

    @told
    def for_metrics(self, wildcards: Wildcards) -> list[str]:
        """Return the input files for a batch's metrics: draws of long runs, and data files."""
        return self.traces(wildcards) + self.data(wildcards)

    @told
    def data(self, wildcards: Wildcards) -> list[str]:
        """Return the data files that a batch reads: those needed, and optional ones at hand."""
        found: dict[str, None] = {}
        for run in self.batch(wildcards).runs:
            optional = filter(self._at_hand, run.optional_data_sets)
            for name in (*run.data_sets, *optional):
                found |= dict.fromkeys(self.data_files[name])
        for file in map(Path, found):  # Snakemake would wait for ever for what a pipe holds
            if file.exists() and not file.is_file():
                raise ConcordError(f"{file}: it is not a file; remove it")
        return list(map(self.local, found))

    @cached_property
    def data_files(self) -> dict[str, list[str]]:
        """Return the paths of the files of each data set, by data set."""
        return {
            name: [f"{RESOURCES}/{name}/{file}" for file in entry.files]
            for name, entry in told(load_registry)().items()
        }

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each data file, ``<data set>/<file>``."""
        return {
            f"{name}/{file}": facts.sha256
            for name, entry in told(load_registry)().items()
            for file, facts in entry.files.items()
        }

    def _at_hand(self, name: str) -> bool:
        """Return whether all files of a data set are in place or in the data mirror."""
        # Unlike Path's, this expanduser knows what to do without such a user.
        mirror = [os.path.expanduser(self.mirror)] if self.mirror else []
        folders = [RESOURCES / name, *map(Path, mirror)]
        files = [Path(file).name for file in self.data_files[name]]
        return all(any((folder / file).is_file() for folder in folders) for file in files)

    # What a job takes.

    @told
    def command(self, wildcards: Wildcards) -> str:
        """Return the arguments with which the job of a batch calls ``concord make``."""
        batch, study = self.batch(wildcards), self.study(wildcards)
        words = [str(study.path), wildcards.batch.partition("/")[2]]
        words += [] if batch.variant else [run.name for run in batch.runs]
        return f"{shlex.join(words)} {self.options} {self.sampling(wildcards)['options']}".rstrip()

    def settings(self, wildcards: Wildcards) -> str:
        """Return the arguments that name a job's study, scale, seed and results."""
        return f"{shlex.quote(str(self.study(wildcards).path))} {self.options}"

    @property
    def options(self) -> str:
        """Return the options ``--scale``, ``--seed`` and ``--results`` of a job's command."""
        results = shlex.quote(self.results)
        return f"--scale {self.config['scale']} --seed {self.config['seed']} --results {results}"

    @property
    def pairs(self) -> str:
        """Return the option ``--pairs`` if universes of two alternatives are configured, or ""."""
        return " --pairs" if self.config["pairs"] else ""

    def sampling(self, wildcards: Wildcards) -> dict[str, Any]:
        """Return memory, time and environment for sampling a batch, as its problem's kind asks."""
        kind = self.batch(wildcards).runs[0].problem.module
        return {**USUAL, **(kind.JOB if offers(kind, Extra) else {})}

    def measuring(self, wildcards: Wildcards) -> dict[str, Any]:
        """Return memory, time and environment for the job that measures a batch."""
        batch = self.batch(wildcards)
        taken = self.sampling(wildcards) if batch.variant else USUAL
        minutes = min(10 * len(batch.runs), 240) if batch.variant else 10
        if batch.runs[0].arena:
            minutes = 60 if self.config["scale"] == "full" else 10
        return {**taken, "runtime": minutes}

    @staticmethod
    def taking(
        of: Callable[[Wildcards], dict[str, Any]] | None = None, **amounts: int
    ) -> dict[str, Callable[..., int]]:
        """Return ``mem_mb`` and ``runtime`` as functions that grow with every attempt of a job."""

        def growing(key: str) -> Callable[..., int]:
            """Return the function by which a resource grows with every attempt of a job."""
            return told(
                lambda wildcards, attempt: attempt * (of(wildcards) if of else amounts)[key]
            )

        return {key: growing(key) for key in ("mem_mb", "runtime")}

    def environment(self, of: Callable[[Wildcards], dict[str, Any]]) -> Inputs:
        """Return an input function that names the file of a job's conda environment."""
        return told(lambda wildcards: f"../../envs/{of(wildcards)['environment']}.yaml")  # type: ignore[arg-type, return-value]

    @told
    def group(self, wildcards: Wildcards) -> str | None:
        """Return the group of a job: short runs share a cluster's job, long ones share others.

        What measures many long runs is in none: in theirs it would be one job with all of them.
        """
        batch = self.batch(wildcards)
        if batch.runs[0].arena:
            return "entries"
        if len(batch.runs) > 1 and self.traces(wildcards):
            return None
        usual = self.sampling(wildcards)["runtime"] == USUAL["runtime"]
        return "runs" if usual else "long_runs"

    # What figures, tables and verdicts are made from.

    @told
    def drawn(self, wildcards: Wildcards) -> list[str]:
        """Return the batch files of the runs that a figure or table shows."""
        runs = self.study(wildcards).output_runs(wildcards.section, wildcards.name)
        return self.metrics(runs)

    @told
    def caption(self, wildcards: Wildcards) -> str:
        """Return the caption of a figure or table for Snakemake's report."""
        return captions.rst(captions.of(self.study(wildcards), wildcards.section, wildcards.name))

    @told
    def judged(self, wildcards: Wildcards) -> list[str]:
        """Return the batch files that a study's claims read, made or makeable without a download.

        Claims about other runs get the verdict "not run" instead of stopping the ledger. A study of
        one's own has its data downloaded.
        """
        study = self.study(wildcards)

        def wanted(run: Run) -> bool:
            """Return whether a run's metrics are to be made, or read, for the verdicts."""
            own = not study.printed and not self._missing(run)
            return own or measured.at_hand(run, self.place) or self._here(run)

        return self.metrics(filter(wanted, study.claim_runs()))

    def _here(self, run: Run) -> bool:
        """Return whether a run can be made without a download and with the packages installed."""
        return not self._missing(run) and all(map(self._at_hand, run.downloads))

    def surveyed_first(self, wildcards: Wildcards) -> list[str]:
        """Return the table over the multiverse if verdicts are configured to wait for it."""
        return [self.table(wildcards.paper, "multiverse")] if self.config["multiverse"] else []

    @told
    def scored(self, wildcards: Wildcards) -> list[str]:
        """Return the batch files of the cells of a study's arena."""
        runs = self.study(wildcards).runs.values()
        return self.metrics(run for run in runs if run.arena is not None)

    @told
    def varied(self, wildcards: Wildcards) -> list[str]:
        """Return the batch files of a study's universes that exist, or need no download."""
        key = wildcards.paper
        return [
            str(file)
            for (_, name), batch in self.universes(key).batches.items()
            if f"{key}/{name}" not in self.config["not_varied"]
            and ((file := batch.file(self.place)).exists() or all(map(self._here, batch.runs)))
        ]

    # What is stale.

    @cached_property
    def _reasons(self) -> Callable[[str], Path]:
        """Return a function from a reason to a temporary file that is called like the reason."""
        stack = ExitStack()
        atexit.register(stack.close)
        return cache(lambda why: stack.enter_context(temporary(Path(".snakemake", why))))

    def _because(self, why: str, file: Path) -> list[str]:
        """Return a temporary file named after a reason, newer than the file to be made again."""
        newer = self._reasons(why)
        time = newer.stat().st_mtime
        if os.path.lexists(file):
            # Not further ahead: what a quick job makes would be older, which Snakemake refuses.
            time = max(time, file.lstat().st_mtime + 0.01)
        os.utime(newer, (time, time))
        return [self.local(str(newer))]

    def _unless(self, file: Path, why: Callable[[], str]) -> list[str]:
        """Return no input if a result stands, else a file that makes Snakemake remake the result.

        Snakemake itself makes a file that is missing, but not behind one that stands. Where not
        even its folder is there, nothing stands that was made from it unnoticed.
        """
        if self.planned or not (os.path.lexists(file) or file.parent.exists()):
            return []
        reason = why() if file.is_file() else "missing"
        return self._because(reason, file) if reason else []

    @told
    def stale_metrics(self, wildcards: Wildcards) -> list[str]:
        """Return an input that makes a batch's metrics stale if those of any run do not stand."""
        batch = self.batch(wildcards)
        places = [batch.place(run, self.place) for run in batch.runs]

        def why() -> str:
            """Return the reason why the batch's metrics must be made again; "" if they stand."""
            reasons = (place.lacks_metrics() for place in places)
            return next(filter(None, reasons), "") or self._listed(file, listed(places))

        file = batch.file(self.place)
        return self._unless(file, why)

    @told
    def stale_draws(self, wildcards: Wildcards) -> list[str]:
        """Return an input that makes the draws of a run, or of some chains, stale if they are."""
        if self.planned:
            return []
        batch = self.batch(wildcards)
        (run,), chains = batch.runs, None
        if wildcards.get("first"):
            chains = int(wildcards.first), int(wildcards.end)
        file = batch.file(self.place, sampled(chains))
        # Where it is missing Snakemake makes it for the metrics, if these do not stand.
        if not os.path.lexists(file):
            return []
        place = batch.place(run, self.place)
        why = place.lacks_trace() if chains is None else place.lacks_piece(chains)
        return self._because(why, file) if why else []

    @staticmethod
    def _listed(file: Path, text: str) -> str:
        """Return "damaged" where a file's text is not the expected one, else ""."""
        return "" if file.read_text(encoding="utf-8", errors="replace") == text else "damaged"

    def stale(self, rule: str) -> Inputs:
        """Return an input function that makes a rule's sealed result stale if sources differ."""
        file, wanted = self._sealed[rule]

        @told
        def inputs(wildcards: Wildcards) -> list[str]:
            """Return a reason's file if the sealed result must be made again, else nothing."""
            path = Path(file.format(**wildcards))

            def why() -> str:
                """Return the reason why the sealed result is out of date; "" if it stands."""
                made = integrity.intact(path)
                wants = wanted(wildcards)
                changed = [key for key in wants if made.get(key) != wants[key]]
                return f"{changed[0]}_changed" if made and changed else "" if made else "damaged"

            return self._unless(path, why)

        return inputs

    @cached_property
    def _sealed(self) -> dict[str, tuple[str, Callable[[Wildcards], Made]]]:
        """Return, by rule, the pattern of its first file and a function of its current sources."""
        tables = [Path(self.table(key, "claims")) for key in self.papers]
        output = f"{self.results}/{{paper}}/{{section}}/{{name}}"

        def drawn(w: Wildcards) -> Made:
            """Return the digests of everything from which a figure or table is made."""
            return draw.made(self.study(w), w.section, w.name, self.place)

        def judged(w: Wildcards) -> Made:
            """Return the digests of everything from which a study's verdicts are made."""
            return judge.made(self.study(w), self.place)

        def surveyed(w: Wildcards) -> Made:
            """Return the digests of everything from which verdicts over universes are made."""
            return survey.made(self.study(w), self.place, self.universes(w.paper))

        def scored(w: Wildcards) -> Made:
            """Return the digests of everything from which an arena's scores are made."""
            return compete.board_made(self.study(w), self.place)

        return {
            "figure": (f"{output}.pdf", drawn),
            "table": (f"{output}.csv", drawn),
            "judge": (self.table("{paper}", "claims"), judged),
            "survey": (self.table("{paper}", "multiverse"), surveyed),
            "board": (self.table("{paper}", "scores"), scored),
            "join": (f"{self.results}/claims.csv", lambda w: judge.joined(tables, EXPECTED)),
        }

    @property
    def expected(self) -> list[str]:
        """Return the files of committed verdicts that exist; a study of one's own may have none."""
        files = [str(EXPECTED), str(EXPECTED.with_name("expected_multiverse.yaml"))]
        return [self.local(file) for file in files if os.path.exists(file)]

    @told
    def expected_digests(self, wildcards: Wildcards) -> list[str]:
        """Return the digests of the committed verdicts."""
        return [sha256(Path(file)) for file in self.expected]


def sampled(chains: Chains | None = None) -> str:
    """Return the ending of the file that stands for the draws of a run, or of some chains."""
    return "sampled" if chains is None else f"sampled_{chains[0]}_{chains[1]}"


def _check_place(folder: str) -> None:
    """Refuse a working folder, or a source folder, whose name Snakemake or Python cannot take."""
    if set("{}") & set(folder):
        raise ConcordError(
            f"{folder}: Snakemake takes braces in a folder's name for its own; rename it"
        )
    source = str(Path(concord.__file__).parents[1])
    if os.pathsep in source:
        raise ConcordError(
            f"{source}: Python's path cannot hold a folder with {os.pathsep!r}; rename it"
        )
