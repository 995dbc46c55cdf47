"""Gradient estimators: full gradients, or mini-batches drawn with replacement or in epochs."""

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal

import numpy as np

from concord.contracts import (
    Batched,
    BatchGradient,
    BatchNoise,
    ChosenAgents,
    Divisible,
    GradientAt,
    Problem,
    Quadratic,
    SeparatePrior,
)
from concord.errors import ConcordError
from concord.options import Count
from concord.resume import keep

Estimator = Callable[[np.ndarray, np.random.Generator, np.ndarray], np.ndarray]
OfAgent = Callable[[int, np.ndarray, np.random.Generator, np.ndarray], object]
Difference = Callable[[np.ndarray, np.ndarray, np.random.Generator, np.ndarray], np.ndarray]
Draw = Callable[[np.random.Generator, np.ndarray], object]

BatchSize = Annotated[Count | None, "points per mini-batch; none: full gradients"]
ReplacedSize = Annotated[
    Count | None, "points per mini-batch, drawn with replacement; none: full gradients"
]
BatchOrder = Annotated[
    Literal["with_replacement", "epochs", "whole_batches"],
    "points of a mini-batch are drawn independently, or without replacement in epochs, or in "
    "epochs of whole batches, which leave out points that do not fill one",
]
BatchScale = Annotated[
    Literal["data", "none", "mean"],
    "a mini-batch's gradient is scaled up to all of the agent's points; or it is the sum over the "
    "mini-batch, so that the data count as much as that; or its mean, as much as one point",
]
BatchPool = Annotated[
    Literal["all", "all_but_last"],
    "points of an agent that mini-batches are drawn from: all, or all but the last",
]


def check_batches(batch_size: int | None, scale: str, pool: str) -> None:
    """Refuse options of mini-batches without a mini-batch."""
    if batch_size is None and (scale, pool) != ("data", "all"):
        key, value = ("batch_scale", scale) if scale != "data" else ("batch_pool", pool)
        raise ConcordError(
            f"{key}: {value} is of mini-batches, but batch_size is not given; give one, or remove "
            f"{key}"
        )


def expected(
    problem: Quadratic, batch_size: int | None, scale: str, pool: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return gram and shift of the gradients that mini-batches have on average.

    They are the problem's own if these are unbiased. A ConcordError if they are biased and the
    problem does not say how.
    """
    if batch_size is None or (scale, pool) == ("data", "all"):
        return problem.gram, problem.shift
    if not isinstance(problem, BatchNoise):
        raise ConcordError(
            f"{type(problem).__name__} does not know the mean of such mini-batches; use "
            "batch_scale: data and batch_pool: all"
        )
    return problem.batch_mean(batch_size, scale, pool)


def estimator(
    problem: Problem,
    batch_size: int | None,
    chains: int,
    order: str = "with_replacement",
    *,
    scale: str = "data",
    pool: str = "all",
) -> Estimator:
    r"""Return ``estimate(x, rng, out)``, which writes a gradient of every agent's potential.

    Without a batch size the estimate is :math:`\nabla f_i(x_i)`. With ``batch_size`` b, each chain
    and agent draws b of the agent's n_i points and scales the likelihood part by n_i / b; the prior
    part is exact. The estimate is unbiased (gurbuzbalaban2021, eq. 3.2). The order is one of

    ``with_replacement``
        independent draws;
    ``epochs``
        the agent walks through its points in random order, shuffled again when all have been used,
        so that every n_i draws use each point once; a batch may hold the last points of one epoch
        and the first of the next (parayil2020, section 5.2);
    ``whole_batches``
        the same, but points that do not fill a batch are left out until the next shuffle.

    Released codes differ (gurbuzbalaban2021): with ``scale: none`` the likelihood part is the
    mini-batch's own sum, without n_i / b, with ``scale: mean`` (depsgld2026) its mean; with ``pool:
    all_but_last`` it is drawn, with replacement, from the agent's points but the last. Any makes
    the estimate biased.

    ``x`` and ``out`` have shape (chains, agents, dim). Buffers are allocated here, once. A
    ConcordError if the problem takes no mini-batches, or cannot have them unscaled, or has nothing
    to draw.
    """
    if batch_size is None:
        full = problem.gradient(chains)
        return lambda x, rng, out: full(x, out)

    shape, batched = (chains, problem.agents, batch_size), batched_of(problem)
    partial, counts = _partial(problem, chains, batch_size, scale), _pool(batched.counts, pool)
    rows = np.empty(shape, dtype=np.intp)
    if order == "with_replacement":
        draw = _replacing(counts, shape)
    else:
        draw = _epochs(counts, shape, order == "whole_batches")

    def estimate(x: np.ndarray, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        draw(rng, rows)
        return partial(x, rows, out)

    return estimate


def estimator_of_agent(
    problem: Problem, batch_size: int | None, chains: int, *, scale: str = "data", pool: str = "all"
) -> OfAgent:
    """Return ``estimate(agent, x, rng, out)``, which writes a gradient of one agent's potential.

    x and out have shape (chains, dim). Points are those that ``estimator`` draws with replacement,
    of all agents. Where the problem cannot be divided all agents' gradients are computed for it.
    """
    parts: list[Any] = []
    if isinstance(problem, Divisible):
        with suppress(ConcordError):
            parts = [problem.part(slice(agent, agent + 1)) for agent in range(problem.agents)]
    whole = parts or [problem]
    draw, rows = None, np.empty((chains, problem.agents, batch_size or 0), dtype=np.intp)
    if batch_size is None:
        full = [each.gradient(chains) for each in whole]
    else:
        draw = _replacing(_pool(batched_of(problem).counts, pool), rows.shape)
        partial = [_partial(each, chains, batch_size, scale) for each in whole]
    at = np.zeros((chains, 1 if parts else problem.agents, problem.dim))
    found = np.empty_like(at)

    def estimate(agent: int, x: np.ndarray, rng: np.random.Generator, out: np.ndarray) -> None:
        which, place = (agent, 0) if parts else (0, agent)
        at[:, place] = x
        if draw is None:
            full[which](at, found)
        else:
            draw(rng, rows)
            partial[which](at, rows[:, agent : agent + 1].copy() if parts else rows, found)
        np.copyto(out, found[:, place])

    return estimate


def _partial(problem: Problem, chains: int, batch_size: int, scale: str) -> BatchGradient:
    """Return the estimates from given points, scaled as ``estimator`` says."""
    partial = batched_of(problem).batch_gradient(chains, batch_size)
    if scale == "data":
        return partial
    shape = chains, problem.agents, problem.dim
    return _rescaled(problem, partial, shape, stands_for(batch_size, scale))


def _pool(counts: np.ndarray, pool: str) -> np.ndarray:
    """Return how many of their points agents draw from."""
    if pool == "all":
        return counts
    if counts.min() < 2:
        raise ConcordError(
            f"agent {counts.argmin()} has one point, so batch_pool: all_but_last leaves none; "
            "give it more, or use batch_pool: all"
        )
    return counts - 1


def differences(problem: Problem, batch_size: int, chains: int) -> Difference:
    """Return ``differ(x, y, rng, out)``: a mini-batch's gradient at x less the one at y.

    Both are of the same points, drawn with replacement, so that the difference is small where x and
    y are close. Shapes are (chains, agents, dim); a ConcordError as ``estimator`` raises it.
    """
    shape, batched = (chains, problem.agents, batch_size), batched_of(problem)
    partial, draw = batched.batch_gradient(chains, batch_size), _replacing(batched.counts, shape)
    rows, other = np.empty(shape, dtype=np.intp), np.empty((chains, problem.agents, problem.dim))

    def differ(
        x: np.ndarray, y: np.ndarray, rng: np.random.Generator, out: np.ndarray
    ) -> np.ndarray:
        draw(rng, rows)
        partial(y, rows, other)
        partial(x, rows, out)
        return np.subtract(out, other, out=out)

    return differ


def gradient_at(problem: Problem, chains: int, width: int) -> GradientAt:
    """Return ``g(x, agents, out)``: the gradients of ``width`` chosen agents of each chain.

    Problems that are not ``ChosenAgents`` compute those of all agents for it.
    """
    if isinstance(problem, ChosenAgents):
        return problem.gradient_at(chains, width)
    full = problem.gradient(chains)
    everyone = np.zeros((chains, problem.agents, problem.dim))
    gradients, chain = np.empty_like(everyone), np.arange(chains)[:, None]

    def gradient(x: np.ndarray, agents: np.ndarray, out: np.ndarray) -> np.ndarray:
        everyone[chain, agents] = x
        full(everyone, gradients)
        np.copyto(out, gradients[chain, agents])
        return out

    return gradient


def batched_of(problem: Problem) -> Batched:
    """Return a problem of which mini-batches can be drawn; a ConcordError if they cannot."""
    if not isinstance(problem, Batched):
        raise ConcordError(
            f"{type(problem).__name__} takes no mini-batches; leave the sampler's batch_size out"
        )
    return problem


def stands_for(batch_size: int, scale: str) -> int:
    """Return how many of an agent's points a mini-batch that is not scaled up stands for."""
    return {"none": batch_size, "mean": 1}[scale]


def _rescaled(
    problem: Problem, scaled: BatchGradient, shape: tuple[int, int, int], points: int
) -> BatchGradient:
    """Return the estimate whose likelihood part stands for so many points instead of n_i."""
    if not isinstance(problem, SeparatePrior) or not isinstance(problem, Batched):
        raise ConcordError(
            f"{type(problem).__name__} does not give its prior's gradient apart; use batch_scale: "
            "data"
        )
    prior = np.empty(shape)
    share = (points / problem.counts)[:, None]

    def gradient(x: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        problem.prior_gradient(x, prior)
        scaled(x, rows, out)
        np.subtract(out, prior, out=out)
        np.multiply(out, share, out=out)
        return np.add(out, prior, out=out)

    return gradient


def _replacing(sizes: np.ndarray, shape: tuple[int, int, int]) -> Draw:
    uniform = np.empty(shape)
    counts = sizes[:, None].astype(float)
    last = sizes[:, None] - 1

    def draw(rng: np.random.Generator, rows: np.ndarray) -> None:
        rng.random(out=uniform)
        np.multiply(uniform, counts, out=uniform)
        np.copyto(rows, uniform, casting="unsafe")  # truncates towards zero
        np.minimum(rows, last, out=rows)  # n (1 - 2^-53) may round up to n

    return draw


def _epochs(sizes: np.ndarray, shape: tuple[int, int, int], whole: bool) -> Draw:
    if whole and sizes.min() < shape[2]:
        raise ConcordError(
            f"batch_order: whole_batches of {shape[2]} points need as many of each agent, but "
            f"agent {sizes.argmin()} has {sizes.min()}; use smaller batches, or epochs"
        )
    groups = [
        _Walk(np.flatnonzero(sizes == size), int(size), shape[0], shape[2] if whole else 1)
        for size in np.unique(sizes)
    ]

    def draw(rng: np.random.Generator, rows: np.ndarray) -> None:
        for group in groups:
            group.draw(rng, rows)

    return draw


class _Walk:
    """The walk of all agents that hold ``size`` points each, which end their epochs together.

    An epoch has the points that fill parts of ``fill``.
    """

    def __init__(self, agents: np.ndarray, size: int, chains: int, fill: int) -> None:
        self.agents, self.end = agents, size - size % fill
        shape = (chains, len(agents), size)
        self.order = np.broadcast_to(np.arange(size, dtype=np.int32), shape).copy()
        self.used = np.array(self.end)
        keep(self.order, self.used)

    def draw(self, rng: np.random.Generator, rows: np.ndarray) -> None:
        """Write the next points of these agents into ``rows``."""
        filled, batch = 0, rows.shape[2]
        while filled < batch:
            if self.used == self.end:
                rng.permuted(self.order, axis=2, out=self.order)
                self.used[()] = 0
            used = int(self.used)
            more = min(batch - filled, self.end - used)
            rows[:, self.agents, filled : filled + more] = self.order[:, :, used : used + more]
            filled += more
            self.used += more
