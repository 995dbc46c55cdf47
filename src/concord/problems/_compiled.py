"""The tied mixture's gradient as numba compiles it, the extra ``fast``.

It does the operations of ``tied_mixture._differentiate`` in their order, several points at once, so
that its gradients have the same bytes. For this numba must not reorder or fuse them: ``fastmath``
stays off, and nothing is called that a library computes (``_shares``).
"""

from typing import Any

import numpy as np
from numba import boolean, float64, njit, types, void

from concord.compiled.kernels import GRADIENT, compiled, shifted
from concord.problems._shares import LARGEST, LOG2_E, ROUND, P, Q

P0, P1, P2 = P
Q0, Q1 = Q
POSITIONS = types.Array(float64, 2, "A", readonly=True)  # of any strides
LINE, TABLE = float64[::1], float64[:, ::1]


@njit(error_model="numpy", inline="always")
def _share(middle, point, weight):  # type: ignore[no-untyped-def]
    y = (middle - point) * weight
    y = LARGEST if y > LARGEST else -LARGEST if y < -LARGEST else y  # nan stays nan
    rounded = y + ROUND
    f = y - (rounded - ROUND)
    s = f * f
    p = (((s * P2 + P1) * s) + P0) * f
    q = (s + Q1) * s + Q0
    lower = q - p
    return lower / ((q + p) * shifted(rounded) + lower)


@compiled(
    void(
        *(boolean, float64, LINE, TABLE),
        *(POSITIONS, TABLE, TABLE, float64[:, :], TABLE, LINE),
    )
)
def tied_mixture(
    tied: bool,
    precision: float,
    prior: np.ndarray,
    buffer: np.ndarray,
    x: np.ndarray,
    points: np.ndarray,
    totals: np.ndarray,
    out: np.ndarray,
    mask: np.ndarray,
    scale: np.ndarray,
) -> None:
    """Write the gradients at x, (m, 2), into out.

    points, totals, mask, scale: as of ``tied_mixture._differentiate``, but without entries where it
    has none. tied: whether the second mean is theta_1 + theta_2. precision: 1 / s. prior: that of
    an agent's share of the prior, (2,). buffer: (5, m).
    """
    rows, columns = points.shape
    weight, middle, mean, number, total = buffer[0], buffer[1], buffer[2], buffer[3], buffer[4]
    per_share = precision * LOG2_E
    for c in range(columns):
        first, second = x[c]
        mean[c] = first + second if tied else second
        weight[c] = (second if tied else second - first) * per_share
        middle[c] = (first + mean[c]) * 0.5
        number[c] = total[c] = 0.0
    for row in range(rows):
        point = points[row]
        # Of a loop without a choice, over few arrays, the compiler makes one that does several
        # columns at once.
        if mask.size:
            present = mask[row]
            for c in range(columns):
                share = _share(middle[c], point[c], weight[c]) * present[c]
                number[c] += share
                total[c] += share * point[c]
        else:
            for c in range(columns):
                share = _share(middle[c], point[c], weight[c])
                number[c] += share
                total[c] += share * point[c]
    for c in range(columns):
        first, second = x[c]
        seconds, moment = number[c] * precision, total[c] * precision
        if scale.size:
            seconds, moment = seconds * scale[c], moment * scale[c]
        second_pull = mean[c] * seconds - moment
        pull = first * (totals[0, c] - seconds) - (totals[1, c] - moment)
        out[c, 0] = (pull + second_pull if tied else pull) + first * prior[0]
        out[c, 1] = second_pull + second * prior[1]


@compiled(GRADIENT)
def everyone(x: np.ndarray, agents: np.ndarray, out: np.ndarray, tables: Any) -> None:
    """Write the gradients of all agents, of ``TiedMixture.tables``."""
    settings, points, totals, mask, buffer = tables[:5]
    tied_mixture(
        settings[0, 0] != 0.0, settings[0, 1], settings[1], buffer, x, points, totals, out, mask,
        settings[0, :0],
    )  # fmt: skip


@compiled(GRADIENT)
def chosen(x: np.ndarray, agents: np.ndarray, out: np.ndarray, tables: Any) -> None:
    """Write the gradients of these agents, of ``TiedMixture.tables``."""
    settings, points, totals, mask, buffer, own_points, own_totals, own_mask = tables
    for row in range(len(points)):
        for c in range(len(agents)):
            own_points[row, c] = points[row, agents[c]]
    for row in range(len(mask)):
        for c in range(len(agents)):
            own_mask[row, c] = mask[row, agents[c]]
    for c in range(len(agents)):
        own_totals[0, c], own_totals[1, c] = totals[0, agents[c]], totals[1, agents[c]]
    tied_mixture(
        settings[0, 0] != 0.0, settings[0, 1], settings[1], buffer, x, own_points, own_totals, out,
        own_mask, settings[0, :0],
    )  # fmt: skip
