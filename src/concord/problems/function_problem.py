"""Problems that a caller defines by gradient functions."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from concord.errors import ConcordError, short, suggest_names
from concord.laws.gaussian import Gaussian
from concord.local_coordinates import PosteriorByAgent, number_coordinates, read_local
from concord.options import Count, Some, build
from concord.problem import ALL, Agents, Cost
from concord.problems.one_data_set import OneDataSet
from concord.reference import read_reference
from concord.values import check_masks, is_list, read_numbers

Function = Callable[..., object]


class Problem(OneDataSet):
    r"""A problem that a caller defines by the gradients of the agents' potentials f_i.

    .. math:: \pi \propto \exp\Bigl(-\sum_i f_i\Bigr)

    Functions are called with all chains and agents at once, and must not change their argument x.
    Their results are converted to numpy arrays: docs/python.md has recipes for JAX,
    PyTorch and autograd.

    Parameters
    ----------
    gradient
        x (chains, agents, dim) -> the gradients of f_i at x_i, of the same shape.
    agents, dim
        Numbers of agents and of coordinates, or lists of their names, which results then have.
    potential
        x -> f_i(x_i) up to a constant, (chains, agents); for ``record={"probes": ["potential"]}``.
    hessian_product
        (x, v) -> the Hessians of f_i at x_i times v_i, of the shape of both; for samplers that
        accept moves by curvature.
    prox
        (v, step) -> the x_i that minimize ``f_i(x) + |x - v_i|^2 / (2 step_i)``, for ADMM; v has
        the shape of x, step (agents,) does not change during a run.
    batch_gradient, counts
        (x, rows) -> unbiased estimates of the gradients, of the shape of x, for ``batch_size``:
        rows (chains, agents, batch) are numbers of each agent's own points, from 0 to counts_i - 1,
        and the likelihood of the mini-batch is scaled up by counts_i / batch. counts (agents,): how
        many points agents have.
    predict
        (x, X) -> class probabilities of rows X, (chains, few, rows, classes), at x (chains, few,
        dim), for ``concord.predictive``; few: agents, or the network average alone. Of a
        regression a pair, means (chains, few, rows) and standard deviations.
    posterior
        The exact posterior, where it is a ``concord.Gaussian(mean, cov)``.
    reference
        The posterior where it is not Gaussian: draws that count as independent, (draws, dim), or
        an object with moments and draws (``concord.reference.Reference``). Metrics compare with it.
    local
        A mask (dim,) of coordinates that belong to the agent who holds them and are never sent.
        Posterior and reference are then of the shared coordinates and the local ones of one agent
        after another. None: all are shared.

    Raises
    ------
    ConcordError
        If a function is none, the posterior is no Gaussian of dimension ``dim``, or the reference
        does not fit; at the first step, if a function returns another shape.

    Examples
    --------
    >>> import concord
    >>> problem = concord.Problem(gradient=lambda x: x, agents=4, dim=2)
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.1, iterations=100)
    >>> trace["x"].shape
    (100, 101, 4, 2)
    """

    potential: Callable[[np.ndarray], np.ndarray]

    @partial(suggest_names, name="Problem")
    def __init__(
        self,
        gradient: Function,
        *,
        agents: int | Sequence[str],
        dim: int | Sequence[str],
        potential: Function | None = None,
        hessian_product: Function | None = None,
        prox: Function | None = None,
        batch_gradient: Function | None = None,
        counts: ArrayLike | None = None,
        predict: Function | None = None,
        posterior: Gaussian | None = None,
        reference: object = None,
        local: object = None,
    ) -> None:
        self.agents, sites = _read_names(agents, "agents")
        self.dim, coordinates = _read_names(dim, "dim")
        self.agent_names = sites or self.agent_names  # which models have set
        self.coordinate_names = coordinates or self.coordinate_names
        self.local = mask = read_local(local, self.dim, self.coordinate_names)
        size = self.dim if mask is None else int(number_coordinates(mask, self.agents).max()) + 1
        shaped = {  # and how many axes of x their results have
            "potential": (potential, 2),
            "hessian_product": (hessian_product, 3),
            "batch_gradient": (batch_gradient, 3),
        }
        stated: dict[str, object] = {name: function for name, (function, _) in shaped.items()}
        stated |= {"gradient": gradient, "prox": prox, "predict": predict}
        for name, function in stated.items():
            if not callable(function) and (function is not None or name == "gradient"):
                raise ConcordError(f"{name}: {short(function)} is no function; give one of x")
        if posterior is not None and not isinstance(posterior, Gaussian):
            raise ConcordError(f"posterior: {short(posterior)} is no concord.Gaussian; give one")
        if posterior is not None and len(posterior.mean) != size:
            raise ConcordError(
                f"posterior: it has dimension {len(posterior.mean)}, and dim is {size}; make "
                "them equal"
            )
        known = None if reference is None else read_reference(reference, size, "reference")
        self.posterior: Gaussian | PosteriorByAgent | None = posterior
        if mask is not None and posterior is not None:
            self.posterior = PosteriorByAgent(posterior, mask, self.agents)
        if mask is not None and known is not None:
            known = PosteriorByAgent(known, mask, self.agents)
        if known is not None:
            self.reference = known
        self._gradient = gradient
        # Only those that are given: a problem offers what it has.
        for name, (function, axes) in shaped.items():
            if function is not None:
                setattr(self, name, partial(_evaluate, name, function, axes))
        if prox is not None:
            self.minimize: Callable[..., tuple[np.ndarray, Cost]] = partial(_minimize, prox)
        if batch_gradient is not None or counts is not None:
            self.counts = _read_counts(counts, self.agents)
        if predict is not None:
            self.predict: Function = predict

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of every f_i at x_i, (chains, agents, dim)."""
        return _evaluate("gradient", self._gradient, 3, x)


def _read_names(given: object, what: str) -> tuple[int, tuple[str, ...] | None]:
    """Return a caller's number of agents or coordinates, and their names; None: numbers."""
    if not is_list(given):
        return build(Count, given, what), None
    names = build(Some[str], [*given], what)
    if len({*names}) < len(names):
        raise ConcordError(f"{what}: {short(names)} has one name twice; rename one")
    return len(names), names


def _read_counts(counts: ArrayLike | None, agents: int) -> np.ndarray:
    """Return a caller's numbers of points of the agents, (agents,)."""
    if counts is None:
        raise ConcordError(
            "counts: it is missing, and mini-batches are drawn from so many points of each agent; "
            "give it with batch_gradient"
        )
    numbers = read_numbers(counts, "counts")
    if numbers.shape != (agents,) or (numbers != numbers.astype(int)).any() or numbers.min() < 1:
        raise ConcordError(
            f"counts: {short(counts)} are not the numbers of points of {agents} agents; give a "
            "positive integer for each"
        )
    return numbers.astype(int)


def _minimize(
    prox: Function,
    linear: np.ndarray,
    curvature: np.ndarray,
    start: np.ndarray,
    agents: Agents = ALL,
) -> tuple[np.ndarray, int]:
    """Return the minimizers and cost of ``CountedProblem.minimize`` by a caller's proximal map.

    The x with grad f_i(x) + c_i x = b_i is the proximal map of v = b / c with step 1 / c.
    """
    if not (curvature > 0).all():
        raise ConcordError(
            f"agent {int(np.argmin(curvature))} has no neighbors, and a proximal step needs one; "
            "add edges"
        )
    everyone = np.zeros((len(linear), len(curvature), linear.shape[-1]))
    everyone[:, agents] = linear
    centers = everyone / curvature[:, None]
    return _evaluate("prox", prox, 3, centers, 1 / curvature)[:, agents], 1


def _evaluate(
    name: str, function: Function, axes: int, x: np.ndarray, *more: np.ndarray
) -> np.ndarray:
    """Return the result of a caller's function of x, of the shape of the first axes of x.

    name: the function's name, for errors. axes: how many axes of x the result has. more: further
    arguments. The function gets x read-only.
    """
    read_only, shape = x.view(), x.shape[:axes]
    read_only.flags.writeable = False
    answer = function(read_only, *more)
    check_masks(answer, name)
    # A copy, for the function may return x, or one array again and again. It is made by numpy:
    # tensors of PyTorch do not know the request for one that np.array would pass on.
    values = np.asarray(answer).copy(order="K")
    if values.dtype.kind not in "fiub":
        raise ConcordError(f"{name}: it returned {short(answer)}; return an array of numbers")
    if values.shape != shape:
        raise ConcordError(
            f"{name}: it returned an array of shape {values.shape} for x of shape {x.shape}; "
            f"return shape {shape}, that is ({', '.join(('chains', 'agents', 'dim')[:axes])})"
        )
    return values
