"""The ways that vectors take over the edges of a graph."""

import numpy as np

from concord.networks.topology import Topology


class Edges:
    """The ways that vectors take, ordered by receiver and then by sender.

    receivers, senders, links: of each way, (edges,): its ends, and the number of the link that
    joins them, both ways, of which there are ``link_count``. by_sender: the ways ordered by sender
    and then by receiver, (edges,): in an undirected graph, of each way the way back.
    """

    def __init__(self, topology: Topology) -> None:
        self._agents, adjacency = topology.agents, topology.adjacency()
        self.receivers, self.senders = adjacency.rows, adjacency.columns
        pairs = np.minimum(self.receivers, self.senders) * self._agents
        pairs += np.maximum(self.receivers, self.senders)
        known, self.links = np.unique(pairs, return_inverse=True)
        self.link_count = len(known)
        self._ways = self.receivers * self._agents + self.senders
        self.by_sender = np.lexsort((self.receivers, self.senders))
        sending = self.senders[self.by_sender]
        self._sending, self._first_sent = np.unique(sending, return_index=True)
        # Agents with ways to them, where these begin, and each way's receiver among these agents.
        self._reached, self._first, self._place = np.unique(
            self.receivers, return_index=True, return_inverse=True
        )

    def ways(self, receivers: np.ndarray, senders: np.ndarray) -> np.ndarray:
        """Return the numbers of the ways to these receivers from these senders, their neighbors."""
        return self._ways.searchsorted(receivers * self._agents + senders)

    def of_receiver(self, operation: np.ufunc, values: np.ndarray) -> np.ndarray:
        """Return for each way what the operation makes of the values of all ways to its receiver.

        ``values`` has shape (edges, ...).
        """
        return operation.reduceat(values, self._first, axis=0)[self._place]

    def add_sent(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write for each agent the sum over the ways from it, (agents, ...)."""
        sorted_values = values[self.by_sender]
        out[self._sending] = np.add.reduceat(
            sorted_values, self._first_sent, axis=0, dtype=out.dtype
        )

    def last(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write for each agent the most of the ways to it, (agents, ...); where none is, -inf."""
        out.fill(-np.inf)
        if self._reached.size:
            out[self._reached] = np.maximum.reduceat(values, self._first, axis=0)
