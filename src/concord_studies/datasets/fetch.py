"""Fetching data files: from the data mirror (a folder), then from the registry's hosts in turn.

A file is used only if its size and SHA-256 are the registered ones, wherever it comes from.
"""

import contextlib
import io
import logging
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pooch
from requests import RequestException
from urllib3.exceptions import HTTPError

from concord import __version__
from concord.errors import ConcordError, short
from concord_studies.datasets.registry import DataFile, Refused, check, find
from concord_studies.home import REGISTRY
from concord_studies.io import whole

log = logging.getLogger(__name__)

MIRROR_VARIABLE = "CONCORD_DATA_MIRROR"


def fetch(
    name: str,
    destination: str | Path,
    mirror: str | Path | None = None,
    registry: str | Path = REGISTRY,
    *,
    timeout: float = 30.0,
    limit: float | None = None,
) -> Path:
    """Put a verified copy of a registered file at ``destination``, and return its path.

    name: ``DATASET/FILE`` as in the registry, e.g. ``mnist/t10k-labels-idx1-ubyte.gz``.
    destination: path of the file to make. A file that is there is kept if it is right, else
    replaced.
    mirror: folder to look in before the hosts; without it, the variable ``CONCORD_DATA_MIRROR``.
    registry: the registry's path.
    timeout: longest wait for an answer or for the next bytes, in seconds.
    limit: longest time for one host in seconds; without it a minute, and what the file takes at 20
    kB/s. Kept in the main thread.
    A ConcordError if the name is not registered, the mirror is not a folder, the destination cannot
    be written, or no source has the right file; the message lists what each source answered.
    """
    file = find(name, registry)
    destination, folder = Path(destination), _mirror_folder(mirror)
    place = file.mirror or name.partition("/")[2]
    copies: list[Path | str] = [] if folder is None else [folder / place]
    if file.kept:
        copies = [Path(registry).parent / "recorded" / name.partition("/")[2]]
    reasons = []
    try:
        if destination.exists():
            try:
                check(destination, file)
                return destination
            except Refused as error:
                log.warning("%s: replaced, because it %s", destination, error)
                destination.unlink()
        for source in (*copies, *file.urls):
            try:
                with whole(destination) as part:
                    if isinstance(source, Path):
                        _copy(source, part, file)
                    else:
                        with _within(60 + file.bytes / 20_000 if limit is None else limit):
                            _download(source, part, file, timeout)
                    check(part, file)
                return destination
            except Refused as error:
                reasons.append(f"{source} {error}")
                log.warning("%s: %s", name, reasons[-1])
    except OSError as error:
        detail = error.strerror or str(error)
        raise ConcordError(f"{destination}: the file cannot be written ({detail})") from error
    where = folder or (
        f"a folder and name that folder in the variable {MIRROR_VARIABLE} or as data_mirror in "
        f"config/config.yaml"
    )
    raise ConcordError(
        f"{destination} needs the data file {name}, and no source has it: {'; '.join(reasons)}; "
        f"put a copy named {place} ({file.bytes} bytes, SHA-256 {file.sha256}) "
        f"into {where}"
    )


def _mirror_folder(mirror: str | Path | None) -> Path | None:
    value = mirror or os.environ.get(MIRROR_VARIABLE)
    folder = os.path.expanduser(value) if value else None  # Path's has no sentence for ~nobody
    if folder and not Path(folder).is_dir():
        raise ConcordError(
            f"{'data_mirror' if mirror else MIRROR_VARIABLE}: {str(value)!r} is not a folder; name "
            f"the folder that holds the data files, or leave it empty to download them"
        )
    return Path(folder) if folder else None


def _copy(source: Path, part: Path, file: DataFile) -> None:
    try:
        check(source, file)
    except OSError as error:
        raise Refused(f"cannot be read ({error.strerror})") from error
    shutil.copyfile(source, part)


def _download(url: str, part: Path, file: DataFile, timeout: float) -> None:
    # No compression in transit: sizes and hashes are those of the file as it is stored.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"concord/{__version__}"}
    load = pooch.HTTPDownloader(chunk_size=1 << 16, timeout=timeout, headers=headers)
    try:
        with _Bounded(part, file.bytes) as stream:
            load(url, stream, None)
    except (RequestException, HTTPError, ValueError) as error:  # ValueError: a wrong redirect
        cause: BaseException = error
        while cause.__context__ is not None:  # below the libraries' own wrappings
            cause = cause.__context__
        raise Refused(f"failed: {short(str(cause))}") from error


class _Bounded(io.FileIO):
    """A file that refuses to grow much beyond a size."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(path, "w")
        self.size = size

    def write(self, chunk: Any) -> int:
        if self.tell() > self.size:
            raise Refused(f"sends more than the registered {self.size} bytes")
        return super().write(chunk)


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise ``Refused`` in what takes longer, wherever it waits; in the main thread only.

    Timeouts of a connection begin anew with every byte, and so never end what drips.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return

    def stop(*_: object) -> None:
        raise Refused(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again, if it came where errors are ignored
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
