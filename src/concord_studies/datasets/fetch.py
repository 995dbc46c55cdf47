"""Fetching data files: from the data mirror (a folder), then from the registry's hosts in turn.

A file is used only if its size and SHA-256 are the registered ones, wherever it comes from. A
download ends at that size, and after the time in which a slow host would have sent so much.
"""

import io
import logging
import os
import shutil
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import pooch
from requests import RequestException
from urllib3.exceptions import HTTPError

from concord import __version__
from concord.errors import ConcordError, short
from concord_studies.datasets.registry import find, mismatch
from concord_studies.home import REGISTRY
from concord_studies.io import whole_file

log = logging.getLogger(__name__)

MIRROR_VARIABLE = "CONCORD_DATA_MIRROR"
LEAST_RATE = 50_000  # bytes per second: what comes more slowly is asked of the next host


def fetch(
    name: str,
    destination: str | Path,
    mirror: str | Path | None = None,
    registry: str | Path = REGISTRY,
    *,
    timeout: float = 30.0,
) -> Path:
    """Put a verified copy of a registered file at ``destination``, and return its path.

    name: ``DATASET/FILE`` as in the registry, e.g. ``mnist/t10k-labels-idx1-ubyte.gz``.
    destination: path of the file to make. A file that is there is kept if it is right, else
    replaced.
    mirror: folder to look in before the hosts; without it, the variable ``CONCORD_DATA_MIRROR``.
    registry: the registry's path.
    timeout: longest wait for an answer or for the next bytes, in seconds. A host has twice as long
    in all, and a second for each ``LEAST_RATE`` bytes of the file.
    A ConcordError if the name is not registered, the mirror is not a folder, or no source has the
    right file; the message lists what each source answered.
    """
    file, folder = find(name, registry), _mirror_folder(mirror)
    destination = Path(destination)
    if destination.is_file() and mismatch(destination, file) is None:
        return destination
    place = file.mirror or name.partition("/")[2]
    copies: list[Path | str] = [] if folder is None else [folder / place]
    if file.in_repository:
        copies = [Path(registry).parent / "recorded" / name.partition("/")[2]]
    reasons = []
    for source in (*copies, *file.urls):
        try:
            with whole_file(destination) as part:
                if isinstance(source, Path):
                    _raise_if_refused(mismatch(source, file))
                    shutil.copyfile(source, part)
                else:
                    _download(source, part, file.bytes, timeout)
                    _raise_if_refused(mismatch(part, file))
            return destination
        except _Refused as error:
            reasons.append(f"{source} {error}")
            log.warning("%s: %s", name, reasons[-1])
    where = folder or (
        f"a folder and name that folder in the variable {MIRROR_VARIABLE} or as data_mirror in "
        f"config/config.yaml"
    )
    raise ConcordError(
        f"{destination} needs the data file {name}, and no source has it: {'; '.join(reasons)}; "
        f"put a copy named {place} ({file.bytes} bytes, SHA-256 {file.sha256}) into {where}"
    )


class _Refused(Exception):
    """The reason to try the next source of a file."""


def _raise_if_refused(why: str | None) -> None:
    """Raise ``_Refused`` with a reason to refuse a source. Nothing happens without a reason.

    why: the reason, or None.
    """
    if why is not None:
        raise _Refused(why)


class _BoundedFile(io.BufferedWriter):
    """A file that is written up to a size, beyond which ``_Refused`` is raised."""

    def __init__(self, path: Path, most: int) -> None:
        """Open the file at ``path``; most: its largest size, in bytes."""
        super().__init__(io.FileIO(path, "w"))
        self._most = most

    def write(self, chunk: Any) -> int:
        """Write a chunk, if the file is then not too large."""
        if self.tell() + len(chunk) > self._most:
            raise _Refused(f"sends more than the {self._most} bytes of the file")
        return super().write(chunk)


def _download(url: str, part: Path, size: int, timeout: float) -> None:
    """Download a file to ``part``, or raise ``_Refused`` with the reason of the failure.

    size: the registered one, in bytes.
    """
    # No compression in transit: sizes and hashes are those of the file as it is stored.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"concord/{__version__}"}
    load = pooch.HTTPDownloader(chunk_size=1 << 16, timeout=timeout, headers=headers)
    end: Future[None] = Future()

    def load_into(file: _BoundedFile) -> None:
        """Write the download to an open file; closing the file ends the download."""
        try:
            end.set_result(load(url, file, None))
        except Exception as error:
            end.set_exception(error)

    limit = 2 * timeout + size / LEAST_RATE
    try:
        with _BoundedFile(part, size) as file:
            # A thread of its own: each byte that comes renews the wait for the next one.
            Thread(target=load_into, args=(file,), daemon=True).start()
            end.result(limit)
    except TimeoutError:
        raise _Refused(f"failed: it has not sent {size} bytes in {round(limit, 1)} s") from None
    except (RequestException, HTTPError, ValueError) as error:  # ValueError: a wrong redirect
        raise _Refused(f"failed: {short(str(error))}") from error


def _mirror_folder(mirror: str | Path | None) -> Path | None:
    """Return the folder of the data mirror, or of the variable's. None if neither names one."""
    value = mirror or os.environ.get(MIRROR_VARIABLE)
    folder = os.path.expanduser(value) if value else None  # Path's has no sentence for ~nobody
    if folder and not Path(folder).is_dir():
        raise ConcordError(
            f"{'data_mirror' if mirror else MIRROR_VARIABLE}: {str(value)!r} is not a folder; name "
            f"the folder that holds the data files, or leave it empty to download them"
        )
    return Path(folder) if folder else None
