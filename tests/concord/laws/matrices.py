"""The papers' matrices: affine updates of samplers as they are derived by hand, for comparison."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from concord.laws.exact import Affine, block_diagonal
from concord.networks.graph import Graph
from concord.networks.network import Network


@dataclass
class Law:
    """An update: of the step, how blocks beside x start, and what is sent and received.

    received: what a step makes of vectors beyond those sent, by ways. sent, shift: what is sent, of
    the state; None: the positions. late: what a step makes of vectors received before beyond these.
    """

    step: Affine
    starts: tuple[tuple[np.ndarray, np.ndarray], ...] = ()  # matrix of x0 and covariance
    received: np.ndarray | None = None
    sent: np.ndarray | None = None
    shift: np.ndarray | None = None
    late: np.ndarray | None = None


@dataclass
class Chosen:
    """Updates that a step chooses from, with their chances."""

    probability: np.ndarray
    steps: list[Affine]


def compose(*stages: Affine) -> Affine:
    """Return one stage after another."""
    return reduce(Affine.compose_with, stages)


def linear(matrix: np.ndarray) -> Affine:
    return Affine(matrix, np.zeros(len(matrix)), np.zeros_like(matrix))


def in_place(stage: Affine, agents: int, dim: int) -> Affine:
    """Return ``stage`` with the agents' positions updated one after another (Gauss-Seidel).

    With K the part of the positions' matrix below the block diagonal, x' = K x' + (A - K) s + c + B
    w + G xi, so everything is multiplied by (I - K)^-1.
    """
    size = agents * dim
    agent = np.arange(size) // dim
    coupling = np.where(agent[:, None] > agent, stage.matrix[:size, :size], 0.0)
    inverse = np.linalg.inv(np.eye(size) - coupling)
    matrix, offset, noise = stage.matrix.copy(), stage.offset.copy(), stage.noise.copy()
    matrix[:size, :size] -= coupling
    matrix[:size] = inverse @ matrix[:size]
    offset[:size] = inverse @ offset[:size]
    noise[:size] = inverse @ noise[:size]
    noise[:, :size] = noise[:, :size] @ inverse.T
    gain = stage.gradient_gain
    if gain is not None:
        gain = gain.copy()
        gain[:size] = inverse @ gain[:size]
    return Affine(matrix, offset, noise, gain)


class Pieces:
    """What updates are made of, each (S, S) or (S,) with S = agents * dim."""

    def __init__(self, problem: Any, network: Network, weights: Any = None) -> None:
        self.agents, self.dim = problem.agents, problem.dim
        self.gram, self.shift = block_diagonal(problem.gram), problem.shift.ravel()
        self.identity = np.eye(len(self.shift))
        self.zero, self.rest = np.zeros_like(self.identity), np.zeros_like(self.shift)
        self.graph = network.graph
        if weights is not None:
            self.mix = self.wide(dense(network.matrix(weights)))
            self.received = self.inbox(dense(network.matrix(weights)))

    def wide(self, matrix: np.ndarray) -> np.ndarray:
        return np.kron(matrix, np.eye(self.dim))

    def inbox(self, matrix: np.ndarray) -> np.ndarray:
        """Return what a matrix makes of vectors by ways, (S, ways * dim)."""
        receivers, senders = self.graph.receivers, self.graph.senders
        ways = np.arange(len(senders))
        inbox = np.zeros((self.agents, len(ways)))
        inbox[receivers, ways] = matrix[receivers, senders]
        return self.wide(inbox)


def dense(matrix: Any) -> np.ndarray:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def de_sgld(s: Any, k: int, problem: Any, network: Network) -> Law:
    """Eq. (3.3) of gurbuzbalaban2021 with gradient gram x - shift, W acting on whole agents."""
    p, eta = Pieces(problem, network, s.weights), s.step_size(k)
    stage = Affine(p.mix - eta * p.gram, eta * p.shift, 2 * eta * p.identity, -eta * p.identity)
    if network.order == "in_place":
        stage = in_place(stage, p.agents, p.dim)
    return Law(stage, received=p.received)


def de_sghmc(s: Any, k: int, problem: Any, network: Network) -> Law:
    """Velocities move first, eq. (4.3) of gurbuzbalaban2021, then positions, eq. (4.4)."""
    p, eta, gamma = Pieces(problem, network, s.weights), s.step_size(k), s.friction
    velocities = Affine(
        np.block([[p.identity, p.zero], [-eta * p.gram, (1 - eta * gamma) * p.identity]]),
        np.concatenate([p.rest, eta * p.shift]),
        np.block([[p.zero, p.zero], [p.zero, 2 * gamma * eta * p.identity]]),
        np.concatenate([p.zero, -eta * p.identity]),
    )
    positions = linear(np.block([[p.mix, eta * p.identity], [p.zero, p.identity]]))
    if network.order == "in_place":
        positions = in_place(positions, p.agents, p.dim)
    start = p.zero, s.initial_velocity_sd**2 * p.identity
    received = np.concatenate([p.received, np.zeros_like(p.received)])
    return Law(compose(velocities, positions), (start,), received)


def d_ula(s: Any, k: int, problem: Any, network: Network) -> Law:
    """Eq. (8) of parayil2020."""
    p, alpha, beta = Pieces(problem, network), s.step_size(k), s.fusion(k)
    gain = alpha * (p.agents if s.gradient_scale == "agents" else 1)
    variance = p.agents if s.noise_variance == "agents" else 1
    laplacian = dense(network.graph.laplacian)
    stage = Affine(
        p.identity - beta * p.wide(laplacian) - gain * p.gram,
        gain * p.shift,
        2 * alpha * variance * p.identity,
        -gain * p.identity,
    )
    if network.order == "in_place":
        stage = in_place(stage, p.agents, p.dim)
    return Law(stage, received=-beta * p.inbox(laplacian))


def c_ula(s: Any, k: int, problem: Any, network: Network) -> Law:
    p, alpha = Pieces(problem, network), s.step_size(k)
    return Law(
        Affine(
            p.identity - alpha * p.gram,
            alpha * p.shift,
            2 * alpha * p.identity,
            -alpha * p.identity,
        )
    )


def extra_sgld(s: Any, k: int, problem: Any, network: Network) -> Law:
    p, eta = Pieces(problem, network, s.weights), s.step_size(k)
    apart = s.h * (p.identity - p.mix)
    step = Affine(
        np.block([[p.mix - eta * p.gram, -p.identity], [apart, p.identity]]),
        np.concatenate([eta * p.shift, p.rest]),
        np.block([[2 * eta * p.identity, p.zero], [p.zero, p.zero]]),
        np.concatenate([-eta * p.identity, p.zero]),
    )
    return Law(step, ((p.zero, p.zero),), np.concatenate([p.received, -s.h * p.received]))


def diging_sgld(s: Any, k: int, problem: Any, network: Network) -> Law:
    p, eta = Pieces(problem, network, s.weights), s.step_size(k)
    apart = p.mix - p.identity
    step = Affine(
        np.block([[p.mix - eta * p.gram, -eta * p.identity], [apart @ p.gram, p.mix]]),
        np.concatenate([eta * p.shift, -apart @ p.shift]),
        np.block([[2 * eta * p.identity, p.zero], [p.zero, p.zero]]),
        np.concatenate([-eta * p.identity, apart]),
    )
    received = np.kron(np.eye(2), p.received)
    sent = np.block([[p.identity, p.zero], [p.gram, p.identity]])
    return Law(step, ((p.zero, p.zero),), received, sent, np.concatenate([p.rest, -p.shift]))


def admm(s: Any, k: int, problem: Any, network: Network) -> Law:
    """The primal step, eq. (40) of tzikas2024, then the dual step, eq. (41)."""
    p, graph, rho = Pieces(problem, network), network.graph, s.penalty
    degrees = np.repeat(graph.degrees, p.dim).astype(float)
    solve = np.linalg.inv(p.gram + 2 * rho * np.diag(degrees))
    pull = rho * solve @ p.wide(dense(graph.signless_laplacian))
    kick = np.sqrt(2) * solve * degrees if s.noise else p.zero
    primal = Affine(
        np.block([[pull, -rho * solve], [p.zero, p.identity]]),
        np.concatenate([solve @ p.shift, p.rest]),
        np.block([[kick @ kick.T, p.zero], [p.zero, p.zero]]),
    )
    dual = linear(np.block([[p.identity, p.zero], [p.wide(dense(graph.laplacian)), p.identity]]))
    inbox = p.inbox(dense(graph.adjacency))
    pulled = np.concatenate([rho * solve @ inbox, np.zeros_like(inbox)])
    size = len(p.shift)
    late = np.concatenate([dual.matrix @ pulled, pulled[:size]])
    received = np.concatenate([np.zeros_like(inbox), -inbox])
    return Law(
        compose(primal, dual),
        ((p.zero, p.zero),),
        received,
        primal.matrix[:size],
        primal.offset[:size],
        late,
    )


def push_sum_sgld(s: Any, k: int, problem: Any, network: Network) -> Law:
    """The law of z given the graph: y is what it makes of ones."""
    p, eta = Pieces(problem, network), s.step_size(k)
    weights = dense(network.matrix("column_stochastic"))
    old = np.linalg.matrix_power(weights, k) @ np.ones(p.agents)
    old, new = (np.repeat(y, p.dim) for y in (old, weights @ old))
    return Law(
        Affine(
            (p.wide(weights) * old - eta * p.gram) / new[:, None],
            eta * p.shift / new,
            np.diag(2 * eta / new**2),
            -eta * np.diag(1 / new),
        )
    )


def dg_lmc(s: Any, k: int, problem: Any, network: Network) -> Law:
    """The agents' steps, then theta, whose noise is everybody's."""
    p, gamma = Pieces(problem, network), s.step_size(k)
    agents, dim = p.agents, p.dim
    root = np.eye(dim) if s.coupling is None else np.array(s.coupling)
    metric = np.linalg.inv(root.T @ root)
    pull, theta = p.identity / s.tolerance, s.tolerance / agents * metric
    own_precision = block_diagonal(metric @ problem.gram) + pull
    shift = np.matvec(metric, problem.shift).ravel()
    mean = p.wide(np.full((agents, agents), 1 / agents))
    server = Affine(
        np.block([[p.zero, mean], [p.zero, p.identity]]),
        np.zeros(2 * agents * dim),
        np.block([[np.kron(np.ones((agents, agents)), theta), p.zero], [p.zero, p.zero]]),
    )
    own = Affine(
        np.block([[p.identity, p.zero], [gamma * pull, p.identity - gamma * own_precision]]),
        np.concatenate([p.rest, gamma * shift]),
        np.block([[p.zero, p.zero], [p.zero, 2 * gamma * np.kron(np.eye(agents), metric)]]),
    )
    return Law(compose(*[own] * s.local_steps, server), ((p.identity, p.zero),))


def graph_gibbs(s: Any, k: int, problem: Any, network: Network) -> Law:
    """Colors in turn, each of which moves given all others."""
    p, graph = Pieces(problem, network), network.graph
    tie, size = 1 / s.tolerance, len(p.shift)

    def turns(matrix: np.ndarray, offset: np.ndarray, noise: np.ndarray) -> Affine:
        stages = []
        for color in greedy_colors(graph):
            own = np.repeat(color, p.dim)[:, None]
            stages.append(
                Affine(
                    np.where(own, matrix, np.eye(size)), own[:, 0] * offset, noise * (own & own.T)
                )
            )
        return compose(*stages)

    if s.step_size is None:
        degrees = np.repeat(graph.degrees, p.dim)
        cov = np.linalg.inv(p.gram + tie * np.diag(degrees))
        return Law(turns(tie * cov @ p.wide(dense(graph.adjacency)), cov @ p.shift, cov))
    gamma = s.step_size(k)
    precision = p.gram + tie * p.wide(dense(graph.laplacian))
    return Law(turns(p.identity - gamma * precision, gamma * p.shift, 2 * gamma * p.identity))


def greedy_colors(graph: Graph) -> list[np.ndarray]:
    colors: list[set[int]] = []
    for agent, neighbors in enumerate(graph.neighbors):
        free = next((c for c in colors if not c & set(neighbors.tolist())), None)
        if free is None:
            colors.append(free := set())
        free.add(agent)
    return [np.isin(np.arange(graph.agents), list(color)) for color in colors]


def _local_stages(s: Any, k: int, problem: Any, network: Network) -> tuple[Affine, ...]:
    """Return a renewal, the local steps and an average, of (x, control) or of x alone."""
    p, gamma = Pieces(problem, network, s.weights), s.step_size(k)
    kept = len(p.shift) * (1 + (s.renewal is not None))
    shares = p.wide(np.full((p.agents, p.agents), s.common_noise / p.agents))
    shares += (1 - s.common_noise) * p.identity

    def stage(matrix: list[list[np.ndarray]], offset: np.ndarray, noise: np.ndarray) -> Affine:
        whole = np.block([[noise, p.zero], [p.zero, p.zero]])
        return Affine(np.block(matrix)[:kept, :kept], offset[:kept], whole[:kept, :kept])

    apart = p.mix - p.identity
    renewal = stage(
        [[p.identity, p.zero], [apart @ p.gram @ p.mix, p.zero]],
        np.concatenate([p.rest, -apart @ p.shift]),
        p.zero,
    )
    local = stage(
        [[p.identity - gamma * p.gram, -gamma * p.identity], [p.zero, p.identity]],
        np.concatenate([gamma * p.shift, p.rest]),
        2 * gamma * shares,
    )
    average = linear(np.block([[p.mix, p.zero], [p.zero, p.identity]])[:kept, :kept])
    return renewal, compose(*[local] * s.period), average


def local_sgld(s: Any, k: int, problem: Any, network: Network) -> Law | Chosen:
    """Perhaps a renewal, then local steps, then perhaps an average."""
    p, reduced = Pieces(problem, network, s.weights), s.renewal is not None
    renewal, local, average = _local_stages(s, k, problem, network)
    if s.communication < 1 or (s.renewal or 1) < 1:
        renewed = 1.0 if k == 0 or not reduced else s.renewal
        found = [
            (q * c, compose(*[renewal] * (new and reduced), local, *mixed))
            for q, new in ((renewed, True), (1 - renewed, False))
            for c, mixed in ((s.communication, [average]), (1 - s.communication, []))
            if q * c > 0
        ]
        return Chosen(np.array([c for c, _ in found]), [step for _, step in found])
    before = compose(*[renewal] * reduced, local)
    step = compose(before, average)
    if s.period == 1 and not reduced:
        gain = -s.step_size(k) * average.matrix
        step = Affine(step.matrix, step.offset, step.noise, gain)
    starts = ((p.zero, p.zero),) * reduced
    if reduced:
        return Law(step, starts)
    return Law(step, starts, p.received, before.matrix, before.offset)


def gossip_ula(s: Any, k: int, problem: Any, network: Network) -> Chosen:
    """One update per edge, the pairs that gossip."""
    p, graph = Pieces(problem, network), network.graph
    alpha, beta = s.step_size(k), s.fusion(k) * (s.communication != "never")
    inverse = 1 / graph.degrees
    active = (1 + np.array([inverse[near].sum() for near in graph.neighbors])) / p.agents
    weights = p.agents / ({"half": 2, "whole": 1}[s.drift] * active)
    steps = []
    for edge in graph.edges:
        pair = np.zeros(p.agents)
        pair[edge] = 1
        apart = np.zeros(p.agents)
        apart[edge] = 1, -1
        gain = p.wide(np.diag(alpha * weights * pair))
        noise = alpha * p.agents**2 * p.wide(np.diag(pair))
        fusion = p.wide(beta * np.outer(apart, apart))
        steps.append(Affine(p.identity - fusion - gain @ p.gram, gain @ p.shift, noise))
    return Chosen(inverse[graph.edges].sum(axis=1) / p.agents, steps)


def fsgld(s: Any, k: int, problem: Any, network: Network) -> Chosen:
    """One update per agent."""
    agents, dim, gamma = problem.agents, problem.dim, s.step_size(k)
    gram, shift = agents * problem.gram, agents * problem.shift
    if s.surrogates == "laplace":  # of quadratic potentials they are exact
        gram = np.repeat(problem.gram.sum(axis=0)[None], agents, axis=0)
        shift = np.repeat(problem.shift.sum(axis=0)[None], agents, axis=0)
    first, everybody = np.eye(agents)[:1], np.ones((agents, 1))
    steps = []
    for own, aim in zip(gram, shift, strict=True):
        once = Affine(np.eye(dim) - gamma * own, gamma * aim, 2 * gamma * np.eye(dim))
        one = compose(*[once] * s.local_steps)
        steps.append(
            Affine(
                np.kron(everybody @ first, one.matrix),
                np.tile(one.offset, agents),
                np.kron(everybody @ everybody.T, one.noise),
            )
        )
    return Chosen(np.full(agents, 1 / agents), steps)


LAWS: dict[str, Callable[[Any, int, Any, Network], Law | Chosen]] = {
    law.__name__: law
    for law in (
        de_sgld, de_sghmc, d_ula, c_ula, extra_sgld, diging_sgld, admm, push_sum_sgld, dg_lmc,
        graph_gibbs, local_sgld, gossip_ula, fsgld,
    )
}  # fmt: skip
