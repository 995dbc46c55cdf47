# The configuration, loaded and checked. What the rules ask is concord_studies.workflow; there is no rule here.
import gc
import os
import shlex
import sys

os.environ.update(MPLBACKEND="agg")  # as in concord_cli.__main__

# What planning makes stays: to look for what does not, 700 objects at a time, took an eighth of it.
gc.set_threshold(100_000)

# A checkout runs its own code; what else the rules come from, the package that is installed.
place = workflow.current_basedir
checkout = os.path.normpath(f"{place}/../..")
if os.path.isdir(f"{checkout}/src/concord"):
    sys.path.insert(0, f"{checkout}/src")
try:
    from concord_studies.workflow import PLANNED, Workflow
except Exception as error:
    lacking = error.name if isinstance(error, ModuleNotFoundError) else None
    if not f"{lacking}".startswith("concord"):  # else there is nothing of ours to import
        from concord.errors import in_the_way

        if sentence := in_the_way(error):
            sys.exit(f"concord: {sentence}")
    if not lacking:
        raise
    if os.getcwd() == os.path.realpath(checkout):
        remedy = "make setup; then .venv/bin/snakemake in the place of snakemake"
    else:
        if hasattr(place, "repo_path"):  # git+file:
            source = f"git+file://{os.path.abspath(place.repo_path)}@{place.ref}"
        elif hasattr(place, "repo"):  # github, gitlab
            source = f"git+https://{place.host}/{place.repo}@{place.ref}"
        else:
            source = checkout if os.path.isdir(f"{checkout}/src/concord") else "concord-bayes"
        remedy = shlex.join([sys.executable, "-m", "pip", "install", source])
    sys.exit(
        f"concord: Snakemake cannot plan without the module {lacking!r}, which {sys.executable} "
        f"lacks; type: {remedy}"
    )

# `config` holds what --config sets. The file is not a configfile of Snakemake's, which would read
# it first: it crashes on some files, and does not say where another is wrong.
flow = Workflow(config, local)
RESULTS = flow.results
LOGS, BENCHMARKS = f"{RESULTS}/logs", f"{RESULTS}/benchmarks"
ENVIRONMENT = "../../envs/concord.yaml"


envvars:
    PLANNED,


# For `--sdm apptainer`. It is left out otherwise, because a new container makes all results again.
if flow.config["container"]:

    container: flow.config["container"]


shell.prefix(flow.prefix)


# In place of Snakemake's locks (`nolock` in the profiles), which stay when it is killed and know
# nothing of another checkout with the same results.
onstart:
    flow.begin()


onerror:
    flow.failed()
