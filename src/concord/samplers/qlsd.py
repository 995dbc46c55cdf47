r"""QLSD: a server's Langevin steps along compressed gradients, with or without a memory of them.

.. math::
    \theta^{(k+1)} &= \theta^{(k)} - \gamma_k \frac{N}{|A_k|} \sum_{i \in A_k} \bigl( m_i
        + C(g_i - m_i) \bigr) + \sqrt{2 \gamma_k}\, w^{(k+1)}, \qquad w \sim N(0, I) \\
    m_i &\leftarrow m_i + \alpha\, C(g_i - m_i), \qquad i \in A_k, \qquad
    g_i = \tilde\nabla f_i(\theta^{(k)})

A_k are the agents that take part, as many as ``participants``, drawn without replacement; C is the
compression. With an unbiased one the drift is on average that of the posterior; the memory m_i
makes what is compressed small, so that the drift varies less. With ``memory_start: mode`` and no
rate, differences to the gradients at the mode are compressed. With ``renewal`` (QLSD++)
mini-batches have control variates, :math:`g_i = \tilde\nabla f_i(\theta) - \tilde\nabla f_i(r) +
\nabla f_i(r)`, both of the same points, where r is the theta of every so many iterations. Theta is
the same for all agents, and starts where agent 0 does; arrays have shape (chains, agents, dim).

Source: Vono, Plassier, Durmus, Dieuleveut and Moulines, "QLSD: quantised Langevin stochastic
dynamics for Bayesian federated learning" (2021, arXiv:2106.00797), from its authors' released code;
the print was not at hand. In that code all agents share one memory, which each changes in its turn;
here each has its own, as in the equations.
Price: a gradient (or mini-batch) of every agent that takes part, a compressed vector to the server,
and theta, which is not compressed, back from it, per step; with control variates two mini-batches,
and a full gradient of every agent where they are renewed.
Needs: a server, or a single agent.
"""

from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs, require
from concord.networks.compressions import Compression
from concord.networks.network import Network
from concord.options import Count, Share
from concord.problem import CountedProblem, Problem
from concord.random import draw_subsets
from concord.sampler import Sampler, langevin_noise
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Theta, repeated for each agent as x, and the memories m, both (chains, agents, dim).

    reference, control: theta at the last renewal of control variates and the full gradients there;
    empty without renewal.
    """

    x: np.ndarray
    m: np.ndarray
    reference: np.ndarray
    control: np.ndarray


class QLSD(Sampler[State]):
    """QLSD with step size gamma and a compression C of gradients."""

    name: ClassVar[str] = "QLSD"
    needs: ClassVar[Needs] = Needs(
        "server",
        local="has one position for all agents, in which none holds coordinates of its own",
    )

    step_size: Annotated[Schedule, "step size gamma_k"]
    compression: Annotated[Compression, "what agents send in place of a gradient"]
    memory_rate: Annotated[Share, "rate alpha at which memories follow; 0: they stay"] = 0.0
    participants: Annotated[Count | None, "agents that take part in a step; none: all"] = None
    memory_start: Annotated[
        Literal["zero", "mode"],
        "memories start at zero, or at the gradients at the mode of the posterior, if Gaussian",
    ] = "zero"
    renewal: Annotated[
        Count | None, "iterations between renewals of mini-batches' control variates; none: none"
    ] = None

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse more participants than agents, and a mode that is not known."""
        super().check(problem, network)
        if self.participants is not None and self.participants > network.agents:
            raise ConcordError(
                f"participants: there are no {self.participants} among {network.agents} agents; "
                f"give 1 to {network.agents}"
            )
        if self.renewal is not None:
            require(problem, "difference", "give a batch_size, or remove renewal")
        if self.memory_start == "mode" and problem is not None and problem.posterior is None:
            raise ConcordError(
                f"memory_start: mode needs a Gaussian posterior, which {type(problem).__name__} "
                "has not; use zero"
            )

    def init(
        self, x0: np.ndarray, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Return the state at x0, (chains, agents, dim), with memories and control variates."""
        m, nothing = np.zeros_like(x0), np.empty(0)
        if self.memory_start == "mode":
            m = problem.full_gradient(m + problem.posterior.mean)
        return State(x0, m, nothing, nothing) if self.renewal is None else State(x0, m, x0, m)

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Move theta along the participants' compressed gradients, and update their memories."""
        (x, m, reference, control), gamma, agents = state, self.step_size(k), network.agents
        theta, participants = np.repeat(x[:, :1], agents, axis=1), self.participants or agents
        present = draw_subsets(rng, participants, theta.shape[:2])
        # Agents that do not take part evaluate no gradient: take back what is counted below.
        problem.pay(-1 * ~present * (1 if self.renewal is None else 2))
        if self.renewal is not None and k % self.renewal == 0:
            reference, control = theta, problem.full_gradient(theta)
        gradient = problem.reduced_gradient(theta, reference, control)
        code = self.compression.compress(gradient - m, rng)
        sent = m + code
        if participants < agents:
            code, sent = (np.where(present[..., None], each, 0.0) for each in (code, sent))
        dim, itemsize = theta.shape[-1], theta.itemsize
        size = (self.compression.size(dim, itemsize) + dim * itemsize) / 2  # of one up, one down
        average = network.average(sent, senders=present, size=size)
        noise = langevin_noise(rng, gamma, theta[:, :1])
        theta = theta - gamma * (agents**2 / participants * average) + noise
        return State(theta, m + self.memory_rate * code, reference, control)
