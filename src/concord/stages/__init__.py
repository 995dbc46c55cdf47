"""The stages resolve, sample, measure, draw and judge: each reads files and writes results, whole.

``made`` of a stage returns what its results are made from: it writes that beside them, and the
workflow compares it with what is there (see ``concord.integrity``).
"""

from __future__ import annotations

from concord.errors import ConcordError


def refuse_other_code(code: str, expected: str | None) -> None:
    """Refuse code other than the workflow started with; without ``expected``, accept any."""
    if expected is not None and code != expected:
        raise ConcordError(
            "the code of Concord has changed since the workflow started; type its command again"
        )
