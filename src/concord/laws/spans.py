"""Tell a long vector from a part that is seen of it, by those that were known before.

Steps whose schedules change are of this kind: their matrices are combinations of few, such as W,
the curvature and the noise's root.
"""

from __future__ import annotations

import numpy as np

MOST = 16  # directions of a span
ROUNDING = 6 * np.finfo(float).eps  # of what is seen, relative to the largest entry of its row


class Span:
    """The span of pairs of vectors, a seen and a known one, where the first determines the second.

    Seen vectors are (rows, columns), each row in units of its own; known ones (entries,).
    """

    def __init__(self) -> None:
        self._units, self._seen, self._known = np.empty(0), np.empty((0, 0)), np.empty((0, 0))

    def find(self, seen: np.ndarray) -> np.ndarray | None:
        """Return the known vector of a seen one; None where that is beyond the span.

        Directions in which known pairs hardly differ are known badly: what is seen of a vector far
        along them does not fit, and it is beyond the span.
        """
        if not len(self._known):
            return None
        lead, rest = self._split(seen)
        return lead @ self._known if (np.abs(rest) <= ROUNDING).all() else None

    def add(self, seen: np.ndarray, known: np.ndarray) -> None:
        """Add a pair of finite vectors; the span forgets others when it has ``MOST`` directions."""
        if not (np.isfinite(seen).all() and np.isfinite(known).all()):
            return
        if len(self._known) % MOST == 0:
            self._units = np.abs(seen).max(axis=1, keepdims=True)
            self._units[self._units == 0] = 1.0
            self._seen, self._known = np.empty((0, seen.size)), np.empty((0, known.size))
        lead, rest = self._split(seen)
        size = np.linalg.norm(rest)
        if size:
            self._seen = np.vstack([self._seen, rest / size])
            self._known = np.vstack([self._known, (known - lead @ self._known) / size])

    def _split(self, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a seen vector's coordinates in the span, and what is left of it, in units."""
        rest, lead = (seen / self._units).ravel(), np.zeros(len(self._seen))
        for _ in range(2):  # once more, since directions are orthogonal up to rounding
            part = self._seen @ rest
            lead, rest = lead + part, rest - part @ self._seen
        return lead, rest
