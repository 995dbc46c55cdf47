r"""Scores of predictions: class probabilities, or normal densities of a regression.

.. math::
    \mathrm{accuracy} = \frac1n \sum_j 1[\arg\max_c p_{jc} = y_j], \qquad
    \mathrm{nll} = -\frac1n \sum_j \log p_{j y_j}, \qquad
    \mathrm{brier} = \frac1n \sum_j \sum_c (p_{jc} - 1[c = y_j])^2

.. math::
    \mathrm{ece} = \frac1n \sum_{b=1}^{15} \Bigl| \sum_{j \in b} (1[\arg\max_c p_{jc} = y_j]
                   - \max_c p_{jc}) \Bigr|

p are probabilities of n rows and their classes c, y are labels, and the bins b of the expected
calibration error hold the rows whose largest probability is in ((b - 1) / 15, b / 15]. Sources:
Brier, Monthly Weather Review 78 (1950); Guo et al., ICML 2017, eq. 3.

.. math::
    \mathrm{mse} = \frac1n \sum_j (y_j - m_j)^2, \qquad
    \mathrm{nll} = -\frac1n \sum_j \log p(y_j), \qquad
    \mathrm{coverage} = \frac1n \sum_j 1[0.025 \le F(y_j) \le 0.975]

are those of a regression; m, p and F are the mean, density and distribution function of what is
predicted of a row.

Functions take p (..., rows, classes) and y (rows,), and return (...).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from concord.distances import check_result
from concord.errors import ConcordError, short, suggest_names, warn_of_divergence
from concord.laws.intervals import mean_interval, widen
from concord.libraries import special
from concord.problem import Problem
from concord.reference import WithReference
from concord.sampling.trace import Trace
from concord.values import read_numbers

if TYPE_CHECKING:
    import xarray  # half a second

BINS = 15
COVERED = 0.95  # probability of the central interval that should cover targets
AT_ONCE = 100  # draws of a reference that are predicted together
OF_REFERENCE = 1000  # draws of a problem's own reference

Certainty = Literal["confidence", "entropy"]


@runtime_checkable
class Predicting(Problem, Protocol):
    """A problem that predicts the classes or targets of rows at given positions."""

    def predict(self, x: np.ndarray, X: np.ndarray) -> ArrayLike | tuple[ArrayLike, ArrayLike]:
        """Return class probabilities, (chains, few, rows, classes), at x (chains, few, dim).

        Of a regression a pair: mean and standard deviation of a normal, (chains, few, rows).
        """


def score(p: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return accuracy, nll, brier, ece and ece_floor of probabilities, by name.

    ``ece_floor`` is about the ece that probabilities without error would show on these rows, for
    few rows in a bin are never right exactly as often as they should be.
    """
    of_label = np.take_along_axis(p, np.broadcast_to(y[:, None], (*p.shape[:-1], 1)), axis=-1)
    with np.errstate(divide="ignore"):
        nll = -np.log(of_label[..., 0]).mean(axis=-1)
    brier = ((p**2).sum(axis=-1) - 2 * of_label[..., 0] + 1).mean(axis=-1)
    right, confidence = p.argmax(axis=-1) == y, p.max(axis=-1)
    ece, floor = calibration_error(right, confidence)
    accuracy = np.where(np.isnan(nll), np.nan, right.mean(axis=-1))
    return {"accuracy": accuracy, "nll": nll, "brier": brier, "ece": ece, "ece_floor": floor}


def calibration_error(
    right: np.ndarray, confidence: np.ndarray, count: int = BINS
) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected calibration error, and what it is about where there is none.

    right, confidence: whether each row's prediction is right, and its probability, (..., rows). In
    a bin where each is right with its probability, the sum of deviations is about normal with
    variance v = sum of c (1 - c), and its absolute value has mean sqrt(2 v / pi). count: of bins.
    """
    rows = right.shape[-1]
    bins = np.ceil(np.nan_to_num(confidence) * count).clip(1, count) - 1
    ece, floor = np.zeros((2, *right.shape[:-1]))
    for b in range(count):
        inside = bins == b
        ece += np.abs(np.where(inside, right - confidence, 0.0).sum(axis=-1)) / rows
        variance = np.where(inside, confidence * (1 - confidence), 0.0).sum(axis=-1)
        floor += np.sqrt(2 / np.pi * np.maximum(variance, 0.0)) / rows
    return ece, floor


def score_targets(of_rows: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return mse, nll and coverage of the predictions of a regression, by name.

    of_rows: mean, log density at the target, and distribution function there, (..., rows, 3).
    """
    mean, log_density, below = np.moveaxis(of_rows, -1, 0)
    covered = (np.abs(below - 0.5) <= COVERED / 2).mean(axis=-1)
    return {
        "mse": ((y - mean) ** 2).mean(axis=-1),
        "nll": -log_density.mean(axis=-1),
        "coverage": np.where(np.isnan(below).any(axis=-1), np.nan, covered),
    }


def agreement(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the share of rows to which p (..., rows, classes) and q give the same label."""
    unknown = np.isnan(p).any(axis=(-2, -1))
    return np.where(unknown, np.nan, (p.argmax(axis=-1) == q.argmax(axis=-1)).mean(axis=-1))


def total_variation(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the mean over rows of half the sum over classes of abs(p - q)."""
    return np.abs(p - q).sum(axis=-1).mean(axis=-1) / 2


def certainty(p: np.ndarray, by: Certainty) -> np.ndarray:
    """Return the certainty of predictions p (..., rows, classes), (..., rows).

    by: the largest probability (``confidence``), or minus the ``entropy``.
    """
    return p.max(axis=-1) if by == "confidence" else -special().entr(p).sum(axis=-1)


def auroc(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the probability that a row of ``own`` has a larger number than one of ``other``.

    own, other: (..., rows), each with its rows. Ties count one half (Mann and Whitney's U over the
    number of pairs).
    """
    from scipy import stats  # a second

    statistic = stats.mannwhitneyu(own, other, axis=-1, method="asymptotic").statistic
    return np.asarray(statistic / (own.shape[-1] * other.shape[-1]))


@suggest_names
def predictive(
    trace: Trace,
    problem: Problem,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    reference: Trace | ArrayLike | None = None,
    other: ArrayLike | None = None,
    certainty_by: Certainty = "confidence",
    warm_up: int | None = None,
) -> xarray.Dataset:
    r"""Return scores of the predictions of each agent, and of the network.

    .. math::
        \mathrm{nll} = -\frac1n \sum_j \log p(y_j \mid X_j), \qquad
        p(y \mid X) = \frac1K \sum_k p(y \mid X, w^{(k)})

    The predictive distribution is that of a single draw w, K = 1, or with ``warm_up`` the mixture
    over all draws after it, the Bayesian model average of a chain (K draws). Scores are those of
    ``concord.predictions``, which has their equations.

    Parameters
    ----------
    trace
        What ``concord.sample`` returned.
    problem
        The problem that was sampled, with ``predict``: of ``concord.from_torch``,
        ``concord.from_jax``, or ``concord.Problem(..., predict=...)``.
    test
        Features X (rows, ...) and labels y (rows,), numbers of classes; none: the problem's own.
    reference
        Draws of the posterior sampled in one place, with which predictions are compared: a trace,
        whose average after a tenth counts, or (draws, dim); none: the problem's, if it has one.
    other
        Features (rows, ...) of another data set, which the network should be less certain of.
    certainty_by
        ``confidence``, the largest probability, or ``entropy``, by which ``auroc`` tells the rows
        of ``test`` from those of ``other``.
    warm_up
        Score the mixture over all draws after this iteration; none: every draw.

    Returns
    -------
    xarray.Dataset
        Means over chains, (draw, agent), or with ``warm_up`` (agent,). Of a regression: ``mse``, of
        the mean of the predictive distribution, ``nll``, and ``coverage``, the share of targets
        within its central 95 % interval. Of classes: ``accuracy``; ``nll``, in nats; ``brier``, a
        sum over classes, from 0 to 2; ``ece``, by 15 bins of equal width, and ``ece_floor``, about
        the ece that few rows show even where there is none; with a reference ``agreement``, the
        share of rows with the same label, and ``tv``, the total variation; with ``other`` also
        ``auroc``. Each has a 95 % interval over chains, <name>_lo and <name>_hi; one chain has
        none. Test rows are given: intervals do not cover their choice. Agents are numbers or names,
        ``mean`` (of the agents' predictive distributions) and ``average`` (the predictions of the
        network average of the weights).

    Raises
    ------
    ConcordError
        If the problem does not predict, there are no test rows, or they do not fit.

    Examples
    --------
    >>> import concord, numpy as np
    >>> X = np.random.default_rng(0).standard_normal((200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> def predict(x, X):
    ...     p = 1 / (1 + np.exp(-x @ X.T))
    ...     return np.stack([1 - p, p], axis=-1)
    >>> labels = concord.problems.logistic_regression(X, y, agents=4)
    >>> problem = concord.Problem(labels.gradient, agents=4, dim=2, predict=predict)
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.01, iterations=100, chains=4)
    >>> scores = concord.predictive(trace, problem, test=(X, y), warm_up=50)
    >>> bool(scores.accuracy.sel(agent="mean") > 0.9)
    True
    """
    import xarray  # half a second

    check_result(trace)
    if not isinstance(problem, Predicting):
        raise ConcordError(
            f"predictive: a problem of {type(problem).__name__} does not predict; make it by "
            "concord.from_torch or concord.from_jax, or give concord.Problem predict"
        )
    if certainty_by not in ("confidence", "entropy"):
        raise ConcordError(
            f"certainty_by: {short(certainty_by)} is not known; use confidence or entropy"
        )
    X, y = _read_test(test, problem)
    is_regression = isinstance(problem.predict(np.zeros((1, 1, problem.dim)), X[:1]), tuple)
    if is_regression and not (reference is None and other is None):
        raise ConcordError(
            f"{'other' if reference is None else 'reference'}: with it predictions of classes are "
            "compared, and the problem is a regression; leave it out"
        )
    parts = [X] if other is None else [X, read_numbers(other, "other")]
    warn_of_divergence("predictive", trace.divergence())
    masked, names = trace.mask_diverged(), _names(trace, problem)
    rows = range(len(trace.draw)) if warm_up is None else trace.rows_after(warm_up).tolist()
    target = None if is_regression else _predict_by_reference(reference, problem, X)

    def all_scores(p: np.ndarray, of_other: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return all scores, (chains, agents), of probabilities (chains, agents, rows, classes)."""
        if is_regression:
            return score_targets(p, y)
        scores = score(p, _check_labels(y, p))
        if target is not None:
            scores |= {"agreement": agreement(p, target), "tv": total_variation(p, target)}
        if of_other is not None:
            own, others = (certainty(each, certainty_by) for each in (p, of_other))
            scores["auroc"] = auroc(own, others)
        return scores

    def predict(row: int, part: np.ndarray) -> np.ndarray:
        """Return the predictions of a part of the rows, at a recorded iteration."""
        return _predict_at(masked, row, problem, part, y if is_regression else None)

    if warm_up is None:
        of_draws = [all_scores(*(predict(row, part) for part in parts)) for row in rows]
        values = {name: np.stack([s[name] for s in of_draws], axis=1) for name in of_draws[0]}
    else:
        draws = ((predict(row, part) for row in rows) for part in parts)
        values = all_scores(*(mix(each, is_regression) for each in draws))
    dims = ("draw", "agent") if warm_up is None else ("agent",)
    variables = {}
    for name, of_chains in values.items():
        mean, *ends = mean_interval(of_chains)
        variables[name] = dims, mean
        if name != "ece_floor":
            lo, hi = widen(mean, *ends)
            variables |= {f"{name}_lo": (dims, lo), f"{name}_hi": (dims, hi)}
    coordinates = {"draw": trace.draw, "agent": names}
    attributes = {"rows": len(y), "chains": trace.chains, "bins": BINS}
    return xarray.Dataset(variables, {d: coordinates[d] for d in dims}, attributes)


def _names(trace: Trace, problem: Predicting) -> np.ndarray:
    """Return the names of what predicts: agents, their mean if all are recorded, the average."""
    trace.require_positions()
    names = trace.label_agents(trace.agent.tolist()) if "x" in trace else []
    names += ["mean"] if len(names) == problem.agents else []
    return np.array([*names, *(["average"] if "x_average" in trace else [])], dtype=object)


def mix(parts: Iterable[np.ndarray], of_regression: bool) -> np.ndarray:
    """Return the mixture of predictions with the same weights.

    parts: class probabilities (..., classes), or of a regression those of ``score_targets``.
    """
    total: np.ndarray | float = 0.0
    logs: np.ndarray | float = -np.inf
    count = 0
    for part in parts:
        total, count = total + part, count + 1
        if of_regression:
            logs = np.logaddexp(logs, part[..., 1])
    mixture = np.asarray(total / count)
    if of_regression:
        mixture[..., 1] = logs - np.log(count)
    return mixture


def _predict_at(
    trace: Trace, row: int, problem: Predicting, X: np.ndarray, y: np.ndarray | None
) -> np.ndarray:
    """Return predictions (chains, names, rows, ...) of rows at a recorded iteration.

    y: the targets of a regression, at which densities are; None of classes.
    """
    parts = []
    if "x" in trace:
        own = _predict(problem, trace["x"][:, row], X, y)
        parts.append(own)
        if len(trace.agent) == problem.agents:
            parts.append(mix(own.swapaxes(0, 1), y is not None)[:, None])
    if "x_average" in trace:
        parts.append(_predict(problem, trace["x_average"][:, row, None], X, y))
    return np.concatenate(parts, axis=1)


def _predict(
    problem: Predicting, x: np.ndarray, X: np.ndarray, y: np.ndarray | None = None
) -> np.ndarray:
    """Return a problem's predictions of rows at x (chains, few, dim), checked.

    They are class probabilities, or of a regression those of ``score_targets`` at its targets y.
    """
    predicted = problem.predict(x, X)
    if isinstance(predicted, tuple):
        mean, sd = (np.asarray(part, dtype=float) for part in predicted)
        shape = *x.shape[:2], len(X)
        if mean.shape != shape:
            raise ConcordError(
                f"predictive: means of {len(X)} rows at x of shape {x.shape} have shape "
                f"{mean.shape}; return {shape}, a target for each row"
            )
        z = (y - mean) / sd
        log_density = -0.5 * (z**2 + np.log(2 * np.pi * sd**2))
        return np.stack([mean, log_density, special().ndtr(z)], axis=-1)
    p = np.asarray(predicted, dtype=float)
    if p.ndim != 4 or p.shape[:3] != (*x.shape[:2], len(X)):
        raise ConcordError(
            f"predictive: predictions of {len(X)} rows at x of shape {x.shape} have shape "
            f"{p.shape}, and scores are of class probabilities, (chains, agents, rows, classes); "
            "choose a likelihood of classes"
        )
    return p


def _predict_by_reference(
    reference: Trace | ArrayLike | None, problem: Predicting, X: np.ndarray
) -> np.ndarray | None:
    """Return the mean probabilities (rows, classes) of reference draws. None if there are none."""
    if reference is None:
        if not isinstance(problem, WithReference):
            return None
        draws = problem.reference.sample(OF_REFERENCE, np.random.default_rng(0))
    elif isinstance(reference, Trace):
        draws = reference["x_average"][:, reference.rows_after()].reshape(-1, problem.dim)
    else:
        draws = read_numbers(reference, "reference")
    if draws.ndim != 2 or draws.shape[1] != problem.dim or not len(draws):
        raise ConcordError(
            f"reference: draws of shape {draws.shape} do not fit; give (draws, {problem.dim})"
        )
    parts = (draws[k : k + AT_ONCE, None] for k in range(0, len(draws), AT_ONCE))
    total = sum(_predict(problem, x, X).sum(axis=(0, 1)) for x in parts)
    return np.asarray(total / len(draws))


def _read_test(
    test: tuple[ArrayLike, ArrayLike] | None, problem: Problem
) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and labels by which predictions are scored."""
    given = getattr(problem, "test", None) if test is None else test
    if given is None:
        raise ConcordError(
            "test: there are no rows to score predictions by; give test=(X, y), here or when the "
            "problem is made"
        )
    X, y = (np.asarray(part) for part in given)
    if y.ndim != 1 or len(X) != len(y) or not len(y):
        raise ConcordError(
            f"test: X of shape {X.shape} and y of shape {y.shape} do not fit; give (rows, ...) and "
            "(rows,)"
        )
    return X, y


def _check_labels(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return labels as integers; refuse those that are no numbers of the classes of p."""
    classes = y.astype(np.intp)
    if (classes != y).any() or classes.min() < 0 or classes.max() >= p.shape[-1]:
        raise ConcordError(
            f"test: y has labels that are none of 0 to {p.shape[-1] - 1}; number classes from 0"
        )
    return classes
