r"""The shares 1 / (1 + 2^y) of the tied mixture, to the same bits on every machine.

With :math:`y = k + f`, k an integer and :math:`|f| \le \tfrac12`,

.. math::
    2^f = \frac{q + p}{q - p}, \qquad p = f (P_0 + P_1 f^2 + P_2 f^4), \qquad
    q = Q_0 + Q_1 f^2 + f^4, \qquad \frac{1}{1 + 2^y} = \frac{q - p}{q - p + 2^k (q + p)},

where p / q is :math:`\tanh(\tfrac12 f \log 2)` to 5e-18 of it (the coefficients are of Remez'
algorithm), and the bits of :math:`2^k` are made of those of k. Shares are within two units of the
last place. All operations are those that IEEE 754 defines to the last bit; an exponential would be
that of numpy, of its version, of the C library or of the processor.
"""

from collections.abc import Callable

import numpy as np

LOG2_E = 1.4426950408889634
P = 1513.8603572515423, 20.201667274658167, 0.023094408441817863
Q = 4368.07766001039, 233.17769678806853
ROUND = 1.5 * 2.0**52 + 1023  # numbers near it are integers
LARGEST = 1000.0  # beyond it 1 + 2^y is 2^y, or one


def shares_of(shape: tuple[int, int]) -> tuple[Callable[..., None], np.ndarray]:
    """Return ``shares(middle, points, weight)`` and where it writes them, of this shape.

    y is (middle - points) weight; middle and weight have an entry for each column.
    """
    f, power, s, p = (np.empty(shape) for _ in range(4))
    bits = power.view(np.int64)
    # As arrays: numpy takes as long to convert a number as to add it to a hundred.
    rounding, largest, least, shift = map(np.array, (ROUND, LARGEST, -LARGEST, 52))
    (p0, p1, p2), (q0, q1) = map(np.array, P), map(np.array, Q)

    def shares(middle: np.ndarray, points: np.ndarray, weight: np.ndarray) -> None:
        np.subtract(middle, points, out=f)
        np.multiply(f, weight, out=f)
        f.clip(least, largest, f)
        np.add(f, rounding, out=power)  # whose last bits are k + 1023
        np.subtract(power, rounding, out=s)
        np.subtract(f, s, out=f)
        np.left_shift(bits, shift, out=bits)
        np.multiply(f, f, out=s)
        np.multiply(s, p2, out=p)
        np.add(p, p1, out=p)
        np.multiply(p, s, out=p)
        np.add(p, p0, out=p)
        np.multiply(p, f, out=p)
        np.add(s, q1, out=f)
        np.multiply(f, s, out=f)
        np.add(f, q0, out=f)
        np.add(f, p, out=s)
        np.subtract(f, p, out=f)
        np.multiply(s, power, out=s)
        np.add(s, f, out=s)
        np.divide(f, s, out=f)

    return shares, f
