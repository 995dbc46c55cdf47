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
mini-batches are taken around the gradient at an earlier theta, a control variate: :math:`g_i =
\tilde\nabla f_i(\theta) - \tilde\nabla f_i(r) + \nabla f_i(r)`, both of the same points, where r is
the theta of every so many iterations. Theta is the same for all agents, and starts where agent 0
does; arrays have shape (chains, agents, dim).

Source: Vono, Plassier, Durmus, Dieuleveut and Moulines, "QLSD: quantised Langevin stochastic
dynamics for Bayesian federated learning" (2021, arXiv:2106.00797), from its authors' released code;
the print was not at hand. In that code all agents share one memory, which each changes in its turn;
here each has its own, as in the equations.
Price: a gradient (or mini-batch) of every agent that takes part, a compressed vector of it to the
server, and theta, which is not compressed, back to it, per step; with control variates two
mini-batches, and a full gradient of every agent where they are renewed.
Needs: a server, or a single agent.
"""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from concord.errors import ConcordError
from concord.networks.compressions import Compression
from concord.networks.network import Network
from concord.options import Count, Share
from concord.sampler import Sampler, langevin_noise
from concord.samplers.checks import check_server
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


class QLSD(Sampler):
    """QLSD with step size gamma and a compression C of gradients."""

    name: ClassVar[str] = "QLSD"

    step_size: Annotated[Schedule, "step size gamma_k"]
    compression: Annotated[Compression, "what agents send in place of a gradient"]
    memory_rate: Annotated[Share, "rate alpha at which memories follow; 0: they stay"] = 0.0
    participants: Annotated[Count | None, "agents that take part in a step; none: all"] = None
    memory_start: Annotated[
        Literal["zero", "mode"],
        "memories start at zero, or at the gradients at the posterior's mode, which is known if "
        "that is Gaussian",
    ] = "zero"
    renewal: Annotated[
        Count | None, "iterations between renewals of mini-batches' control variates; none: none"
    ] = None

    def check(self, problem: Any, network: Network) -> None:
        """Refuse a network without a server, and more participants than it has agents.

        Renewal needs mini-batches, and ``memory_start: mode`` a Gaussian posterior.
        """
        check_server(network, "qlsd")
        if self.participants is not None and self.participants > network.agents:
            raise ConcordError(
                f"participants: there are no {self.participants} among {network.agents} agents; "
                f"give 1 to {network.agents}"
            )
        if problem is None:
            return
        if self.renewal is not None and not hasattr(problem, "difference"):
            raise ConcordError(
                "renewal: full gradients have no control variates; give a batch_size"
            )
        if self.memory_start == "mode" and problem.posterior is None:
            raise ConcordError(
                f"memory_start: mode needs a Gaussian posterior, which {type(problem).__name__} "
                "has not; use zero"
            )

    def init(
        self, x0: np.ndarray, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Return the state at x0, (chains, agents, dim), with memories and control variates."""
        m, nothing = np.zeros_like(x0), np.empty(0)
        if self.memory_start == "mode":
            m = problem.full_gradient(m + problem.posterior.mean)
        if self.renewal is None:
            return State(x0, m, nothing, nothing)
        return State(x0, m, x0, m)

    def vector_size(self, dim: int, itemsize: int) -> float:
        """Return the mean size in bytes of a vector: a compressed gradient up, theta down.

        dim: its numbers. itemsize: bytes of a number.
        """
        return (self.compression.size(dim, itemsize) + dim * itemsize) / 2

    def step(
        self, state: State, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Move theta along the mean of the participants' compressed gradients, and update memories.

        theta' = theta - gamma N/|A| sum_{i in A} (m_i + C(g_i - m_i)) + sqrt(2 gamma) w and m_i' =
        m_i + alpha C(g_i - m_i) for i in A.
        """
        gamma, agents = self.step_size(k), network.agents
        theta = np.repeat(state.x[:, :1], agents, axis=1)
        participating = self._draw_participants(theta.shape[:2], rng)
        state = self._renew(state._replace(x=theta), k, problem)
        # Agents that do not take part evaluate no gradient: take back what is counted below.
        problem.pay(-1 * ~participating * (1 if self.renewal is None else 2))
        present, m = participating[..., None], state.m
        code, received = self.compress(self._gradient(state, problem) - m, present, rng)
        size = self.vector_size(theta.shape[-1], theta.itemsize)
        drawn = np.where(present, m + received, 0.0)
        drift = agents * network.average(drawn, senders=participating, size=size)
        noise = langevin_noise(rng, gamma, theta[:, :1])
        x = theta - gamma * agents / (self.participants or agents) * drift + noise
        return state._replace(x=x, m=m + self.memory_rate * code)

    def compress(
        self, differences: np.ndarray, present: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compress the differences g - m of participants; return them twice, (chains, agents, dim).

        The first is added to the agents' memories, the second to the drift; subclasses may let them
        differ. present: whether an agent takes part, (chains, agents, 1).
        """
        code = np.where(present, self.compression.compress(differences, rng), 0.0)
        return code, code

    def _draw_participants(self, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw which agents take part, (chains, agents) of bool, without replacement.

        shape: (chains, agents).
        """
        if self.participants in (None, shape[1]):
            return np.ones(shape, dtype=bool)
        numbers = rng.random(shape)
        lowest = np.sort(numbers, axis=1)[:, self.participants - 1, None]
        return numbers <= lowest

    def _renew(self, state: State, k: int, problem: Any) -> State:
        """Take the control variates anew at theta in every ``renewal``-th iteration k."""
        if self.renewal is None or k % self.renewal:
            return state
        return state._replace(reference=state.x, control=problem.full_gradient(state.x))

    def _gradient(self, state: State, problem: Any) -> np.ndarray:
        """Return the agents' gradients g at theta, (chains, agents, dim), with control variates."""
        gradient: np.ndarray
        if self.renewal is None:
            gradient = problem.gradient(state.x)
        else:
            gradient = problem.difference(state.x, state.reference) + state.control
        return gradient
