# Loads and checks the configuration, names files, says what is made from what; no rule of its own.
import atexit
import gc
import os
import re
import shlex
import sys
from contextlib import ExitStack
from functools import cache, wraps
from itertools import product
from pathlib import Path
from tempfile import TemporaryFile

from snakemake.settings.types import DeploymentMethod

# A checkout runs the code beside these files; what else they come from (a wheel, a repository named
# in a `module`), the package that is installed.
HERE = workflow.current_basedir.get_path_or_uri(secret_free=True)
SOURCE = Path(os.path.normpath(f"{HERE}/../../src"))
if not SOURCE.is_dir():
    SOURCE = None
elif str(SOURCE) not in sys.path:
    sys.path.insert(0, str(SOURCE))

os.environ.update(MPLBACKEND="agg")  # as in concord.__main__

# What planning makes stays: to look for what does not, 700 objects at a time, took an eighth of it.
gc.set_threshold(100_000)

try:
    import concord
except ModuleNotFoundError:
    sys.exit("concord: the package is not installed beside Snakemake; pip install concord")
from concord.errors import ConcordError, in_the_way, nearest

try:
    import concord.stages.compete
    import concord.stages.judge
    import concord.stages.measure
    import concord.stages.multiverse
    import concord.stages.sample
    import concord.stages.small
    import concord.stages.vary
except Exception as error:
    if sentence := in_the_way(error):
        sys.exit(f"concord: {sentence}")
    raise
from concord import integrity
from concord.arena import cells
from concord.contracts import Extra
from concord.io import check_folder, check_regular, check_writable, dump_yaml, hold, temporary
from concord.plugins import plugin, plugin_folders
from concord.provenance import excuse, sha256
from concord.pages import captions
from concord.runs import data_sets, downloads, optional_data_sets, unavailable
from concord.studies.config import load_papers, results_folder
from concord.studies.small import many_runs, small_runs
from concord.studies.universes import Multiverse
import snakemake_logger_plugin_concord

stages = concord.stages


def told(function):
    """Where a function refuses, stop with its sentence, without where in these files it was."""

    @wraps(function)
    def telling(*arguments, **options):
        try:
            return function(*arguments, **options)
        except BaseException as error:
            if sentence := excuse(error):
                sys.exit(f"concord: {sentence}")
            if isinstance(error, OSError):
                sys.exit(f"concord: {error.filename}: {error.strerror}; mend or remove it")
            raise

    return telling


@told
def check_place(folder):
    if set("{}") & set(folder):
        raise ConcordError(
            f"{folder}: Snakemake takes braces in a folder's name for its own; rename it"
        )
    if SOURCE and os.pathsep in folder:
        raise ConcordError(
            f"{folder}: Python's path cannot hold a folder with {os.pathsep!r}; rename it"
        )


check_place(str(workflow.basedir))

# `config` holds what --config sets. The file is not a configfile of Snakemake's, which would read
# it first: it crashes on some files, and does not say where another is wrong.
# What a cluster's job reads has been checked where it was submitted.
CONFIG, STUDIES = told(load_papers)(Path("config"), config, checked=not workflow.is_main_process)
PAPERS = [key for key, study in STUDIES.items() if study.printed]

RESULTS = results_folder(CONFIG).as_posix()


MODIFIER = workflow.modifier


def placed(path):
    """Where a path of the rules is: below the prefix that a `module` may give them."""
    return Path(str(MODIFIER.modify_path(path)))


PLACE = placed(RESULTS)
LOGS, BENCHMARKS = f"{RESULTS}/logs", f"{RESULTS}/benchmarks"
RUN = "{paper}/{experiment}/{run}"
SMALL = "{paper}/{experiment}/small_{number}"
MANY = "{paper}/{experiment}/many_{number}"
ENTRY = "{paper}/{section}/{name}"
SETTINGS = f"--scale {CONFIG['scale']} --seed {CONFIG['seed']}"
PAIRS = " --pairs" if CONFIG["pairs"] else ""
ENVIRONMENT = "../../envs/concord.yaml"

# Every command needs the package's source; a conda environment and a node of a cluster do not
# inherit it. Without conda, jobs use the Python that runs Snakemake, whatever the shell's path says.
CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
# The user's own folders follow, where planning finds plug-ins; into a conda environment, for which
# those are not made, go folders of plug-ins alone. What lies in the working folder is no module.
FOLDERS = map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
FOLDERS = [folder for folder in FOLDERS if not CONDA or folder in plugin_folders()]
EXPORTS = {
    "PYTHONPATH": os.pathsep.join([str(SOURCE)] * bool(SOURCE) + FOLDERS),
    "PYTHONSAFEPATH": "1",
}
MIRROR = os.environ.get("CONCORD_DATA_MIRROR") or CONFIG["data_mirror"]
if MIRROR:
    EXPORTS["CONCORD_DATA_MIRROR"] = MIRROR
PREFIX = "".join(f"export {name}={shlex.quote(text)}; " for name, text in EXPORTS.items())
if not CONDA:
    PREFIX += f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; "
shell.prefix(PREFIX.replace("{", "{{").replace("}", "}}"))  # it fills in what stands in braces


wildcard_constraints:
    paper="[A-Za-z0-9]+",
    experiment="[A-Za-z0-9_]+",
    run=r"(?!(?:[^/]*\+)?entry=)[^/]+",  # those are cells of the arena, which are scored
    entry="[A-Za-z0-9._-]+",
    number="[0-9]+",
    name="[^/.]+",
    universe="[A-Za-z0-9._+-]+",
    batch="[A-Za-z0-9_-]+",


told(check_folder)(PLACE)
if workflow.is_main_process:
    told(check_writable)(Path(".snakemake"), *Path(".snakemake").glob("*"))


# In place of Snakemake's locks (`nolock` in the profiles), which stay when it is killed and know
# nothing of another checkout with the same results. Neither a dry run nor a cluster's job comes here.
onstart:
    told(check_writable)(PLACE)
    told(hold)(Path(".snakemake"))
    told(hold)(placed(CONFIG["results"]))
    # The logger says when the last run of an experiment has been made.
    dag = workflow.dag
    for job in dag.needrun_jobs():
        told(check_regular)(*job.log, *filter(None, [job.benchmark]))
        if job.rule.name in ("measure", "small") or job.rule.name.startswith("compete_"):
            folder = Path(job.output[0]).relative_to(PLACE)
            snakemake_logger_plugin_concord.RUNS[job.output[0]] = "/".join(folder.parts[:2])
        # It leaves alone what stands, which must not stand where somebody forces it.
        forced = job.rule in dag.forcerules or not dag.forcefiles.isdisjoint(job.output)
        if job.rule.name == "small" and forced:
            alone = {Path(file).parent for file in asked_alone(job.wildcards)}
            for run, name in product(part_of(job.wildcards), stages.small.FILES):
                if PLACE / run.folder not in alone:
                    told(Path.unlink)(PLACE / run.folder / name, missing_ok=True)


# Jobs on a full disk cannot say so: their logs are on it.
onerror:
    try:
        with TemporaryFile(dir=PLACE) as probe:
            probe.write(bytes(2**20))
    except OSError as error:
        sentence = (
            f"concord: {PLACE}: {error.strerror}; mend that, and type the same command again"
        )
        print(sentence, file=sys.stderr)


@told
def paper_of(wildcards):
    """The paper or study a target belongs to."""
    if wildcards.paper not in STUDIES:
        raise ConcordError(
            f"config/papers: there is no {wildcards.paper!r}; {nearest(wildcards.paper, STUDIES)}"
        )
    return STUDIES[wildcards.paper]


@told
def run_of(wildcards):
    """The resolved run a target belongs to."""
    paper, key = paper_of(wildcards), (wildcards.experiment, wildcards.run)
    return paper.runs[key] if key in paper.runs else paper.run(*key)


@told
def no_such_target(wildcards):
    """Refuse a word that is neither a paper nor another rule."""
    known = [*STUDIES, "reproduce", "everything"]
    raise ConcordError(
        f"there is no target {wildcards.target!r}; {nearest(wildcards.target, known)}"
    )


# What results are made from (concord.integrity), by their rules.
def sampled_from(wildcards):
    chains = [int(wildcards[key]) for key in ("first", "end") if key in wildcards.keys()]
    return stages.sample.made(run_of(wildcards).mapping, Path("resources"), chains)


def measured_from(wildcards):
    run = run_of(wildcards)
    trace = PLACE / run.folder / "trace.nc"
    return stages.measure.made(run.mapping, Path("resources"), trace)


def drawn_from(wildcards):
    entry = wildcards.section, wildcards.name
    return stages.draw.made(paper_of(wildcards), *entry, PLACE)


def judged_from(wildcards):
    return stages.judge.made(paper_of(wildcards), PLACE)


def trace_made(path):
    """What a trace says it was made from; `measure` reads it whole, to check that it is."""
    return integrity.sealed(path)[0]


@cache
def newer():
    """A file that goes when this Snakemake ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(temporary(Path(".snakemake/outdated")))


def outdated(path, wanted, made=integrity.intact, missing=True):
    """An input function: a newer file, if a result was not made from what is wanted now.

    So its job runs, whatever Snakemake's records say, and whoever else writes into the results; of
    itself Snakemake would not make a missing file again behind one that stands (``missing=False``:
    nor does this).
    """

    @told
    def inputs(wildcards):
        file = placed(path.format(**wildcards))
        # A cluster's job does what it was submitted for.
        if not workflow.is_main_process:
            return []
        there = os.path.lexists(file)
        # Where not even its folder is there, nothing stands that was made from it unnoticed.
        if not there and not (missing and file.parent.exists()):
            return []
        if file.is_file() and wanted(wildcards).items() <= made(file).items():
            return []
        time = newer().stat().st_mtime
        # Not further ahead: what a quick job makes would be older, which Snakemake refuses.
        time = max(time, file.lstat().st_mtime + 0.01) if there else time
        os.utime(newer(), (time, time))
        return [local(str(newer()))]

    return inputs


def run_text(wildcards):
    """What run.yaml holds: `concord resolve` writes the same text."""
    return dump_yaml(run_of(wildcards).mapping)


@told
def data_files(run):
    """The data files that a run's problem reads: what it needs, and what else is at hand."""
    names = [*data_sets(run), *filter(fetched_or_mirrored, optional_data_sets(run))]
    files = [local(file) for name in names for file in DATA_FILES[name]]
    for file in map(Path, files):  # Snakemake would wait for ever for what a pipe holds
        if file.exists() and not file.is_file():
            sys.exit(f"concord: {file}: it is not a file; remove it")
    return files


def fetched_or_mirrored(dataset):
    """Whether all files of a data set are in place or in the data mirror."""
    # Unlike Path's, this one knows what to do without such a user.
    mirror = [Path(os.path.expanduser(MIRROR))] if MIRROR else []
    folders = [Path("resources", dataset), *mirror]
    return all(
        any(Path(folder, Path(file).name).is_file() for folder in folders)
        for file in DATA_FILES[dataset]
    )


# What a job takes at most. Measured at paper scale (max_rss and s in results/benchmarks): sampling
# 250 MB and 110 s, measuring 475 MB and 140 s, figures and tables 225 MB and 7 s, LeNet 815 MB and
# 155 s; on a cluster's node two Snakemakes of 130 MB each come on top.
USUAL_JOB = {"environment": "concord", "mem_mb": 1000, "runtime": 5, "options": ""}


@cache
def job_of(problem):
    """What a sampling job takes, which its kind of problem may say in JOB."""
    kind = plugin("problems", problem, "problem")
    return {**USUAL_JOB, **(kind.JOB if isinstance(kind, Extra) else {})}


def sampling(key):
    """A function of wildcards: a key of what a sampling job takes."""
    return lambda wildcards: job_of(run_of(wildcards).mapping["problem"]["kind"])[key]


def growing(amount):
    """A resources function: an amount, or that of a run, and as much again with every attempt."""

    def of_attempt(wildcards, attempt):
        return attempt * (amount(wildcards) if callable(amount) else amount)

    return of_attempt


def sampling_environment(wildcards):
    """The conda environment of a sampling job."""
    return f"../../envs/{sampling('environment')(wildcards)}.yaml"


def with_other_runs(wildcards):
    """The group of a run: short runs share a cluster's job, those of a problem with a JOB do not."""
    usual = sampling("runtime")(wildcards) == USUAL_JOB["runtime"]
    return "runs" if usual else "long_runs"


def pieces(wildcards, ending="nc"):
    """The traces of a run's chains if config.yaml has one job sample only so many."""
    chains, most = run_of(wildcards).mapping["chains"], CONFIG["chains_per_job"]
    starts = [] if most is None or chains <= most else range(0, chains, most)
    folder = f"{RESULTS}/{run_of(wildcards).folder}"
    return [f"{folder}/chains_{first}_{min(first + most, chains)}.{ending}" for first in starts]


@cache
def small_runs_of(key):
    """The small runs of a study, by experiment, divided into jobs."""
    return small_runs(STUDIES[key], CONFIG["chains_per_job"])


@cache
def many_runs_of(key):
    """The runs of a study that are many and not small, by experiment, divided."""
    return many_runs(STUDIES[key], CONFIG["chains_per_job"])


@cache
def tables_of(key):
    """The file that stands for a run among inputs where it is one of several, by its folder."""
    return {
        run.folder: f"{RESULTS}/{key}/{experiment}/{name}_{number}.csv"
        for name, found in (("small", small_runs_of(key)), ("many", many_runs_of(key)))
        for experiment, parts in found.items()
        for number, runs in enumerate(parts)
        for run in runs
    }


@told
def part_of(wildcards, found=small_runs_of):
    """The runs of a job of several, of the small ones or of those that are many."""
    parts = found(paper_of(wildcards).key).get(wildcards.experiment, [])
    if int(wildcards.number) >= len(parts):
        raise ConcordError(f"{wildcards.experiment} has {len(parts)} jobs of such runs")
    return parts[int(wildcards.number)]


def asked_alone(wildcards):
    """The files of small runs that are targets themselves: their own jobs make them, and before."""
    folders = {PLACE / run.folder for run in part_of(wildcards)}
    targets = map(os.path.normpath, workflow.dag_settings.targets)
    return [local(target) for target in targets if Path(target).parent in folders]


def small_states(wildcards):
    return stages.small.states(part_of(wildcards), PLACE, Path("resources"))


def metrics(runs):
    """The metrics of runs; of small ones and of many, the tables that they are in."""
    own = f"{RESULTS}/{{}}/metrics.csv".format
    tables = (tables_of(run.paper).get(run.folder, own(run.folder)) for run in runs)
    return list(dict.fromkeys(tables))


@told
def many_metrics(wildcards):
    """The metrics of a part of many runs."""
    return [f"{RESULTS}/{run.folder}/metrics.csv" for run in part_of(wildcards, many_runs_of)]


@told
def shown(wildcards):
    """The metrics of every run a figure or table shows."""
    return metrics(paper_of(wildcards).output_runs(wildcards.section, wildcards.name))


@told
def caption(wildcards):
    """What the report's caption template fills in."""
    return captions.rst(captions.of(paper_of(wildcards), wildcards.section, wildcards.name))


def outputs(keys):
    """Every figure and table of papers: one of its files, and the runs it shows."""
    return {
        f"{RESULTS}/{paper.key}/{section}/{name}.{suffix}": [
            run.mapping for run in paper.output_runs(section, name)
        ]
        for paper in map(STUDIES.get, keys)
        for section, suffix in (("figures", "pdf"), ("tables", "csv"))
        for name in paper.mapping.get(section, {})
    }


def without_downloads(keys):
    """The outputs that need no download."""
    return [file for file, runs in outputs(keys).items() if not any(map(downloads, runs))]


def makeable(keys):
    """An input function: every output but those for which something is not installed.

    It names what it leaves out, once.
    """

    @cache
    def files():
        found, left_out = [], {}
        for file, runs in outputs(keys).items():
            missing = None if CONDA else next(filter(None, map(unavailable, runs)), None)
            if missing is None:
                found.append(file)
            else:
                name = f"{Path(file).parts[-3]}/{Path(file).stem}"
                left_out.setdefault(missing, []).append(name)
        for missing, names in left_out.items():
            print(f"concord: left out {', '.join(names)}: {missing}", file=sys.stderr)
        return found

    return lambda wildcards: files()


def at_hand(run):
    """Whether a run has been made, or can be without a download and with what is installed.

    Claims about other runs get the verdict "not run" instead of stopping the ledger.
    """
    return stages.judge.at_hand(run, PLACE) or makeable_here(run)


def makeable_here(run):
    """Whether a run can be made without a download and with what is installed."""
    if not CONDA and unavailable(run.mapping):
        return False
    return all(map(fetched_or_mirrored, downloads(run.mapping)))


@told
def judged(wildcards):
    """The metrics of every run that a paper's claims read, as far as they can be had."""
    return metrics(filter(at_hand, paper_of(wildcards).claim_runs()))


def standing(files):
    """An input function: those of these results of which there is anything, if only the seal."""
    return lambda wildcards: [
        file
        for file in files
        if placed(file).exists() or placed(file).with_suffix(".json").exists()
    ]


@told
def damaged_multiverses(wildcards):
    """The tables of multiverses that are there in part; whole ones may be stale, and take hours."""
    tables = standing([f"{RESULTS}/{key}/multiverse.csv" for key in PAPERS])(wildcards)
    return [table for table in tables if not integrity.intact(placed(table))]


def multiverse_first(wildcards):
    """The multiverse of a paper, if it has been asked for, too: verdicts take it over."""
    table, key = f"{RESULTS}/{wildcards.paper}/multiverse.csv", wildcards.paper
    asked = {"multiverse", f"multiverse_{key}", table} & {*workflow.dag_settings.targets}
    return [table] if asked else []


def scored_from(run):
    """What the metrics of a cell are made from, as a function of wildcards."""
    return lambda wildcards: cells.made(run, Path("resources"))


def entries(key, experiment):
    """The cells of an experiment of the arena, by entry."""
    found = {}
    for run in STUDIES[key].runs.values():
        if run.experiment == experiment:
            found.setdefault(run.mapping["labels"]["entry"], []).append(run)
    return found


def cells_of(wildcards):
    """The cells of a study's arena."""
    return [run for run in paper_of(wildcards).runs.values() if "arena" in run.mapping]


@cache
def multiverse_of(key):
    """The universes of a paper, and the runs that they change."""
    return told(Multiverse)(STUDIES[key])


@told
def batch_of(wildcards):
    """The runs of a batch of a universe."""
    found = multiverse_of(paper_of(wildcards).key)
    return found.batch(wildcards.universe, wildcards.batch)


@told
def varied(wildcards):
    """What the universes of a paper compute, as far as it is wanted, and can be had or was made."""
    key = wildcards.paper
    return [
        f"{RESULTS}/{key}/multiverse/{universe}/{batch}/metrics.csv"
        for (universe, batch), runs in multiverse_of(key).batches.items()
        if f"{key}/{batch}" not in CONFIG["not_varied"]
        and (
            all(map(makeable_here, runs))
            or stages.multiverse.place(STUDIES[key], PLACE, universe, batch).exists()
        )
    ]


def varied_from(wildcards):
    return stages.vary.made([run.mapping for run in batch_of(wildcards)], Path("resources"))


def surveyed_from(wildcards):
    return stages.multiverse.made(paper_of(wildcards), PLACE, multiverse_of(wildcards.paper))


def varying_environment(wildcards):
    """The conda environment of a job that computes runs of a universe."""
    return f"../../envs/{varying('environment')(wildcards)}.yaml"


def varying(key):
    """A function of wildcards: a key of what a job takes that computes runs of a universe."""
    return lambda wildcards: job_of(batch_of(wildcards)[0].mapping["problem"]["kind"])[key]
