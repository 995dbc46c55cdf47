"""Metrics of predictions, on probabilities made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import everything
import measurements
from concord.sampling.trace import Trace
from concord_studies.metrics import Measurement

predictions = everything.kind("metrics", "predictions")


def measurement(mean: np.ndarray, sd: np.ndarray, problem: SimpleNamespace) -> Measurement:
    agents = mean.shape[1]
    dims = ("chain", "agent", "predictive_dim_0", "predictive_dim_1")
    trace = Trace(
        {"predictive_mean": (dims, mean), "predictive_sd": (dims, sd)},
        np.array([0, 10]),
        np.arange(agents),
    )
    return measurements.measurement(trace, problem=problem)


def table(m: Measurement, agent: str = "0") -> dict[str, tuple]:
    found = {}
    for iteration, who, metric, value, lo, hi, *_ in predictions.rows(m):
        assert iteration == 10
        if who == agent:
            found[metric] = value, lo, hi
    return found


@pytest.fixture
def hand_made() -> Measurement:
    # Two sets of 4 and 2 images with three labels; two agents, the second always sure of label 0.
    first = np.array(
        [
            [0.7, 0.2, 0.1],  # label 0: right
            [0.1, 0.8, 0.1],  # label 1: right
            [0.6, 0.3, 0.1],  # label 1: wrong
            [0.2, 0.2, 0.6],  # label 2: right
            [0.5, 0.4, 0.1],  # label 2: wrong
            [0.1, 0.9, 0.0],  # label 1: right
        ]
    )
    sure = np.zeros_like(first)
    sure[:, 0] = 1
    tests = {
        "near": SimpleNamespace(labels=np.array([0, 1, 1, 2])),
        "far": SimpleNamespace(labels=np.array([2, 1])),
    }
    problem = SimpleNamespace(tests=tests, examples={"far": {"1": 1}})
    mean = np.stack([first, sure])[None]
    return measurement(mean, 0.01 * np.ones_like(mean), problem)


def test_numbers_of_a_set(hand_made):
    found = table(hand_made)
    assert found["accuracy_near"][0] == 0.75
    assert found["accuracy_far"][0] == 0.5
    confidence = np.array([0.7, 0.8, 0.6, 0.6])
    np.testing.assert_allclose(found["confidence_mean_near"][0], confidence.mean(), rtol=1e-12)
    np.testing.assert_allclose(found["confidence_sd_near"][0], confidence.std(), rtol=1e-12)
    assert [found[f"confusion_near_1_{label}"][0] for label in range(3)] == [1, 1, 0]
    np.testing.assert_allclose(
        [found[f"probability_near_1_{label}"][0] for label in range(3)],
        [0.35, 0.55, 0.1],
        rtol=1e-12,
    )
    assert np.isnan(found["probability_far_0_0"][0])  # no image of this label
    assert table(hand_made, "1")["accuracy_near"][0] == 0.25
    assert table(hand_made, "1")["confidence_sd_near"][0] == 0


def test_density_integrates_to_one(hand_made):
    found = table(hand_made)
    density = [found[f"confidence_density_near_{b}"][0] for b in range(predictions.BINS)]
    np.testing.assert_allclose(np.sum(density) / predictions.BINS, 1, rtol=1e-12)
    # Bin of 0.8 in 40 bins; a confidence of one falls into the last.
    assert density[32] == 0.25 * predictions.BINS
    sure = table(hand_made, "1")
    assert sure[f"confidence_density_far_{predictions.BINS - 1}"][0] == predictions.BINS


def test_examples(hand_made):
    found = table(hand_made)
    assert found["example_true_far_1"][0] == 1
    assert found["example_predicted_far_1"][0] == 1
    assert found["example_probability_far_1"][0] == 0.9
    np.testing.assert_allclose(found["example_sd_far_1"][0], 0.01)
    assert not any(name.startswith("example") and "near" in name for name in found)


@pytest.fixture
def three_chains() -> Measurement:
    """Four images of label 0 of two, two agents; the last chain has not learned."""
    right, wrong = [0.9, 0.1], [0.3, 0.7]
    first = [[right, right, right, right], [right, right, right, wrong]]
    second = [[right, right, right, wrong], [right, right, wrong, right]]
    third = [[wrong, wrong, wrong, wrong], [wrong, wrong, wrong, right]]
    mean = np.array([first, second, third])
    tests = {"near": SimpleNamespace(labels=np.zeros(4, int))}
    problem = SimpleNamespace(tests=tests, examples={"near": {"3": 3}})
    return measurement(mean, np.full_like(mean, 0.01), problem)


def test_numbers_are_means_over_the_chains_that_have_learned(three_chains):
    found = table(three_chains)
    values = np.array([1.0, 0.75])
    half = 12.7062 * values.std(ddof=1) / np.sqrt(2)  # Student's t with one degree of freedom
    for metric in ("accuracy_near", "recall_near_0"):
        np.testing.assert_allclose(found[metric], [0.875, 0.875 - half, 0.875 + half], rtol=1e-5)
    np.testing.assert_allclose(found["confidence_mean_near"][0], (0.9 + 0.85) / 2)
    assert found["confusion_near_0_1"][0] == 0.5
    np.testing.assert_allclose(found["example_probability_near_3"][0], (0.9 + 0.3) / 2)
    trials = {row.metric: row.trials for row in predictions.rows(three_chains)}
    assert trials["accuracy_near"] == trials["example_sd_near_3"] == 2
    assert trials["learned_share"] == 3


def test_share_of_the_chains_that_learn(three_chains):
    share = table(three_chains, "network")["learned_share"]
    assert share == pytest.approx((2 / 3, *predictions.wilson(2 / 3, 3)))
    # Nothing is left out where none has learned: a tenth of ten labels is a result, too.
    three_chains.trace["predictive_mean"][:2] = three_chains.trace["predictive_mean"][2]
    assert table(three_chains, "network")["learned_share"][0] == 0
    assert table(three_chains)["accuracy_near"] == (0, 0, 0)


def test_agents_are_compared_within_a_chain(three_chains):
    """Both chains have agents of different accuracies, in opposite order or not."""
    value, lo, hi = table(three_chains, "network")["accuracy_apart_near"]
    assert value == pytest.approx((0.25 + 0.0) / 2)
    assert lo < value < hi
    three_chains.trace["predictive_mean"][2] = np.nan
    assert np.isnan(table(three_chains)["accuracy_near"][0])
    assert np.isnan(table(three_chains, "network")["learned_share"][0])
