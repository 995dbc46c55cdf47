r"""The Langevin kick, of which the steps of all samplers are made.

.. math:: x' = x - \eta g + s\, w, \qquad w \sim N(0, I), \qquad s = \sqrt{2 \eta}

Arrays have shape (chains, agents, dim), or (chains, some agents, dim). All are the
caller's: nothing is allocated. The sums are taken in this order, so that a compiled loop gives the
same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def normal(rng: np.random.Generator, sd: Any, out: np.ndarray) -> np.ndarray:
    """Write normal numbers of mean 0 and standard deviation ``sd``, which broadcasts."""
    rng.standard_normal(out=out, dtype=out.dtype)
    return np.multiply(out, sd, out=out)


def kick(
    rng: np.random.Generator,
    eta: Any,
    g: np.ndarray,
    out: np.ndarray,
    x: np.ndarray | None = None,
    *,
    sd: Any = None,
    noise: np.ndarray | None = None,
    drift: np.ndarray | None = None,
) -> np.ndarray:
    r"""Write :math:`x - \eta g + s w`, or without x the kick :math:`-\eta g + s w` alone.

    ``out`` may be x, and is contiguous where noise is drawn and there is no x.

    eta: step size, which broadcasts.
    sd: s; none: :math:`\sqrt{2 \eta}`.
    noise: what is added in place of s w, where it is prepared, or partly common; then ``out`` may
    be it, and nothing is drawn.
    drift: what is used up for eta g; none: g, which holds anything after.
    """
    g = np.multiply(g, eta, out=g if drift is None else drift)
    if x is not None:
        np.subtract(x, g, out=out)
    if noise is None:
        noise = normal(rng, np.sqrt(2 * eta) if sd is None else sd, out if x is None else g)
    if x is None:
        return np.subtract(noise, g, out=out)
    return np.add(out, noise, out=out)
