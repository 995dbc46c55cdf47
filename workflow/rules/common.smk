# Loads and checks the configuration, and names files; no rule of its own.
import atexit
import fcntl
import os
import shlex
import sys
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

from snakemake.dag import DAG
from snakemake.persistence import PersistenceBase
from snakemake.settings.types import DeploymentMethod

SOURCE = Path(workflow.basedir, "src")
if str(SOURCE) not in sys.path:
    sys.path.insert(0, str(SOURCE))

os.environ.update(MPLBACKEND="agg")  # as in concord.__main__

from concord.contracts import Extra
from concord.errors import ConcordError, nearest
from concord.integrity import intact
from concord.io import check_folder, check_writable, dump_yaml, load_yaml
from concord.plugins import plugin
from concord.provenance import code, commit, digest, module_files, sha256
from concord.report import captions
from concord.report.pages import TEMPLATES
from concord.runs import data_sets, optional_data_sets, unavailable
from concord.sampling.trace import sealed_trace
from concord.studies.config import load_papers


def refuse(message):
    """Stop with one sentence. An exception would have Snakemake add where in this file it was."""
    sys.exit(f"concord: {message}")


if set("{}") & set(str(workflow.basedir)):
    refuse(f"{workflow.basedir}: Snakemake takes braces in a folder's name for its own; rename it")
if os.pathsep in str(workflow.basedir):
    refuse(f"{workflow.basedir}: Python's path cannot hold a folder with {os.pathsep!r}; rename it")

import concord.stages.judge
import concord.stages.measure
import concord.stages.sample

stages = concord.stages

# `config` holds what --config sets. The file is not a configfile of Snakemake's, which would read
# it first: it crashes on some files, and does not say where another is wrong.
# What a cluster's job reads has been checked where it was submitted.
try:
    CONFIG, PAPERS = load_papers(Path("config"), config, checked=not workflow.is_main_process)
except ConcordError as error:
    refuse(error)
config.update(CONFIG)  # for the report's template

RESULTS = Path(CONFIG["results"], *["smoke"] * (CONFIG["scale"] == "smoke")).as_posix()
SETTINGS = f"--scale {CONFIG['scale']} --seed {CONFIG['seed']}"
ENVIRONMENT = "../../envs/concord.yaml"
ANY_RUN = "{paper}/{experiment}/{run}"

# Every command needs the package's source; a conda environment and a node of a cluster do not
# inherit it. Without conda, jobs use the Python that runs Snakemake, whatever the shell's path says.
CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
EXPORTS = {"PYTHONPATH": str(SOURCE)}
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
    run="[^/]+",
    name="[^/.]+",


def hold():
    """Let one Snakemake at a time work in this folder, and on its results, in place of its locks.

    Those stay when it is killed, let two that start together pass, and the first to be done removes
    those of all others; and they know nothing of another checkout that shares the results. The
    system ends a hold on a file with the process that has it.
    """
    lock = PersistenceBase.lock

    @contextmanager
    def held(self):
        with ExitStack() as stack:
            results = Path(CONFIG["results"])
            results.mkdir(parents=True, exist_ok=True)
            try:
                file = stack.enter_context(open(self.path / "running", "a"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                folder = os.open(results, os.O_RDONLY)
                stack.callback(os.close, folder)
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for left in {*self.path.glob("outdated-*")} - {OUTDATED.absolute()}:
                    left.unlink()
            except BlockingIOError:
                refuse("another Snakemake is at work in this folder; wait until it is done")
            except PermissionError as error:
                refuse(f"{error.filename}: {error.strerror}; work in a copy of the project")
            except OSError:  # this file system knows no such thing
                stack.enter_context(lock(self))
            yield

    PersistenceBase.lock = held


def told(function, *arguments):
    """Call, and stop with one sentence where the package refuses."""
    try:
        return function(*arguments)
    except ConcordError as error:
        refuse(error)


told(check_folder, Path(RESULTS))
if workflow.is_main_process:
    told(check_writable, Path(".snakemake"), *Path(".snakemake").glob("*"))
    hold()


onstart:
    told(check_writable, Path(RESULTS))


# Jobs on a full disk cannot say so: their logs are on it.
onerror:
    try:
        with TemporaryFile(dir=RESULTS) as probe:
            probe.write(bytes(2**20))
    except OSError as error:
        sentence = (
            f"concord: {RESULTS}: {error.strerror}; mend that, and type the same command again"
        )
        print(sentence, file=sys.stderr)


def keep_commas():
    """Have a cluster's job understand which run it is for.

    Snakemake passes wildcards to such a job as a list with commas and splits the name of a run at
    its own (https://github.com/snakemake/snakemake/issues/2366). What it takes for one more
    wildcard is the rest of the one before.
    """
    new_job = DAG.new_job

    async def of_whole_wildcards(self, job_rule, *arguments, wildcards_dict=None, **options):
        if wildcards_dict is not None:
            whole = {}
            for name, value in wildcards_dict.items():
                if name in job_rule.wildcard_names:
                    whole[name], last = value, name
                else:
                    whole[last] += f",{name}={value}"
            wildcards_dict = whole
        return await new_job(self, job_rule, *arguments, wildcards_dict=wildcards_dict, **options)

    DAG.new_job = of_whole_wildcards


if not workflow.is_main_process:
    keep_commas()


def paper_of(wildcards):
    """The paper a target belongs to."""
    if wildcards.paper not in PAPERS:
        refuse(
            f"config/papers: there is no {wildcards.paper!r}; {nearest(wildcards.paper, PAPERS)}"
        )
    return PAPERS[wildcards.paper]


def run_of(wildcards):
    """The resolved run a target belongs to."""
    paper = paper_of(wildcards)
    try:
        return paper.runs[wildcards.experiment, wildcards.run]
    except KeyError:
        pass
    try:
        return paper.run(wildcards.experiment, wildcards.run)
    except ConcordError as error:
        refuse(error)


def no_such_target(wildcards):
    """Refuse a word that is neither a paper nor another rule."""
    known = [*PAPERS, "reproduce", "everything"]
    refuse(f"there is no target {wildcards.target!r}; {nearest(wildcards.target, known)}")


def run_digest(wildcards):
    """A params function: changes when a run changes; jobs check that their run.yaml has it."""
    return digest(run_of(wildcards).mapping)


def template(name):
    """A template of the package's pages, which is an input."""
    return str(TEMPLATES.relative_to(workflow.basedir) / name)


@cache
def modules(*names):
    """The package's files a command depends on: inputs, since Snakemake does not see imports."""
    return [str(Path(file).relative_to(workflow.basedir)) for file in told(module_files, *names)]


def modules_of(stage):
    """An input function: the package's files that a stage needs for a run."""
    return lambda wildcards: modules(*stage.modules_of(run_of(wildcards).mapping))


def code_of(stage):
    """A params function: changes when the content of those files does; jobs check that it is theirs.

    Snakemake looks into inputs only if they are newer than outputs, which files that were unpacked,
    copied or written by another clock need not be.
    """
    return lambda wildcards: told(code, *stage.modules_of(run_of(wildcards).mapping))


# What a result was made from stands in it (concord.integrity). Where that is not what it would be
# made from now, this file becomes an input of its job, and is newer, so that the job runs, whatever
# Snakemake's records say, and whoever else writes into the results.
OUTDATED = Path(f".snakemake/outdated-{os.getpid()}")


def outdated(path, made, wanted):
    """An input function: OUTDATED if a file is there, but not made from what is wanted now."""

    def inputs(wildcards):
        file = Path(path.format(**wildcards))
        # A cluster's job does what it was submitted for.
        if not workflow.is_main_process or not file.exists():
            return []
        if told(wanted, wildcards).items() <= made(file).items():
            return []
        if not OUTDATED.exists():
            atexit.register(OUTDATED.unlink, missing_ok=True)
            OUTDATED.touch()
        newer = max(OUTDATED.stat().st_mtime, file.stat().st_mtime + 1)
        os.utime(OUTDATED, (newer, newer))
        return [str(OUTDATED)]

    return inputs


def made_of_trace(file):
    return sealed_trace(file)[0]


def run_on_disk(file):
    """What a run.yaml holds, as its digest."""
    try:
        return {"run": digest(load_yaml(file))}
    except (ConcordError, TypeError):
        return {}


def of_run(stage):
    """A function of wildcards: what a stage makes its result of a run from."""
    return lambda wildcards: stage.made(run_of(wildcards).mapping, Path("resources"))


def with_trace(wildcards):
    """What metrics are made from, the trace that is there included."""
    trace = Path(RESULTS, run_of(wildcards).folder, "trace.nc")
    return {**of_run(stages.measure)(wildcards), "trace": sealed_trace(trace)[1]}


def of_output(section):
    """A function of wildcards: what a figure or table is made from."""
    return lambda wildcards: stages.draw.made(
        paper_of(wildcards), section, wildcards.name, Path(RESULTS)
    )


def data_files(wildcards):
    """The downloaded files that a run's problem reads: what it needs, and what else is at hand."""
    run = run_of(wildcards).mapping
    names = [*data_sets(run), *filter(fetched_or_mirrored, optional_data_sets(run))]
    files = [file for name in names for file in DATA_FILES[name]]
    for file in map(Path, files):  # Snakemake would wait for ever for what a pipe holds
        if file.exists() and not file.is_file():
            refuse(f"{file}: it is not a file; remove it")
    return files


def fetched_or_mirrored(dataset):
    """Whether all files of a data set are in place or in the data mirror."""
    folders = [Path("resources", dataset), *([Path(MIRROR).expanduser()] if MIRROR else [])]
    return all(
        any(Path(folder, Path(file).name).is_file() for folder in folders)
        for file in DATA_FILES[dataset]
    )


# What a job takes at most. Measured at paper scale (max_rss and s in results/benchmarks): sampling
# 250 MB and 110 s, measuring 475 MB and 140 s, figures and tables 225 MB and 7 s, LeNet 815 MB and
# 155 s; on a cluster's node two Snakemakes of 130 MB each come on top.
USUAL_JOB = {"environment": "concord", "mem_mb": 1000, "runtime": 5, "options": ""}


def sampling(key):
    """A function of wildcards: what a sampling job takes, which its problem may say in JOB."""

    def of_run(wildcards):
        problem = plugin("problems", run_of(wildcards).mapping["problem"]["kind"], "problem")
        return {**USUAL_JOB, **(problem.JOB if isinstance(problem, Extra) else {})}[key]

    return of_run


def growing(amount):
    """A resources function: an amount, or that of a run, and as much again with every attempt."""

    def of_attempt(wildcards, attempt):
        return attempt * (amount(wildcards) if callable(amount) else amount)

    return of_attempt


def with_other_runs(wildcards):
    """The group of a run: short runs share a cluster's job, those of a problem with a JOB do not."""
    usual = sampling("runtime")(wildcards) == USUAL_JOB["runtime"]
    return "runs" if usual else "long_runs"


def sampling_environment(wildcards):
    """The conda environment of a sampling job."""
    return f"../../envs/{sampling('environment')(wildcards)}.yaml"


def pieces(wildcards):
    """The traces of a run's chains if config.yaml has one job sample only so many."""
    chains, most = run_of(wildcards).mapping["chains"], CONFIG["chains_per_job"]
    if most is None or chains <= most:
        return []
    folder = Path(RESULTS, run_of(wildcards).folder)
    return [
        f"{folder}/chains_{first}_{min(first + most, chains)}.nc"
        for first in range(0, chains, most)
    ]


def measured(runs):
    """What is read of runs that have been measured: run.yaml, metrics.csv and its seal."""
    files = ("run.yaml", "metrics.csv", "metrics.json")
    return [f"{RESULTS}/{run.folder}/{file}" for run in runs for file in files]


def shown(section):
    """An input function: the files of every run a figure or table shows."""
    return lambda wildcards: measured(entry_of(section, wildcards)[1])


def entry_of(section, wildcards):
    """The entry of a figure or table in its paper's file, and the runs it shows."""
    paper = paper_of(wildcards)
    try:
        return paper.output(section, wildcards.name), paper.output_runs(section, wildcards.name)
    except ConcordError as error:
        refuse(error)


def entry_modules(section):
    """An input function: the files of the kind of a figure or table."""
    return lambda wildcards: modules(
        "concord.stages.draw", f"concord.{section}.{entry_of(section, wildcards)[0]['kind']}"
    )


def caption(section):
    """A params function: what the report's caption template fills in."""

    def parts(wildcards):
        entry_of(section, wildcards)
        return captions.rst(paper_of(wildcards).caption(section, wildcards.name))

    return parts


def entry_code(section):
    """A params function: changes when the content of those files does."""
    return lambda wildcards: told(of_output(section), wildcards)["code"]


def entry_digest(section):
    """A params function: changes when the entry itself changes (its runs are inputs)."""
    return lambda wildcards: digest(entry_of(section, wildcards)[0])


# What is made of each figure and table.
SUFFIXES = {
    "figures": ("pdf", "svg", "png", "json", "caption.md"),
    "tables": ("csv", "md", "html", "json", "caption.md"),
}


def outputs(keys, downloads=True):
    """Every figure and table of the papers; without downloads, those that need no data files."""
    return [
        f"{RESULTS}/{paper.key}/{section}/{name}.{suffix}"
        for paper in map(PAPERS.get, keys)
        for section, suffixes in SUFFIXES.items()
        for name in paper.mapping.get(section, {})
        if downloads or not any(data_sets(run.mapping) for run in paper.output_runs(section, name))
        for suffix in suffixes
    ]


def makeable(keys):
    """An input function: every output but those for which something is not installed.

    It names what it leaves out, once.
    """
    noted = set()

    def inputs(wildcards):
        files, left_out = [], {}
        for file in outputs(keys):
            *_, key, section, name = Path(file).parts
            name = name.partition(".")[0]
            runs = [run.mapping for run in PAPERS[key].output_runs(section, name)]
            missing = None if CONDA else next(filter(None, map(unavailable, runs)), None)
            if missing is None:
                files.append(file)
            else:
                left_out.setdefault(missing, {})[f"{key}/{name}"] = None
        for missing, names in left_out.items():
            if missing not in noted:
                noted.add(missing)
                print(f"concord: left out {', '.join(names)}: {missing}", file=sys.stderr)
        return files

    return inputs


def at_hand(run):
    """Whether a run has been made, or can be without a download and with what is installed.

    Claims about other runs get the verdict "not run" instead of stopping the ledger.
    """
    if stages.judge.at_hand(run, Path(RESULTS)):
        return True
    if not CONDA and unavailable(run.mapping):
        return False
    return all(map(fetched_or_mirrored, data_sets(run.mapping)))


def judged(wildcards):
    """The files of every run that a paper's claims read, as far as they can be had."""
    return measured(filter(at_hand, paper_of(wildcards).claim_runs()))
