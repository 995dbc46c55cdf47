r"""The Gaussian mechanism on the vectors that agents send.

An agent sends, in place of x and to all its neighbors alike,

.. math:: x \min\bigl(1, C / \lVert x \rVert\bigr) + \sigma z, \qquad z \sim N(0, I).

``concord_studies.metrics.epsilon`` says how private that is. Only vectors that are sent are
private: an agent's draws are not if they are published.
"""

from typing import Annotated

import numpy as np
from msgspec import Meta

from concord.options import Options, Positive


class Privacy(Options):
    """Options of the Gaussian mechanism that agents apply to each vector before they send it."""

    clip: Annotated[Positive, "longest vector C that is sent; longer ones are shortened to it"]
    sigma: Annotated[Positive, "standard deviation of the normal noise on each coordinate"]
    delta: Annotated[
        Annotated[float, Meta(gt=0, lt=1)], "delta for which the metric privacy states epsilon"
    ] = 1e-5

    def hide(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return vectors x, (..., dim), clipped to norm C and with noise of deviation sigma."""
        length = np.sqrt(np.einsum("...d,...d->...", x, x))[..., None]
        noise = rng.standard_normal(x.shape, dtype=x.dtype.type)
        hidden: np.ndarray = x * (self.clip / np.maximum(length, self.clip)) + self.sigma * noise
        return hidden
