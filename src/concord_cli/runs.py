"""The command ``run``: one run of a study, made by itself."""

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.experiment import run_alone
from concord_studies.guard import has_planned_name
from concord_studies.io import read_text


def changes(options: Namespace) -> Mapping[str, Any]:
    """Return the settings of the configuration that command-line options change, by name."""
    values = vars(options)
    return {k: values[k] for k in ("scale", "seed", "pairs") if values.get(k) is not None}


def read_study(options: Namespace) -> Study:
    """Return the study that the options name."""
    return Study(options.study, load_config(options.config, changes(options)))


def read_stated(options: Namespace) -> dict[str, Any]:
    """Return the study that the options name and, if it is of a statement, that as ``planned``."""
    if not has_planned_name(options.study):
        return {"study": read_study(options)}
    snapshot = json.loads(read_text(options.study.with_suffix(".study")))
    study = Study(
        Path(snapshot["path"]), snapshot["config"], checked=True, contents=snapshot["contents"]
    )
    return {"study": study, "planned": options.study}


def run(options: Namespace) -> None:
    """Make one run by itself, and print where it is."""
    study = read_study(options)
    place = Path("runs", study.key, options.experiment, options.run)
    folder = options.folder or place
    run_alone(study, options.experiment, options.run, folder, options.resources)
    print(folder)
