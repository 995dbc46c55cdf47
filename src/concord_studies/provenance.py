"""Where a result comes from: version, commit, lock file and time, in a ``.json`` beside it.

That file has the SHA-256 of all files that were made together. Whoever reads one of them checks it,
so that what was cut, edited or copied in part is refused.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import concord
from concord.errors import ConcordError
from concord_studies.home import HOME
from concord_studies.io import read_text, write_whole

SOURCE = Path(__file__).resolve().parents[1]
AGAIN = "delete the file to have it made again"


def describe() -> dict[str, Any]:
    """Return version, commit and lock file of this project, Python's version, and the time."""
    lock = HOME / "envs" / "requirements.lock"
    return {
        "concord": concord.__version__,
        "commit": commit(),
        "lock": sha256(lock) if lock.is_file() else None,
        "python": sys.version.split()[0],
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def commit() -> str | None:
    """Return the git commit of this project's source, with "-dirty" where tracked files differ.

    None where the source is in no repository, or in one of somebody else's that does not track it.
    """
    try:
        _git("ls-files", "--error-unmatch", "--", str(Path(concord.__file__)))
        return _git("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    """Return the output of a git command, run in the folder of the source."""
    # GIT_DIR and the like may name another repository.
    plain = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *arguments]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 10, "check": True}
    return subprocess.run(command, cwd=SOURCE, env=plain, **options).stdout.strip()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def provenance_path(path: Path) -> Path:
    """Return the path of the file with the provenance of a result."""
    return path.with_suffix(".json")


def write_provenance(outputs: Iterable[Path], parts_seconds: float = 0.0, **more: Any) -> None:
    """Write provenance and SHA-256 of files that were made together, beside the first.

    It has the CPU seconds of this process, with ``parts_seconds``, those of jobs that made parts.
    """
    outputs = list(outputs)
    folder = outputs[0].parent
    digests = {os.path.relpath(output, folder): sha256(output) for output in outputs}
    seconds = {"job_seconds": round(time.process_time() + parts_seconds, 2)}
    stated = {**describe(), **seconds, "sha256": digests, **more}
    text = json.dumps(stated, indent=1, default=lambda number: number.item())  # NumPy's
    write_whole(provenance_path(outputs[0]), text + "\n")


def write(texts: Mapping[Path, str], drawn: Iterable[Path] = (), **more: Any) -> None:
    """Write texts whole, and the provenance of these and of what was ``drawn`` with them."""
    for output, text in texts.items():
        write_whole(output, text)
    write_provenance([*texts, *drawn], **more)


def read_provenance(path: Path) -> dict[str, Any]:
    """Return the provenance of a result. A ConcordError if a file is not as it was written."""
    source = provenance_path(path)
    try:
        about: dict[str, Any] = json.loads(read_text(source))
        digests = {source.parent / name: text for name, text in about["sha256"].items()}
    except (ConcordError, ValueError, KeyError, TypeError, AttributeError):
        raise ConcordError(f"{source}: it is missing or damaged; {AGAIN} ({path.name})") from None
    first = next(iter(digests), path)  # for which its job is asked
    for file, expected in digests.items():
        if not file.is_file() or sha256(file) != expected:
            remedy = AGAIN if file == first else f"delete {first} to have it made again"
            raise ConcordError(f"{file}: it is not as it was written; {remedy}")
    return about


def read_planned(path: Path) -> str | None:
    """Return the digest of the statement that a result was made from. None if it does not say."""
    try:
        planned: str | None = json.loads(read_text(provenance_path(path)))["planned"]
    except (ConcordError, ValueError, KeyError, TypeError):
        return None
    return planned
