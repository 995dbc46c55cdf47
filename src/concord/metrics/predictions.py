r"""Predictions on test sets: accuracy, confidence, confusion, from the mean predictive probability.

The prediction for an image is the label of largest probability, its confidence that probability,
both of the mean over the draws after burn-in (parayil2020, S5.3). Per test set, with metric names
ending in the set's name, and numbers of labels or of bins where they are meant:

``accuracy_<set>``
    fraction of images classified right, with Wilson's interval;
``confidence_mean_<set>``, ``confidence_sd_<set>``
    over images, with intervals;
``confidence_density_<set>_<bin>``
    the density of confidence in ``BINS`` equal bins of [0, 1];
``confusion_<set>_<true>_<predicted>``
    number of images;
``probability_<set>_<true>_<label>``
    mean probability of a label over the images of a true label;
``example_{true,predicted,probability,sd}_<set>_<image>``
    single images, by row or as ``first_<label>``: labels, and mean and standard deviation over
    draws of the probability of the predicted label.

Intervals tell how far the images decide the number; the run is one, and chains are pooled. Of a
chain that diverged nothing is predicted, and nothing is known: the numbers are not a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from concord.contracts import WithTests
from concord.errors import ConcordError
from concord.laws.intervals import mean_interval, quantile, wilson
from concord.metrics import Measurement, Row, lacking

METRICS = ("accuracy_*", "confidence_*", "confusion_*", "probability_*", "example_*")

BINS = 40


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the rows of every recorded agent and test set, at the last recorded iteration."""
    mean, sd = m.trace["predictive_mean"], m.trace["predictive_sd"]
    if not isinstance(m.problem, WithTests):
        raise lacking("predictions", "a problem with test sets")
    sizes = [len(images.labels) for images in m.problem.tests.values()]
    if mean.shape[2] != sum(sizes):
        raise ConcordError(
            f"the trace has predictions for {mean.shape[2]} test images, there are {sum(sizes)}; "
            "delete the trace to have it made again"
        )
    last = int(m.trace.draw[-1])
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    for column, agent in enumerate(m.agents):
        for (name, images), part in zip(m.problem.tests.items(), parts, strict=True):
            chances = mean[:, column, part].astype(float)
            size = chances.shape[0] * chances.shape[1]
            for metric, value, lo, hi in _of_set(name, chances, images.labels):
                yield Row(last, agent, metric, value, lo, hi, trials=None if lo is None else size)
            examples = m.problem.examples.get(name, {})
            for metric, value in _examples(
                name, examples, chances, sd[:, column, part], images.labels
            ):
                known = metric.startswith("example_true_")
                yield Row(last, agent, metric, value, chance=not known)


def _of_set(
    name: str, chances: np.ndarray, labels: np.ndarray
) -> Iterator[tuple[str, float, float | None, float | None]]:
    """Yield metrics of probabilities (chains, images, classes) for images with these labels."""
    classes = chances.shape[-1]
    predicted, confidence = chances.argmax(axis=-1), chances.max(axis=-1)
    unknown = 0.0 if np.isfinite(chances).all() else np.nan
    right = (predicted == labels).mean() + unknown
    yield f"accuracy_{name}", right, *wilson(right, predicted.size)
    mean, lo, hi = mean_interval(confidence.ravel())
    yield f"confidence_mean_{name}", float(mean), float(lo), float(hi)
    yield f"confidence_sd_{name}", *_sd(confidence)
    counts, _ = np.histogram(confidence, bins=BINS, range=(0, 1))
    for number, share in enumerate(counts / max(counts.sum(), 1) * BINS + unknown):
        yield f"confidence_density_{name}_{number}", share, None, None
    for true in range(classes):
        mine = labels == true
        found = np.bincount(predicted[:, mine].ravel(), minlength=classes)
        average = chances[:, mine].mean(axis=(0, 1)) if mine.any() else np.full(classes, np.nan)
        for label in range(classes):
            yield (
                f"confusion_{name}_{true}_{label}",
                found[label] / len(chances) + unknown,
                None,
                None,
            )
            yield f"probability_{name}_{true}_{label}", average[label], None, None


def _examples(
    name: str,
    examples: Mapping[str, int],
    chances: np.ndarray,
    sd: np.ndarray,
    labels: np.ndarray,
) -> Iterator[tuple[str, float]]:
    average, spread = chances.mean(axis=0), sd.mean(axis=0)
    for image, row in examples.items():
        label = average[row].argmax()
        yield f"example_true_{name}_{image}", labels[row]
        known = np.isfinite(average[row, label])
        yield f"example_predicted_{name}_{image}", label if known else np.nan
        yield f"example_probability_{name}_{image}", average[row, label]
        yield f"example_sd_{name}_{image}", spread[row, label]


def _sd(values: np.ndarray) -> tuple[float, float, float]:
    """Return the standard deviation; its variance is (m_4 - s^4) / (4 s^2 n) for large n."""
    sd = values.std()
    if not sd > 0:
        return sd, sd, sd
    fourth = ((values - values.mean()) ** 4).mean()
    half = quantile(math.inf) * np.sqrt(max(fourth - sd**4, 0) / (4 * sd**2 * values.size))
    return sd, sd - half, sd + half
