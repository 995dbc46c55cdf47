r"""Layered ULA: a server's Langevin steps, whose noise is the error of quantized gradients.

.. math::
    \theta^{(k+1)} = \theta^{(k)} - \gamma_k \sum_i (g_i + e_i)
        + \Bigl( 2 \gamma_k - \gamma_k^2 \sum_i \sigma_i^2 \Bigr)_+^{1/2} w^{(k+1)}, \qquad
    g_i = \tilde\nabla f_i(\theta^{(k)}), \quad e_i \sim N(0, \sigma_i^2 I), \quad w \sim N(0, I)

Agent i sends g_i rounded to integers, whose error e_i is normal and independent of g_i. With
:math:`\sigma_i^2 = 2 / (\gamma_k n)` the n errors are all the noise that a Langevin step takes.
With ``levels`` s an error is as large as s levels of the largest coordinate leave it,
:math:`\sigma_i = \max_j |g_{ij}| / (2 (s - 2) \sqrt{\log 4})`, and the server adds what is missing.
Either way theta follows the law of the steps that send gradients as they are.

Integers with a normal error come from a shifted layered quantizer. For each coordinate let y be
uniform on :math:`(0, \exp(-e^2 / 2 \sigma^2))`, replaced by 1 - y where e is not positive. Given y,
e is uniform on the layer :math:`(l, r) = (-\sigma \sqrt{-2 \log(1 - y)}, \sigma \sqrt{-2 \log y})`,
so that

.. math::
    v = \frac{g + e - l}{r - l}, \qquad m = \lfloor v \rfloor, \qquad g + e = (m + u) (r - l) + l

with a dither u, the fractional part of v, that is uniform and independent of g. Agent and server
share y and u beforehand; m is what is sent, in Elias' gamma code of 2|m| or 2|m| - 1. Here e is
drawn, and y and u follow from it. Theta is the same for all agents, and starts where agent 0 does;
arrays have shape (chains, agents, dim).

Source: Hegazy, Leluc, Li and Dieuleveut, "Compression with exact error distribution for federated
learning" (2024, arXiv:2310.20682), from its abstract and its authors' released code; the print was
not at hand. The quantizer is that of Wilson, "Layered multishift coupling for use in perfect
sampling algorithms (with a primer on CFTP)" (2000). The coding of integers is ours.
Price: a gradient (or mini-batch) of every agent, its integers (and, with levels, sigma_i) to the
server, and theta, which is not compressed, back from it, per step.
Needs: a server, or a single agent.
"""

from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta
from numpy.random import Generator

from concord.libraries import special
from concord.needs import Needs
from concord.networks.network import Network
from concord.problem import CountedProblem
from concord.sampler import Positions, Sampler
from concord.sampling.schedules import Schedule


class LayeredULA(Sampler[Positions]):
    """Langevin steps of size gamma along gradients whose quantization errors are the noise."""

    name: ClassVar[str] = "Layered ULA"
    needs: ClassVar[Needs] = Needs(
        "server",
        local="has one position for all agents, in which none holds coordinates of its own",
    )

    step_size: Annotated[Schedule, "step size gamma_k"]
    levels: Annotated[
        Annotated[int, Meta(ge=3)] | None,
        "levels s of a gradient's largest coordinate; none: errors are all the noise",
    ] = None

    def step(
        self, state: Positions, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> Positions:
        """Move theta along the sum of the agents' gradients, as the server decodes them."""
        gamma, agents = self.step_size(k), network.agents
        theta = np.repeat(state.x[:, :1], agents, axis=1)
        gradient = problem.gradient(theta)
        sd = self.error_sd(gradient, gamma)
        error = sd * rng.standard_normal(theta.shape, dtype=theta.dtype.type)
        uniform = special().ndtr(rng.standard_normal(theta.shape, dtype=theta.dtype.type))
        bits = count_bits(gradient, error, uniform, sd).sum(axis=-1)
        vector_bytes = theta.shape[-1] * theta.itemsize
        scale_bytes = 0 if self.levels is None else theta.itemsize
        size = (bits / 8 + scale_bytes + vector_bytes) / 2  # the mean of a vector up, and one down
        average = network.average(gradient + error, size=size)
        theta = theta - gamma * agents * average
        if self.levels is None:
            return Positions(theta)
        missing = np.maximum(2 * gamma - gamma**2 * (sd**2).sum(axis=1, keepdims=True), 0.0)
        noise = rng.standard_normal(theta[:, :1].shape, dtype=theta.dtype.type)
        return Positions(theta + np.sqrt(missing) * noise)

    def error_sd(self, gradient: np.ndarray, gamma: float) -> np.ndarray:
        """Return the standard deviations of the agents' errors, (chains, agents, 1).

        gradient: (chains, agents, dim). gamma: step size.
        """
        agents = gradient.shape[1]
        if self.levels is None:
            return np.full((1, agents, 1), np.sqrt(2 / (gamma * agents)), dtype=gradient.dtype)
        largest = np.abs(gradient).max(axis=-1, keepdims=True)
        largest = np.maximum(largest, np.finfo(gradient.dtype).tiny)  # of gradients of zeros
        return largest / (2 * (self.levels - 2) * np.sqrt(np.log(4)))


def find_layer(
    error: np.ndarray, uniform: np.ndarray, sd: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends (l, r) of the layers of the normal density in which errors lie.

    error: normal, with standard deviations sd. uniform: independent of it, on (0, 1). Given a
    layer, the error in it is uniform.
    """
    height = np.exp(-((error / sd) ** 2) / 2) * uniform
    y = np.where(error > 0, height, 1 - height)
    return -sd * np.sqrt(-2 * np.log1p(-y)), sd * np.sqrt(-2 * np.log(y))


def count_bits(x: np.ndarray, error: np.ndarray, uniform: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return the bits of the integers that numbers x are rounded to with given errors.

    In Elias' gamma code. Arrays as for ``find_layer``.
    """
    left, right = find_layer(error, uniform, sd)
    m = np.floor((x + error - left) / (right - left))
    code = 2 * np.abs(m) + (m <= 0)  # 1, 2, 3, ... for 0, 1, -1, ...
    return 2 * np.floor(np.log2(code)) + 1
