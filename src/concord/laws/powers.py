r"""Powers of an affine map, by which a law gets over many iterations in few products.

With :math:`T(m, C) = (A m + c, A C A^\top + Q)` the maps T, T^2, T^4, ... make the law after any
number of steps from as many products as that number has binary digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Powers:
    """Powers of two of what has ``of`` and ``then``, as ``exact.Affine`` does, made when needed."""

    def __init__(self, once: Any) -> None:
        self._powers = [once]

    def after(self, steps: int, *state: np.ndarray) -> Any:
        """Return the state, which ``of`` takes and returns, after so many applications."""
        power = 0
        while steps:
            if power == len(self._powers):
                self._powers.append(self._powers[-1].then(self._powers[-1]))
            if steps & 1:
                state = self._powers[power].of(*state)
            steps, power = steps >> 1, power + 1
        return state
