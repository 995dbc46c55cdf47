r"""Bayesian logistic regression.

.. math::
    f_i(x) = \sum_{j=1}^{n_i} \left[ \log(1 + e^{z_j}) - y_j z_j \right]
             - s \log p(x), \qquad z_j = x^\top X_j^i, \quad y_j \in \{0, 1\}

with a Gaussian prior N(0, v I) or independent Laplace priors of scale b, and the prior's share s of
each agent: 1/N (split), 0 (omitted) or 1 (whole; gurbuzbalaban2021, section 5.2, prints
||x||^2 / lambda for every agent, that is v = lambda / 2 and s = 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike

from concord import streams
from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.laws.quadrature import Grid, from_log_density
from concord.laws.reference_laws import Draws
from concord.local_coordinates import PosteriorByAgent, read_local
from concord.options import Count, NonNegative, Options, Positive
from concord.problem import ALL, Agents
from concord.problems import _newton, gaussian_fit
from concord.problems._regression import GeneralizedLinearProblem, PriorShare, prior_share
from concord.problems.arithmetic import multiply, sigmoid, sum_softplus
from concord.problems.arrays import AgentsOfRows, divide_rows
from concord.problems.one_data_set import TwoParameters
from concord.problems.points import LegacySeed, draw_legacy_data
from concord.sampling.partition import AgentData, Partition, PartitionLike, check_rows

CELLS = 640  # along each axis of the reference posterior


class Params(Options):
    """Options of a logistic regression: how its points are drawn, and its prior."""

    points: Annotated[Count, "number of points, over all agents"] = 1000
    points_per_agent: Annotated[
        Count | None, "number of points of each agent, instead of points"
    ] = None
    dim: Annotated[Count, "dimension d of the features"] = 2
    feature_variance: Annotated[Positive, "variance of each feature"] = 20.0
    logit_noise_sd: Annotated[
        NonNegative,
        "standard deviation of the noise delta_j added to the logit when labels are drawn",
    ] = 0.0
    truth_variance: Annotated[
        Positive, "variance of N(0, . I), the law of the data-generating parameter"
    ] = 1.0
    prior: Annotated[Literal["gaussian", "laplace"], "prior family"] = "gaussian"
    prior_scale: Annotated[
        Positive, "variance v of the Gaussian prior, or scale b of the Laplace prior"
    ] = 1.0
    prior_share: PriorShare = "split"
    prior_gradient_at: Annotated[
        Literal["iterate", "truth"],
        "where the Gaussian prior's gradient is taken: at the iterate, or at the data-generating "
        "parameter (tzikas2024's released code); a proximal step knows only the "
        "iterate",
    ] = "iterate"
    legacy_seed: LegacySeed = None


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than points, or for contradicting options."""
    if params.prior_gradient_at == "truth" and params.prior != "gaussian":
        raise ConcordError(
            f"prior_gradient_at: truth needs a Gaussian prior, not {params.prior}; use iterate"
        )
    if params.legacy_seed is not None and params.logit_noise_sd > 0:
        raise ConcordError(
            f"legacy_seed draws labels without noise on the logit, but logit_noise_sd is "
            f"{params.logit_noise_sd:g}; leave one of them out"
        )
    check_rows(_count_points(params, agents), agents)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> LogisticRegression:
    """Draw the points, whose labels are Bernoulli with logit x^T X_j + delta_j, and split them."""
    if params.legacy_seed is not None:
        # The law of tzikas2024, section 6.3, eq. (29).
        truth, features, labels = draw_legacy_data(
            params.legacy_seed,
            _count_points(params, agents),
            agents,
            (params.truth_variance, params.feature_variance),
            params.dim,
            lambda rng, block, truth: (
                rng.uniform(0.0, 1.0, size=len(block)) <= sigmoid(block @ truth)
            ),
        )
    else:
        features, labels, truth = _synthetic(params, agents, stream("data"))
    parts = partition.split(labels, agents, stream("partition"))
    data = AgentData.from_parts(features, labels.astype(float), parts)
    return LogisticRegression(data, params, truth)


Rows = tuple[np.ndarray, np.ndarray]  # features, labels


def _count_points(params: Params, agents: int) -> int:
    """Return the number of points of the options, over all agents."""
    return params.points if params.points_per_agent is None else agents * params.points_per_agent


def _synthetic(
    params: Params, agents: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw features (points, dim), labels (points,) and the parameter (dim,)."""
    points = _count_points(params, agents)
    truth = np.sqrt(params.truth_variance) * rng.standard_normal(params.dim)
    features = np.sqrt(params.feature_variance) * rng.standard_normal((points, params.dim))
    logit = features @ truth + params.logit_noise_sd * rng.standard_normal(points)
    labels = rng.random(points) < sigmoid(logit)
    return features, labels.astype(float), truth


def from_arrays(
    X: ArrayLike,
    y: ArrayLike,
    agents: AgentsOfRows = None,
    *,
    prior: Literal["gaussian", "laplace"] = "gaussian",
    prior_scale: float = 1.0,
    prior_share: PriorShare = "split",
    local: Sequence[bool | str] | None = None,
    partition: PartitionLike = "equal",
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
) -> LogisticRegression:
    """Return Bayesian logistic regression on a caller's own features and labels.

    Parameters
    ----------
    X, y
        Features (rows, dim), with a column of ones for an intercept, and labels 0 or 1 (rows,); or
        lists of such arrays, or mappings from agents' names to them, without ``agents``.
    agents
        Number of agents that the rows are split over, or the site of each.
    prior, prior_scale
        ``gaussian`` with this variance, or ``laplace`` with this scale.
    prior_share, local, partition, seed, rng
        As of ``concord.problems.linear_regression``; ``accuracy`` takes an agent's own coefficients
        for the rows of all. Labels may be split by
        ``{"kind": "dirichlet", "concentration": 0.3}``.

    Returns
    -------
    LogisticRegression
        With ``agents``, ``dim`` and ``accuracy``; ``reference`` is the posterior on a grid of two
        parameters, or by draws of more (``concord.w2(result, problem)`` compares with it).

    Raises
    ------
    ConcordError
        If the arrays do not fit each other or the number of agents, or labels are not 0 and 1.

    Examples
    --------
    >>> import concord, numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> problem = concord.problems.logistic_regression(X, X[:, 0] > 0, agents=5)
    >>> problem.counts
    array([20, 20, 20, 20, 20])
    """
    data = divide_rows(X, y, agents, partition, streams.seed_of(seed, rng), classes=True)
    odd = data.targets[(data.targets != 0) & (data.targets != 1)]
    if odd.size:
        raise ConcordError(f"y: {odd[0]:g} is no label; give 0 and 1")
    params = Params(prior=prior, prior_scale=prior_scale, prior_share=prior_share)
    mask = read_local(local, data.features.shape[2], data.columns)
    return LogisticRegression(data, params, local=mask)


class LogisticRegression(TwoParameters, GeneralizedLinearProblem):
    """Logistic regression split over agents.

    ``data`` holds the agents' rows, ``test`` the features and labels that no agent has, if any.
    """

    posterior = None
    units_advice = "scale the columns of X to spreads that are alike"
    link = staticmethod(sigmoid)

    def __init__(
        self,
        data: AgentData,
        params: Params,
        truth: np.ndarray | None = None,
        test: Rows | None = None,
        local: np.ndarray | None = None,
    ) -> None:
        self.data, self.local = data, local
        self.test = test
        self.truth = truth
        self.counts = data.counts
        self.agent_names, self.coordinate_names = data.sites, data.columns
        self.agents, _, self.dim = data.features.shape
        self.share = prior_share(params.prior_share, self.agents, local)
        self.prior, self.prior_scale = params.prior, params.prior_scale
        self.prior_gradient_at = truth if params.prior_gradient_at == "truth" else None

    @cached_property
    def _transposed_features(self) -> np.ndarray:
        """Return the features of all agents, transposed: (agents, dim, points)."""
        return np.ascontiguousarray(self.data.features.swapaxes(1, 2))

    @cached_property
    def _signed(self) -> np.ndarray:
        """Return the transposed features times 1 - 2 y: losses are log(1 + exp(x^T signed))."""
        return self._transposed_features * (1 - 2 * self.data.targets)[:, None]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return sum_j (h(z_j) - y_j) X_j - s grad log p(x_i), (chains, agents, dim).

        h is the logistic function.
        """
        residual = sigmoid(x.swapaxes(0, 1) @ self._transposed_features)  # (agents, chains, points)
        residual -= self.data.targets[:, None]
        # Padded rows have zero features, so their residual does not count.
        slopes = multiply(residual.swapaxes(0, 1), self.data.features)
        return slopes + self.prior_gradient(x)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of chosen agents, (chains, few, dim)."""
        features = self.data.features.take(agents, axis=0)
        residual = sigmoid((features @ x[..., None])[..., 0])
        residual -= self.data.targets.take(agents, axis=0)
        return (residual[..., None, :] @ features)[..., 0, :] + self.prior_gradient(x)

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the products of the Hessians at x with v, (chains, agents, dim).

        They are sum_j h(z_j) (1 - h(z_j)) X_j X_j^T v_i + s v_i / b, with h the logistic function
        and b the variance of the Gaussian prior.
        """
        if self.prior != "gaussian" or self.prior_gradient_at is not None:
            raise ConcordError(
                "the potentials have Hessians with a Gaussian prior alone, whose gradient is taken "
                "at the iterate; use prior: gaussian, prior_gradient_at: iterate"
            )
        chances = sigmoid(x.swapaxes(0, 1) @ self._transposed_features)
        along = v.swapaxes(0, 1) @ self._transposed_features
        along *= chances
        along *= np.subtract(1.0, chances, out=chances)
        product = multiply(along.swapaxes(0, 1), self.data.features)
        return product + v * (self.share / self.prior_scale)

    def curvature(self) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of each agent's Hessian from below and above, both (agents, dim, dim).

        The least is the prior's. The most is that at x = 0, where each point weighs 1/4; it is
        infinite with Laplace priors, whose gradient jumps.
        """
        least = np.zeros((self.agents, self.dim, self.dim))
        if self.prior != "gaussian":
            return least, np.full_like(least, np.inf)
        if self.prior_gradient_at is None:
            least += self.share / self.prior_scale * np.eye(self.dim)
        features = self.data.features
        return least, least + features.swapaxes(1, 2) @ features / 4

    def minimize(
        self, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray, agents: Agents = ALL
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return minimizers by Newton's method, and their cost in gradients.

        The gradient there is at most 1e-10.
        """
        data, precision = self._newton_features.select(agents), self._precision(curvature)[agents]
        first = linear.swapaxes(0, 1), start.swapaxes(0, 1)
        x, cost = _newton.minimize(data, precision, *first)
        return np.ascontiguousarray(x.swapaxes(0, 1)), cost.T

    @cached_property
    def _newton_features(self) -> _newton.SignedFeatures:
        """The features times the signs of their labels, as the Newton solver takes them."""
        return _newton.SignedFeatures.from_signed(np.ascontiguousarray(self._signed.swapaxes(1, 2)))

    def _precision(self, curvature: np.ndarray) -> np.ndarray:
        """Return c_i plus the prior's curvature, (agents,). A ConcordError without a minimizer."""
        if self.prior != "gaussian":
            raise ConcordError(
                f"the proximal step needs a Gaussian prior, not {self.prior}; use prior: gaussian"
            )
        total: np.ndarray = np.asarray(curvature, dtype=float) + self.share / self.prior_scale
        if not (total > 0).all():
            raise ConcordError(
                f"agent {int(np.argmin(total))} has no prior and no neighbors, so its potential "
                "may have no minimizer; give it a share of the prior"
            )
        return total

    def log_posterior(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the log density at two parameters, with the prior once, whatever the shares."""
        beyond = self.share * self.agents - 1
        x = np.stack(np.broadcast_arrays(first, second), axis=-1)
        return super().log_posterior(first, second) + self._negative_log_prior(x, beyond)

    @cached_property
    def reference(self) -> Grid | Draws | PosteriorByAgent:
        """Return the posterior: on a dense grid if dim is 2, else by weighted points.

        They lie about a Gaussian fit (``gaussian_fit.estimate_posterior``, with its errors).
        """
        if self.dim == 2 and self.local is None:
            wide = np.sqrt(self.prior_scale) if self.prior == "gaussian" else 4 * self.prior_scale
            return from_log_density(self.log_posterior, ((-9 * wide, 9 * wide),) * 2, CELLS)
        return gaussian_fit.estimate_posterior(self)

    def prior_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the prior's gradient -s grad log p(x_i), (chains, agents, dim)."""
        if self.prior != "gaussian":
            return np.sign(x) * (self.share / self.prior_scale)
        if self.prior_gradient_at is None:
            return x * (self.share / self.prior_scale)
        return np.broadcast_to(self.prior_gradient_at * (self.share / self.prior_scale), x.shape)

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents), up to the prior's constant."""
        z = self._signed.swapaxes(1, 2) @ x.transpose(1, 2, 0)  # (agents, points, chains)
        # Padded points have z = 0.
        padding = z.shape[1] - self.counts
        losses = sum_softplus(z.swapaxes(0, 1)).T - padding * np.log(2)
        return losses + self._negative_log_prior(x, self.share)

    def _negative_log_prior(self, x: np.ndarray, shares: float | np.ndarray) -> np.ndarray:
        """Return minus the log prior at x (..., dim) times shares, a number or (dim,)."""
        if self.prior == "gaussian":
            return (shares * x**2).sum(axis=-1) / (2 * self.prior_scale)
        return (shares * np.abs(x)).sum(axis=-1) / self.prior_scale

    def misclassified(self, x: np.ndarray) -> np.ndarray:
        """Return the number of points of all agents that each x_i misclassifies, (chains, agents).

        A point is given label 1 where P(y = 1 | x_i) >= 1/2, that is x_i^T X >= 0. An x_i that is
        not finite gets those points wrong whose probability is not a number.
        """
        return _count_mistakes(x, *self.data.all_rows())

    def accuracy(self, x: np.ndarray) -> np.ndarray:
        """Return the fraction of points each x_i classifies right, (chains, agents).

        The points are the test rows where there are any, else those of all agents.
        """
        features, labels = self.test or self.data.all_rows()
        return 1 - _count_mistakes(x, features, labels) / len(labels)


def _count_mistakes(x: np.ndarray, features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the number of points (rows, dim) that each x_i misclassifies, (chains, agents)."""
    is_one, transposed = labels > 0.5, features.T
    wrong = np.empty(x.shape[:2], dtype=np.int64)
    # Chains in blocks whose predictions stay in cache.
    block = max(1, 100_000 // (len(labels) * x.shape[1]))
    for start in range(0, len(x), block):
        chosen = slice(start, start + block)
        scores = x[chosen] @ transposed
        wrong[chosen] = (((scores >= 0) != is_one) | np.isnan(scores)).sum(axis=-1)
    return wrong
