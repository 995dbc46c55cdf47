r"""Local SGLD: agents make several steps by themselves, and average then (FALD, VR-FALD).

One iteration is :math:`T` local steps, ``period``, of every agent,

.. math::
    x_i \leftarrow x_i - \gamma_k \, g_i + \sqrt{2 \gamma_k} \Bigl( \sqrt{\tau / N}\, \xi
        + \sqrt{1 - \tau}\, \xi_i \Bigr), \qquad \xi, \xi_i \sim N(0, I), \qquad
    g_i = \tilde\nabla f_i(x_i)

with the share :math:`\tau` of the noise common to all agents, and then, with probability
``communication``, :math:`x_i \leftarrow \sum_j W_{ij} x_j`. With ``renewal`` the gradients are
those of variance reduction,

.. math::
    g_i = \tilde\nabla f_i(x_i) - \tilde\nabla f_i(r_i) + c_i, \qquad
    r_i = \sum_j W_{ij} x_j, \qquad c_i = \sum_j W_{ij} \nabla f_j(r_j)

where both estimates are of the same mini-batch, and r and c are renewed with that probability at
the start of an iteration, always of the first. Chains communicate and renew independently of each
other; arrays have shape (chains, agents, dim).

Where W = J/N, as on the topologies ``server`` and ``complete``, agents take the mean of all: FALD,
with T local steps or with ``period: 1`` and communication at random; VR-FALD with renewal. Mixing
by the weights of a network, local DE-SGLD, is our generalization: agents' c_i differ then, so that
some bias is left, but not in the network average, since the c_i less the gradients at r cancel.

Source: Deng, Zhang, Ma, Song, Lin, "On Convergence of Federated Averaging Langevin Dynamics", 2021,
arXiv 2112.05120 (abstract read); Plassier, Durmus, Moulines, "Federated Averaging Langevin
Dynamics: Toward a unified theory and new algorithms", AISTATS 2023 (equations (2), (5), (8) to (10)
and (18): its period is 1, and a renewed reference is used from the next step on).
Price: a vector to every neighbor, and T gradients (or mini-batches) of every agent per iteration;
for a renewal two vectors more and a full gradient, and then two mini-batches for each step.
Needs: a connected network, or no edges; a lossless one to renew or communicate at random.
"""

import math
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs, refuse_local
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.options import Count, PositiveShare, Share
from concord.problem import CountedProblem, Problem
from concord.random import draw_bool
from concord.sampler import Sampler
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Positions x, reference points r, and controls, (chains, agents, dim), or empty.

    control: c, or with full gradients, which take no reference, c less the gradient at r.
    """

    x: np.ndarray
    reference: np.ndarray
    control: np.ndarray


class LocalSGLD(Sampler[State]):
    """Local SGLD with step size gamma: T local steps of every agent, then perhaps an average."""

    name: ClassVar[str] = "Local SGLD"
    needs: ClassVar[Needs] = Needs("mixing")

    step_size: Annotated[Schedule, "step size gamma_k of the local steps of iteration k"]
    period: Annotated[Count, "local steps T of an iteration"] = 1
    communication: Annotated[PositiveShare, "probability p_c that agents average after them"] = 1.0
    common_noise: Annotated[Share, "share tau of the noise that all agents have in common"] = 0.0
    renewal: Annotated[
        PositiveShare | None, "probability q that references are renewed; none: plain gradients"
    ] = None
    weights: Weights = "metropolis"

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse losses where agents renew, or communicate at random."""
        super().check(problem, network)
        if self.common_noise:
            refuse_local(
                problem,
                "common_noise is a part of all agents' noise, of which local "
                "coordinates would have an N-th",
            )
        if not network.is_lossless and (self.renewal is not None or self.communication < 1):
            raise ConcordError(
                "renewal, communication: where vectors get lost agents must send x, and nothing "
                "else, in every iteration; leave them out, or remove network"
            )

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim); the first step renews all references."""
        zeros, nothing = np.zeros_like(x0), np.empty(0)
        if self.renewal is None:
            return State(x0, nothing, nothing)
        return State(x0, zeros if hasattr(problem, "full_cost") else nothing, zeros)

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Take T local Langevin steps, then average over neighbors in chains that communicate."""
        gamma, tau = self.step_size(k), self.common_noise
        if self.renewal is not None:
            renewed = draw_bool(rng, self.renewal if k else 1.0, len(state.x))
            state = self._renew(state, renewed, problem, network)
        x, reference, control = state
        for _ in range(self.period):
            g = problem.reduced_gradient(x, reference, control)
            noise = rng.standard_normal(x.shape, dtype=x.dtype.type) * math.sqrt(1 - tau)
            if tau:
                shared = rng.standard_normal(x[:, :1].shape, dtype=x.dtype.type)
                noise = noise + math.sqrt(tau / network.agents) * shared
            x = x - gamma * g + math.sqrt(2 * gamma) * noise
        averaging = draw_bool(rng, self.communication, len(x)) if self.communication < 1 else None
        return State(network.mix(self.weights, x, chains=averaging), reference, control)

    def _renew(
        self, state: State, renewed: np.ndarray, problem: CountedProblem, network: Network
    ) -> State:
        """Renew the references r = W x and controls c = W grad f(r) of some chains.

        renewed: a mask of these chains, (chains,).
        """
        if not renewed.any():
            return state
        x, where = state.x, renewed[:, None, None]
        r = network.mix(self.weights, x, chains=renewed)
        gradient = problem.full_gradient(r, chains=renewed)
        c = network.mix(self.weights, gradient, chains=renewed)
        if not state.reference.size:
            return state._replace(control=np.where(where, c - gradient, state.control))
        return State(x, np.where(where, r, state.reference), np.where(where, c, state.control))
