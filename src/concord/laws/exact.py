"""Exact law of affine samplers: on a Gaussian problem every iterate's mean and covariance.

The state stacks the agents' positions and then what else the sampler keeps (velocities, dual
variables): s = (x_1, ..., x_N, [v_1, ..., v_N]), each block of length dim, S entries in all. One
step is

    s' = A s + c + B w + G xi,    w ~ N(0, I),  Q = B B^T,

where xi stacks the agents' gradient noise (mini-batches only). ``laws.read_off`` reads it off a
sampler's step. This module defines updates, the start of their state, and their limits;
``laws.paths`` computes moments along the iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from concord.errors import ConcordError, suggest_names
from concord.laws.iterations import Cycle
from concord.libraries import pictures
from concord.summary import WithLabels, count_named
from concord.values import FINITE_RANGE

if TYPE_CHECKING:
    import xarray  # half a second
    from matplotlib.figure import Figure

# Mean and covariance, (..., S) and (..., S, S).
Moments = tuple[np.ndarray, np.ndarray]

SPARSE = 0.1  # of the entries of A: with more of them a dense product takes less time


@dataclass(frozen=True, eq=False)
class Affine:
    """The update s' = A s + c + B w + G xi.

    matrix: A, shape (S, S).
    offset: c, shape (S,).
    noise: Q = B B^T, the covariance added in a step, shape (S, S).
    gradient_gain: G, shape (S, agents * dim): what a step makes of the error xi of the gradients
    taken at the state s. None where the stage takes no gradient.

    In the engine (``laws.paths``) versions of an update stand on the first axis of A, c and Q.
    """

    STACKED: ClassVar = ("matrix", "offset", "noise")

    matrix: np.ndarray
    offset: np.ndarray
    noise: np.ndarray
    gradient_gain: np.ndarray | None = None

    @cached_property
    def _transposed(self) -> np.ndarray:
        """The conjugate transpose of A."""
        return self.matrix.swapaxes(-1, -2).conj()  # of modes they are complex

    @cached_property
    def sparse(self) -> Any:
        """A as a sparse matrix; None if it is small, of many entries, or of several versions.

        Networks have few edges, and agents blocks of their own: most entries of such an A are 0.
        """
        size, matrix = self.matrix.shape[-1], self.matrix
        if matrix.size != size**2 or size < 100:
            return None
        present = matrix.reshape(size, size) != 0  # which is searched ten times as fast as A
        places = np.flatnonzero(present)
        if len(places) > SPARSE * size**2:
            return None
        from scipy.sparse import csr_array  # of few laws

        starts = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        return csr_array((matrix.ravel()[places], places % size, starts), shape=(size, size))

    def apply(self, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return mean and covariance after one step with full gradients: A m + c, A C A^T + Q.

        mean, cov: moments before the step, (..., S) and (..., S, S).
        """
        moved = np.matvec(self.matrix, mean) + self.offset
        if self.sparse is None or cov.size != self.noise.size:
            return moved, self.matrix @ cov @ self._transposed + self.noise
        half = self.sparse @ cov.reshape(self.sparse.shape)
        return moved, (self.sparse @ half.T.conj()).reshape(self.noise.shape) + self.noise

    def compose_with(self, later: Affine) -> Affine:
        """Return the composition of this update and a later one, which takes no gradients."""
        gain = None if self.gradient_gain is None else later.matrix @ self.gradient_gain
        return Affine(later.matrix @ self.matrix, *later.apply(self.offset, self.noise), gain)

    def add_running_sum(self, read: np.ndarray) -> Affine:
        """Return the update of (s, z), where z' = z + R s' is a running sum of readings of s.

        read: R, shape (M, S). The new state has S + M entries.
        """
        stack, size, sums = self.matrix.shape[:-2], self.matrix.shape[-1], len(read)
        matrix = np.zeros((*stack, size + sums, size + sums), self.matrix.dtype)
        matrix[..., :size, :size], matrix[..., size:, :size] = self.matrix, read @ self.matrix
        matrix[..., size:, size:] = np.eye(sums)
        stacked_read = np.concatenate([np.eye(size), read])
        return Affine(
            matrix, np.matvec(stacked_read, self.offset), stacked_read @ self.noise @ stacked_read.T
        )


class Powers:
    r"""Powers T, T^2, T^4, ... of a map T, computed when needed.

    With :math:`T(m, C) = (A m + c, A C A^\top + Q)` they give the law after any number of steps
    from as many applications as that number has binary digits.

    once: T, with methods ``apply`` to a state and ``compose_with`` another map, as ``Affine`` has
    them.
    """

    def __init__(self, once: Any) -> None:
        self._powers = [once]

    def advance(self, steps: int, *state: np.ndarray) -> Any:
        """Return T^steps applied to a state, of the form that T's ``apply`` takes."""
        power = 0
        while steps:
            if power == len(self._powers):
                self._powers.append(self._powers[-1].compose_with(self._powers[-1]))
            if steps & 1:
                state = self._powers[power].apply(*state)
            steps, power = steps >> 1, power + 1
        return state


class Marginals(NamedTuple):
    """Moments of every agent and of the network average, along any leading axes.

    mean, cov: of the agents, (..., agents, dim) and (..., agents, dim, dim).
    average_mean, average_cov: of the average, (..., dim) and (..., dim, dim).
    """

    mean: np.ndarray
    cov: np.ndarray
    average_mean: np.ndarray
    average_cov: np.ndarray

    def select(self, index: Any) -> Marginals:
        """Return the moments at an index of the leading axes."""
        return Marginals(*(part[index] for part in self))


@dataclass(frozen=True, eq=False, repr=False)
class Law(WithLabels):
    """What ``concord.law`` returns: means and covariances of a sampler's law, without chance.

    Attributes
    ----------
    iterations
        The recorded iterations, increasing, (K,).
    mean, cov
        Of every agent, (K, agents, dim) and (K, agents, dim, dim).
    average_mean, average_cov
        Of the network average, (K, dim) and (K, dim, dim).
    approximate
        Whether gradients were linearized, so that moments are not exact.
    attributes
        Names of agents and coordinates.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]]], b=[[1.0], [0.0]])
    >>> law = concord.law("de_sgld", problem, "ring", step_size=0.1, iterations=100)
    >>> law.average_mean[-1].round(3), problem.posterior.mean.round(3)
    (array([0.353]), array([0.333]))
    """

    iterations: np.ndarray
    mean: np.ndarray
    cov: np.ndarray
    average_mean: np.ndarray
    average_cov: np.ndarray
    approximate: bool = False
    attributes: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: object) -> object:
        """Say that moments are attributes, which those of a trace are not."""
        raise ConcordError(f"a Law has attributes; write .{str(name).strip('.')}")

    def divergence(self) -> str:
        """Return a sentence with the first recorded iteration that diverges; "" if none does."""
        spread = np.diagonal(self.cov, axis1=-2, axis2=-1)
        inside = (np.abs(self.mean) < FINITE_RANGE) & (spread < FINITE_RANGE**2)
        lost = self.iterations[~inside.all(axis=(1, 2))]
        return f"the law diverges, seen first at iteration {lost[0]}" if lost.size else ""

    def summary(self) -> dict[str, object]:
        """Return the iterations and the numbers of agents and dimensions, for display."""
        agents = count_named(self.mean.shape[1], self.agent_names)
        dim = count_named(self.mean.shape[2], self.coordinate_names)
        at = self.iterations
        draws = f"{len(at)}, {at[0]} to {at[-1]}" if len(at) else 0
        kind = "approximate" if self.approximate else "exact"
        return {"law": kind, "iterations": draws, "agents": agents, "dim": dim}

    def to_xarray(self) -> xarray.Dataset:
        """Return all moments as one ``xarray.Dataset``, with names of agents and coordinates.

        Returns
        -------
        xarray.Dataset
            With mean (draw, agent, dim), cov (draw, agent, dim, dim_other), average_mean and
            average_cov, without agent; draw counts iterations, as of a trace.

        Examples
        --------
        >>> import concord
        >>> X, y, sites = [[1.0], [2.0]], [1.0, 3.0], ["Oslo", "Bergen"]
        >>> problem = concord.problems.linear_regression(X, y, agents=sites)
        >>> law = concord.law("de_sgld", problem, "ring", step_size=0.01, iterations=500)
        >>> law.to_xarray()["mean"].sel(draw=500, agent="Oslo", dim=0).round(2).item()
        1.16
        """
        import xarray  # half a second

        axes = {"draw": self.iterations, "agent": self.label_agents(range(self.mean.shape[1]))}
        if self.coordinate_names:
            axes |= dict.fromkeys(("dim", "dim_other"), self.coordinate_names)
        moments = {
            "mean": (("draw", "agent", "dim"), self.mean),
            "cov": (("draw", "agent", "dim", "dim_other"), self.cov),
            "average_mean": (("draw", "dim"), self.average_mean),
            "average_cov": (("draw", "dim", "dim_other"), self.average_cov),
        }
        return xarray.Dataset(moments, axes, self.attributes)

    @suggest_names
    def plot(self, coordinates: Sequence[object] | None = None, posterior: object = None) -> Figure:
        """Draw the mean of each coordinate over iterations, with two standard deviations.

        Colored lines are the first four agents, gray ones others, dashed the average of all agents;
        a run of more than 100 iterations has a logarithmic axis.

        Parameters
        ----------
        coordinates
            Numbers or names of the coordinates that are drawn; none: the first four.
        posterior
            A problem or a posterior, whose mean and mean plus and minus two standard deviations are
            drawn, too; none: none.

        Returns
        -------
        matplotlib.figure.Figure
            A picture, which notebooks show; ``savefig`` writes it.

        Examples
        --------
        >>> import concord
        >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]]], b=[[1.0], [0.0]])
        >>> law = concord.law("de_sgld", problem, "ring", step_size=0.1, iterations=100)
        >>> law.plot(posterior=problem).savefig("law.png")
        """
        figure: Figure = pictures("runs").plot_law(self, coordinates, posterior)
        return figure

    def moments_of(self, agent: str | int) -> Moments:
        """Return mean (K, dim) and covariance (K, dim, dim) of an agent, or of the ``average``."""
        if agent == "average":
            return self.average_mean, self.average_cov
        return self.mean[:, int(agent)], self.cov[:, int(agent)]


class Start(NamedTuple):
    """The affine map from the initial positions to the state, s = M x^(0) + m + w, w ~ N(0, Q).

    matrix, offset, noise: M, (S, agents * dim), m, (S,), and Q, (S, S).
    heard: matrix V, (channels * agents * dim, agents * dim), and offset v of V x^(0) + v, the
    vectors that neighbors know at first, channel by channel. None where every vector arrives.
    """

    matrix: np.ndarray
    offset: np.ndarray
    noise: np.ndarray
    heard: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class LossEffect:
    """The linear effect, on the next state, of differences between sent and received vectors.

    From the state s, of S entries, the vectors z = P s + p + C w + D xi + E e are sent, of Z =
    channels * agents * dim entries, and s' = A s + c + B w + H xi + F e + G d, with d, over each
    arc of each channel, the received vector minus the sent one, and e, over each arc of the first
    channel, the vector received before minus the sender's position.

    difference_gain: G, (S, channels * arcs * dim).
    sent_matrix, sent_offset: P, (Z, S), and p, (Z,).
    noise: B above C, (S + Z, normal numbers of a step).
    memory_gain: F above E, (S + Z, arcs * dim).
    error_gain: H above D, (S + Z, agents * dim), of the errors xi of mini-batch gradients; without
    columns with full gradients.
    """

    difference_gain: np.ndarray
    sent_matrix: np.ndarray
    sent_offset: np.ndarray
    noise: np.ndarray
    memory_gain: np.ndarray
    error_gain: np.ndarray


@dataclass(frozen=True, eq=False)
class Update:
    """The affine update of a sampler at each iteration, and the start of its state.

    at: function that returns the update k -> k + 1 of iteration k.
    start: how the state starts from the positions; None: the state is the positions.
    loss_effect: function that returns the ``LossEffect`` of iteration k; None where every vector
    arrives.
    find_cycle: function that returns from which iteration on updates repeat, and after how many;
    None where that is not known, or never.
    """

    at: Callable[[int], Affine]
    start: Start | None = None
    loss_effect: Callable[[int], LossEffect] | None = None
    find_cycle: Callable[[], Cycle | None] = lambda: None


def block_diagonal(blocks: np.ndarray) -> np.ndarray:
    """Return the (N d, N d) matrix with ``blocks`` (N, d, d) on its diagonal."""
    count, dim = blocks.shape[:2]
    matrix = np.zeros((count, dim, count, dim))
    matrix[np.arange(count), :, np.arange(count), :] = blocks
    return matrix.reshape(count * dim, count * dim)


def find_root(cov: np.ndarray) -> np.ndarray:
    """Return B with B B^T = C of a covariance C, (S, S), without columns of rounding's size."""
    used = np.flatnonzero(np.abs(cov).max(axis=0))
    values, vectors = np.linalg.eigh(cov[np.ix_(used, used)])
    large = values > 1e-15 * values.max(initial=0.0)
    root = np.zeros((len(cov), large.sum()))
    root[used] = vectors[:, large] * np.sqrt(values[large])
    return root


def stack_versions(parts: Sequence[Any]) -> Any:
    """Stack the arrays of versions' updates, or of their moments, on a new first axis.

    parts: tuples of arrays, or objects of one class whose ``STACKED`` names the arrays. Their other
    fields are those of the first object, but gradient gains that are not stacked are left out.
    """
    if isinstance(parts[0], tuple):
        return tuple(map(np.stack, zip(*parts, strict=True)))
    arrays = {n: np.array([getattr(part, n) for part in parts]) for n in parts[0].STACKED}
    return replace(parts[0], **{"gradient_gain": None, **arrays})


def initial_moments(
    agents: int,
    dim: int,
    positions: tuple[float | np.ndarray, float | np.ndarray],
    start: Start | None = None,
) -> Moments:
    """Return mean (S,) and covariance (S, S) of a state whose agents start independently.

    agents, dim: numbers of agents and of entries per agent.
    positions: mean and spread of every agent's position. The mean is a number, (dim,) or (agents,
    dim); the spread a standard deviation or a covariance (dim, dim).
    start: how the state starts from the positions; None: the state is the positions.
    """
    center, spread = positions
    mean = np.zeros((agents, dim))
    mean[:] = center
    block = np.square(spread) * np.eye(dim) if np.ndim(spread) == 0 else np.asarray(spread)
    cov = np.kron(np.eye(agents), block)
    if start is None:
        return mean.ravel(), cov
    whole = start.matrix
    return whole @ mean.ravel() + start.offset, whole @ cov @ whole.T + start.noise


def marginals(mean: np.ndarray, cov: np.ndarray, agents: int, dim: int) -> Marginals:
    """Return the moments of every agent and of their average, from those of the state.

    mean, cov: of the state, shapes (..., S) and (..., S, S). agents, dim: numbers of agents and of
    entries per agent.
    """
    size = agents * dim
    means = mean[..., :size].reshape(*mean.shape[:-1], agents, dim)
    blocks = cov[..., :size, :size].reshape(*cov.shape[:-2], agents, dim, agents, dim)
    each = np.moveaxis(np.diagonal(blocks, axis1=-4, axis2=-2), -1, -3)
    average = blocks.sum(axis=(-4, -2)) / agents**2
    return Marginals(means, np.ascontiguousarray(each), means.mean(axis=-2), average)


def stationary(
    affine: Affine, mean0: np.ndarray | None = None, cov0: np.ndarray | None = None
) -> Moments | None:
    """Return the limit of the state's mean (S,) and covariance (S, S), with full gradients.

    Doubling: the composition of 2^j steps is again affine, and is squared until the law it makes of
    the start no longer changes. For spectral radius below 1 this solves the discrete Lyapunov
    equation C = A C A^T + Q and the start does not matter. Quantities that a step conserves
    (eigenvalue 1, reached by neither offset nor noise; for D-ADMMS the sum of the dual variables)
    keep the value they have at the start, zero if none is given; ``limit`` keeps them exactly. None
    where the law does not settle: a spectral radius of 1 or more that noise, offset or start reach.
    """
    size = len(affine.offset)
    mean0 = np.zeros(size) if mean0 is None else mean0
    cov0 = np.zeros((size, size)) if cov0 is None else cov0
    power = Affine(affine.matrix, affine.offset, affine.noise)
    mean, cov = mean0, cov0
    with np.errstate(all="ignore"):
        # A law that mixes within 2^48 steps or not at all: rounding is as large by then.
        for _ in range(48):
            new_mean, new_cov = power.apply(mean0, cov0)
            if not (np.isfinite(new_mean).all() and np.isfinite(new_cov).all()):
                return None
            # A mean of zero is one of rounding's size, which is never close to itself.
            spread = np.sqrt(new_cov.diagonal().max(initial=0.0))
            settled = _has_settled(new_mean, mean, 1e-3 * spread) and _has_settled(new_cov, cov)
            mean, cov = new_mean, new_cov
            if settled:
                return mean, (cov + cov.T) / 2
            power = power.compose_with(power)
    return None


def limit(
    affine: Affine,
    mean0: np.ndarray,
    cov0: np.ndarray,
    gradient_noise: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> Moments | None:
    r"""Return the limit of the state's mean (S,) and covariance (S, S) from a start.

    Conserved quantities keep their law of the start: with P the projection on them and B the basis
    of the rest (``restrict``), the limit is B z + J s_0, where z is stationary under the restricted
    update and J = P + B (I - B^T A B)^{-1} B^T A P.

    Mini-batches add G D G^T to the noise, where the blocks of D, the errors' covariances E[xi_i
    xi_i^T], are affine in the covariance: D = D_0 + M(D), with D_0 for the law that full gradients
    have, and M the covariance that errors make of later ones. M keeps the order of positive
    semidefinite blocks, so the moments settle if and only if the solution D is positive
    semidefinite; a spectral radius below 1 is not enough for that.

    affine, mean0, cov0: the update, and moments of the start (``initial_moments``), shapes (S,) and
    (S, S). gradient_noise: for mini-batches: D, shape (agents, dim, dim), as a function of the
    state's mean and covariance; affine in the covariance. None where the law does not settle.
    """
    reduced, basis = restrict(affine)
    start, spread = basis.T @ mean0, basis.T @ cov0 @ basis
    fixed_mean, fixed_cov = np.zeros_like(mean0), np.zeros_like(cov0)
    law = stationary(reduced, start, spread)
    if law is None:
        return None
    if not (_is_unchanged(basis @ start, mean0) and _is_unchanged(basis @ spread @ basis.T, cov0)):
        fixed = np.eye(len(mean0)) - basis @ basis.T
        pull = np.linalg.solve(np.eye(len(start)) - reduced.matrix, basis.T @ affine.matrix @ fixed)
        reach = fixed + basis @ pull
        fixed_mean, fixed_cov = reach @ mean0, reach @ cov0 @ reach.T
    mean, cov = basis @ law[0] + fixed_mean, basis @ law[1] @ basis.T + fixed_cov
    if gradient_noise is not None:
        added = _batch_covariance(reduced, basis, mean, cov, gradient_noise)
        if added is None:
            return None
        cov = cov + added
    return mean, cov


def _batch_covariance(
    reduced: Affine,
    basis: np.ndarray,
    mean: np.ndarray,
    cov: np.ndarray,
    gradient_noise: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray | None:
    """Return the part of the limit's covariance that is due to mini-batches, (S, S).

    reduced, basis: as ``restrict`` returns them. mean, cov: moments of the limit with full
    gradients. gradient_noise: as in ``limit``. None where the covariance has no limit.
    """
    from scipy.sparse.linalg import LinearOperator, gmres  # of few laws

    gain: Any = reduced.gradient_gain
    nowhere = np.zeros_like(reduced.offset)
    first = gradient_noise(mean, cov)
    scale = np.abs(first).max()
    if scale == 0:
        return np.zeros_like(cov)

    def covariance_from(errors: np.ndarray) -> np.ndarray:
        """Return the stationary covariance that given error covariances cause."""
        noise = gain @ block_diagonal(scale * errors.reshape(first.shape)) @ gain.T
        law = stationary(Affine(reduced.matrix, nowhere, noise))
        return np.full_like(cov, np.nan) if law is None else basis @ law[1] @ basis.T

    def residual(errors: np.ndarray) -> np.ndarray:
        """Return errors minus the errors that their own later covariance causes."""
        later = gradient_noise(mean, cov + covariance_from(errors)) - first
        return errors - later.ravel() / scale

    system = LinearOperator((first.size, first.size), matvec=residual, dtype=float)
    restart = min(first.size, 100)
    solution, failed = gmres(system, first.ravel() / scale, rtol=1e-12, restart=restart, maxiter=10)
    least = np.linalg.eigvalsh(solution.reshape(first.shape)).min()
    if failed or not least >= -1e-9 * np.abs(solution).max():
        return None
    return covariance_from(solution)


def spectral_radius(matrix: np.ndarray) -> float:
    """Return the largest modulus of the eigenvalues of ``matrix``. Infinite if it is not finite.

    A sampler's law settles if it is below 1 for the A of its update; ``restrict`` first if the
    update conserves something.
    """
    if not np.isfinite(matrix).all():
        return float("inf")
    symmetric = np.array_equal(matrix, matrix.T)
    values = np.linalg.eigvalsh(matrix) if symmetric else np.linalg.eigvals(matrix)
    return float(np.abs(values).max())


@lru_cache(maxsize=1)
def restrict(affine: Affine) -> tuple[Affine, np.ndarray]:
    """Return the update on the states in which every conserved quantity is zero, and their basis.

    A quantity u^T s is conserved if u^T A = u^T and neither offset, noise nor gradient errors reach
    it. Such an eigenvalue 1 says nothing of stability, since a start with u^T s = 0 never leaves
    the subspace: D-ADMMS conserves the sum of the dual variables over each connected component.
    Returns the update of z = basis^T s, R entries, and the orthonormal basis (S, R), so s = basis
    z.
    """
    size = len(affine.offset)
    change = affine.matrix - np.eye(size)
    if _is_invertible(change):
        return affine, np.eye(size)
    from scipy.linalg import matrix_balance  # of few laws

    # In units in which all entries of the state are of one size: positions and gradients are not.
    _, (units, _) = matrix_balance(change, permute=False, separate=True)
    left, values, _ = np.linalg.svd(change * units / units[:, None])
    still = values <= 1e-11 * max(values[0], 1e-300)
    fixed = left[:, still] / units[:, None]
    gain = affine.gradient_gain
    kicks = (
        affine.noise / units,
        affine.offset[:, None],
        np.empty((size, 0)) if gain is None else gain,
    )
    # Each of them relative to its own size: offsets may be far larger than noise.
    sizes = [np.abs(part / units[:, None]).max(initial=0.0) or 1.0 for part in kicks]
    pushes = np.concatenate(
        [fixed.T @ (part / of) for part, of in zip(kicks, sizes, strict=True)], 1
    )
    combinations, pushed, _ = np.linalg.svd(pushes, full_matrices=False)
    # Rounding turns these vectors towards others the more, the slower those are.
    slowest = values[~still].min(initial=np.inf)
    unsure = max(1e-11, 100 * np.finfo(float).eps * values[0] / slowest)
    rank = int(np.sum(pushed > unsure))
    conserved = fixed @ combinations[:, rank:]
    basis = np.linalg.qr(np.concatenate([conserved, np.eye(size)], axis=1))[0]
    basis = basis[:, conserved.shape[1] :]
    reduced = Affine(
        basis.T @ affine.matrix @ basis,
        basis.T @ affine.offset,
        basis.T @ affine.noise @ basis,
        None if gain is None else basis.T @ gain,
    )
    return reduced, basis


def _is_invertible(matrix: np.ndarray) -> bool:
    """Return whether no singular value of a matrix is near 0.

    It takes an inverse and norms, which cost a part of a singular value decomposition.
    """
    try:
        return bool(np.linalg.norm(matrix) * np.linalg.norm(np.linalg.inv(matrix)) < 1e10)
    except np.linalg.LinAlgError:
        return False


def find_largest(is_stable: Callable[[float], bool], value: float, relative: float) -> float:
    """Find the largest stable value of a step, first by factors from ``value``, then by bisection.

    All values below the result are taken to be stable. The result is stable, and relatively within
    ``relative`` of an unstable value; nan if a millionth of ``value`` is not stable, inf if a
    million times ``value`` is.
    """
    high = value
    while is_stable(high):
        high *= 4
        if high > 1e6 * value:
            return float("inf")
    low = high / 4
    while not is_stable(low):
        low /= 4
        if low < 1e-6 * value:
            return float("nan")
    while high - low > relative * low:
        middle = (low + high) / 2
        low, high = (middle, high) if is_stable(middle) else (low, middle)
    return low


def _is_unchanged(projected: np.ndarray, whole: np.ndarray) -> bool:
    """Return whether a projected array equals the whole one up to rounding."""
    return bool(np.abs(projected - whole).max() <= 1e-10 * max(np.abs(whole).max(), 1e-300))


def _has_settled(new: np.ndarray, old: np.ndarray, least: float = 0.0) -> bool:
    # Doubling squares the error, so a change of 1e-12 is the last that can be seen.
    """Return whether an array has settled, to 1e-12 of its largest entry or of ``least``."""
    return bool(np.abs(new - old).max() <= 1e-12 * max(np.abs(new).max(), least))
