r"""Layered ULA with levels as its authors' code computes it: layers' centers are not scaled.

.. math::
    \text{agent i sends } \Bigl( \frac{|g|}{M w} - u \Bigr)_{\text{rounded}} = q, \qquad
    \text{which is read as } \mathrm{sign}(g) (q + u) M w + c, \qquad M = \max_j |g_j|

with the width w and the center c of a layer of :math:`N(0, \sigma^2)`, :math:`\sigma =
1 / (2 (s - 2) \sqrt{\log 4})`, and u uniform on (0, 1). The error is normal, of standard deviation
:math:`M \sigma`, if c is multiplied by M, too (``layered_ula``). As it is, the error has the
variance :math:`(0.536 M^2 + 0.464) \sigma^2`, while the server adds what
:math:`M^2 \sigma^2` leaves of the noise, and nothing once that is more than all.

Source: the released code of hegazy2024.
Price: as ``layered_ula``; of an integer the binary digits of the code's count, from which none can
tell where it ends.
Needs: a server, or a single agent.
"""

from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta
from numpy.random import Generator

from concord.needs import Needs
from concord.networks.network import Network
from concord.sampler import Positions, Sampler
from concord.samplers.layered_ula import LayeredULA, find_layer
from concord.sampling.schedules import Schedule


class LayeredULAReleased(Sampler[Positions]):
    """Langevin steps of size gamma along gradients quantized to levels by layers not centered."""

    name: ClassVar[str] = "Layered ULA as released"
    needs: ClassVar[Needs] = Needs("server", local=LayeredULA.needs.local)

    step_size: Annotated[Schedule, "step size gamma_k"]
    levels: Annotated[int, Meta(ge=3), "levels s of a gradient's largest coordinate"]

    def step(
        self, state: Positions, k: int, problem: Any, network: Network, rng: Generator
    ) -> Positions:
        """Move theta along the sum of the agents' gradients, as the server decodes them."""
        gamma, agents = self.step_size(k), network.agents
        theta = np.repeat(state.x[:, :1], agents, axis=1)
        gradient = problem.gradient(theta)
        sigma = 1 / (2 * (self.levels - 2) * np.sqrt(np.log(4)))
        largest = np.abs(gradient).max(axis=-1, keepdims=True)
        error, u1, u2 = sigma * rng.standard_normal(theta.shape), *rng.random((2, *theta.shape))
        left, right = find_layer(error, u1, sigma)
        width, center = largest * (right - left), (right + left) / 2
        q = np.rint(np.abs(gradient) / width - u2)
        decoded = np.sign(gradient) * (q + u2) * width + center
        size = (count_digits(q).sum(axis=-1) / 8 + theta.shape[-1] * 8) / 2
        average = network.average(decoded, size=size)
        quantized = ((sigma * largest) ** 2).sum(axis=1, keepdims=True)
        noise = np.sqrt(np.maximum(2 * gamma - gamma**2 * quantized, 0.0))
        theta = theta - gamma * agents * average
        return Positions(theta + noise * rng.standard_normal(theta[:, :1].shape))


def count_digits(q: np.ndarray) -> np.ndarray:
    """Return the bits of integers as the released code counts them, with one for the sign."""
    above = np.maximum(q, 1)
    first = np.floor(np.log2(above))
    rest = above - 2**first
    second = np.where(rest > 1, np.ceil(np.log2(np.maximum(rest, 1))), 1)
    return np.where(q > 1, first + second, 1) + 1
