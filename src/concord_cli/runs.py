"""The commands that make runs: resolve, make.

They start some hundred times in a workflow, and import little.
"""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, TypeVar

from concord_studies import make as making
from concord_studies.configuration.config import load_config
from concord_studies.configuration.experiments import Experiments

S = TypeVar("S", bound=Experiments)


def changes(options: Namespace) -> Mapping[str, Any]:
    """Return what the options change of the configuration."""
    given = vars(options)
    return {k: given[k] for k in ("scale", "seed", "pairs") if given.get(k) is not None}


def study_of(options: Namespace, kind: type[S]) -> S:
    """Return the study that the options name."""
    return kind(options.study, load_config(options.config, changes(options)))


def resolve(options: Namespace) -> None:
    """Write the run.yaml of one run."""
    run = study_of(options, Experiments).run(options.experiment, options.run)
    making.resolve(run, options.output)


def make(options: Namespace) -> None:
    """Make the runs of a batch: those that are named, or all of a batch of a universe."""
    whole, _, name = options.batch.rpartition("/")
    universe = whole.removeprefix("multiverse/")
    options.pairs = "+" in universe or None
    if universe != whole:
        from concord_studies.configuration.universes import Multiverse, Study  # of few jobs

        batch = Multiverse(study_of(options, Study)).batch(universe, name)
    else:
        found = study_of(options, Experiments)
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
