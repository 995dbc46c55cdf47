"""certify: from a recipe in the registry of data to draws of a posterior.

``config/datasets.yaml`` keeps recipe and SHA-256, not the draws, so that these are made where they
are needed and are the same wherever that is.
"""

import logging
from pathlib import Path

import numpy as np

from concord import streams
from concord.errors import ConcordError
from concord.options import build
from concord.sampling.partition import Partition
from concord_studies import certified
from concord_studies.datasets.fetch import fetch
from concord_studies.datasets.folder import DataFolder
from concord_studies.datasets.registry import find, verify
from concord_studies.home import REGISTRY
from concord_studies.io import whole_file
from concord_studies.runs.run import ChosenProblem

log = logging.getLogger(__name__)


def provide(name: str, output: Path, mirror: str | None = None) -> None:
    """Put the data file ``DATASET/FILE`` in place: download or copy it, or make its draws."""
    if find(name).made is None:
        fetch(name, output, mirror=mirror)
    else:
        certify(name, output)


def certify(name: str, output: Path, registry: str | Path = REGISTRY) -> None:
    """Make the draws ``DATASET/FILE``, (draws, dim), and write them as a .npy file.

    The log has their diagnostics.

    A ConcordError if the diagnostics fail, or the file is not the registered one.
    """
    where = f"{registry}: {name.replace('/', '.files.')}.made"
    recipe = build(certified.Recipe, find(name, registry).made, where)
    chosen = ChosenProblem.parse(recipe.problem, f"{where}.problem")
    split = Partition.parse({"kind": "equal"}, where)

    def stream(what: str) -> np.random.Generator:
        """Return the generator of random numbers with this label for the recipe."""
        return streams.generator(recipe.seed, what, "reference")

    problem = chosen.module.build(chosen.params, 1, split, stream, DataFolder(Path("resources")))
    draws = certified.sample(problem, recipe, stream("noise"))
    try:
        diagnostics = certified.certify(draws)
    except ConcordError as error:
        raise ConcordError(f"{where}: {error}") from None
    text = ", ".join(f"{key} {value:.5g}" for key, value in diagnostics.items())
    log.warning("%s: %s", name, text)
    with whole_file(output) as path:
        with path.open("wb") as file:  # np.save would add a suffix to a name
            np.save(file, draws.reshape(-1, draws.shape[2]), allow_pickle=False)
        try:
            verify(name, path, registry)
        except ConcordError:
            raise ConcordError(
                f"{output}: the draws made here are not those of {registry}, by their SHA-256; "
                "use the versions of envs/requirements.lock"
            ) from None
