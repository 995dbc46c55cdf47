"""Problems of PyMC models, whose graphs PyTensor translates to JAX.

The model's log density is a sum of terms, one for each variable. The term of a variable with the
dimension of rows is a function of the rows' data and latents; other terms use all latents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from concord import streams
from concord.errors import ConcordError, short
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

if install_hint("PyMC") is None:  # else ``require_library`` says what to install
    import jax.numpy as jnp
    import pymc
    from jax import Array as JaxArray
    from pymc.sampling.jax import get_jaxified_graph
    from pymc.variational.minibatch_rv import MinibatchRandomVariable
    from pytensor.compile.builders import OpFromGraph
    from pytensor.graph.traversal import ancestors, io_toposort
    from pytensor.tensor import TensorConstant, TensorType, TensorVariable


def from_pymc(
    model: pymc.Model,
    over: str,
    agents: int | None = None,
    *,
    shards: Sequence[ArrayLike] | None = None,
    partition: PartitionLike = "equal",
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
    coordinates: Coordinates = "unconstrained",
    reference: ReferenceDraws = None,
    local: bool = False,
) -> CompiledModel | LocalModel:
    r"""Return the problem of a PyMC model whose rows are split over agents.

    .. math:: f_i(x) = - \sum_{j \in S_i} \ell_j(x) - \frac1N \ell_0(x)

    where l_j is what row j adds to the model's log density, and l_0 is the rest of it. x are the
    unconstrained values of all parameters, which every agent holds, those that belong to other
    agents' rows (latents with the dimension) included.

    Parameters
    ----------
    model
        A ``pymc.Model``. Observed variables have the dimension ``over``; so have data that rows
        need, ``pymc.Data("X", X, dims=("row", "feature"))``.
    over
        The dimension whose entries are rows.
    agents, partition, seed, rng
        Their number, and how rows go to them, as of ``concord.problems.linear_regression``; of as
        many agents as rows each has the row of its number.
    shards
        Instead: the row numbers of each agent, every row once.
    coordinates
        "unconstrained"; "laplace", in which a Gaussian fit to the posterior has mean 0 and
        covariance I; or a pair (center, L), for x = center + L z. Samplers then step in z.
    reference
        Draws of the posterior that count as independent: unconstrained (draws, dim), or {name:
        (draws, ...)} of the model's own parameters. Metrics compare with them. Draws of another
        posterior are refused.

    local
        Whether latents with the dimension stay with the agent who has their rows. They are then
        never sent; agents hold what is shared and their own, and ``constrain`` has no number for
        those of others. Such a problem has gradients and potentials.

    Returns
    -------
    CompiledModel
        A problem with gradients, potentials, Hessian products, a proximal step and mini-batches;
        ``constrain(x)`` has the parameters by name, and so has ``trace.to_arviz()``.

    Raises
    ------
    ConcordError
        If the model does not split, or its potentials do not add up to its joint density.

    Examples
    --------
    >>> import concord, numpy as np, pymc
    >>> with pymc.Model(coords={"row": range(6)}) as model:
    ...     mu = pymc.Normal("mu", 0, 5)
    ...     y = pymc.Normal("y", mu, 1, observed=np.arange(6.0), dims="row")
    >>> problem = concord.from_pymc(model, over="row", agents=3)
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.02, iterations=100)
    >>> problem.constrain(trace["x"])["mu"].shape
    (100, 101, 3)
    """
    require_library("PyMC")
    sharding = agents, shards, partition, streams.seed_of(seed, rng)
    kind = LocalModel if local else CompiledModel
    return kind(_PyMC(model, over), sharding, coordinates, reference)


class _PyMC(Split):
    """A PyMC model as a ``Split``: functions of JAX for the terms of rows and for all others."""

    hint = (
        "a row's term may use other rows, as a mean over rows does: compute that outside of the "
        "model, and give it as data"
    )

    def __init__(self, model: pymc.Model, over: str) -> None:
        if not isinstance(model, pymc.Model):
            raise ConcordError(f"model: {short(model)} is no pymc.Model; give one")
        if over not in model.dim_lengths:
            dims = ", ".join(model.dim_lengths) or "none"
            raise ConcordError(
                f"over: the model has no dimension {over!r} (it has: {dims}); name its rows, "
                f"pymc.Model(coords={{{over!r}: ...}}), and give observed variables dims={over!r}"
            )
        self.model, self.over = model, over
        self.axes = model.named_vars_to_dims
        coords = model.coords.items()
        self.axis_labels = {of: labels for of, labels in coords if labels is not None}
        self.rows = int(model.dim_lengths[over].eval())
        self.values = [model.rvs_to_values[variable] for variable in model.free_RVs]
        for variable, value in zip(model.free_RVs, self.values, strict=True):
            if value.type.dtype.startswith(("int", "uint", "bool")):
                raise discrete_latent_error(variable.name, "pymc.Mixture")
        point = model.initial_point()
        first = [np.asarray(point[value.name], dtype=float) for value in self.values]
        self.start = np.concatenate([value.ravel() for value in first])
        pairs = zip(model.free_RVs, first, strict=True)
        self.latents = [Latent(v.name, value.shape, self._row_axis(v)) for v, value in pairs]
        for variable in model.observed_RVs:
            self._store_observed(variable)
        self._translate()

    def _row_axis(self, variable: TensorVariable) -> int | None:
        """Return the axis of a variable that counts rows. None if it has none."""
        dims = self.model.named_vars_to_dims.get(variable.name) or ()
        return list(dims).index(self.over) if self.over in dims else None

    def _store_observed(self, variable: TensorVariable) -> None:
        """Store an observed variable's values; raise a ConcordError if they have no rows."""
        name, place = variable.name, self._row_axis(variable)
        if isinstance(variable.owner.op, MinibatchRandomVariable):
            raise ConcordError(
                f"model: {name} has total_size, which scales its rows; leave it out: samplers draw "
                "mini-batches themselves (batch_size)"
            )
        base = name.removesuffix("_observed")
        if any(latent.name == f"{base}_unobserved" for latent in self.latents):
            raise ConcordError(
                f"model: {base} has missing values; leave these rows out, or make each a parameter "
                "of the model"
            )
        if place is None:
            raise ConcordError(
                f"model: {name} is observed and has no dimension {self.over!r}, so that no agent "
                f"owns it; give it dims={self.over!r}"
            )
        self.observe(name, self.model.rvs_to_values[variable].eval(), owned=True)

    def _term_axis(self, variable: TensorVariable, term: TensorVariable) -> int | None:
        """Return the axis of a variable's log density that counts rows. None if it has none.

        term: the variable's log density.
        """
        axis = self._row_axis(variable)
        if axis is not None and axis >= term.ndim:
            raise ConcordError(
                f"model: the log density of {variable.name} is one number for all rows, which "
                "depend on each other; make rows independent given the parameters"
            )
        return axis

    def _check_constants(self, terms: list[TensorVariable]) -> None:
        """Raise a ConcordError if terms of rows read an unnamed constant with an entry per row.

        Nothing says which agent owns the entries of such a constant.
        """
        observed = set(self.model.rvs_to_values.values())
        for node in ancestors(terms):
            constant = isinstance(node, TensorConstant) and node not in observed
            if constant and self.rows > 1 and self.rows in node.type.shape:
                raise ConcordError(
                    f"model: a row's term reads a constant of shape {node.type.shape} that has no "
                    f"dimension; wrap it, pymc.Data(name, values, dims={self.over!r}), or "
                    "pymc.Data(name, values) if its entries are no rows"
                )

    def _translate(self) -> None:
        """Compile the model's terms, transforms and joint density to functions of JAX."""
        model, free = self.model, self.model.free_RVs
        variables = [*model.basic_RVs, *model.potentials]
        terms = model.logp(vars=variables, sum=False)
        axes = [self._term_axis(v, term) for v, term in zip(variables, terms, strict=True)]
        of_rows = [term for term, axis in zip(terms, axes, strict=True) if axis is not None]
        rest = [term for term, axis in zip(terms, axes, strict=True) if axis is None]
        named = zip(variables, axes, strict=True)
        self.row_names = [(v.name, axis) for v, axis in named if axis is not None]
        self._check_constants(of_rows)
        data = [v for v in model.data_vars if self._row_axis(v) is not None]
        observed = [model.rvs_to_values[v] for v in model.observed_RVs]
        self.data = [(v.get_value(), self._row_axis(v)) for v in data]
        self.data += [
            (model.rvs_to_values[v].eval(), self._row_axis(v)) for v in model.observed_RVs
        ]
        self.of_rows = _jax_function([*self.values, *data, *observed], of_rows)
        self.of_all = _jax_function(self.values, rest)
        names_shown = {v.name for v in (*free, *model.deterministics)}
        quantities = {v.name: v for v in model.unobserved_value_vars if v.name in names_shown}
        self.quantities, self.forward = (
            list(quantities),
            _jax_function(self.values, list(quantities.values())),
        )
        transforms = [(v, model.rvs_to_transforms[v]) for v in free]
        back = [v if t is None else t.forward(v, *v.owner.inputs) for v, t in transforms]
        self.back = _jax_function(free, back)
        names, density = [v.name for v in self.values], model.compile_logp(mode="FAST_COMPILE")
        self.joint = lambda x: density(dict(zip(names, self.unpack(x).values(), strict=True)))

    def terms(self, x: JaxArray, rows: JaxArray) -> tuple[JaxArray, JaxArray]:
        """Return the terms of the given rows, (rows,), and the sum of all others, at x (dim,)."""
        rest = sum((term.sum() for term in self.of_all(*self.unpack(x).values())), jnp.zeros(()))
        data = (jnp.asarray(values).take(rows, axis=axis) for values, axis in self.data)
        terms = self.of_rows(*self.unpack(x, rows).values(), *data)
        each = zip(terms, self.row_names, strict=True)
        row_sums = (sum_over_other_axes(name, term, axis, rows) for term, (name, axis) in each)
        return sum(row_sums, jnp.zeros(len(rows))), rest

    def constrain(self, x: JaxArray) -> dict[str, JaxArray]:
        """Return parameters and deterministics at x (dim,), by name."""
        return dict(zip(self.quantities, self.forward(*self.unpack(x).values()), strict=True))

    def unconstrain(self, draw: dict[str, JaxArray]) -> JaxArray:
        """Return the unconstrained values of a draw, (dim,)."""
        values = self.back(*(draw[latent.name] for latent in self.latents))
        return jnp.concatenate([jnp.ravel(value) for value in values])


def _jax_function(
    inputs: list[TensorVariable], outputs: list[TensorVariable]
) -> Callable[..., Sequence[JaxArray]]:
    """Return the JAX function of a PyTensor graph, for inputs of any lengths."""
    if not outputs:
        return lambda *values: ()
    fresh = [TensorType(v.type.dtype, (None,) * v.type.ndim)() for v in inputs]
    rebuilt = _rebuild_graph(outputs, dict(zip(inputs, fresh, strict=True)))
    return get_jaxified_graph(inputs=fresh, outputs=rebuilt)


def _rebuild_graph(
    outputs: list[TensorVariable], replaced: dict[TensorVariable, TensorVariable]
) -> list[TensorVariable]:
    """Return the outputs of a graph whose inputs are replaced, with nested graphs expanded.

    A nested graph (logsumexp is one) would insist on the shapes of its first inputs.
    """
    for node in io_toposort(list(replaced), outputs):
        inputs, op = [replaced.get(v, v) for v in node.inputs], node.op
        if isinstance(op, OpFromGraph):
            parts = _rebuild_graph(
                op.inner_outputs, dict(zip(op.inner_inputs, inputs, strict=True))
            )
        else:
            parts = op.make_node(*inputs).outputs
        replaced |= zip(node.outputs, parts, strict=True)
    return [replaced.get(v, v) for v in outputs]
