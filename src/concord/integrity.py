"""Integrity: a result that is stale, damaged or another one's is never used.

- A result is written under a temporary name and renamed when it is whole (``io.whole``).
- Beside it is its seal, a ``.json``: the SHA-256 of the files made together, and ``made``, digests
  of what they were made from (the run or the entry of the study, the code that was imported, the
  data, the results that were read).
- Every stage refuses a result whose bytes have changed, or that was not made from the present
  configuration, code and data.
- The workflow makes such a result again, whatever Snakemake has on record, and whoever else works
  in the folder. One Snakemake at a time does (``io.hold``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from concord.errors import ConcordError
from concord.io import whole
from concord.provenance import sha256

Made = Mapping[str, str]

AGAIN = "delete the file to have it made again"
_MEANINGS = {"run": "run.yaml", "chains": "range of chains", "entry": "configuration"}


def seal(outputs: Iterable[Path], made: Made, **more: Any) -> None:
    """Write the digests of results that were made together, into the ``.json`` beside the first."""
    outputs = list(outputs)
    digests = {path.name: sha256(path) for path in outputs}
    with whole(outputs[0].with_suffix(".json")) as path:
        text = json.dumps({"made": made, "sha256": digests, **more}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")


def _seal_of(path: Path) -> tuple[Made, Mapping[str, str]]:
    """Return ``made`` and the digests; nothing where the ``.json`` is missing or none of ours."""
    try:
        document = json.loads(path.with_suffix(".json").read_bytes())
        return dict(document["made"]), dict(document["sha256"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}, {}


def sealed(path: Path) -> tuple[Made, str]:
    """Return what a result was made from, and its SHA-256, as its seal has them; or nothing."""
    made, digests = _seal_of(path)
    return made, str(digests.get(path.name, ""))


def intact(path: Path) -> Made:
    """Return what a result was made from; nothing if a file made with it has changed since."""
    made, digests = _seal_of(path)
    try:
        whole = all(sha256(path.with_name(name)) == digest for name, digest in digests.items())
    except OSError:
        whole = False
    return made if whole else {}


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
