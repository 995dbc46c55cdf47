"""The commands about studies: init, check, orphans, resolve, make, schema."""

import json
import shlex
from argparse import Namespace
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from concord import make as making
from concord import plugins
from concord.errors import ConcordError
from concord.studies.checks import check_outputs
from concord.studies.config import load_config, load_studies, results_folder
from concord.studies.config import orphans as left_over
from concord.studies.editor import study_schema
from concord.studies.init import init as begin
from concord.studies.study import Study
from concord.studies.universes import Multiverse


def changes(options: Namespace) -> Mapping[str, Any]:
    """Return what the options change of the configuration."""
    given = vars(options)
    return {k: given[k] for k in ("scale", "seed", "pairs") if given.get(k) is not None}


def study(options: Namespace) -> Study:
    """Return the study that the options name."""
    return Study(options.study, load_config(options.config, changes(options)))


def at_work(options: Namespace) -> None:
    """Use the plug-ins of the study that ``--study`` names, if it does."""
    folder = vars(options).get("plugins")
    if folder:
        if not folder.is_dir():
            raise ConcordError(f"{folder}: there is no such folder; name that of a study")
        plugins.use(folder)


def init(options: Namespace) -> None:
    """Make a folder with a study."""
    for path in begin(options.folder):
        print(path)
    needed = "" if find_spec("snakemake") else "python -m pip install snakemake; "
    print(f"Next: {needed}cd {shlex.quote(str(options.folder))}; snakemake -n; README.md says more")


def orphans(options: Namespace) -> None:
    """List folders of results that no study asks for."""
    config, studies = load_studies(options.config.parent, changes(options))
    for folder in left_over(results_folder(config), studies.values()):
        print(folder)


def check(options: Namespace) -> None:
    """Check a study's files, and list its runs."""
    found = study(options)
    for run in found.runs.values():
        print(run.folder)
    check_outputs(found)


def resolve(options: Namespace) -> None:
    """Write the run.yaml of one run."""
    making.resolve(study(options).run(options.experiment, options.run), options.output)


def make(options: Namespace) -> None:
    """Make the runs of a batch: those that are named, or all of a batch of a universe."""
    whole, _, name = options.batch.rpartition("/")
    universe = whole.removeprefix("multiverse/")
    options.pairs = "+" in universe or None
    found = study(options)
    if universe != whole:
        batch = Multiverse(found).batch(universe, name)
    else:
        batch = making.Batch(options.batch, found.key, tuple(found.chosen(whole, options.runs)))
    making.make(
        batch,
        options.results,
        options.resources,
        options.output,
        options.sampled,
        options.chains,
        options.progress,
    )


def schema(options: Namespace) -> None:
    """Print the JSON Schema of a study's file."""
    at_work(options)
    print(json.dumps(study_schema()))
