"""The command ``run``: one run of a study, made by itself."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from concord_studies.configuration.config import load_config
from concord_studies.configuration.experiments import Experiments
from concord_studies.experiment import run_alone

S = TypeVar("S", bound=Experiments)


def changes(options: Namespace) -> Mapping[str, Any]:
    """Return what the options change of the configuration."""
    given = vars(options)
    return {k: given[k] for k in ("scale", "seed", "pairs") if given.get(k) is not None}


def study_of(options: Namespace, kind: type[S]) -> S:
    """Return the study that the options name."""
    return kind(options.study, load_config(options.config, changes(options)))


def run(options: Namespace) -> None:
    """Make one run by itself, and print where it is."""
    study = study_of(options, Experiments)
    place = Path("runs", study.key, options.experiment, options.run)
    folder = options.folder or place
    run_alone(study, options.experiment, options.run, folder, options.resources)
    print(folder)
