"""Ranks that must be uniform, and the probability of what is seen if they are.

A sampler's draws, put into the distribution function of the law they should have, are uniform on
(0, 1). So is the rank of the parameter that data came from among draws of its posterior, if
parameter and data were drawn from the model: simulation-based calibration (Talts, Betancourt,
Simpson, Vehtari, Gelman 2018). The ranks of one array here come from independent chains or data
sets, never from successive draws of a chain, so nothing has to be known of autocorrelation.
"""

from collections.abc import Mapping

import numpy as np

from concord.testing.calibration import LEVEL, distance, least, p_value

__all__ = ["LEVEL", "NARROW", "WIDE", "distance", "least", "p_value", "width"]

WIDE, NARROW = "too wide", "too narrow"


def width(ranks: Mapping[str, np.ndarray], of: str) -> str:
    """Say whether draws are of too wide or too narrow a law, from the ranks of the density.

    ``of`` is "draws" for ranks of draws within their posterior: those of too wide a law lie where
    the density is low. It is "truth" for ranks of the parameter among draws: its density is then
    higher than theirs.
    """
    low = ranks["density"].mean() < 0.5
    return WIDE if low == (of == "draws") else NARROW
