# The plan of the project: what the rules ask is src/concord_studies/plan.py; there is no rule here.
import os
import shlex
import sys
from functools import partial

from snakemake.settings.types import DeploymentMethod

os.environ.update(MPLBACKEND="agg")  # as in concord_cli.__main__

# A checkout runs its own code; what else the rules come from, the package that is installed.
place = workflow.current_basedir
checkout = os.path.normpath(f"{place}/../..")
if os.path.isdir(f"{checkout}/src/concord"):
    sys.path.insert(0, f"{checkout}/src")
try:
    from concord_studies.job_shell import write_prefix
    from concord_studies.plan import Plan
    from concord_studies.targets import Targets
except ModuleNotFoundError as error:
    if hasattr(place, "repo_path"):  # git+file:
        source = f"git+file://{os.path.abspath(place.repo_path)}@{place.ref}"
    elif hasattr(place, "repo"):  # github, gitlab
        source = f"git+https://{place.host}/{place.repo}@{place.ref}"
    else:
        source = checkout if os.path.isdir(f"{checkout}/src/concord") else "concord-bayes"
    remedy = shlex.join([sys.executable, "-m", "pip", "install", source])
    if os.getcwd() == os.path.realpath(checkout):
        remedy = "make setup; then .venv/bin/snakemake in the place of snakemake"
    sys.exit(
        f"concord: Snakemake cannot plan without the module {error.name!r}, which "
        f"{sys.executable} lacks; type: {remedy}"
    )

# The configuration is config/config.yaml; its schema is concord_studies.configuration.config.Config
# (as JSON Schema: `make schema`, config/config.schema.json), and that of studies beside it.
# `config` holds what --config sets. The file is not a configfile of Snakemake's, which would read
# it first: it crashes on some files, and does not say where another is wrong.
METHODS = workflow.deployment_settings.deployment_method
plan = Plan(
    "config",
    changes=config,
    writes=workflow.is_main_process,
    installs=DeploymentMethod.CONDA in METHODS,
    submits=lambda: not workflow.local_exec,
)
targets = Targets(plan)
os.environ.setdefault("CONCORD_PLANNED", "")


# Jobs on other machines are planned there once more; this says what has been planned here.
envvars:
    "CONCORD_PLANNED",


RESULTS = plan.results
EXPERIMENT = f"{RESULTS}/{{study}}/{{experiment}}"
PART = "part.{part}-of-{parts}"
METRICS = f"{EXPERIMENT}/metrics.csv"
LOGS, BENCHMARKS = f"{RESULTS}/logs", f"{RESULTS}/benchmarks"
ENVIRONMENT = "../../envs/concord.yaml"

shell.prefix(write_prefix(plan.mirror, plan.installs))


def statement(kind):
    """Return an input function: the file that states what a result of a kind is made from."""
    return partial(plan.write, kind)


def digest(kind):
    """Return a function for params: the digest of that file."""
    return partial(plan.digest, kind)


def metrics(kind):
    """Return an input function: the metrics of the experiments that a result of a kind reads."""
    return lambda w: expand(METRICS, study=w.study, experiment=plan.list_experiments(kind, w))


def growing(**amounts):
    """Return resources that grow with every attempt of a job."""
    return {key: lambda w, attempt, amount=of: amount * attempt for key, of in amounts.items()}


def write_for_report(text):
    """Return a text on one line, without what would be a wildcard, or end the report's script."""
    return " ".join(text.split()).translate(str.maketrans("<>{}", "‹›()"))


def name_study(w):
    """Return a study's name and its paper's samplers, for the report."""
    study = plan.find_study(w.study)
    return write_for_report(", ".join(filter(None, [study.name, study.about.samplers])))


def label_output(w):
    """Return the labels of a figure or table in the report: its name, and its title."""
    title = plan.find_study(w.study).output(w.section, w.name).title
    return {"name": w.name, "title": write_for_report(title)}


def describe(name, text):
    """Give a rule, if there is one of this name, the sentence that --list-rules shows."""
    name = workflow.modifier.modify_rulename(name)
    if workflow.is_rule(name):
        workflow.get_rule(name).docstring = text


# What studies state, and nothing else: other files are made by whose rules they are.
wildcard_constraints:
    study="|".join(plan.studies),
    experiment="|".join([*plan.experiments, "multiverse/[^/]+"]),  # a universe is one, too
    data_file="|".join(map(re.escape, plan.hashes)),
    name="|".join(plan.output_names),


# For `--sdm apptainer`. It is left out otherwise, because a new container makes all results again.
if plan.config["container"]:

    container: plan.config["container"]


def parts(suffix):
    """Return an input function: files of the parts of an experiment; none if one job makes it."""

    def files(w):
        count = plan.experiment(w).part_count
        numbers = range(1, count + 1)
        return expand(f"{EXPERIMENT}/{PART}.{suffix}", part=numbers, parts=count, **w)

    return files
