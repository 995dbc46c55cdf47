# The configuration, loaded and checked. What the rules ask is concord.workflow; there is no rule here.
import gc
import os
import sys

os.environ.update(MPLBACKEND="agg")  # as in concord.__main__

# What planning makes stays: to look for what does not, 700 objects at a time, took an eighth of it.
gc.set_threshold(100_000)

# A checkout runs its own code; what else the rules come from, the package that is installed.
if os.path.isdir(f"{workflow.basedir}/src/concord"):
    sys.path.insert(0, f"{workflow.basedir}/src")
try:
    from concord.workflow import PLANNED, Workflow
except Exception as error:
    if getattr(error, "name", None) == "concord":
        sys.exit("concord: the package concord-bayes is not installed beside Snakemake; install it")
    from concord.errors import in_the_way

    if sentence := in_the_way(error):
        sys.exit(f"concord: {sentence}")
    raise

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
