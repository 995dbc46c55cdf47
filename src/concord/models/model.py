r"""Models of PyMC or NumPyro, split over agents by a dimension of their data.

.. math::
    f_i(x) = - \sum_{j \in S_i} \ell_j(x) - \frac1N \ell_0(x), \qquad
    \sum_i f_i(x) = - \log p(x, y)

x are the unconstrained coordinates of all parameters. l_j is the sum of the log density's terms for
row j, including latents of that row and their Jacobians, and l_0 is the sum of all other terms.
Every agent has all coordinates, also latents of other agents' rows. When a problem is built, the
sum of the potentials is compared with the joint density that the library computes, and a model that
does not split is refused. JAX evaluates all chains and agents at once, as one compiled function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from concord import streams
from concord.errors import ConcordError, short
from concord.laws.reference_laws import Draws
from concord.local_coordinates import PosteriorByAgent, read_local
from concord.options import Count, build
from concord.problems.arrays import choose_partition
from concord.problems.function_problem import Problem
from concord.problems.gaussian_fit import fit
from concord.problems.share_all import share_all
from concord.sampling.partition import PartitionLike
from concord.values import check_masks, is_list, read_numbers

if TYPE_CHECKING:
    from jax import Array as JaxArray

# Of the joint density: a prior that is taken from the data may be off by 1e-4 of it only.
TOLERANCE = 1e-8
POINTS = 4  # where the sum is checked, about the start
SPREADS = (0.5, 1e-4)  # of these points; the second where columns of data are large
SCORED, SURPRISING = 2000, 6.0  # draws scored at once; standard errors off zero of their mean

Array = np.ndarray
Coordinates = str | tuple[ArrayLike, ArrayLike]  # a name, or a center and a root
ReferenceDraws = ArrayLike | Mapping[str, ArrayLike] | None  # unconstrained, or by name
# Agents, the caller's own shards, and partition and seed by which rows are split without them.
Sharding = tuple[int | None, Sequence[ArrayLike] | None, PartitionLike, int | None]


class Latent(NamedTuple):
    """A latent parameter: its name, unconstrained shape, and the axis that counts rows, if any."""

    name: str
    shape: tuple[int, ...]
    axis: int | None  # none does


class Split:
    """A model of a library whose log density is split into terms of rows and all other terms.

    rows: the number of rows. labels: the observed classes of the rows, (rows,), or None.

    latents: in the order of the coordinates of x. start: unconstrained initial values, (dim,).

    over: the name of the dimension of rows. axes: names of the parameters' axes, where the model
    has them. axis_labels: of the entries along such an axis, where the model has them.

    joint: a function that returns the library's own log density at x (dim,).

    hint: the usual reason why potentials do not add up to ``joint``, to end an error with.

    JAX can trace its methods.
    """

    rows: int
    labels: Array | None = None
    latents: list[Latent]
    start: Array
    over: str
    axes: Mapping[str, Sequence[str | None]] = {}
    axis_labels: Mapping[str, Sequence[object]] = {}
    joint: Callable[[JaxArray], JaxArray]
    hint: str

    def terms(self, x: JaxArray, rows: JaxArray) -> tuple[JaxArray, JaxArray]:
        """Return the terms l_j of given rows, (rows,), and the sum l_0 of all others, at x."""
        raise NotImplementedError

    def constrain(self, x: JaxArray) -> dict[str, JaxArray]:
        """Return the model's own parameters and deterministic quantities at x (dim,), by name."""
        raise NotImplementedError

    def unconstrain(self, draw: dict[str, JaxArray]) -> JaxArray:
        """Return the unconstrained x (dim,) of one draw of the model's parameters."""
        raise NotImplementedError

    def unpack(self, x: JaxArray, rows: JaxArray | None = None) -> dict[str, JaxArray]:
        """Return the unconstrained values of the latents at x (dim,), by name.

        rows: the rows whose values are taken of latents with rows; None: all rows.
        """
        values, end = {}, 0
        for name, shape, axis in self.latents:
            begin, end = end, end + int(np.prod(shape))
            piece = x[begin:end].reshape(shape)
            values[name] = piece if axis is None or rows is None else piece.take(rows, axis=axis)
        return values

    def name_agents(self, shards: Sequence[Array]) -> tuple[str, ...] | None:
        """Return the labels of the agents' rows, where each has one row whose label is a text."""
        labels = self.axis_labels.get(self.over)
        if labels is None or any(len(shard) != 1 for shard in shards):
            return None
        own = [labels[shard[0]] for shard in shards]
        return tuple(map(str, own)) if all(isinstance(label, str) for label in own) else None

    def observe(self, name: str, values: Array, owned: bool) -> None:
        """Store an observed variable's values as labels if they are integers of rows.

        owned: whether the variable has rows. A ConcordError if values are missing.
        """
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise ConcordError(f"model: {name} has missing values; leave these rows out")
        if owned and values.ndim == 1 and values.dtype.kind in "iub":
            self.labels = values


def discrete_latent_error(latent: str, use_instead: str) -> ConcordError:
    """Return the error for a model with a discrete latent, which has no gradient.

    latent: its name. use_instead: a distribution of the library that sums such a latent out.
    """
    return ConcordError(
        f"model: {latent} is a discrete latent, which has no gradient; sum it out, as "
        f"{use_instead} does"
    )


class Model(Problem):
    """A distributed problem built from a probabilistic model.

    Its coordinates z have the unconstrained position ``center + root @ z``.

    counts: the number of rows of each agent, (agents,). value, slope, prior_slope: functions of
    unconstrained positions (chains, agents, dim) that return the potentials, their gradients, and
    the gradient of -l_0 / N. joint: a function of points (points, dim) that returns the sum of the
    potentials, all at one point, as minus a log density. start: a point where it is finite.
    coordinates, reference: as for ``concord.from_pymc``. hint: as for ``Split``. local: the mask
    (dim,) of coordinates that belong to the agent who holds them, or None.
    """

    def __init__(
        self,
        counts: Array,
        start: Array,
        value: Callable[[Array], Array],
        slope: Callable[[Array], Array],
        prior_slope: Callable[[Array], Array],
        joint: Callable[[Array], Array],
        *,
        coordinates: Coordinates,
        reference: ReferenceDraws,
        hint: str,
        local: object = None,
    ) -> None:
        self.counts, dim = counts, len(start)
        self._start, self._value, self._slope, self._prior = start, value, slope, prior_slope
        self.center, self.root, self._plain = np.zeros(dim), np.eye(dim), True
        super().__init__(
            lambda x: self._pull_back(self._slope, x),
            agents=len(counts),
            dim=dim,
            potential=lambda x: self._value(self.position(x)),
            local=local,
        )
        self._check_potentials_sum(joint, hint)
        self.center, self.root = self._read_coordinates(coordinates)
        self._plain = isinstance(coordinates, str) and coordinates == "unconstrained"
        self.coordinate_names = name_coordinates(coordinates, dim)
        if reference is not None:
            draws = self._read_reference(reference)
            self._check_reference(draws.values)
            self.reference: Draws | PosteriorByAgent = draws
            if self.local is not None:
                self.reference = PosteriorByAgent(draws, self.local, self.agents)

    @property
    def units_advice(self) -> str:
        """What makes the scales of coordinates alike, for messages (``WithUnits``)."""
        if self._plain:
            return "coordinates='laplace', when the problem is made, has all of them alike"
        return "its coordinates are alike already"

    def constrain(self, x: Array) -> dict[str, Array]:
        """Return the model's own parameters by name at positions (..., dim)."""
        return {"x": self.position(x)}

    def unconstrain(self, draws: Mapping[str, Array]) -> Array:
        """Return the unconstrained positions of draws of the model's own parameters."""
        raise ConcordError("reference: parameters have no names here; give (draws, dim)")

    def prior_gradient(self, x: Array) -> Array:
        """Return the gradient of -l_0 / N, the terms without rows, (chains, agents, dim)."""
        return self._pull_back(self._prior, x)

    def position(self, x: Array) -> Array:
        """Return the unconstrained positions of coordinates x, (..., dim)."""
        return x if self._plain else self.center + x @ self.root.T

    def _pull_back(self, gradient: Callable[..., Array], x: Array, *more: Array) -> Array:
        """Evaluate a gradient function of unconstrained positions in the problem's coordinates.

        x: coordinates, (chains, agents, dim). more: the function's further arguments.
        """
        slope = gradient(self.position(x), *more)
        return slope if self._plain else slope @ self.root

    def _check_potentials_sum(self, log_joint: Callable[[Array], Array], hint: str) -> None:
        """Raise a ConcordError if the potentials do not add up to minus the log joint density.

        log_joint: the log density of points (points, dim). hint: ends the message.
        """
        noise = np.random.default_rng(0).standard_normal((POINTS, self.dim))
        for spread in SPREADS:
            x = self._start + spread * noise
            joint = log_joint(x)
            finite = np.isfinite(joint)
            if finite.any():
                break
        try:
            parts = -self._value(np.repeat(x[:, None], self.agents, axis=1)).sum(axis=1)
        except (TypeError, ValueError) as error:  # of shapes
            raise ConcordError(
                f"model: it cannot be computed of an agent's rows alone "
                f"({str(error).splitlines()[0]}); give all that rows need as data, and no number "
                "of rows"
            ) from None
        if not finite.any():
            raise ConcordError(
                f"model: its log density is {joint[0]} near its start; remove missing values from "
                "its data, scale its columns, or give other initial values"
            )
        off = np.abs(parts - joint)[finite] / np.maximum(np.abs(joint[finite]), 1.0)
        if not off.max() <= TOLERANCE:
            raise ConcordError(
                f"model: the potentials of {self.agents} agents add up to another log density than "
                f"the model's (relative difference {off.max():.1g}, at most {TOLERANCE:g}); "
                f"{hint}"
            )

    def _read_coordinates(self, coordinates: Coordinates) -> tuple[Array, Array]:
        """Return center (dim,) and root (dim, dim) of the coordinates that a caller chooses."""
        if isinstance(coordinates, str) and coordinates == "unconstrained":
            return self.center, self.root
        if self.local is not None:
            raise ConcordError("coordinates: with a mask of local ones they are 'unconstrained'")
        if isinstance(coordinates, str) and coordinates == "laplace":
            try:
                normal_fit = fit(self, self._start)
            except ConcordError as error:
                reason = str(error).removeprefix("problem: ").partition(";")[0]
                raise ConcordError(
                    f"coordinates: there is no 'laplace' fit, since {reason}; where effects have a "
                    "spread tau to be found, write them as mu + tau * z with z standard normal, or "
                    "take 'unconstrained'"
                ) from None
            return normal_fit.mean, np.linalg.cholesky(normal_fit.cov)
        if not isinstance(coordinates, (tuple, list)) or len(coordinates) != 2:
            raise ConcordError(
                f"coordinates: {short(coordinates)} is not known; use 'unconstrained', 'laplace' "
                "or a pair (center, L)"
            )
        center, root = read_numbers(coordinates[0], "center"), read_numbers(coordinates[1], "L")
        if center.shape != (self.dim,) or root.shape != (self.dim, self.dim):
            raise ConcordError(
                f"coordinates: center of shape {center.shape} and L of shape {root.shape} do not "
                f"fit; give shapes ({self.dim},) and ({self.dim}, {self.dim})"
            )
        if np.linalg.matrix_rank(root) < self.dim:
            raise ConcordError("coordinates: L is singular; give one that can be inverted")
        return center, root

    def _read_reference(self, reference: ReferenceDraws) -> Draws:
        """Return a caller's reference draws in the problem's coordinates."""
        if isinstance(reference, Mapping):
            named = {n: read_numbers(of, f"reference.{n}") for n, of in reference.items()}
            values = self.unconstrain(named)
        else:
            values = read_numbers(reference, "reference")
        size = share_all(self).dim
        if values.ndim != 2 or values.shape[1] != size or not np.isfinite(values).all():
            raise ConcordError(
                f"reference: draws of shape {values.shape} are none inside of the parameters' "
                f"bounds; give finite ones, (draws, {size}) or by name"
            )
        if self._plain:
            return Draws(values)
        return Draws(np.linalg.solve(self.root, (values - self.center).T).T)

    def _check_reference(self, draws: Array) -> None:
        """Raise a ConcordError if the draws' mean gradient is far from zero, its posterior mean."""
        parts = (draws[k : k + SCORED, None] for k in range(0, len(draws), SCORED))
        everywhere = (np.repeat(x, self.agents, axis=1) for x in parts)
        gradient = share_all(self).gradient
        each = [gradient(x).sum(axis=1) for x in everywhere]
        scores = np.concatenate(each)
        with np.errstate(invalid="ignore", divide="ignore"):
            off = np.abs(scores.mean(axis=0)) / (scores.std(axis=0) / np.sqrt(len(draws)))
        if not off.max() <= SURPRISING:
            raise ConcordError(
                f"reference: these are not draws of the model's posterior: their mean score is "
                f"{off.max():.3g} standard errors away from zero, which it is over the posterior; "
                "compare the model and the one that was sampled"
            )


def name_coordinates(coordinates: Coordinates, dim: int) -> tuple[str, ...] | None:
    """Return names of coordinates that are no latents of the model: "laplace[0]"; None of others.

    coordinates: as of ``concord.from_pymc``; those of a pair (center, L) are z.
    """
    if not isinstance(coordinates, str):
        coordinates = "z"
    plain = coordinates == "unconstrained"
    return None if plain else tuple(f"{coordinates}[{number}]" for number in range(dim))


def make_shards(rows: int, labels: Array | None, sharding: Sharding) -> list[Array]:
    """Divide rows among agents; return the row numbers of each agent, an array for each.

    rows: the number of rows. labels: their classes, by which they may be divided, or None.
    sharding: the caller's agents, shards, partition and seed.
    """
    agents, shards, partition, seed = sharding
    if shards is None:
        if is_list(agents):
            raise ConcordError(
                f"agents: {short(agents)} is no number; of the site of each row give "
                "shards=[*df.groupby('site').indices.values()], and leave agents out"
            )
        count = build(Count, agents, "agents")
        if count == rows and partition == "equal":  # a reader expects agent 3 to have row 3
            return list(np.arange(rows)[:, None])
        rng = streams.generator(streams.seed_of(seed), "partition")
        return choose_partition(partition).split(rows if labels is None else labels, count, rng)
    arrays = [np.asarray(shard) for shard in shards]
    for number, shard in enumerate(arrays):
        check_masks(shards[number], f"shards[{number}]")
        if shard.ndim != 1 or (shard.size and shard.dtype.kind not in "iu"):
            raise ConcordError(f"shards[{number}]: {short(shard)} is no array of row numbers")
    all_rows = np.concatenate(arrays) if arrays else np.zeros(0)
    if not np.array_equal(np.sort(all_rows), np.arange(rows)):
        raise ConcordError(
            f"shards: they hold {len(all_rows)} rows, {len(np.unique(all_rows))} of them "
            f"different, and the model has {rows}; give each row to one agent"
        )
    if agents is not None and agents != len(arrays):
        raise ConcordError(f"agents: {agents} do not have {len(arrays)} shards; leave agents out")
    return [shard.astype(np.intp) for shard in arrays]


def pad_rows(shards: Sequence[Array]) -> tuple[Array, Array]:
    """Return the row numbers of all agents as one array, and its mask, both (agents, most).

    The mask is False on padding, which repeats rows so that terms of it are finite.
    """
    most = max(1, *(len(shard) for shard in shards))
    rows = np.stack([np.resize(s if len(s) else np.zeros(1, np.intp), most) for s in shards])
    return rows, np.arange(most) < np.array([[len(shard)] for shard in shards])


# The modules that a library's models need; the first one names the extra that brings them.
MODULES = {
    "PyMC": ("pymc", "jax"),
    "NumPyro": ("numpyro", "jax"),
    "JAX": ("jax",),
    "PyTorch": ("torch",),
}


def install_hint(library: str) -> str | None:
    """Return a hint how to install what a library's models need; None if nothing is missing."""
    if all(map(find_spec, MODULES[library])):
        return None
    return (
        f"it needs {library}, which is not installed; in a clone, install the extra with "
        f"`python -m pip install -e '.[{MODULES[library][0]}]'`"
    )


def require_library(library: str, where: str = "model") -> None:
    """Raise a ConcordError if a library is missing, which names the argument that needs it."""
    if (reason := install_hint(library)) is not None:
        raise ConcordError(f"{where}: {reason}")


def from_shards(
    build: Callable[[Array], Callable[[Array], tuple[Array, Array]]],
    shards: Sequence[Sequence[int] | Array],
    *,
    dim: int,
    coordinates: Coordinates = "unconstrained",
    reference: ReferenceDraws = None,
    local: Sequence[bool] | None = None,
) -> Model:
    r"""Return the problem of a joint log density, built from functions of some of its rows.

    .. math:: f_i = - \log p_i + \Bigl(1 - \frac1N\Bigr) \log p_\emptyset

    Parameters
    ----------
    build
        ``build(rows)`` returns the log density, prior included, of the rows of these numbers (of
        none: the prior) as a function: x (points, dim) -> values (points,) and gradients (points,
        dim). x is unconstrained, with the Jacobians of its transforms.
    shards
        Row numbers of each agent, every row once.
    dim
        Number of coordinates.
    coordinates, reference
        As of ``concord.from_pymc``; reference draws are unconstrained, (draws, dim).
    local
        A mask (dim,) of the coordinates that belong to the agent who holds them, as of
        ``concord.Problem``: ``build`` takes the shared ones and those of one agent. Their prior
        counts once for each agent, and must not depend on the shared ones (non-centered).

    Returns
    -------
    Model
        A problem whose potentials add up to ``build`` of all rows.

    Raises
    ------
    ConcordError
        If they do not, or an argument does not fit.

    Examples
    --------
    >>> import concord, numpy as np
    >>> y = np.array([1.0, 2.0, 4.0])
    >>> def build(rows):
    ...     def log_density(x):
    ...         return -0.5 * ((y[rows] - x) ** 2).sum(1) - 0.5 * x[:, 0]**2, (
    ...             y[rows].sum() - (len(rows) + 1) * x)
    ...     return log_density
    >>> concord.from_shards(build, [[0, 1], [2]], dim=1).agents
    2
    """
    agent_rows = make_shards(sum(map(len, shards)), None, (None, shards, "equal", 1))
    own_densities = [build(rows) for rows in agent_rows]
    empty = build(np.zeros(0, dtype=np.intp))
    whole = build(np.sort(np.concatenate(agent_rows)))
    agents, mask = len(agent_rows), read_local(local, dim)
    share = 1 - 1 / agents
    is_local = np.zeros(dim, dtype=bool) if mask is None else mask

    def shared_prior(x: Array) -> tuple[Array, Array]:
        """Return the log prior of the shared coordinates, up to a constant, and its gradient."""
        value, slope = map(np.asarray, empty(np.where(is_local, 0.0, x)))
        return value, np.where(is_local, 0.0, slope)

    def at(x: Array, which: int) -> Array:
        """Return the agents' potentials (which = 0) or their gradients (1) at x."""
        densities = zip(own_densities, x.swapaxes(0, 1), strict=True)
        both = [share * shared_prior(xi)[which] - f(xi)[which] for f, xi in densities]
        return np.stack(both, axis=1)

    def prior_slope(x: Array) -> Array:
        """Return the gradients of the agents' parts of the prior, as a potential."""
        both = [share * shared_prior(xi)[1] - empty(xi)[1] for xi in x.swapaxes(0, 1)]
        return np.stack(both, axis=1)

    def joint(x: Array) -> Array:
        """Return the log density of all rows, with the local coordinates' prior N times."""
        own_prior = np.asarray(empty(x)[0]) - shared_prior(x)[0]
        return np.asarray(whole(x)[0]) + (agents - 1) * own_prior

    if mask is not None:
        x = SPREADS[0] * np.random.default_rng(0).standard_normal((POINTS, dim))
        off = np.abs(np.asarray(empty(x)[1]) - shared_prior(x)[1])[:, ~mask].max()
        if not off <= TOLERANCE:
            raise ConcordError(
                "local: the prior of the local coordinates depends on the shared ones (its slope "
                f"differs by {off:.1g}), so that nothing says how often it counts; write the model "
                "non-centered, theta_i = mu + tau z_i with z_i ~ N(0, 1)"
            )
    return Model(
        np.array([len(rows) for rows in agent_rows]),
        np.zeros(dim),
        lambda x: at(x, 0),
        lambda x: at(x, 1),
        prior_slope,
        joint,
        coordinates=coordinates,
        reference=reference,
        hint="have build([]) return the prior alone, and each row's term depend on that row only",
        local=mask,
    )
