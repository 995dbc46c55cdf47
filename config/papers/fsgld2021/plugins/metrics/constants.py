"""The constants of Theorems 1 and 2 on a grid, and the variances that they bound."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need, yields
from concord_studies.metrics._theorems import Condition, condition_rows

from ..theory import estimator_moments, variance_bound


@yields(
    ("gamma2", "epsilon2", "epsilon2_half", "estimator_*", "variance_*", "theorem.*"),
    exact=("*",),
    conditions=("theorem.bounded gradients", "theorem.Lipschitz surrogates"),
    labels={
        "gamma2": Label("gamma_s^2, the largest |grad log p(x_i)|^2", "gamma_s^2"),
        "epsilon2": Label(
            "epsilon_s^2, the largest mean of |grad log p(x_i) - grad log q_s / N_s|^2",
            "epsilon_s^2",
        ),
        "epsilon2_half": Label(
            "epsilon_s^2 of surrogates of twice the variance", "twice the variance"
        ),
        "estimator_bias": Label("bias of the gradient estimate over the largest gradient"),
        "estimator_variance": Label("largest variance of the gradient estimate", "variance"),
        "variance_bound": Label("bound on the variance in the theorem's proof", "bound"),
        "variance_between": Label("part of the variance that is between shards", "between shards"),
    },
)  # fmt: skip
def rows(m: Measurement) -> Iterator[Row]:
    """Yield constants of every shard, and variances and bounds of the run's estimator.

    gamma2, epsilon2: as Assumption 1 and Lemma 2 have them, largest over the grid of theta.
    epsilon2_half: with half the surrogate's slope. estimator_bias, estimator_variance: largest over
    the grid, with the run's mini-batches; variance_between: the part between shards.
    variance_bound: the proofs' bound on that variance, with the constants of the same grid.
    theorem.*: whether gradients, and slopes of log q_s, are bounded in the plane.
    """
    problem: Any = m.problem
    sampler: Any = m.sampler
    if not hasattr(problem, "surrogate_gradients") or not hasattr(sampler, "surrogates"):
        raise unmet_need("constants", "fsgld on the problem shards_of_means")
    count = int(problem.counts[0])
    points = problem.point_gradients(problem.grid)
    slopes = problem.surrogate_gradients(problem.grid)

    def squares(part: float) -> np.ndarray:
        """Return squared distances of points' slopes from a part of the surrogate's, over N."""
        return ((points - part * slopes[..., None, :] / count) ** 2).sum(axis=-1)

    gamma2 = squares(0.0).max(axis=(0, 2))
    over_points = np.mean if problem.params.epsilon == "mean" else np.max
    epsilon2 = over_points(squares(1.0), axis=2).max(axis=0)
    numbers = {
        "gamma2": gamma2,
        "epsilon2": epsilon2,
        "epsilon2_half": over_points(squares(0.5), axis=2).max(axis=0),
    }
    for shard in range(problem.agents):
        of_shard = {name: values[shard] for name, values in numbers.items()}
        yield from series([m.iterations], str(shard), of_shard, chance=False)
    corrects = sampler.surrogates != "none"
    conducive = slopes.sum(axis=-2, keepdims=True) - problem.agents * slopes
    moments = estimator_moments(points, sampler.batch_size, conducive if corrects else 0.0)
    mean, within, between = (each.sum(axis=-1) if n else each for n, each in enumerate(moments))
    gradient = points.sum(axis=(1, 2))
    bound = variance_bound(epsilon2 if corrects else gamma2, count, sampler.batch_size)
    yield from final_rows(
        m,
        {
            "estimator_bias": np.abs(mean - gradient).max() / np.abs(gradient).max(),
            "estimator_variance": (within + between).max(),
            "variance_bound": bound * (1 + 1e-12),  # it may be met exactly, but for rounding
            "variance_between": between.max(),
        },
    )
    # Slopes x - theta and N (mean - theta) grow without end in theta.
    limits = [Condition("bounded gradients", np.inf, False)]
    limits += [Condition("Lipschitz surrogates", np.inf, False)] if corrects else []
    yield from condition_rows(m, "theorem", limits)
