"""Data files: the registry ``config/datasets.yaml`` and fetching with verification.

A file is used only if size and SHA-256 are the registered ones, wherever it comes from: the data
mirror (a folder, looked in first), the hosts in the registry's order, or a file already in place.
The readers of the files are in ``concord.datasets.readers``.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import secrets
import shutil
import signal
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any

from concord import __version__, options
from concord.datasets.readers import Digits, a9a, breast_cancer, magic, mnist, svhn
from concord.errors import ConcordError, nearest, short
from concord.io import load_yaml
from concord.options import Count, Options

__all__ = [
    "MIRROR_VARIABLE",
    "REGISTRY",
    "DataFile",
    "Dataset",
    "Digits",
    "a9a",
    "breast_cancer",
    "fetch",
    "find",
    "load_registry",
    "magic",
    "mnist",
    "svhn",
    "verify",
]

log = logging.getLogger(__name__)

REGISTRY = Path(__file__).resolve().parents[3] / "config" / "datasets.yaml"
MIRROR_VARIABLE = "CONCORD_DATA_MIRROR"

_CHUNK = 1 << 16
_EXCESS = 1 << 20  # bytes beyond the registered size after which reading a wrong file ends
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}


class DataFile(Options):
    """One downloadable file."""

    bytes: Annotated[Count, "size of the file"]
    sha256: Annotated[str, "SHA-256 of the file, 64 lower-case hexadecimal digits"]
    urls: Annotated[tuple[str, ...], "where the file is published, in the order to try"]


class Dataset(Options):
    """A data set: what it is, and its files by name."""

    description: Annotated[str, "what the rows are and how many there are"]
    license: Annotated[str, "terms of use as the publisher states them"]
    citation: Annotated[str, "the publication to cite"]
    files: Annotated[dict[str, DataFile], "the files, by name"]


def load_registry(path: str | Path = REGISTRY) -> dict[str, Dataset]:
    """Read the registry of data sets.

    Raises
    ------
    ConcordError
        If the file is missing, is not YAML, or has an unknown, missing or ill-formed entry.
    """
    document = load_yaml(path)
    if not isinstance(document, dict):
        raise ConcordError(f"{path}: it is not a mapping of data set names to entries")
    for name in document:
        _check_name(name, str(path))
    return {name: _dataset(entry, f"{path}: {name}") for name, entry in document.items()}


def _check_name(name: object, where: str) -> None:
    # Names become paths below resources/ and in the mirror, so they must not lead elsewhere.
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", str(name)) or not isinstance(name, str):
        raise ConcordError(
            f"{where}: {short(name)} cannot name a data set or file; use letters, digits and _ . -"
        )


def _dataset(entry: Any, where: str) -> Dataset:
    dataset = options.build(Dataset, entry, where)
    if not dataset.files:
        raise ConcordError(f"{where}.files: is empty; list the data set's files, or remove it")
    files = {}
    raw: dict[str, Any] = dict(dataset.files)  # build has checked the mapping, not its entries
    for name, mapping in raw.items():
        _check_name(name, f"{where}.files")
        file = options.build(DataFile, mapping, f"{where}.files.{name}")
        if not file.urls:
            raise ConcordError(f"{where}.files.{name}.urls: is empty; give at least one address")
        if not re.fullmatch("[0-9a-f]{64}", file.sha256):
            raise ConcordError(
                f"{where}.files.{name}.sha256: {file.sha256!r} is not 64 lower-case hexadecimal "
                f"digits; copy the output of sha256sum"
            )
        for index, url in enumerate(file.urls):
            if not re.match("https?://", url):
                raise ConcordError(
                    f"{where}.files.{name}.urls[{index}]: {short(url)} is not a web address; "
                    f"write https://... or http://..."
                )
        files[name] = file
    return Dataset(dataset.description, dataset.license, dataset.citation, files)


def find(name: str, registry: str | Path = REGISTRY) -> DataFile:
    """Return the registered file ``DATASET/FILE``; a ConcordError says what is nearest."""
    datasets = load_registry(registry)
    dataset, _, file = str(name).partition("/")
    if dataset not in datasets:
        raise ConcordError(
            f"{name}: there is no data set {short(dataset)} in {registry}; "
            f"{nearest(dataset, datasets)}"
        )
    files = datasets[dataset].files
    if file not in files:
        options = [f"{dataset}/{option}" for option in files]
        raise ConcordError(
            f"{name}: a data file is named DATASET/FILE and {dataset} has none of this name; "
            f"{nearest(name, options)}"
        )
    return files[file]


def verify(name: str, path: Path, registry: str | Path = REGISTRY) -> Path:
    """Return the path of a file in place if it is the registered ``DATASET/FILE``.

    Raises
    ------
    ConcordError
        If the name is not registered, or the file has another size or SHA-256.
    """
    file = find(name, registry)
    try:
        defect = _defect(path, file)
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error
    if defect is not None:
        raise ConcordError(f"{path}: has {defect}; delete the file and fetch it again")
    return path


def fetch(
    name: str,
    destination: str | Path,
    mirror: str | Path | None = None,
    registry: str | Path = REGISTRY,
    *,
    timeout: float = 30.0,
    attempts: int = 3,
    pause: float = 0.5,
    limit: float | None = None,
) -> Path:
    """Put a verified copy of a registered file at ``destination``.

    The mirror folder is looked in first, then the hosts are tried in order. A download grows in
    ``<destination>.part`` and is renamed once size and SHA-256 are right, so nothing unverified is
    ever seen under the final name. A download that was cut or killed goes on where it stopped.
    A second process that wants the same file waits for the first.

    Parameters
    ----------
    name
        ``DATASET/FILE`` as in the registry, e.g. ``mnist/t10k-labels-idx1-ubyte.gz``.
    destination
        Path of the file to make; missing folders are created. A file that is there is kept if it
        is right, else replaced.
    mirror
        Folder to look in before the hosts; without it, the variable ``CONCORD_DATA_MIRROR``.
    registry
        The registry's path.
    timeout
        Longest wait for an answer or for the next bytes, in seconds.
    attempts
        Failures in a row, without a byte gained, after which a host is given up.
    pause
        Wait before the second attempt in seconds, doubled for each further one.
    limit
        Longest time for one host in seconds, all attempts together; without it a minute, and what
        the file takes at 20 kB/s. Kept in the main thread.

    Raises
    ------
    ConcordError
        If the name is not registered, the mirror is not a folder, the destination cannot be
        written, or no source has the right file; the message lists what each source answered.
    """
    file = find(name, registry)
    destination = Path(destination)
    folder = _mirror_folder(mirror)
    try:
        if destination.is_dir():
            raise ConcordError(f"{destination}: is a folder; give the path of the file to make")
        destination.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if _defect(destination, file) is None:
                return destination
        with _partial(destination) as (stream, part):
            if destination.exists():  # unless another process finished it while this one waited
                defect = _defect(destination, file)
                if defect is None:
                    return destination
                log.warning("%s: replaced, because it has %s", destination, defect)
                destination.unlink()
            reasons: list[str] = []
            limit = _limit(file) if limit is None else limit
            for reason in _fill(name, stream, part, file, folder, timeout, attempts, pause, limit):
                if reason is None:
                    os.fsync(stream.fileno())
                    os.replace(part, destination)
                    for text in reasons:
                        log.warning("%s: %s", name, text)
                    return destination
                reasons.append(reason)
    except OSError as error:
        detail = error.strerror or str(error)
        raise ConcordError(f"{destination}: the file cannot be written ({detail})") from error
    place = (
        f"into {folder}"
        if folder is not None
        else f"into a folder and name that folder in the variable {MIRROR_VARIABLE} or as "
        f"data_mirror in config/config.yaml"
    )
    raise ConcordError(
        f"{destination} needs the data file {name}, and no source has it: {'; '.join(reasons)}; "
        f"put a copy named {name.partition('/')[2]} ({file.bytes} bytes, SHA-256 {file.sha256}) "
        f"{place}"
    )


def _limit(file: DataFile) -> float:
    return 60 + file.bytes / 20_000


def _mirror_folder(mirror: str | Path | None) -> Path | None:
    origin = "data_mirror" if mirror else MIRROR_VARIABLE
    value = mirror or os.environ.get(MIRROR_VARIABLE)
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise ConcordError(
            f"{origin}: {str(value)!r} is not a folder; name the folder that holds the data files, "
            f"or leave it empty to download them"
        )
    return folder


def _defect(path: Path, file: DataFile) -> str | None:
    """Say how the file at ``path`` differs from the registered one; None if it does not.

    Only a file of the right size is read: one may be endless, such as a pipe, or take hours.
    """
    import pooch

    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return "no size, not being a regular file"
    if status.st_size == file.bytes:
        digest = pooch.file_hash(str(path), alg="sha256")
        return None if digest == file.sha256 else f"SHA-256 {digest} instead of {file.sha256}"
    with path.open("rb") as stream:
        start = stream.read(512).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    html = start.startswith((b"<!doctype html", b"<html"))
    hint = " (it looks like an HTML page)" if html else ""
    return f"{status.st_size} bytes instead of {file.bytes}{hint}"


@contextlib.contextmanager
def _partial(destination: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Open ``<destination>.part`` for this process alone, keeping what an earlier one left there.

    The lock belongs to the open file, so the kernel frees it when a process is killed. On leaving,
    an empty file is removed and an unfinished download stays for the next call.
    """
    part = destination.with_name(destination.name + ".part")
    resumable = True
    while True:
        if part.exists() and not part.is_file():  # to open a pipe would take until it is read
            part.unlink()
        stream = part.open("ab")
        try:
            _lock(stream, part)
        except OSError:
            # A file system without locks: work in a file nobody else knows, so nothing is resumed.
            stream.close()
            with contextlib.suppress(FileNotFoundError):
                if part.stat().st_size == 0:
                    part.unlink()
            part = destination.with_name(f"{destination.name}.{secrets.token_hex(8)}.part")
            stream, resumable = part.open("xb"), False
            break
        # The owner before may have renamed, removed or lengthened the file this one waited for.
        if _is_at(stream, part):
            stream.seek(0, os.SEEK_END)
            break
        stream.close()
    try:
        yield stream, part
    finally:
        stream.flush()
        empty = os.fstat(stream.fileno()).st_size == 0
        if (empty or not resumable) and _is_at(stream, part):
            part.unlink()
        stream.close()


def _lock(stream: IO[bytes], part: Path) -> None:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.warning("%s: another process is downloading this file; waiting for it", part)
        fcntl.flock(stream, fcntl.LOCK_EX)


def _is_at(stream: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _empty(stream: IO[bytes]) -> None:
    stream.seek(0)
    stream.truncate()


def _fill(
    name: str,
    stream: IO[bytes],
    part: Path,
    file: DataFile,
    folder: Path | None,
    timeout: float,
    attempts: int,
    pause: float,
    limit: float,
) -> Iterator[str | None]:
    """Try one source after another; yield why it failed, or None once ``part`` is the file."""
    if stream.tell() >= file.bytes:  # killed after the last byte, or a remnant of another file
        if _defect(part, file) is None:
            yield None
        _empty(stream)
    if folder is not None:
        yield _copy(folder / name.partition("/")[2], stream, part, file)
    for url in file.urls:
        try:
            with _within(limit):
                reason = _download(url, stream, part, file, timeout, attempts, pause)
        except _TooLong:
            stream.flush()
            reason = f"{url} took longer than {limit:g} s"
        yield reason


def _copy(source: Path, stream: IO[bytes], part: Path, file: DataFile) -> str | None:
    try:
        if not source.is_file():
            return f"the mirror has no file {source}"
        defect = _defect(source, file)
        if defect is not None:
            return f"the mirror's copy {source} is not used, it has {defect}"
        with source.open("rb") as original:
            _empty(stream)
            shutil.copyfileobj(original, stream)
    except PermissionError as error:
        return f"the mirror's copy {source} cannot be read ({error.strerror})"
    stream.flush()
    return _defect(part, file)


class _TooLong(Exception):
    """A host was given enough time. No OSError, which the libraries would take for their own."""


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise ``_TooLong`` in what takes longer, wherever it waits; in the main thread only.

    Timeouts of a connection begin anew with every byte, and so never end what drips.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return

    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again, if it came where errors are ignored
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Unusable(Exception):
    """The host answered, and asking again would not change the answer."""


def _download(
    url: str,
    stream: IO[bytes],
    part: Path,
    file: DataFile,
    timeout: float,
    attempts: int,
    pause: float,
) -> str | None:
    """Append what is missing from one host; return why that failed, or None."""
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    longest = failures = 0
    while True:
        resumed = stream.tell() > 0
        try:
            _receive(url, stream, file, timeout)
        except _Unusable as error:
            return f"{url} {error}"
        except (RequestException, HTTPError) as error:
            reason = _reason(error, stream.tell(), file.bytes, timeout)
        except ValueError as error:  # such as a redirect to no address
            return f"{url} sent what is no HTTP ({error})"
        else:
            stream.flush()
            defect = _defect(part, file)
            if defect is None:
                return None
            _empty(stream)
            reason = f"sent {defect}"
            if not resumed:
                return f"{url} {reason}"
        # A cut that gained something does not count: a large file may need many.
        failures = 1 if stream.tell() > longest else failures + 1
        longest = max(longest, stream.tell())
        if failures >= attempts:
            return f"{url} {reason} (after {failures} attempts)"
        log.info("%s %s; trying again", url, reason)
        time.sleep(pause * 2 ** (failures - 1))


def _receive(url: str, stream: IO[bytes], file: DataFile, timeout: float) -> None:
    """Send one request and append the answer to ``stream``.

    pooch's own downloader is not used because it always starts at the first byte.
    """
    import requests

    start = stream.tell()
    # No compression in transit: offsets and hashes are those of the file as it is stored.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"concord/{__version__}"}
    if start:
        headers["Range"] = f"bytes={start}-"
    wait = (min(timeout, 10.0), timeout)
    with requests.get(url, headers=headers, stream=True, timeout=wait) as response:
        status = response.status_code
        if status in (200, 416):  # 416: the host's file ends before the remnant does
            _empty(stream)
        if status == 416 or status in _TRANSIENT:
            raise requests.RequestException(f"answered {status} {response.reason}")
        if status not in (200, 206):
            raise _Unusable(f"answered {status} {response.reason}")
        while chunk := response.raw.read(_CHUNK, decode_content=False):
            stream.write(chunk)
            if stream.tell() > file.bytes + _EXCESS:
                _empty(stream)
                raise _Unusable(f"sends a longer file than the registered {file.bytes} bytes")


def _reason(error: Exception, received: int, total: int, timeout: float) -> str:
    """Put a network error into a few words."""
    import requests
    from urllib3.exceptions import ProtocolError, ReadTimeoutError

    if isinstance(error, (requests.Timeout, ReadTimeoutError)):
        return f"gave no answer within {timeout:g} s"
    if isinstance(error, ProtocolError):
        return f"cut the connection after {received} of {total} bytes"
    if isinstance(error, requests.ConnectionError) and error.args:
        cause = getattr(error.args[0], "reason", error.args[0])
        return f"is not reachable ({str(cause).split(': ', 1)[-1]})"
    return str(error)
