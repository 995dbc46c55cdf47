"""The commands about studies: init, check, orphans, resolve, schema."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from concord import plugins
from concord.errors import ConcordError
from concord.make import resolve as write_run
from concord.studies.checks import check_outputs
from concord.studies.config import load_config, load_papers, results_folder
from concord.studies.editor import study_schema
from concord.studies.init import init as begin
from concord.studies.orphans import orphans as left_over
from concord.studies.paper import Paper


def changes(options: Namespace) -> Mapping[str, Any]:
    """Return what the options change of the configuration."""
    given = vars(options)
    return {k: given[k] for k in ("scale", "seed", "pairs") if given.get(k) is not None}


def paper(options: Namespace) -> Paper:
    """Return the study that the options name."""
    return Paper(options.paper, load_config(options.config, changes(options)))


def at_work(options: Namespace) -> None:
    """Use the plug-ins of the study that ``--study`` names, if it does."""
    study = vars(options).get("study")
    if study:
        if not study.is_dir():
            raise ConcordError(f"{study}: there is no such folder; name that of a study")
        plugins.use(study)


def init(options: Namespace) -> None:
    """Make a folder with a study."""
    for path in begin(options.folder):
        print(path)
    print(f"Next: cd {shlex.quote(str(options.folder))}; snakemake -n; README.md says more")


def orphans(options: Namespace) -> None:
    """List folders of results that no study asks for."""
    config, papers = load_papers(options.config.parent, changes(options))
    for folder in left_over(results_folder(config), papers.values()):
        print(folder)


def check(options: Namespace) -> None:
    """Check a study's files, and list its runs."""
    study = paper(options)
    for run in study.runs.values():
        print(run.folder)
    check_outputs(study)


def resolve(options: Namespace) -> None:
    """Write the run.yaml of one run."""
    write_run(paper(options).run(options.experiment, options.run), options.output)


def schema(options: Namespace) -> None:
    """Print the JSON Schema of a study's file."""
    at_work(options)
    print(json.dumps(study_schema()))
