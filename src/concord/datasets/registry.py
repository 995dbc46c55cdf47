"""The registry of data sets, ``config/datasets.yaml``: the files, their hosts and hashes."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from concord import options
from concord.errors import ConcordError, nearest, short
from concord.home import REGISTRY
from concord.io import load_yaml, signature
from concord.options import Count, Options, Some


class DataFile(Options):
    """One file, which is downloaded, made here, or kept beside the registry."""

    bytes: Annotated[Count, "size of the file"]
    sha256: Annotated[str, "SHA-256 of the file, 64 lower-case hexadecimal digits"]
    urls: Annotated[Some[str], "where the file is published, in the order to try"] = ()
    mirror: Annotated[str | None, "where it lies in a data mirror; none: there by its name"] = None
    made: Annotated[
        dict[str, Any] | None, "instead of urls: the recipe of draws (concord.sampling.certified)"
    ] = None
    kept: Annotated[bool, "instead of urls: it lies in the folder recorded beside the registry"] = (
        False
    )


class Dataset(Options):
    """A data set: what it is, and its files by name."""

    description: Annotated[str, "what the rows are and how many there are"]
    license: Annotated[str, "terms of use as the publisher states them"]
    citation: Annotated[str, "the publication to cite"]
    files: Annotated[dict[str, DataFile], "the files, by name"]


def load_registry(path: str | Path = REGISTRY) -> dict[str, Dataset]:
    """Return the data sets by name, which are read once until the file changes.

    A ConcordError if the file is missing, is not YAML, or has an unknown, missing or ill-formed
    entry.
    """
    return _read(path, signature(path))


@lru_cache(maxsize=8)
def _read(path: str | Path, as_of: tuple[int, ...] | None) -> dict[str, Dataset]:
    document = load_yaml(path)
    if not isinstance(document, dict):
        raise ConcordError(f"{path}: it is not a mapping of data set names to entries")
    _check_names(document, str(path))
    return {name: _dataset(entry, f"{path}: {name}") for name, entry in document.items()}


def find(name: str, registry: str | Path = REGISTRY) -> DataFile:
    """Return the registered file ``DATASET/FILE``; a ConcordError names the nearest one."""
    datasets = load_registry(registry)
    dataset, _, file = str(name).partition("/")
    if dataset not in datasets:
        raise ConcordError(
            f"{name}: there is no data set {short(dataset)} in {registry}; "
            f"{nearest(dataset, datasets)}"
        )
    files = datasets[dataset].files
    if file not in files:
        raise ConcordError(
            f"{name}: a data file is named DATASET/FILE and {dataset} has none of this name; "
            f"{nearest(name, [f'{dataset}/{option}' for option in files])}"
        )
    return files[file]


def _check_names(names: Iterable[str], where: str) -> None:
    # Names become paths below resources/ and in the mirror, so they must not lead elsewhere.
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            raise ConcordError(
                f"{where}: {short(name)} cannot name a data set or file; use letters, digits, _.-"
            )


def _dataset(entry: Any, where: str) -> Dataset:
    dataset = options.build(Dataset, entry, where)
    if not dataset.files:
        raise ConcordError(f"{where}.files: is empty; list the data set's files, or remove it")
    _check_names(dataset.files, f"{where}.files")
    files = {name: _file(file, f"{where}.files.{name}") for name, file in dataset.files.items()}
    return replace(dataset, files=files)


def _file(entry: Any, where: str) -> DataFile:
    file = options.build(DataFile, entry, where)
    for key, texts, pattern, rule in (
        ("sha256", [file.sha256], "[0-9a-f]{64}", "64 lower-case digits, as sha256sum prints them"),
        (
            "mirror",
            [file.mirror or "a"],
            r"(?!.*\.\.)[\w.-]+(/[\w.-]+)*",
            "a path below the mirror",
        ),
        ("urls", file.urls, "https?://.*", "a web address; write https://... or http://..."),
    ):
        for text in texts:
            if not re.fullmatch(pattern, text):
                raise ConcordError(f"{where}.{key}: {short(text)} is not {rule}")
    if (bool(file.urls), file.made is not None, file.kept).count(True) != 1:
        raise ConcordError(f"{where}: a file has either urls, made or kept; give one of them")
    return file
