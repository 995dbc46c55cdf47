"""The commands about studies: init, check, orphans, schema."""

import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from concord import kinds
from concord.calls import SOON
from concord.errors import ConcordError
from concord.stability import diverges, largest_stable_step
from concord_cli.runs import changes, read_study
from concord_studies.configuration.checks import check_study
from concord_studies.configuration.config import results_folder
from concord_studies.configuration.editor import config_schema, study_schema
from concord_studies.configuration.init import init as begin
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.project import orphans as left_over
from concord_studies.runs.run import Run

FEW = 30  # runs of a study whose steps are tried when it is checked, in a second or two


def use_plugins(options: Namespace) -> None:
    """Use the plug-ins of the study that ``--study`` names, if it does."""
    folder = vars(options).get("plugins")
    if folder:
        if not folder.is_dir():
            raise ConcordError(f"{folder}: there is no such folder; name that of a study")
        kinds.use(folder)


def init(options: Namespace) -> None:
    """Make a folder with a study."""
    for path in begin(options.folder):
        print(path)
    needed = "" if find_spec("snakemake") else "python -m pip install snakemake; "
    print(f"Next: {needed}cd {shlex.quote(str(options.folder))}; snakemake -n; README.md says more")


def orphans(options: Namespace) -> None:
    """List experiments, figures and tables among the results that no study has."""
    config, studies = load_studies(options.config.parent, changes(options))
    for folder in left_over(results_folder(config), studies.values()):
        print(folder)


def check(options: Namespace) -> None:
    """Check a study's files, and list its runs."""
    study = read_study(options)
    for run in study.runs.values():
        print(run.folder)
    check_study(study)
    if len(study.runs) <= FEW:
        warn_of_steps(study.runs.values())


def warn_of_steps(runs: Iterable[Run]) -> None:
    """Print which runs will diverge, by their exact laws, with the largest stable step.

    Runs with downloaded data, lost vectors, or more than ``SOON`` numbers (agents * dim) are left
    out, and so is what has no law.
    """
    for run in runs:
        network, last = run.network_of_agents, run.iterations - 1
        with suppress(ConcordError):
            if run.downloads or not network.is_lossless:
                continue
            problem = run.build_problem(Path("resources"))
            at = run.sampler.params, problem, network, last
            if problem.agents * problem.dim <= SOON and diverges(*at):
                print(
                    f"concord: {run.folder}: its chains will diverge; take a smaller step_size, "
                    f"below {largest_stable_step(*at):.3g} with these options",
                    file=sys.stderr,
                )


def schema(options: Namespace) -> None:
    """Print the JSON Schema of a study's files, or of ``config/config.yaml``."""
    use_plugins(options)
    print(json.dumps(config_schema() if options.file == "config" else study_schema()))
