r"""Push-sum SGLD: stochastic gradient Langevin dynamics on directed networks.

.. math::
    x_i^{(k+1)} &= \sum_j A_{ij} x_j^{(k)} - \eta_k \tilde\nabla f_i(z_i^{(k)})
                  + \sqrt{2 \eta_k}\, w_i^{(k+1)}, \qquad w_i \sim N(0, I) \\
    y_i^{(k+1)} &= \sum_j A_{ij} y_j^{(k)}, \qquad y_i^{(0)} = 1, \qquad
    z_i^{(k+1)} = x_i^{(k+1)} / y_i^{(k+1)}

A is column stochastic: an agent divides its x and y among those that hear it and itself, and needs
to know only how many these are. The sums of x and y over the agents are conserved by mixing, so y/N
tends to the weights with which A alone would average, and dividing by it takes them out. Agents'
samples are the z, which are what is recorded; all of A's sums of rows being one, y stays 1 and this
is DE-SGLD. With ``read: averaged`` agents move first, noise included, and then average,

.. math::
    z_i^{(k+1)} = \frac{1}{y_i^{(k+1)}} \sum_j A_{ij} \Bigl( y_j^{(k)} z_j^{(k)}
                  - \eta_k \tilde\nabla f_j(z_j^{(k)}) + \sqrt{2 \eta_k}\, w_j^{(k+1)} \Bigr),

the order of push-sum's subgradient steps (Nedić and Olshevsky, "Distributed optimization over
time-varying directed graphs", 2015); z then has no fresh noise of the agent alone, and less bias.

Source: Kolesov and Kungurtsev, "Decentralized Langevin dynamics over a directed graph" (2021,
arXiv:2103.05444), whose pages were not at hand: in our form. z, w and gradients have shape
(chains, agents, dim), y (chains, agents).

Price: a vector and a number to everybody that hears it, and a gradient of every agent per step.
Needs: a network on which a path leads from every agent to every other, or no edges at all; where
vectors may not arrive, senders that keep what does not.
"""

from typing import Annotated, Literal, NamedTuple

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step
from concord.errors import ConcordError
from concord.laws.exact import Affine, Update, block_diagonal
from concord.networks.channel import connect
from concord.networks.topology import Topology
from concord.networks.weights import weights_of
from concord.options import Options
from concord.samplers._checks import check_connected
from concord.samplers._parts import gradients
from concord.sampling.gradients import ReplacedSize
from concord.sampling.kick import kick, normal
from concord.sampling.schedules import Schedule

NAME = "Push-sum SGLD"


class Params(Options):
    """Options of push-sum SGLD."""

    step_size: Annotated[Schedule, "step size eta_k"]
    batch_size: ReplacedSize = None
    read: Annotated[
        Literal["moved", "averaged"],
        "z is read where agents have moved, noise included, or where they have averaged since",
    ] = "moved"


class State(NamedTuple):
    """Samples x, which are the z above, (chains, agents, dim), and weights y, (chains, agents)."""

    x: np.ndarray
    y: np.ndarray


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network in parts, and one on which the sums of x and y are not conserved."""
    check_connected(topology, directed=True)
    conditions = topology.conditions
    if conditions.perfect:
        return
    if conditions.on_loss != "sender_keeps":
        raise ConcordError(
            f"network.on_loss: {conditions.on_loss} leaves weights that are not column stochastic, "
            "and push-sum's sums would not be conserved; use sender_keeps"
        )
    for changes in ("compression", "noise", "privacy"):
        if getattr(conditions, changes):
            raise ConcordError(
                f"network.{changes}: push-sum divides by the weights it sends, which have to "
                "arrive as they are; remove it"
            )


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at z = x0, y = 1, and the step."""
    gradient = gradients(problem, params, x0)
    both = np.concatenate([x0, np.ones_like(x0[..., :1])], axis=2)  # x and y, sent together
    channel = connect(topology, both)
    mix = channel.mixer(weights_of(topology, "column_stochastic"))
    mixed, kicked, averaged = np.empty_like(both), np.zeros_like(both), params.read == "averaged"
    grad, noise = np.empty_like(x0), np.empty_like(x0)
    unicasts, broadcasts = (np.empty(sent.shape) for sent in (channel.unicasts, channel.broadcasts))
    info = Info(unicasts, broadcasts, channel.active)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        eta, z, y = params.step_size(k), state.x, state.y[..., None]
        gradient(z, rng, grad)
        normal(rng, np.sqrt(2 * eta), noise)
        kick(rng, eta, grad, out=kicked[..., :-1], noise=noise)  # the weights have none
        np.multiply(z, y, out=both[..., :-1])
        both[..., -1:] = y
        if averaged:
            np.add(both, kicked, out=both)
        mix(both, plus=None if averaged else kicked, out=mixed)
        y[:] = mixed[..., -1:]
        np.divide(mixed[..., :-1], y, out=z)
        np.multiply(channel.unicasts, both.shape[2] / z.shape[2], out=unicasts)
        np.multiply(channel.broadcasts, both.shape[2] / z.shape[2], out=broadcasts)
        return state, info

    return State(x0.copy(), np.ones_like(x0[..., 0])), channel.through(step)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update:
    """Return the law of z given the graph: y is what it makes of ones."""
    agents, dim = problem.agents, problem.dim
    weights = weights_of(topology, "column_stochastic").dense()
    gram, shift = block_diagonal(problem.gram), problem.shift.ravel()
    ratios = [np.ones(agents)]  # y of the iterations so far
    averages = np.kron(weights, np.eye(dim))

    def at(k: int) -> Affine:
        while len(ratios) < k + 2:
            ratios.append(weights @ ratios[-1])
        old, new = (y.repeat(dim) for y in ratios[k : k + 2])
        eta = params.step_size(k)
        if params.read == "averaged":
            whole = averages / new[:, None]
            matrix = whole @ (np.diag(old) - eta * gram)
            return Affine(matrix, eta * whole @ shift, 2 * eta * whole @ whole.T, -eta * whole)
        return Affine(
            (averages * old - eta * gram) / new[:, None],
            eta * shift / new,
            np.diag(2 * eta / new**2),
            -eta * np.diag(1 / new),
        )

    return Update(at)
