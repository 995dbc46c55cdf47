r"""Predictions on test sets: accuracy, confidence, confusion, from the mean predictive probability.

The prediction for an image is the label of largest probability, its confidence that probability,
both of the mean over the draws after burn-in (parayil2020, S5.3). Per test set, with metric names
ending in the set's name, and numbers of labels or of bins where they are meant:

``accuracy_<set>``
    fraction of images classified right;
``recall_<set>_<true>``
    fraction of the images of a true label that are;
``confidence_mean_<set>``, ``confidence_sd_<set>``
    over images;
``confidence_density_<set>_<bin>``
    the density of confidence in ``BINS`` equal bins of [0, 1];
``confusion_<set>_<true>_<predicted>``
    number of images;
``probability_<set>_<true>_<label>``
    mean probability of a label over the images of a true label;
``example_{true,predicted,probability,sd}_<set>_<image>``
    single images, by row or as ``first_<label>``: labels (the predicted one is that of the mean
    over chains), and mean and standard deviation over draws of that label's probability.

and of the network, whose agents see the same images,

``accuracy_apart_<set>``
    best minus worst agent of a chain.

Whether a network learns may be chance: ``learned_share`` is the part of the chains whose agents
classify, on average, more than half of the first test set right, with Wilson's interval. A network
that has not learned predicts one label for all images, and has a tenth of ten labels right. All
other numbers are means over the chains that have learned (over all if none has), with Student's
intervals. Of a run of one chain, intervals tell how far the images decide the number. Of a chain
that diverged nothing is predicted, and nothing is known: the numbers are not a number.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord.laws.intervals import mean_interval, quantile
from concord_studies.contracts import Label, WithTestSets
from concord_studies.intervals import mean_over_chains, wilson
from concord_studies.metrics import Measurement, Row, unmet_need

_OF_A_SET = (
    *("accuracy_{set}", "accuracy_apart_{set}", "recall_{set}_[0-9]"),
    *("confidence_mean_{set}", "confidence_sd_{set}", "confidence_density_{set}_[0-9]*"),
    *("confusion_{set}_[0-9]_[0-9]", "probability_{set}_[0-9]*_[0-9]*"),
    *("example_predicted_{set}_[0-9]*", "example_true_{set}_[0-9]*"),
    *("example_probability_{set}_[0-9]*", "example_sd_{set}_[0-9]*"),
)
_TEST_SETS = {"mnist": "MNIST", "svhn": "SVHN", "digits": "digits"}
_SAID = {
    "accuracy_apart": "difference of the agents' accuracies",
    "recall": "part of the label's images classified right",
    "confidence_mean": "mean probability of the predicted label",
    "confidence_sd": "standard deviation of the predicted label's probability",
}
METRICS = (
    *(name.format(set=test_set) for test_set in _TEST_SETS for name in _OF_A_SET),
    "learned_share",
)
RECORDS = ("predictive",)
LABELS = {
    "learned_share": Label("part of the chains that learn", "share of chains that learn"),
    **{
        f"{name}_{test_set}": Label(f"{_SAID.get(name, name.replace('_', ' '))}{rest} on {title}")
        for test_set, title in _TEST_SETS.items()
        for name, rest in ((m.partition("_{set}")[0], " {}" * ("[" in m)) for m in _OF_A_SET)
    },
}

BINS = 40
LEARNED = 0.5


def rows(m: Measurement) -> Iterator[Row]:
    """Yield predictive metrics of each recorded agent and test set, at the last iteration."""
    mean, sd = m.trace["predictive_mean"].astype(float), m.trace["predictive_sd"]
    if not isinstance(m.problem, WithTestSets):
        raise unmet_need("predictions", "a problem with test sets")
    ends = np.cumsum([len(images.labels) for images in m.problem.tests.values()])
    if mean.shape[2] != ends[-1]:
        raise ConcordError(
            f"the trace has predictions for {mean.shape[2]} test images, there are {ends[-1]}; "
            "delete the trace to have it made again"
        )
    sets = {
        name: (images.labels, *(x[:, :, end - len(images.labels) : end] for x in (mean, sd)))
        for (name, images), end in zip(m.problem.tests.items(), ends, strict=True)
    }
    labels, chances, _ = next(iter(sets.values()))
    learned = _accuracy(chances, labels).mean(axis=1) > LEARNED
    unknown = ~np.isfinite(chances).all(axis=(1, 2, 3))
    share = float(learned.mean()) + (np.nan if unknown.any() else 0)
    of_share = share, *wilson(share, len(learned))
    yield Row(m.last, "network", "learned_share", *of_share, trials=len(learned))
    used = learned | unknown if learned.any() else np.full(len(learned), True)
    for name, (labels, chances, spreads) in sets.items():
        examples = m.problem.examples.get(name, {})
        for column, agent in enumerate(m.agents):
            own, spread = chances[used, column], spreads[used, column]
            for row in _of_set(name, own, labels, single=len(learned) == 1):
                yield row._replace(iteration=m.last, agent=agent)
            for row in _examples(name, examples, own, spread, labels):
                yield row._replace(iteration=m.last, agent=agent)
        if len(m.agents) > 1:
            apart = np.ptp(_accuracy(chances[used], labels), axis=1)
            of_agents = mean_over_chains(apart)
            yield Row(m.last, "network", f"accuracy_apart_{name}", *of_agents, trials=len(apart))


def _accuracy(chances: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the fraction of images classified right, from chances (..., images, classes)."""
    unknown = np.where(np.isfinite(chances).all(axis=(-2, -1)), 0.0, np.nan)
    return (chances.argmax(axis=-1) == labels).mean(axis=-1) + unknown


def _row(metric: str, *number: Any, **more: Any) -> Row:
    """Return a row that has no place yet."""
    return Row(0, "", metric, *number, **more)


def _of_set(name: str, chances: np.ndarray, labels: np.ndarray, single: bool) -> Iterator[Row]:
    """Yield metrics of class probabilities (chains, images, classes) on a labeled test set.

    Intervals are over images where the chain is a ``single`` one.
    """
    chains, images, classes = chances.shape
    predicted, confidence = chances.argmax(axis=-1), chances.max(axis=-1)
    unknown = 0.0 if np.isfinite(chances).all() else np.nan

    def number(metric: str, each: np.ndarray, ends: Sequence[Any], count: int) -> Row:
        """Return the mean over chains of a metric; ``ends`` and ``count`` are of its images."""
        if single:
            return _row(metric, float(each[0]), *ends, trials=count)
        return _row(metric, *mean_over_chains(each), trials=chains)

    right = _accuracy(chances, labels)
    yield number(f"accuracy_{name}", right, wilson(right[0], images), images)
    mean, sd = confidence.mean(axis=1), confidence.std(axis=1)
    yield number(f"confidence_mean_{name}", mean, mean_interval(confidence[0])[1:], images)
    yield number(f"confidence_sd_{name}", sd, _sd(confidence[0])[1:], images)
    counts, _ = np.histogram(confidence, bins=BINS, range=(0, 1))
    for place, density in enumerate(counts / max(counts.sum(), 1) * BINS + unknown):
        yield _row(f"confidence_density_{name}_{place}", density)
    for true in range(classes):
        here = labels == true
        count = int(here.sum())
        if count:
            recall = (predicted[:, here] == true).mean(axis=1) + unknown
            yield number(f"recall_{name}_{true}", recall, wilson(recall[0], count), count)
        found = np.bincount(predicted[:, here].ravel(), minlength=classes) / chains + unknown
        average = chances[:, here].mean(axis=(0, 1)) if count else np.full(classes, np.nan)
        for label in range(classes):
            yield _row(f"confusion_{name}_{true}_{label}", found[label])
            yield _row(f"probability_{name}_{true}_{label}", average[label])


def _examples(
    name: str, examples: Mapping[str, int], chances: np.ndarray, sd: np.ndarray, labels: np.ndarray
) -> Iterator[Row]:
    """Yield label, prediction and probability of example images, with intervals."""
    average = chances.mean(axis=0)
    for image, place in examples.items():
        label = average[place].argmax()
        predicted = label if np.isfinite(average[place, label]) else np.nan
        yield _row(f"example_true_{name}_{image}", labels[place], chance=False)
        yield _row(f"example_predicted_{name}_{image}", predicted)
        for metric, values in (("probability", chances), ("sd", sd)):
            of_image = mean_over_chains(values[:, place, label])
            yield _row(f"example_{metric}_{name}_{image}", *of_image, trials=len(values))


def _sd(values: np.ndarray) -> tuple[float, float, float]:
    """Return a sample's standard deviation with its 95 % interval from the fourth moment."""
    sd = values.std()
    if not sd > 0:
        return sd, sd, sd
    fourth = ((values - values.mean()) ** 4).mean()
    half = quantile(math.inf) * np.sqrt(max(fourth - sd**4, 0) / (4 * sd**2 * values.size))
    return sd, sd - half, sd + half
