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
intervals but for those of a bin or a pair of labels. Of a chain that diverged nothing is predicted,
and nothing is known: the numbers are not a number.
"""

from collections.abc import Iterator

import numpy as np

from concord_studies.contracts import Label, WithTestSets
from concord_studies.intervals import mean_over_chains, wilson
from concord_studies.metrics import Measurement, Row, unmet_need, yields

PATTERNS = (
    *("accuracy_{set}", "accuracy_apart_{set}", "recall_{set}_[0-9]"),
    *("confidence_mean_{set}", "confidence_sd_{set}", "confidence_density_{set}_[0-9]*"),
    *("confusion_{set}_[0-9]_[0-9]", "probability_{set}_[0-9]*_[0-9]*"),
    *("example_predicted_{set}_[0-9]*", "example_true_{set}_[0-9]*"),
    *("example_probability_{set}_[0-9]*", "example_sd_{set}_[0-9]*"),
)
TEST_SETS = {"mnist": "MNIST", "svhn": "SVHN", "digits": "digits"}
WORDS = {
    "accuracy_apart": "difference of the agents' accuracies",
    "recall": "part of the label's images classified right",
    "confidence_mean": "mean probability of the predicted label",
    "confidence_sd": "standard deviation of the predicted label's probability",
}

BINS = 40
LEARNED = 0.5


@yields(
    (*(name.format(set=test_set) for test_set in TEST_SETS for name in PATTERNS), "learned_share"),
    records=("predictive",),
    labels={
        "learned_share": Label("part of the chains that learn", "share of chains that learn"),
        **{
            f"{name}_{test_set}": Label(
                f"{WORDS.get(name, name.replace('_', ' '))}{rest} on {title}"
            )
            for test_set, title in TEST_SETS.items()
            for name, rest in ((m.partition("_{set}")[0], " {}" * ("[" in m)) for m in PATTERNS)
        },
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield predictive metrics of each recorded agent and test set, at the last iteration."""
    mean, sd = m.trace["predictive_mean"].astype(float), m.trace["predictive_sd"]
    if not isinstance(m.problem, WithTestSets):
        raise unmet_need("predictions", "a problem with test sets")
    ends = np.cumsum([len(images.labels) for images in m.problem.tests.values()])
    parts = [np.split(each, ends[:-1], axis=2) for each in (mean, sd)]
    sets = list(zip(m.problem.tests.items(), *parts, strict=True))
    (_, images), chances, _ = sets[0]
    learned = _classified_right(chances, images.labels).mean(axis=1) > LEARNED
    unknown = ~np.isfinite(chances).all(axis=(1, 2, 3))
    share = float(learned.mean()) + (np.nan if unknown.any() else 0)
    ends_of_share = wilson(share, len(learned))
    yield Row(m.last, "network", "learned_share", share, *ends_of_share, trials=len(learned))
    used = learned | unknown if learned.any() else np.full(len(learned), True)
    for (name, images), chances, spreads in sets:
        labels, examples = images.labels, m.problem.examples.get(name, {})
        for column, agent in enumerate(m.agents):
            of_agent, spread = chances[used, column], spreads[used, column]
            averages, numbers = _score_set(name, of_agent, labels)
            average = of_agent.mean(axis=0)
            for image, place in examples.items():
                label = average[place].argmax()
                averages[f"example_probability_{name}_{image}"] = of_agent[:, place, label]
                averages[f"example_sd_{name}_{image}"] = spread[:, place, label]
                predicted = label if np.isfinite(average[place, label]) else np.nan
                numbers[f"example_predicted_{name}_{image}"] = predicted
                true = f"example_true_{name}_{image}"
                yield Row(m.last, agent, true, labels[place], chance=False)
            for metric, each in averages.items():
                yield Row(m.last, agent, metric, *mean_over_chains(each), trials=len(each))
            for metric, number in numbers.items():
                yield Row(m.last, agent, metric, number)
        if len(m.agents) > 1:
            apart = np.ptp(_classified_right(chances[used], labels), axis=1)
            of_agents = mean_over_chains(apart)
            yield Row(m.last, "network", f"accuracy_apart_{name}", *of_agents, trials=len(apart))


def _classified_right(chances: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the fraction of images classified right, from chances (..., images, classes)."""
    unknown = np.where(np.isfinite(chances).all(axis=(-2, -1)), 0.0, np.nan)
    return (chances.argmax(axis=-1) == labels).mean(axis=-1) + unknown


def _score_set(
    name: str, chances: np.ndarray, labels: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return metrics of class probabilities (chains, images, classes) on a labeled test set.

    Those of which every chain has a number, (chains,), and those of all chains together.
    """
    chains, _, classes = chances.shape
    predicted, confidence = chances.argmax(axis=-1), chances.max(axis=-1)
    unknown = 0.0 if np.isfinite(chances).all() else np.nan
    averages = {
        f"accuracy_{name}": _classified_right(chances, labels),
        f"confidence_mean_{name}": confidence.mean(axis=1),
        f"confidence_sd_{name}": confidence.std(axis=1),
    }
    counts, _ = np.histogram(confidence, bins=BINS, range=(0, 1))
    densities = counts / max(counts.sum(), 1) * BINS + unknown
    numbers = {f"confidence_density_{name}_{place}": d for place, d in enumerate(densities)}
    for true in range(classes):
        of_label = labels == true
        if of_label.any():
            recall = (predicted[:, of_label] == true).mean(axis=1) + unknown
            averages[f"recall_{name}_{true}"] = recall
        label_counts = (
            np.bincount(predicted[:, of_label].ravel(), minlength=classes) / chains + unknown
        )
        average = (
            chances[:, of_label].mean(axis=(0, 1)) if of_label.any() else np.full(classes, np.nan)
        )
        for label in range(classes):
            numbers[f"confusion_{name}_{true}_{label}"] = label_counts[label]
            numbers[f"probability_{name}_{true}_{label}"] = average[label]
    return averages, numbers
