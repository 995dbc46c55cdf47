"""The stages resolve, sample, measure, draw and judge: each reads files and writes results, whole.

``made`` of a stage returns what its results are made from: it writes that beside them, and the
workflow compares it with what stands there (see ``concord.integrity``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from concord.errors import ConcordError
from concord.integrity import AGAIN
from concord.keys import REQUIRED, check_resolved
from concord.provenance import digest
from concord.reading import load_yaml

if TYPE_CHECKING:
    from concord.assemble import Parts


def load_run(path: Path, expected: str | None = None) -> tuple[dict[str, Any], Parts]:
    """Read a run.yaml, as ``read_run`` does, and assemble its parts.

    Raises
    ------
    ConcordError
        If an option is not stated: a default is part of a run's identity.
    """
    from concord.assemble import assemble, parse, unstated

    run = read_run(path, expected)
    try:
        check_resolved(run, str(path))
        options = parse(run, str(path))
        absent = unstated(run, options)
        if absent:
            raise ConcordError(f"{path}: {absent[0]} is not stated; {AGAIN}")
        return run, assemble(run, str(path), options)
    except ConcordError as error:
        raise ConcordError(str(error).replace(f"{path}.", f"{path}: ", 1)) from None


def refuse_other_code(code: str, expected: str | None) -> None:
    """Refuse to work with other code than the workflow started with; none expected: any will do."""
    if expected is not None and code != expected:
        raise ConcordError(
            "the code of Concord has changed since the workflow started; type its command again"
        )


def read_run(path: Path, expected: str | None = None) -> dict[str, Any]:
    """Read a run.yaml.

    Parameters
    ----------
    path
        The file.
    expected
        Digest of the run as the paper's file has it; none: the file is taken as it is.

    Raises
    ------
    ConcordError
        If it is not a whole run, or not the expected one: it is generated, so the remedy is to
        delete it.
    """
    try:
        run = load_yaml(path)
    except ConcordError as error:
        if not path.exists():
            raise
        raise ConcordError(f"{str(error).partition(';')[0]}; {AGAIN}") from None
    missing = [key for key in REQUIRED if not isinstance(run, dict) or key not in run]
    if missing:
        raise ConcordError(f"{path}: the key {missing[0]!r} is missing; {AGAIN}")
    if expected is not None and not _has_digest(run, expected):
        raise ConcordError(f"{path}: it is not what its paper's file resolves to; {AGAIN}")
    return run


def _has_digest(run: dict[str, Any], expected: str) -> bool:
    try:
        return digest(run) == expected
    except TypeError:  # keys that have no order, such as a text and a number
        return False
