"""Models that JAX compiles into one function for all chains and agents at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec

import numpy as np

from concord.errors import ConcordError
from concord.models.model import (
    Array,
    Coordinates,
    Model,
    ReferenceDraws,
    Sharding,
    Split,
    make_shards,
    pad_rows,
)
from concord.problem import ALL, Agents

if find_spec("jax"):  # else ``require_library`` says what to install
    import jax
    import jax.numpy as jnp
    from jax import Array as JaxArray

Evaluate = Callable[..., Array]

STEPS, LENGTHS = 100, 30  # of Newton's method


class CompiledModel(Model):
    """A problem built from a PyMC or NumPyro model and compiled by JAX.

    It has gradients, potentials, products with Hessians, a proximal step and mini-batches.

    split: the model's terms. sharding: as for ``make_shards``. coordinates, reference: as for
    ``concord.from_pymc``.
    """

    def __init__(
        self, split: Split, sharding: Sharding, coordinates: Coordinates, reference: ReferenceDraws
    ) -> None:
        if not jax.config.jax_enable_x64:
            raise ConcordError(
                "model: JAX computes in single precision, in which sums over rows differ; call "
                'jax.config.update("jax_enable_x64", True) first'
            )
        agent_rows = make_shards(split.rows, split.labels, sharding)
        self._split, agents, (index, mask) = split, len(agent_rows), pad_rows(agent_rows)
        self.parameter_axes, self.axis_labels = split.axes, split.axis_labels
        self.agent_names = split.name_agents(agent_rows)
        counts = np.array([float(len(rows)) for rows in agent_rows])
        weights = mask.astype(float)

        def value(x: JaxArray, rows: JaxArray, weight: JaxArray) -> JaxArray:
            """Return one agent's potential at x (dim,); weight is zero on padding rows."""
            terms, rest = split.terms(x, rows)
            return -jnp.where(weight != 0, weight * terms, 0.0).sum() - rest / agents

        def product(x: JaxArray, v: JaxArray, rows: JaxArray, weight: JaxArray) -> JaxArray:
            """Return the product of one agent's Hessian at x with v, both (dim,)."""
            return jax.jvp(lambda x: jax.grad(value)(x, rows, weight), (x,), (v,))[1]

        def batch(x: JaxArray, drawn: JaxArray, rows: JaxArray, count: JaxArray) -> JaxArray:
            """Return one agent's gradient estimate at x from the rows of numbers ``drawn``."""
            return jax.grad(value)(x, rows[drawn], jnp.full(drawn.shape, count / len(drawn)))

        def prior(x: JaxArray, rows: JaxArray) -> JaxArray:
            """Return the gradient at x of an agent's share of the terms without rows."""
            return jax.grad(lambda x: -split.terms(x, rows)[1] / agents)(x)

        def minimum(
            x: JaxArray, b: JaxArray, c: JaxArray, rows: JaxArray, weight: JaxArray, *axes: JaxArray
        ) -> tuple[JaxArray, JaxArray]:
            """Return the minimizer z of a proximal step, near x, and its cost.

            The function of z is f_i(center + root z) + c |z|^2 / 2 - b^T z. axes: center and root.
            """
            center, root = axes

            def goal(z: JaxArray) -> JaxArray:
                """Return the value at z (dim,) of the function that is minimized."""
                return value(center + root @ z, rows, weight) + c / 2 * z @ z - b @ z

            return _minimize_by_newton(goal, x)

        def vectorize(function: Callable[..., JaxArray], arrays: int, *by_agent: Array) -> Evaluate:
            """Compile a function of one chain and agent, mapped over all chains and agents.

            arrays: the number of leading arguments that differ by chain. by_agent: arguments that
            differ by agent alone.
            """
            axes = (0,) * arrays + (None,) * len(by_agent)
            mapped = jax.jit(lambda *x: jax.vmap(jax.vmap(function), in_axes=axes)(*x, *by_agent))
            return lambda *x: np.asarray(mapped(*x))

        self._products = vectorize(product, 2, index, weights)
        self._batches = vectorize(batch, 2, index, counts)
        self._forward = jax.jit(jax.vmap(split.constrain))
        agents_own = jax.vmap(minimum, in_axes=(0, 0, 0, 0, 0, None, None))
        chains_own = jax.vmap(agents_own, in_axes=(0, 0, *(None,) * 5))
        minimized = jax.jit(lambda x, b, c, *axes: chains_own(x, b, c, index, weights, *axes))
        self._minimize = lambda *x: minimized(*x, self.center, self.root)
        super().__init__(
            counts.astype(int),
            split.start,
            vectorize(value, 1, index, weights),
            vectorize(jax.grad(value), 1, index, weights),
            vectorize(prior, 1, index),
            lambda x: np.array([float(split.joint(point)) for point in x]),
            coordinates=coordinates,
            reference=reference,
            hint=split.hint,
        )

    def constrain(self, x: Array) -> dict[str, Array]:
        """Return the model's own parameters by name at positions (..., dim)."""
        values = self._forward(self.position(x).reshape(-1, self.dim)).items()
        return {n: np.asarray(of).reshape(*x.shape[:-1], *of.shape[1:]) for n, of in values}

    def unconstrain(self, draws: Mapping[str, Array]) -> Array:
        """Return the unconstrained positions of draws of the model's own parameters."""
        names = [latent.name for latent in self._split.latents]
        if missing := [name for name in names if name not in draws]:
            raise ConcordError(
                f"reference: it has no draws of {', '.join(missing)}; give draws of the model's "
                f"own parameters ({', '.join(names)}), or write the model in those that were drawn"
            )
        lengths = {name: len(draws[name]) for name in names}
        if len(set(lengths.values())) > 1:
            raise ConcordError(
                f"reference: numbers of draws differ ({lengths}); give as many of each"
            )
        return np.asarray(jax.vmap(self._split.unconstrain)({name: draws[name] for name in names}))

    def hessian_product(self, x: Array, v: Array) -> Array:
        """Return the products of the Hessian of f_i at x_i with v_i, (chains, agents, dim)."""
        return self._pull_back(self._products, x, v @ self.root.T)

    def batch_gradient(self, x: Array, rows: Array) -> Array:
        """Return mini-batch gradients (``WithMiniBatches``), (chains, agents, dim)."""
        return self._pull_back(self._batches, x, rows)

    def minimize(
        self, linear: Array, curvature: Array, start: Array, agents: Agents = ALL
    ) -> tuple[Array, Array]:
        """Return minimizers by Newton's method, and their cost in gradients.

        They are computed for all agents, whichever are chosen.
        """
        lost = ~np.isfinite(start + linear).all(axis=-1)
        b, guess = np.zeros((2, len(linear), self.agents, self.dim))
        b[:, agents], guess[:, agents] = (
            np.where(lost[..., None], 0.0, array) for array in (linear, start)
        )
        x, cost = (np.array(of)[:, agents] for of in self._minimize(guess, b, curvature))
        x[lost] = np.nan
        return x, cost


def _minimize_by_newton(goal: Callable[..., JaxArray], x: JaxArray) -> tuple[JaxArray, JaxArray]:
    """Return a local minimizer of a smooth function near x, and its cost in gradients.

    The function need not be convex: Newton's direction uses the absolute eigenvalues of the
    Hessian, and the best of the step lengths 1, 1/2, ... is taken, so that the function falls. A
    Hessian costs 2 dim gradients, a trial point one.
    """
    lengths = 0.5 ** jnp.arange(LENGTHS)

    def step(state: tuple[JaxArray, ...]) -> tuple[JaxArray, ...]:
        """Return the state after one step: point, value, whether it converged, and step count."""
        x, at, _, k = state
        slope, (sizes, axes) = jax.grad(goal)(x), jnp.linalg.eigh(jax.hessian(goal)(x))
        sizes = jnp.maximum(jnp.abs(sizes), 1e-12 * jnp.abs(sizes).max())
        move = -axes @ ((axes.T @ slope) / sizes)
        values = jax.vmap(lambda length: goal(x + length * move))(lengths)
        values = jnp.where(jnp.isnan(values), jnp.inf, values)
        best = jnp.argmin(values)
        is_close = -(slope @ move) <= 1e-9 * (1 + jnp.abs(at))  # only rounding moves the value
        length = jnp.where(is_close, 1.0, lengths[best])
        done = (-(slope @ move) <= 1e-20 * (1 + jnp.abs(at))) | (~is_close & ~(values[best] < at))
        moved = jnp.where(done, x, x + length * move)
        return moved, goal(moved), done, k + 1

    initial = x, goal(x), jnp.array(False), 0
    x, _, _, k = jax.lax.while_loop(lambda state: ~state[2] & (state[3] < STEPS), step, initial)
    return x, k * (2 * x.size + 1 + LENGTHS)


def sum_over_other_axes(name: str, term: JaxArray, axis: int, rows: JaxArray) -> JaxArray:
    """Sum a variable's log density over all axes but that of rows; return (rows,).

    name: the variable, for errors. axis: that of rows. rows: their numbers.
    """
    if term.shape[axis] != len(rows):
        raise ValueError(f"{name} has {term.shape[axis]} rows, whatever rows it is given")
    return jnp.moveaxis(term, axis, 0).reshape(len(rows), -1).sum(axis=1)
