"""Models of PyMC or NumPyro whose latents of rows stay with the agent who has these rows."""

from __future__ import annotations

import numpy as np

from concord.errors import ConcordError
from concord.models.jax import CompiledModel
from concord.models.model import (
    Array,
    ReferenceDraws,
    Sharding,
    Split,
    make_shards,
    name_coordinates,
)
from concord.problems.function_problem import Problem
from concord.problems.gaussian_fit import fit


class LocalModel(Problem):
    """A problem whose agents hold what all share, and the latents of their own rows.

    An agent's coordinates are the shared ones, and then its own, padded to as many as the agent
    with most of them has: what is padded is standard normal and belongs to nothing.

    split, sharding, coordinates, reference: as of ``CompiledModel``; coordinates are
    "unconstrained" or "laplace".
    """

    def __init__(
        self, split: Split, sharding: Sharding, coordinates: object, reference: ReferenceDraws
    ) -> None:
        if coordinates not in ("unconstrained", "laplace"):
            raise ConcordError("coordinates: local latents need 'unconstrained' or 'laplace'")
        shards = make_shards(split.rows, split.labels, sharding)
        self._whole = CompiledModel(
            split, (None, shards, "equal", None), "unconstrained", reference
        )
        self.counts, size = self._whole.counts, self._whole.dim
        self.parameter_axes, self.axis_labels = split.axes, split.axis_labels
        self.agent_names = self._whole.agent_names
        numbers, pieces = np.arange(size), [split.unpack(np.arange(size), s) for s in shards]
        has_rows = {latent.name: latent.axis is not None for latent in split.latents}
        if len({*has_rows.values()}) < 2:
            raise ConcordError(
                "local: latents with the dimension of rows stay with their agent, and others are "
                "shared; the model needs both"
            )
        own = [
            np.concatenate([values.ravel() for name, values in piece.items() if has_rows[name]])
            for piece in pieces
        ]
        shared = np.setdiff1d(numbers, np.concatenate(own))
        most = max(map(len, own))
        # Padding has the number after the last coordinate.
        self._places = np.array(
            [np.concatenate([shared, part, np.full(most - len(part), size)]) for part in own]
        )
        agents, dim = self._places.shape
        center, root = np.zeros(size + 1), np.eye(size + 1)
        if coordinates == "laplace":
            normal_fit = fit(self._whole, split.start)
            order = np.concatenate([shared, *own])
            factor = np.linalg.cholesky(normal_fit.cov[np.ix_(order, order)])
            center[:-1], root[np.ix_(order, order)] = normal_fit.mean, factor
        # Padding stays as it is, and own coordinates do not depend on each other's.
        self.center = center[self._places]
        self.root = root[self._places[:, :, None], self._places[:, None]]
        is_padding = self._places == size
        self.root[is_padding] = 0.0
        self.root[is_padding[:, :, None] & is_padding[:, None] & np.eye(dim, dtype=bool)] = 1.0
        self._agent, self._is_padding = np.arange(agents)[:, None], is_padding
        self.coordinate_names = name_coordinates(str(coordinates), dim)
        known = getattr(self._whole, "reference", None)
        super().__init__(
            self._slope,
            agents=agents,
            dim=dim,
            potential=self._value,
            local=np.arange(dim) >= len(shared),
            reference=None if known is None else self._read_draws(known.values, len(shared)),
        )

    def position(self, x: Array) -> Array:
        """Return the unconstrained coordinates at positions (..., agents, dim)."""
        return self.center + np.matvec(self.root, x)

    def constrain(self, x: Array) -> dict[str, Array]:
        """Return the model's own parameters by name at positions (..., agents, dim).

        Of the rows of others, which an agent does not know, they are not a number.
        """
        if x.shape[-2] != len(self._places):
            raise ConcordError("the trace has some agents alone; record all to have their names")
        return self._whole.constrain(self._embed(x, np.nan))

    def _embed(self, x: Array, others: Array | float) -> Array:
        """Return all of the model's latents at positions x, (chains, agents, latents).

        others: the values that latents of other agents' rows get.
        """
        whole = np.empty((*x.shape[:-1], self._whole.dim + 1))
        whole[..., :-1] = others
        whole[..., self._agent, self._places] = self.position(x)
        return whole[..., :-1]

    def _value(self, x: Array) -> Array:
        """Return the potentials at positions x, (chains, agents)."""
        padding = (np.where(self._is_padding, x, 0.0) ** 2).sum(axis=-1) / 2
        return self._whole.potential(self._embed(x, self._whole._start)) + padding

    def _slope(self, x: Array) -> Array:
        """Return the potentials' gradients at positions x, (chains, agents, dim)."""
        slopes = self._whole.gradient(self._embed(x, self._whole._start))
        slopes = np.concatenate([slopes, np.zeros_like(slopes[..., :1])], axis=-1)
        own = slopes[..., self._agent, self._places]
        return np.vecmat(own, self.root) + np.where(self._is_padding, x, 0.0)

    def _read_draws(self, draws: Array, shared: int) -> Array:
        """Convert draws of the model's unconstrained latents to coordinates of this problem.

        draws: (draws, latents). shared: the number of shared coordinates. The result has the shared
        coordinates and then those of one agent after another, as ``share_all`` orders them.
        """
        padding = np.random.default_rng(0).standard_normal((len(draws), *self._places.shape))
        each = np.append(draws, np.zeros((len(draws), 1)), axis=1)[:, self._places]
        each = np.where(self._is_padding, padding, each - self.center)
        z = np.linalg.solve(self.root, each[..., None])[..., 0]
        own = z[:, :, shared:].reshape(len(z), -1)
        return np.concatenate([z[:, 0, :shared], own], axis=1)
