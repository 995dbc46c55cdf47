"""Integrity: a result that is stale or damaged, or belongs to another run, is never used.

1. A file appears whole: it is written under a random name and renamed (``io.whole``).
2. Files that one job makes are sealed by the ``.json`` beside the first: their SHA-256, what they
   were made from (run or entry, code, data, the results that were read), and its own SHA-256.
3. What reads a result refuses it where it, or its seal, is not as it was written, or where it was
   made from another configuration, code or data. Pages show only files that their seals list.
4. A seal has the sizes and times of its files, too: planning reads a file only where these differ.

What is made again, and why, is told by ``concord_studies.workflow``.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from concord.errors import ConcordError
from concord_studies.io import regular, whole
from concord_studies.provenance import sha256

Made = Mapping[str, str]

AGAIN = "delete the file to have it made again"
_MEANINGS = {"run": "run.yaml", "chains": "range of chains", "entry": "configuration"}
_OWN = b',\n "seal": "'


def seal(outputs: Iterable[Path], made: Made, **more: Any) -> None:
    """Write the seal of results that were made together, with more to say, beside the first."""
    outputs = list(outputs)
    path = _beside(outputs[0])
    names = {os.path.relpath(output, path.parent): output for output in outputs}
    # Taken before the file is read: whoever changes it meanwhile is noticed.
    seen = {name: _stat(output) for name, output in names.items()}
    digests = {name: sha256(output) for name, output in names.items()}
    text = json.dumps({"made": made, "sha256": digests, "seen": seen, **more}, indent=1)
    body = text.removesuffix("\n}").encode()
    with whole(path) as temporary:
        temporary.write_bytes(body + _OWN + _end(body))


def write(texts: Mapping[Path, str], made: Made, drawn: Iterable[Path] = (), **more: Any) -> None:
    """Write texts whole, and the seal of these and of what was ``drawn`` with them."""
    for output, text in texts.items():
        with whole(output) as path:
            path.write_text(text, encoding="utf-8")
    seal([*texts, *drawn], made, **more)


def _stat(path: Path) -> list[int]:
    """Return what changes when a file is written: its size, and when that was, in nanoseconds."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _beside(path: Path) -> Path:
    """Return where the seal of a result is; of a path without a name the path."""
    return path.with_suffix(".json") if path.name else path


def _end(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b'"\n}\n'


def _read(path: Path) -> dict[str, Any]:
    """Return what the seal of a result says; nothing where it is missing, or not as it was."""
    try:
        with open(_beside(path), "rb", opener=regular) as file:
            return _whole(file.read())
    except OSError:
        return {}


def _whole(content: bytes) -> dict[str, Any]:
    body, _, end = content.rpartition(_OWN)
    return dict(json.loads(content)) if end == _end(body) else {}


def sealed(path: Path) -> tuple[Made, str]:
    """Return what a result was made from, and its SHA-256, as its seal has them; or nothing."""
    document = _read(path)
    return document.get("made", {}), document.get("sha256", {}).get(path.name, "")


def _changed(path: Path, document: Mapping[str, Any], look: bool = False) -> Path | None:
    """Return the first file of a seal that is not as it was written, the seal itself included.

    ``look``: whether a file of the same size and time counts as the same without being read.
    """
    if not document:
        return _beside(path)
    for name, digest in document["sha256"].items():
        file = path.parent / name
        try:
            same = look and _stat(file) == document.get("seen", {}).get(name)
            if not same and sha256(file) != digest:
                return file
        except OSError:
            return file
    return None


def intact(path: Path) -> Made:
    """Return what a result was made from; nothing if a file made with it has changed since.

    A file whose size and time are those of its seal is not read: planning looks at thousands.
    """
    document = _read(path)
    return {} if _changed(path, document, look=True) else document["made"]


def document(path: Path) -> Mapping[str, Any]:
    """Return all that the seal of a result says.

    Raises
    ------
    ConcordError
        If the result, its seal, or a file made with it is not as it was written.
    """
    found = _read(path)
    if changed := _changed(path, found):
        raise ConcordError(f"{changed}: it is not as it was written; {AGAIN}")
    return found


def check(path: Path, wanted: Made | None = None) -> str:
    """Return the SHA-256 of a sealed result.

    Raises
    ------
    ConcordError
        If it is not as it was written, or was not made from what is ``wanted`` (of which only the
        digests given are compared; none: it is taken whatever it was made from).
    """
    made, expected = sealed(path)
    digest = sha256(path)
    if expected != digest:
        raise ConcordError(f"{path}: it is not as it was written; {AGAIN}")
    wanted = wanted or {}
    other = [_MEANINGS.get(name, name) for name in wanted if made.get(name) != wanted[name]]
    if other:
        raise ConcordError(f"{path}: it was made from another {' and '.join(other)}; {AGAIN}")
    return digest
