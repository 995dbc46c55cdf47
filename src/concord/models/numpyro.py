"""Problems of NumPyro models, each one JAX function for all chains and agents.

A model is run on each agent's rows, with given values of the latents in place of random draws;
``vmap`` runs it for all chains and agents at once. Sites in the plate of rows belong to the rows,
other sites to all agents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concord import streams
from concord.errors import ConcordError
from concord.models.jax import CompiledModel, sum_over_other_axes
from concord.models.local_model import LocalModel
from concord.models.model import (
    Coordinates,
    Latent,
    ReferenceDraws,
    Split,
    discrete_latent_error,
    install_hint,
    require_library,
)
from concord.sampling.partition import PartitionLike

if install_hint("NumPyro") is None:  # else ``require_library`` says what to install
    import jax
    import jax.numpy as jnp
    from jax import Array as JaxArray
    from jax import tree_util
    from numpyro import handlers, validation_enabled
    from numpyro.distributions import biject_to
    from numpyro.infer import init_to_uniform
    from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

Site = dict[str, Any]  # what NumPyro says of a distribution or a plate of a model


def from_numpyro(
    model: Callable[..., object],
    *args: object,
    over: str,
    agents: int | None = None,
    shards: Sequence[ArrayLike] | None = None,
    partition: PartitionLike = "equal",
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
    coordinates: Coordinates = "unconstrained",
    reference: ReferenceDraws = None,
    local: bool = False,
    **kwargs: object,
) -> CompiledModel | LocalModel:
    r"""Return the problem of a NumPyro model whose rows are split over agents.

    .. math:: f_i(x) = - \sum_{j \in S_i} \ell_j(x) - \frac1N \ell_0(x)

    as of ``concord.from_pymc``.

    Parameters
    ----------
    model
        A function with NumPyro's primitives. Observed sites are in the plate ``over``, whose size
        follows from the arguments, ``numpyro.plate("row", len(y))``.
    *args, **kwargs
        The model's arguments. Arrays with as many entries along their first axis as the plate has
        are data of rows; give others of that length another axis, (1, n).
    over
        The name of the plate whose entries are rows.
    agents, shards, partition, seed, rng, coordinates, reference, local
        As of ``concord.from_pymc``.

    Returns
    -------
    CompiledModel
        A problem with gradients, potentials, Hessian products, a proximal step and mini-batches.

    Raises
    ------
    ConcordError
        If JAX computes in single precision, the model does not split, or its potentials do not add
        up to its joint density.

    Examples
    --------
    >>> import concord, jax, numpy as np, numpyro
    >>> jax.config.update("jax_enable_x64", True)
    >>> def model(y):
    ...     mu = numpyro.sample("mu", numpyro.distributions.Normal(0, 5))
    ...     with numpyro.plate("row", len(y)):
    ...         numpyro.sample("y", numpyro.distributions.Normal(mu, 1), obs=y)
    >>> concord.from_numpyro(model, np.arange(6.0), over="row", agents=3).dim
    1
    """
    require_library("NumPyro")
    sharding = agents, shards, partition, streams.seed_of(seed, rng)
    kind = LocalModel if local else CompiledModel
    return kind(_NumPyro(model, over, args, kwargs), sharding, coordinates, reference)


class _NumPyro(Split):
    """A NumPyro model as a ``Split``: its latents, and which of its arguments have rows."""

    hint = (
        "a row's term may use other rows, or a prior the data, as a mean over rows does: compute "
        "that outside of the model, and give it as an argument without rows"
    )

    def __init__(self, model: Callable[..., object], over: str, args: tuple, kwargs: dict) -> None:
        self.model, self.over, self.args, self.kwargs = model, over, args, kwargs
        seeded = handlers.seed(model, 0)
        started = handlers.substitute(seeded, substitute_fn=init_to_uniform(radius=0.5))
        with validation_enabled(False):  # of nan in data it says less than we do below
            sites = handlers.trace(started).get_trace(*args, **kwargs)
        plates = {name: site for name, site in sites.items() if site["type"] == "plate"}
        for name, site in plates.items():
            size, subsample = site["args"]
            if subsample is not None and subsample != size:
                raise ConcordError(
                    f"model: the plate {name} is subsampled ({subsample} of {size}); leave "
                    "subsample_size out: samplers draw mini-batches themselves (batch_size)"
                )
        if over not in plates:
            raise ConcordError(
                f"over: the model has no plate {over!r} (it has: {', '.join(plates) or 'none'}); "
                f"observe rows in `with numpyro.plate({over!r}, len(y)):`"
            )
        self.rows = int(plates[over]["args"][0])
        self.leaves, self.tree = jax.tree_util.tree_flatten((args, kwargs))
        self.split = [np.ndim(leaf) > 0 and len(leaf) == self.rows for leaf in self.leaves]
        if not any(self.split):
            raise ConcordError(
                f"model: no argument has {self.rows} rows, so that nothing says which agent owns "
                "what the model reads; give the data as arguments"
            )
        self.latents: list[Latent] = []
        self.axes: dict[str, Sequence[str | None]] = {}
        for name, site in sites.items():
            if site["type"] == "sample":
                self._add_site(name, site)
        self.start = np.zeros(sum(int(np.prod(latent.shape)) for latent in self.latents))
        self.joint = jax.jit(lambda x: -potential_energy(model, args, kwargs, self.unpack(x)))

    def _plate_dimension(self, site: Site) -> int | None:
        """Return the batch dimension of a site that the plate of rows takes. None outside of it."""
        dims = [frame.dim for frame in site["cond_indep_stack"] if frame.name == self.over]
        return dims[0] if dims else None

    def _add_site(self, name: str, site: Site) -> None:
        """Add a site to the latents, or check it if it is observed."""
        frame, law = self._plate_dimension(site), site["fn"]
        if site["is_observed"]:
            if frame is None and type(law).__name__ != "Unit":  # numpyro.factor
                raise ConcordError(
                    f"model: {name} is observed outside of the plate {self.over!r}, so that no "
                    "agent owns it; observe it in the plate"
                )
            self.observe(name, np.asarray(site["value"]), owned=frame is not None)
            return
        shape = np.shape(site["value"])
        if frame is not None:
            place = len(shape) + frame - law.event_dim
            names = [self.over if k == place else None for k in range(len(shape))]
            self.axes = {**self.axes, name: names}
        if getattr(law.support, "is_discrete", False):
            raise discrete_latent_error(name, "MixtureSameFamily")
        transform = biject_to(law.support)
        axis = None if frame is None else frame - transform.domain.event_dim
        self.latents.append(Latent(name, np.shape(transform.inv(site["value"])), axis))

    def terms(self, x: JaxArray, rows: JaxArray) -> tuple[JaxArray, JaxArray]:
        """Return the log density of the given rows, (rows,), and of all else, at x (dim,)."""
        values, jacobians = self.unpack(x, rows), {}

        def fill(site: Site) -> JaxArray | None:
            """Return a latent's value at a site, and store the Jacobian of its transform."""
            name = site["name"]
            if name not in values:
                return None
            transform = biject_to(site["fn"].support)
            value = transform(values[name])
            jacobians[name] = transform.log_abs_det_jacobian(values[name], value)
            return value

        pairs = zip(self.leaves, self.split, strict=True)
        leaves = [jnp.asarray(leaf)[rows] if split else leaf for leaf, split in pairs]
        args, kwargs = tree_util.tree_unflatten(self.tree, leaves)
        filled = handlers.seed(handlers.substitute(self.model, substitute_fn=fill), 0)
        row_terms, shared = jnp.zeros(len(rows)), jnp.zeros(())
        for name, site in handlers.trace(filled).get_trace(*args, **kwargs).items():
            if site["type"] != "sample":
                continue
            log = site["fn"].log_prob(site["value"]) + jacobians.get(name, 0.0)
            log = log if site["scale"] is None else site["scale"] * log
            frame = self._plate_dimension(site)
            if frame is None:
                shared = shared + log.sum()
            else:
                row_terms = row_terms + sum_over_other_axes(name, log, frame, rows)
        return row_terms, shared

    def constrain(self, x: JaxArray) -> dict[str, JaxArray]:
        """Return latents and deterministic sites at x (dim,), by name."""
        arguments = self.model, self.args, self.kwargs, self.unpack(x)
        return constrain_fn(*arguments, return_deterministic=True)

    def unconstrain(self, draw: dict[str, JaxArray]) -> JaxArray:
        """Return the unconstrained latents of a draw, (dim,)."""
        values = unconstrain_fn(self.model, self.args, self.kwargs, draw)
        return jnp.concatenate([jnp.ravel(values[latent.name]) for latent in self.latents])
