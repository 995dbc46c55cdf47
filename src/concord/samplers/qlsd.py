r"""QLSD: a server's Langevin steps along compressed gradients, with or without a memory of them.

.. math::
    \theta^{(k+1)} &= \theta^{(k)} - \gamma_k \frac{N}{|A_k|} \sum_{i \in A_k} \bigl( m_i
        + C(g_i - m_i) \bigr) + \sqrt{2 \gamma_k}\, w^{(k+1)}, \qquad w \sim N(0, I) \\
    m_i &\leftarrow m_i + \alpha\, C(g_i - m_i), \qquad i \in A_k, \qquad
    g_i = \tilde\nabla f_i(\theta^{(k)})

A_k are the agents that take part, as many as ``participants``, drawn without replacement; C is the
compression. With an unbiased one (``qsgd``, ``rand_k``) the drift is on average that of the
posterior; the memory m_i makes what is compressed small, so that the drift varies less.

What the released code does besides: ``quantized: twice`` sends C(C(g_i - m_i)) and keeps C(g_i -
m_i). In that code memories start at the weights for zero, and all agents share one, which each
changes in its turn; here each has its own, as in the equations.
With ``memory_start: mode`` and no rate, differences to the gradients at the mode are compressed.
With ``renewal`` (QLSD++) mini-batches are taken around the gradient at an earlier theta, a control
variate: :math:`g_i = \tilde\nabla f_i(\theta) - \tilde\nabla f_i(r) + \nabla f_i(r)`, both of the
same points, where r is the theta of every so many iterations.

Source: Vono, Plassier, Durmus, Dieuleveut and Moulines, "QLSD: quantised Langevin stochastic
dynamics for Bayesian federated learning" (2021, arXiv:2106.00797), from its authors' released code;
the print was not at hand. Theta is the same for all agents, and starts where agent 0 does; arrays
have shape (chains, agents, dim).

Price: a gradient (or mini-batch) of every agent that takes part, a compressed vector of it to the
server, and theta, which is not compressed, back to it, per step; with control variates two
mini-batches, and a full gradient of every agent where they are renewed.
Needs: a server, or a single agent.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from concord.contracts import Info, Problem, Step
from concord.errors import ConcordError
from concord.networks.channel import connect
from concord.networks.compressions import Compression
from concord.networks.topology import Topology
from concord.networks.weights import weights_of
from concord.options import Count, Options, Share
from concord.samplers._checks import check_server
from concord.samplers._parts import gradients
from concord.sampling.gradients import BatchSize, batched_of, differences
from concord.sampling.kick import kick, normal
from concord.sampling.schedules import Schedule

NAME = "QLSD"


class Params(Options):
    """Options of QLSD."""

    step_size: Annotated[Schedule, "step size gamma_k"]
    compression: Annotated[Compression, "what agents send in place of a gradient"]
    memory_rate: Annotated[Share, "rate alpha at which memories follow; 0: there are none"] = 0.0
    participants: Annotated[Count | None, "agents that take part in a step; none: all"] = None
    quantized: Annotated[
        Literal["once", "twice"], "what is sent is compressed once, or twice, as released code does"
    ] = "once"
    memory_start: Annotated[
        Literal["zero", "mode"],
        "memories start at zero, or at the gradients at the posterior's mode, which is known if "
        "that is Gaussian",
    ] = "zero"
    batch_size: BatchSize = None
    renewal: Annotated[
        Count | None, "iterations between renewals of mini-batches' control variates; none: none"
    ] = None


class State(NamedTuple):
    """Theta, once for each agent, x, and the memories m, (chains, agents, dim).

    And the control variates' r, and the gradients there; empty without them.
    """

    x: np.ndarray
    m: np.ndarray
    reference: np.ndarray
    control: np.ndarray


Estimate = Callable[[State, int, np.random.Generator, np.ndarray], Any]


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network without a server, more participants than agents, and renewals of nothing."""
    check_server(topology, "qlsd")
    if params.renewal is not None and params.batch_size is None:
        raise ConcordError("renewal: full gradients have no control variates; give a batch_size")
    if params.participants is not None and params.participants > topology.agents:
        raise ConcordError(
            f"participants: there are no {params.participants} among {topology.agents} agents; "
            f"give 1 to {topology.agents}"
        )
    if params.memory_start == "mode" and problem is not None and problem.posterior is None:
        raise ConcordError(
            f"memory_start: mode needs a Gaussian posterior, which {type(problem).__name__} has "
            "not; use zero"
        )


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    chains, agents, _ = x0.shape
    estimate = _gradients(problem, params, x0)
    channel = connect(topology, x0)
    average = channel.mixer(weights_of(topology, "metropolis"))
    compress = params.compression.compressor(x0.shape, x0.dtype)
    several = params.participants or agents
    grad, apart, code, again, learned, drift = (np.empty_like(x0) for _ in range(6))
    theta, noise = np.empty_like(x0[:, :1]), np.empty_like(x0[:, :1])
    uniform, order = np.empty((chains, agents)), np.empty((chains, agents))
    absent = np.zeros((chains, agents), dtype=bool)
    taking = np.ones((chains, agents), dtype=np.int64)
    sent, spent = taking * channel.broadcasts, taking.copy()
    info = Info(sent, sent, gradients=spent)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        gamma, (x, m) = params.step_size(k), state[:2]
        np.copyto(theta, x[:, :1])
        np.copyto(x, theta)
        if several < agents:
            rng.random(out=uniform)
            np.copyto(order, uniform)
            order.sort(axis=1)
            np.greater(uniform, order[:, several - 1 : several], out=absent)
            np.logical_not(absent, out=taking)
            np.multiply(taking, channel.broadcasts, out=sent)
        np.multiply(taking, 1 if params.renewal is None else 2, out=spent)
        np.add(spent, estimate(state, k, rng, grad), out=spent)
        np.subtract(grad, m, out=apart)
        compress(apart, rng, code)
        np.copyto(code, 0.0, where=absent[:, :, None])
        received = code
        if params.quantized == "twice":
            compress(code, rng, again)
            received = again
        drawn = np.add(m, received, out=grad)
        np.copyto(drawn, 0.0, where=absent[:, :, None])
        np.multiply(code, params.memory_rate, out=learned)
        np.add(m, learned, out=m)
        average(drawn, plus=None, out=drift)
        normal(rng, np.sqrt(2 * gamma), noise)
        kick(rng, gamma * agents * agents / several, drift, out=x, x=x, noise=noise)
        return state, info

    x = x0.copy()
    m = np.zeros_like(x0)
    if params.memory_start == "mode" and problem.posterior is not None:
        problem.gradient(chains)(np.zeros_like(x0) + problem.posterior.mean, m)
    reference = np.empty(0) if params.renewal is None else np.empty_like(x0)
    return State(x, m, reference, reference.copy()), channel.through(step)


def _gradients(problem: Problem, params: Params, x0: np.ndarray) -> Estimate:
    """Return ``estimate(state, k, rng, out)``, which writes g, and returns what a renewal takes."""
    if params.renewal is None:
        gradient = gradients(problem, params, x0)

        def plain(state: State, k: int, rng: np.random.Generator, out: np.ndarray) -> int:
            gradient(state.x, rng, out)
            return 0

        return plain
    every, size = params.renewal, params.batch_size or 1
    full, differ = problem.gradient(len(x0)), differences(problem, size, len(x0))
    whole = -(-batched_of(problem).counts // size)

    def controlled(state: State, k: int, rng: np.random.Generator, out: np.ndarray) -> Any:
        renewed = k % every == 0
        if renewed:
            np.copyto(state.reference, state.x)
            full(state.reference, state.control)
        differ(state.x, state.reference, rng, out)
        np.add(out, state.control, out=out)
        return whole * renewed

    return controlled


def size(params: Params, dim: int, itemsize: int) -> float:
    """Return the bytes of a vector: half of them are gradients, the others theta."""
    return (params.compression.size(dim, itemsize) + dim * itemsize) / 2
