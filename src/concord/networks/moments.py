"""Moments of the random masks of an imperfect network, computed without a draw."""

from collections.abc import Callable

import numpy as np

from concord.networks.effects import BurstLoss, Matchings, RandomLinks, RandomPair
from concord.networks.graph import Graph
from concord.networks.network import Network


def _matching_probabilities(graph: Graph) -> np.ndarray:
    r"""Return the probabilities that two arcs are up in a matching, (arcs, arcs).

    A link is up if its number is the lowest of the a links that share an agent with it, itself
    among them: with chance 1/a. Two that share no agent are both up if the lowest of the u links
    around either is one of them, and the other the lowest around it: :math:`(1/a + 1/b) / u`.
    """
    touches = np.zeros((graph.link_count, graph.agents))
    touches[graph.links, graph.receivers] = 1
    touching = (touches @ touches.T > 0).astype(float)
    around = touching.sum(axis=1)
    union = around[:, None] + around - touching @ touching
    both = np.where(touching > 0, 0.0, (1 / around[:, None] + 1 / around) / union)
    np.fill_diagonal(both, 1 / around)
    return both[np.ix_(graph.links, graph.links)]


def mask_moments(network: Network) -> Callable[[int], tuple[np.ndarray, np.ndarray]] | None:
    """Return a function of k: the first and second moments of the masks of iteration k.

    With :math:`b = (a, m)`, where a_i is 1 if agent i is awake and m_e is 1 if a vector arrives
    over arc e, the moments are E[b] and E[b b^T], of agents + arcs entries. Each b is a product of
    independent draws (agents awake, links up, vectors not lost), so E[b_p b_q] is the product of
    the probabilities of all draws that p or q needs; where a pair or a turn is drawn besides, the
    moments are averaged over it. Return None where draws of different iterations or links depend on
    each other.
    """
    options, edges = network.conditions, network.graph
    skips, matched = options.on_loss == "skip", isinstance(options.schedule, Matchings)
    if options.late_option or isinstance(options.loss, BurstLoss) or (matched and skips):
        return None
    identity = np.eye(network.agents)
    of_link = np.eye(edges.link_count)[edges.links]
    ends = np.maximum(identity[edges.receivers], identity[edges.senders])
    awake = np.concatenate([identity, ends])
    needs, probability = [awake], [options.awake]
    if isinstance(options.schedule, RandomLinks):
        needs.append(np.concatenate([np.zeros((len(identity), of_link.shape[1])), of_link]))
        probability.append(options.schedule.probability)
    if options.loss is not None:
        each = of_link if options.loss.direction == "link" else np.eye(len(edges.senders))
        needs.append(np.concatenate([np.zeros((len(identity), each.shape[1])), each]))
        probability.append(1 - options.loss.rate)
    needed = np.concatenate(needs, axis=1)
    if skips:
        needed[len(identity) :] = edges.per_receiver(np.maximum, needed[len(identity) :])
    sizes = [part.shape[1] for part in needs]
    logs = np.log(np.maximum(np.repeat(probability, sizes), 1e-300))
    one = needed @ logs
    first, second = np.exp(one), np.exp(one[:, None] + one - (needed * logs) @ needed.T)

    if matched:
        up, size = _matching_probabilities(edges), len(identity)
        first[size:] *= np.diag(up)
        second[:size, size:] *= np.diag(up)
        second[size:, :size] *= np.diag(up)[:, None]
        second[size:, size:] *= up

    def of_turns(shares: np.ndarray, arcs: np.ndarray, agents: np.ndarray) -> tuple:
        """Return the moments averaged over graphs in turn, with probabilities ``shares``, (turns,).

        arcs, agents: which arcs and agents are up in each turn, (arcs, turns) and (agents, turns).
        """
        if skips:
            arcs = edges.per_receiver(np.minimum, arcs)
        up = np.concatenate([agents, arcs])
        return first * (up @ shares), second * ((up * shares) @ up.T)

    if isinstance(options.schedule, RandomPair):
        pairs = edges.edges
        shares = (1 / edges.degrees)[pairs].sum(axis=1) / network.agents
        pair = np.zeros((network.agents, len(pairs)))
        pair[pairs.T, np.arange(len(pairs))] = 1
        moments = of_turns(shares, pair[edges.receivers] * pair[edges.senders], pair)
        return lambda k: moments
    if tables := options.schedule.tables(edges):
        once, everybody = np.ones(1), np.ones((network.agents, 1))
        each_turn = [of_turns(once, table[:, None].astype(float), everybody) for table in tables]
        return lambda k: each_turn[k % len(each_turn)]
    return lambda k: (first, second)
