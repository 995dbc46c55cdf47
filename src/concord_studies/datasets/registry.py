"""The registry of data sets, ``config/datasets.yaml``: the files, their hosts and hashes."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from concord.errors import ConcordError, nearest, short
from concord.options import Count, Options, Some
from concord_studies.home import REGISTRY
from concord_studies.io import build_file, load_yaml, signature
from concord_studies.provenance import sha256

Name = Annotated[  # which becomes a path below resources/ and in the mirror
    str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", title="a name of letters, digits and _ . -")
]


class DataFile(Options):
    """One file, which is downloaded, made here, or kept beside the registry."""

    bytes: Annotated[Count, "size of the file"]
    sha256: Annotated[str, "SHA-256 of the file"]
    urls: Annotated[Some[str], "where the file is published, in the order to try"] = ()
    mirror: Annotated[str | None, "where it lies in a data mirror; none: there by its name"] = None
    recipe: Annotated[
        dict[str, Any] | None,
        "instead of urls: the recipe of draws (stages.certify)",
    ] = None
    in_repository: Annotated[bool, "instead of urls: it lies in recorded/ beside the registry"] = (
        False
    )


class Dataset(Options):
    """A data set: what it is, and its files by name."""

    description: Annotated[str, "what the rows are and how many there are"]
    license: Annotated[str, "terms of use as the publisher states them"]
    citation: Annotated[str, "the publication to cite"]
    files: Annotated[Annotated[dict[Name, DataFile], Meta(min_length=1)], "the files, by name"]


Sets = Annotated[dict[Name, Dataset], Meta(min_length=1)]


def load_registry(path: str | Path = REGISTRY) -> dict[str, Dataset]:
    """Return the data sets by name, which are read once until the file changes.

    A ConcordError if the file is missing, is not YAML, or has an unknown, missing or ill-formed
    entry.
    """
    return _read(path, signature(path))


@lru_cache(maxsize=8)
def _read(path: str | Path, as_of: tuple[int, ...] | None) -> dict[str, Dataset]:
    """Read and check the registry; ``as_of``, its signature, has it read again once it changes."""
    datasets: dict[str, Dataset] = build_file(Sets, load_yaml(path), path)
    for name, entry in datasets.items():
        for key, file in entry.files.items():
            if (bool(file.urls), file.recipe is not None, file.in_repository).count(True) != 1:
                raise ConcordError(
                    f"{path}: {name}.files.{key}: a file has either urls, recipe or in_repository; "
                    "give one of them"
                )
    return datasets


def files_of(dataset: str, registry: str | Path = REGISTRY) -> dict[str, DataFile]:
    """Return the registered files of a data set, by name.

    registry: the YAML file that lists data sets. A ConcordError names the nearest data set.
    """
    datasets = load_registry(registry)
    if dataset not in datasets:
        raise ConcordError(
            f"there is no data set {short(dataset)} in {registry}; {nearest(dataset, datasets)}"
        )
    return datasets[dataset].files


def find(name: str, registry: str | Path = REGISTRY) -> DataFile:
    """Return the registered file of a name ``DATASET/FILE``.

    registry: the YAML file that lists data sets. A ConcordError names the nearest one.
    """
    dataset, _, file = str(name).partition("/")
    files = files_of(dataset, registry)
    if file not in files:
        raise ConcordError(
            f"{name}: a data file is named DATASET/FILE and {dataset} has none of this name; "
            f"{nearest(name, [f'{dataset}/{option}' for option in files])}"
        )
    return files[file]


def mismatch(path: Path, file: DataFile) -> str | None:
    """Return the reason for which a file is not the registered one. None if it is."""
    try:
        size = path.stat().st_size
        if size != file.bytes:
            return f"has {size} bytes instead of {file.bytes}"
        digest = sha256(path)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None if digest == file.sha256 else f"has SHA-256 {digest} instead of {file.sha256}"


def verify(name: str, path: Path, registry: str | Path = REGISTRY) -> Path:
    """Return the path of a file in place if it is the registered ``DATASET/FILE``.

    A ConcordError, with the command that makes the file, if it has another size or SHA-256.
    """
    why = mismatch(path, find(name, registry))
    if why is not None:
        raise ConcordError(f"{path}: {why}; make it with `concord fetch {name} -o {path}`")
    return path
