"""The numbers of FSGLD's page, made anew by exact laws."""

import re
from pathlib import Path

import numpy as np
import pytest
from five_papers import Paper

from shared_folders import shared

PAGE = Path(__file__).parents[3] / "docs" / "fsgld.md"
TEXT = re.sub(r"\s+", " ", PAGE.read_text())


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """Return a function from a run and a metric to its last number, or that of an iteration."""
    paper = Paper("fsgld2021", shared(tmp_path_factory) / "papers")

    def measured(experiment, name, metric, at=None, agent="network"):
        rows = paper.measured(experiment, name)
        last = max(k for family, who, k in rows if (family, who) == (metric, agent))
        return rows[metric, agent, last if at is None else at].value

    return measured


def stands(sentence, *values):
    """Assert that the page has a sentence, whose numbers are these in as many digits."""
    text = sentence.format(*values)
    assert text in TEXT, text


def laws(numbers, method, metric, experiment="laws", at=None):
    return [
        numbers(experiment, f"method={method}+local_steps={steps}", metric, at)
        for steps in (1, 10, 100)
    ]


def test_deviations_of_estimates(numbers):
    ratios = [
        numbers("fig1", "data=distributed", "estimator_sd", theta)
        / numbers("fig1", "data=centralized", "estimator_sd", theta)
        for theta in (10, 50, 90)
    ]
    np.testing.assert_allclose(ratios, ratios[0])
    stands("DSGLD's estimates is {:.2f} times that of SGLD's", ratios[0])


def test_distances_and_widths(numbers):
    stands("| DSGLD | {:.2f} | {:.2f} | {:.2f} |", *laws(numbers, "dsgld", "law_w2"))
    stands("| FSGLD | {:.3f} | {:.3f} | {:.3f} |", *laws(numbers, "fsgld", "law_w2"))
    stands("draws have {:.1f} times the posterior's", laws(numbers, "fsgld", "law_trace")[0])
    alike = numbers("alike", "method=dsgld", "law_w2")
    stands("DSGLD(100) is at {:.3f} in place of {:.2f}", alike, laws(numbers, "dsgld", "law_w2")[2])
    stands("(at {:.3f})", np.sqrt(2 / 2001))
    full = laws(numbers, "fsgld", "law_trace", "full_gradients")
    stands("mini-batches {:.2f} times is left", full[0])
    local = laws(numbers, "dsgld", "law_local_trace", "full_gradients")[2]
    stands("{:.3f} times its variance without mini-batches", local)
    stands("of 10 it is {:.2f} times", laws(numbers, "dsgld", "law_local_trace")[2])


def test_errors(numbers):
    errors = laws(numbers, "dsgld", "error_of_mean", at=800)
    stands("is {:.4f}, {:.3f} and {:.3f} for 1, 10 and 100", *errors)
    squares = laws(numbers, "dsgld", "error_of_draws")
    squares.append(laws(numbers, "fsgld", "error_of_draws")[0])
    stands("expected | {:.2f} | {:.1f} | {:.1f} | {:.3f} |", *squares)


def test_bounds_and_constants(numbers):
    shares = [
        numbers("bounds", f"method=dsgld+batch_size={size}", "estimator_variance")
        / numbers("bounds", f"method=dsgld+batch_size={size}", "variance_bound")
        for size in (10, 50)
    ]
    stands("is {:.3f} times the bound for m = 10, the printed size, and {:.1f} times", *shares)
    for metric, digits in (("gamma2", ".0f"), ("epsilon2", ".1f")):
        each = [
            numbers("bounds", "method=fsgld+batch_size=10", metric, agent=str(s)) for s in range(10)
        ]
        stands(f"(ours: {{:{digits}}} to {{:{digits}}})", min(each), max(each))


@pytest.mark.thorough
def test_distances_of_a_chain(numbers):
    distances = [
        numbers("fig2", f"chain=dsgld_{steps}", "distance_so_far", agent="0")
        for steps in (1, 10, 100)
    ]
    stands("a chain of ours has {:.1f}, {:.1f} and {:.1f}", *distances)
