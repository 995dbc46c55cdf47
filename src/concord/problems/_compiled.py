r"""The tied mixture's gradient as numba compiles it, the extra ``fast``.

It is what ``tied_mixture`` computes, but for the exponential, which numpy takes number by number
from the C library. Here :math:`e^z = 2^k e^r` with :math:`|r| \le \tfrac12 \log 2`, and

.. math::
    e^r = \frac{q + p}{q - p} (1 + \epsilon), \qquad |\epsilon| < 2 \cdot 10^{-19}, \\
    p = r \Bigl(\tfrac12 + \tfrac{r^2}{66} + \tfrac{r^4}{15840}\Bigr), \qquad
    q = 1 + \tfrac{5 r^2}{44} + \tfrac{r^4}{792} + \tfrac{r^6}{665280}

(the Padé approximant of order 6), so that the processor does several points at once, and a share
:math:`1 / (1 + e^z) = (q - p) / (q - p + 2^k (q + p))` is one division. Shares are within two
units of the last place, and for |z| > 708 within 1e-307; the same bytes on all processors.
"""

from __future__ import annotations

import numba
import numpy as np

# log 2 to 1e-26: multiples of the first part by k, of 11 bits, are exact.
HIGH, LOW = float.fromhex("0x1.62e42fecp-1"), 4.236521365809284e-10
# Beyond it 1 + e^z is e^z, or one, and 2^k stays a number.
LARGEST = 708.0
# Numbers near it are integers, whose last bits are those of what was added.
ROUND = 1.5 * 2.0**52


@numba.njit(error_model="numpy")
def tied_mixture(
    tied: bool,
    precision: float,
    prior: np.ndarray,
    buffer: np.ndarray,
    exponents: np.ndarray,
    x: np.ndarray,
    points: np.ndarray,
    totals: np.ndarray,
    out: np.ndarray,
    mask: np.ndarray | None,
    scale: np.ndarray | None,
) -> None:
    """Write the gradients at x, (m, 2), into out.

    points, totals, mask, scale: as of ``tied_mixture._differentiate``. tied: whether the second
    mean is theta_1 + theta_2. precision: 1 / s. prior: that of an agent's share of the prior, (2,).
    buffer: (7, m). exponents: (m,), integers of 64 bits.
    """
    rows, columns = points.shape
    weight, middle, mean, number = buffer[0], buffer[1], buffer[2], buffer[3]
    total, share, lower = buffer[4], buffer[5], buffer[6]
    powers = exponents.view(np.float64)
    for c in range(columns):
        first, second = x[c]
        mean[c] = first + second if tied else second
        weight[c] = (second if tied else second - first) * precision
        middle[c] = (first + mean[c]) * 0.5
        number[c] = total[c] = 0.0
    for row in range(rows):
        point = points[row]
        # Of loops that use few arrays the compiler makes ones that do several columns at once.
        for c in range(columns):
            share[c] = (middle[c] - point[c]) * weight[c]
        for c in range(columns):
            z = share[c]
            z = LARGEST if z > LARGEST else -LARGEST if z < -LARGEST else z  # nan stays nan
            powers[c] = z * (1 / (HIGH + LOW)) + ROUND
            k = powers[c] - ROUND
            r = (z - k * HIGH) - k * LOW
            s = r * r
            p = r * (1 / 2 + s * (1 / 66 + s * (1 / 15840)))
            q = 1.0 + s * (5 / 44 + s * (1 / 792 + s * (1 / 665280)))
            share[c], lower[c] = q + p, q - p
        for c in range(columns):
            exponents[c] = (exponents[c] + 1023) << 52  # last bits are k's: those of 2^k
        for c in range(columns):
            share[c] = lower[c] / (lower[c] + powers[c] * share[c])
        if mask is not None:
            present = mask[row]
            for c in range(columns):
                share[c] *= present[c]
        for c in range(columns):
            number[c] += share[c]
            total[c] += share[c] * point[c]
    for c in range(columns):
        first, second = x[c]
        seconds, moment = number[c] * precision, total[c] * precision
        if scale is not None:
            seconds, moment = seconds * scale[c], moment * scale[c]
        second_pull = mean[c] * seconds - moment
        pull = first * (totals[0, c] - seconds) - (totals[1, c] - moment)
        out[c, 0] = (pull + second_pull if tied else pull) + first * prior[0]
        out[c, 1] = second_pull + second * prior[1]
