"""Lanes: channels that each carry one vector of every agent over an imperfect network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from concord.networks.byzantine import LIES, tell_lies
from concord.networks.effects import Compress, Effect, Noise, Traffic
from concord.networks.graph import Graph
from concord.networks.privacy import Privacy


class Lane:
    """A channel that carries one vector of every agent to its neighbors, with losses and delays.

    latest: the vector that each receiver uses, (ways, chains, dim).

    first: the vectors that neighbors know at the start, (chains, agents, dim).

    on_loss, barrier: as for ``Network``. rng: the stream of compression, privacy and noise.
    """

    def __init__(
        self,
        graph: Graph,
        effects: Sequence[Effect],
        on_loss: str,
        barrier: bool,
        first: np.ndarray,
        rng: np.random.Generator | None,
    ) -> None:
        self._graph, self._on_loss, self._barrier = graph, on_loss, barrier
        vectors = first.transpose(1, 0, 2)
        self.latest = vectors[graph.senders]
        self._arriving = self.latest
        self._past: dict[int, np.ndarray] = {}  # what was sent, by iteration
        kinds = {type(effect): effect for effect in effects}
        self._privacy: Privacy | None = kinds.get(Privacy)
        self._compress: Compress | None = kinds.get(Compress)
        self._noise: Noise | None = kinds.get(Noise)
        if self._privacy or self._compress or self._noise:
            assert rng is not None
            # Streams of their own, so that masks do not depend on what is sent.
            self._rounding, self._hiding, self._noises = rng.spawn(3)
        self._lie = next((effect for effect in effects if isinstance(effect, LIES)), None)
        if self._lie is not None:
            assert rng is not None
            self._lying = rng.spawn(1)[0]
        self._left_out = np.zeros_like(vectors)  # by compression, of which agents keep account

    def send(self, x: np.ndarray, traffic: Traffic, k: int) -> np.ndarray:
        """Send x over all ways, and return the vectors that receivers use, (ways, chains, dim).

        x: (chains, agents, dim). traffic: what is up and arrives in iteration k.
        """
        graph, vectors = self._graph, np.ascontiguousarray(x.transpose(1, 0, 2))
        if self._on_loss == "sender_keeps":
            fallback: Any = 0.0
        elif self._on_loss == "reuse_last":
            fallback = self._arriving
        else:
            fallback = vectors[graph.receivers]
        noise: Any = 0.0
        if self._noise is not None:
            shape = len(graph.senders), *vectors.shape[1:]
            noise = self._noise.sd * self._noises.standard_normal(shape, dtype=x.dtype.type)
        self._past[k] = self._encode(vectors, traffic)
        if self._lie is not None:
            self._past[k] = tell_lies(self._lie, self._past[k], self._lying)
        self._past.pop(k - traffic.age - 1, None)
        sent = self._past.get(k - traffic.age, vectors)
        arriving = sent[graph.senders] + noise
        self._arriving = np.where(traffic.arrived[..., None], arriving, fallback)
        if self._barrier:
            self.latest = self._arriving
        else:  # agents take the last when they begin
            begin = traffic.sends[graph.receivers]
            self.latest = np.where(begin[..., None], self._arriving, self.latest)
        return self.latest

    def _encode(self, vectors: np.ndarray, traffic: Traffic) -> np.ndarray:
        """Return the clipped, noisy or compressed vectors that agents send for their vectors.

        vectors, and the result: (agents, chains, dim).
        """
        if self._privacy is not None:
            vectors = self._privacy.hide(vectors, self._hiding)
        if self._compress is None:
            return vectors
        compress = self._compress.compressor.compress
        if not self._compress.feedback:
            return compress(vectors, self._rounding)
        whole = vectors + self._left_out
        code = compress(whole, self._rounding)
        self._left_out = np.where(traffic.sends[..., None], whole - code, self._left_out)
        return code
