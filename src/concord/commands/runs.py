"""The command ``make``: the runs of a batch."""

from argparse import Namespace

from concord import make as making
from concord.commands.studies import study
from concord.make import Batch
from concord.studies.universes import Multiverse


def make(options: Namespace) -> None:
    """Make the runs of a batch: those that are named, or all of a batch of a universe."""
    whole, _, name = options.batch.rpartition("/")
    universe = whole.removeprefix("multiverse/")
    options.pairs = "+" in universe or None
    found = study(options)
    if universe != whole:
        batch = Multiverse(found).batch(universe, name)
    else:
        batch = Batch(options.batch, found.key, tuple(found.chosen(whole, options.runs)))
    making.make(
        batch,
        options.results,
        options.resources,
        options.output,
        options.sampled,
        options.chains,
        options.progress,
    )
