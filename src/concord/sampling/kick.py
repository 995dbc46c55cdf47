r"""The Langevin kick, of which the steps of all samplers are made.

.. math:: x' = x - \eta g + s\, w, \qquad w \sim N(0, I), \qquad s = \sqrt{2 \eta}

Arrays have shape (chains, agents, dim), or (chains, some agents, dim). All are the
caller's: nothing is allocated. Sums are taken in this order by the compiled kernel, too, so that
the bytes are the same.
"""

from math import sqrt
from typing import Any

import numpy as np

from concord.networks.mixing import Kick


def _sd(eta: Any) -> Any:
    return np.float64(sqrt(2 * eta)) if isinstance(eta, float) else np.sqrt(2 * eta)


def _draw(rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
    rng.standard_normal(out=out, dtype=out.dtype)
    return out


def normal(rng: np.random.Generator, sd: Any, out: np.ndarray) -> np.ndarray:
    """Write normal numbers of mean 0 and standard deviation ``sd``, which broadcasts."""
    return np.multiply(_draw(rng, out), sd, out=out)


def coming(
    rng: np.random.Generator, eta: Any, g: np.ndarray, out: np.ndarray, sd: Any = None
) -> Kick:
    r"""Return the kick :math:`-\eta g + s w` for a mixer, which uses up g and out."""
    return Kick(eta, g, _sd(eta) if sd is None else sd, _draw(rng, out))


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
        noise = normal(rng, _sd(eta) if sd is None else sd, out if x is None else g)
    if x is None:
        return np.subtract(noise, g, out=out)
    return np.add(out, noise, out=out)
