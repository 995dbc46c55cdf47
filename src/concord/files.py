"""Writing files: YAML, and results that appear whole or not at all."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from concord.errors import ConcordError


def dump_yaml(mapping: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text, keys in the order given."""
    import yaml

    return yaml.dump(
        json.loads(json.dumps(mapping)),
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


def check_folder(folder: Path) -> None:
    """Check that a folder is one, or could be made: neither it nor what it is in is a file or loop.

    Raises
    ------
    ConcordError
        With what is in its place.
    """
    place = _there(folder)
    if not os.path.isdir(place):
        raise ConcordError(f"{place}: it is no folder; remove it, or name another one")


def check_writable(*paths: Path) -> None:
    """Check that this user may write to files and folders, or make those that are not there.

    Raises
    ------
    ConcordError
        With the first that may not be written to.
    """
    for place in map(_there, paths):
        if not os.access(place, os.W_OK):
            raise ConcordError(
                f"{place}: it cannot be written to; allow it, or work in a copy of the project"
            )


def _there(path: Path) -> Path:
    """Return a path, or the nearest of its parents that is there."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside ``path``; rename it to ``path`` if all goes well.

    The temporary name is ``.<stem>.concord-<host>-<process>-<chance><suffix>``, and what a killed
    process left under such a name is removed; no other file is. A process that still works on the
    file (jobs outlive a Snakemake that is killed) is left alone: who comes last has the file.

    Raises
    ------
    ConcordError
        If ``path`` is there and is no regular file.
    OSError
        With the name of ``path`` if it comes without one, as that of a full disk does.
    """
    if path.exists() and not path.is_file():  # a folder, or a device such as /dev/null
        raise ConcordError(f"{path}: it is not a file that could be replaced; name another one")
    path.parent.mkdir(parents=True, exist_ok=True)
    start = f".{path.stem}.concord-"
    temporaries = re.compile(
        rf"{re.escape(start)}([0-9a-f]{{8}})-(\d+)-[a-z0-9_]{{8}}{re.escape(path.suffix)}"
    )
    for left in path.parent.iterdir():
        named = temporaries.fullmatch(left.name)
        if named and not _in_use(left, named[1], int(named[2])):
            with suppress(OSError):  # another user's, perhaps
                left.unlink()
    try:
        handle, name = tempfile.mkstemp(
            prefix=f"{start}{_host()}-{os.getpid()}-", suffix=path.suffix, dir=path.parent
        )
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's files are private
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def _in_use(temporary: Path, host: str, process: int) -> bool:
    """Tell whether the process that made a temporary file may still be writing it.

    One on another machine cannot be asked; but no file takes an hour to write.
    """
    try:
        if host != _host():
            return time.time() - temporary.stat().st_mtime < 3600
        os.kill(process, 0)
    except PermissionError:  # it is there, and another user's
        return True
    except (OverflowError, OSError):
        return False
    return True


def _host() -> str:
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
