"""The tied mixture's gradient as numba compiles it, the extra ``fast``.

It does the operations of ``tied_mixture._differentiate`` in their order, several points at once, so
that its gradients have the same bytes. For this numba must not reorder or fuse them: ``fastmath``
stays off, and nothing is called that a library computes (``_shares``).
"""

import numpy as np
from numba import boolean, float64, int64, types, void

from concord.compiled.kernels import compiled
from concord.problems._shares import LARGEST, LOG2_E, ROUND, P, Q

P0, P1, P2 = P
Q0, Q1 = Q
POSITIONS = types.Array(float64, 2, "A", readonly=True)  # of any strides
LINE, TABLE = float64[::1], float64[:, ::1]


@compiled(
    void(
        *(boolean, float64, LINE, TABLE, int64[::1]),
        *(POSITIONS, TABLE, TABLE, float64[:, :], TABLE, LINE),
    )
)
def tied_mixture(
    tied: bool,
    precision: float,
    prior: np.ndarray,
    buffer: np.ndarray,
    bits: np.ndarray,
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
    an agent's share of the prior, (2,). buffer: (7, m). bits: (m,), integers of 64 bits.
    """
    rows, columns = points.shape
    weight, middle, mean, number = buffer[0], buffer[1], buffer[2], buffer[3]
    total, share, lower = buffer[4], buffer[5], buffer[6]
    power, per_share = bits.view(np.float64), precision * LOG2_E
    for c in range(columns):
        first, second = x[c]
        mean[c] = first + second if tied else second
        weight[c] = (second if tied else second - first) * per_share
        middle[c] = (first + mean[c]) * 0.5
        number[c] = total[c] = 0.0
    for row in range(rows):
        point = points[row]
        # Of loops that use few arrays the compiler makes ones that do several columns at once.
        for c in range(columns):
            share[c] = (middle[c] - point[c]) * weight[c]
        for c in range(columns):
            y = share[c]
            y = LARGEST if y > LARGEST else -LARGEST if y < -LARGEST else y  # nan stays nan
            power[c] = y + ROUND
            f = y - (power[c] - ROUND)
            s = f * f
            p = (((s * P2 + P1) * s) + P0) * f
            q = (s + Q1) * s + Q0
            share[c], lower[c] = q + p, q - p
        for c in range(columns):
            bits[c] = bits[c] << 52
        for c in range(columns):
            share[c] = lower[c] / (share[c] * power[c] + lower[c])
        if mask.size:
            present = mask[row]
            for c in range(columns):
                share[c] *= present[c]
        for c in range(columns):
            number[c] += share[c]
            total[c] += share[c] * point[c]
    for c in range(columns):
        first, second = x[c]
        seconds, moment = number[c] * precision, total[c] * precision
        if scale.size:
            seconds, moment = seconds * scale[c], moment * scale[c]
        second_pull = mean[c] * seconds - moment
        pull = first * (totals[0, c] - seconds) - (totals[1, c] - moment)
        out[c, 0] = (pull + second_pull if tied else pull) + first * prior[0]
        out[c, 1] = second_pull + second * prior[1]
