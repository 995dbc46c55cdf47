r"""DIGing-SGLD: every agent tracks the average of all gradients, and follows it.

.. math::
    x_i^{(k+1)} &= \sum_j W_{ij} x_j^{(k)} - \eta_k y_i^{(k)} + \sqrt{2 \eta_k}\, w_i^{(k+1)},
        \qquad w_i \sim N(0, I) \\
    y_i^{(k+1)} &= \sum_j W_{ij} y_j^{(k)} + \tilde\nabla f_i(x_i^{(k+1)})
                  - \tilde\nabla f_i(x_i^{(k)}), \qquad y_i^{(0)} = \tilde\nabla f_i(x_i^{(0)})

W is doubly stochastic, and may change from iteration to iteration (``network``); x, y, gradients
and noise have shape (chains, agents, dim). The state holds :math:`v = y - \tilde\nabla f(x)`, which
starts at zero and moves before the next gradient is taken: :math:`v_i^{(k+1)} = \sum_j W_{ij}
y_j^{(k)} - \tilde\nabla f_i(x_i^{(k)})`. A step conserves :math:`\sum_i v_i = 0`, by which the
network average makes a Langevin step on f, but for where the gradients are taken. If vectors get
lost in one direction alone, that sum is a random walk, which nothing calls back.

Source: Bajwa, Gürbüzbalaban, Kutbay, Zhu, Zulqarnain, "DIGing-SGLD: Decentralized and Scalable
Langevin Sampling over Time-Varying Networks", 2025, arXiv 2511.12836, in our form: its abstract was
read, its equations were not; without noise it is DIGing (Nedić, Olshevsky, Shi 2017).

Price: two vectors to every neighbor and a gradient (or mini-batch) of every agent per step. What
happens on the network happens to both of an agent's vectors.
Needs: a connected network, or no edges at all; with ``privacy`` any ``on_loss`` but ``reuse_last``,
which begins with the first tracked gradients, as they are.
"""

from typing import Annotated, NamedTuple

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step
from concord.errors import ConcordError
from concord.laws.exact import Affine, Arrivals, Start, Update
from concord.networks.channel import connect
from concord.networks.topology import Topology
from concord.networks.weights import Weights, weights_of
from concord.options import Options
from concord.samplers._checks import check_weighted
from concord.samplers._parts import by_step, gradients, pieces, to_all_neighbors
from concord.sampling.gradients import BatchPool, BatchScale, ReplacedSize
from concord.sampling.kick import coming
from concord.sampling.schedules import Schedule

NAME = "DIGing-SGLD"


class Params(Options):
    """Options of DIGing-SGLD."""

    step_size: Annotated[Schedule, "step size eta_k"]
    batch_size: ReplacedSize = None
    batch_scale: BatchScale = "data"
    batch_pool: BatchPool = "all"
    weights: Weights = "metropolis"


class State(NamedTuple):
    """Positions x and tracked gradients without the agent's own v, (chains, agents, dim)."""

    x: np.ndarray
    v: np.ndarray


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse what ``check_weighted`` does, and first tracked gradients that nobody has hidden."""
    check_weighted(problem, topology, params)
    conditions = topology.conditions
    if conditions.privacy is not None and conditions.on_loss == "reuse_last":
        raise ConcordError(
            "network.on_loss: with reuse_last neighbors know the gradients that DIGing-SGLD begins "
            "with, which privacy does not hide; use keep_own_weight, or remove privacy"
        )


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    gradient = gradients(problem, params, x0)
    channel = connect(topology, x0, vectors=2)
    # Neighbors know how y starts, as they know x: by full gradients.
    tracked = channel.lane(problem.gradient(len(x0))(x0, np.empty_like(x0)))
    mix = mix_tracked = channel.mixer(weights_of(topology, params.weights))
    if tracked is not channel:  # where something happens to vectors
        mix_tracked = tracked.mixer(weights_of(topology, params.weights))
    grad, move, spare = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)
    info = to_all_neighbors(channel)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal spare
        (x, v), new_v = state, spare
        gradient(x, rng, grad)
        y = np.add(v, grad, out=v)
        mix_tracked(y, plus=None, out=new_v)
        np.subtract(new_v, grad, out=new_v)
        kick = coming(rng, params.step_size(k), y, out=move)
        new = mix(x, plus=kick, out=v)
        spare = x
        return State(new, new_v), info

    return State(x0.copy(), np.zeros_like(x0)), channel.through(step)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update:
    """Return the law of (x, v), for y = v + gram x - shift and W acting on whole agents."""
    gram, shift, mix, heard, identity, zero = pieces(problem, topology, params)
    apart = mix - identity

    def update(eta: float) -> Affine:
        return Affine(
            np.block([[mix - eta * gram, -eta * identity], [apart @ gram, mix]]),
            np.concatenate([eta * shift, -apart @ shift]),
            np.block([[2 * eta * identity, zero], [zero, zero]]),
            np.concatenate([-eta * identity, apart]),
        )

    nothing = np.zeros_like(heard)
    of_tracked = np.concatenate([nothing, heard]), np.block([gram, identity]), -shift
    arrivals = Arrivals(np.concatenate([heard, nothing]), second=of_tracked)
    return by_step(update, params.step_size, Start(0.0, 0.0), arrivals=arrivals)
