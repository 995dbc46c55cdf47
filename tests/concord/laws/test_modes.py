"""Laws in modes are those of the whole covariance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import concord
from concord.arguments import ChosenSampler
from concord.laws.exact import initial_moments
from concord.laws.law import laws_of_updates, update_of
from concord.laws.modes import ModalPath, find_modes
from concord.laws.paths import Path
from concord.networks.network import Network
from concord.problems.quadratic_problem import QuadraticProblem

RING = Network(concord.network("ring", 5).graph)
DIFFERENT = np.random.default_rng(3).standard_normal((5, 2, 4))
EVEN = np.broadcast_to(np.array([[1.0, 0.3], [0.3, 2.0]]), (5, 2, 2))
MIX = np.linspace(0.0, 1.0, 25).reshape(5, 5)


def follow(kind: str, gram: np.ndarray, options: Sequence[dict[str, Any]], spread: Any) -> Path:
    """Return the laws of a sampler with several options, as versions, from a given start."""
    problem = QuadraticProblem(gram, np.arange(10.0).reshape(5, 2))
    updates = [
        update_of(ChosenSampler.parse({"kind": kind, **each}, "sampler").params, problem, RING)
        for each in options
    ]
    starts = [initial_moments(5, 2, (1.5, spread), update.start) for update in updates]
    return laws_of_updates(updates, starts, RING, 2)


STEPS = [{"step_size": 0.01}, {"step_size": 0.07}]
UNEVEN = DIFFERENT @ DIFFERENT.swapaxes(1, 2) / 4


@pytest.mark.parametrize(
    ("kind", "gram", "options"),
    [
        ("de_sgld", UNEVEN, STEPS),  # eigenvectors of each version
        ("de_sgld", EVEN, STEPS),  # the same of all
        ("de_sghmc", EVEN, [{"friction": 2.0, **one} for one in STEPS]),  # modes of two entries
        ("local_sgld", EVEN, [{"period": 3, **one} for one in STEPS]),  # a cycle of three steps
    ],
)
@pytest.mark.parametrize("mix", [None, MIX])
def test_modes_have_the_laws_of_the_whole(
    kind: str, gram: np.ndarray, options: list[dict[str, Any]], mix: np.ndarray | None
) -> None:
    whole = follow(kind, gram, options, 0.5)
    modes = find_modes(whole)
    assert isinstance(modes, ModalPath)
    pairs = [
        (path.marginals_at([0, 1, 4, 1000]), path.time_average(50), path.limit())
        for path in (whole.with_answers(mix), modes.with_answers(mix))
    ]
    for expected, got in zip(*pairs, strict=True):
        for name, part in zip(expected._fields, expected, strict=True):
            np.testing.assert_allclose(
                getattr(got, name), part, rtol=1e-11, atol=1e-12 * np.abs(part).max()
            )


@pytest.mark.parametrize(
    ("kind", "gram", "options", "spread"),
    [
        ("de_sghmc", UNEVEN, {"step_size": 0.05, "friction": 2.0}, 0.5),
        ("de_sgld", UNEVEN, {"step_size": 0.05}, np.diag([1.0, 2.0])),  # a start along the axes
        (
            "de_sgld",
            UNEVEN,
            {"step_size": {"kind": "power", "a": 0.05, "b": 1, "exponent": 0.5}},
            0.5,
        ),
    ],
)
def test_what_has_no_eigenvectors_in_common_stays_whole(
    kind: str, gram: np.ndarray, options: dict[str, Any], spread: Any
) -> None:
    whole = follow(kind, gram, [options], spread)
    assert find_modes(whole) is whole
