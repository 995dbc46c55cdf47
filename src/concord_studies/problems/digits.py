r"""A small neural network on scikit-learn's digits: predictions only, its posterior is not known.

.. math::
    f_i(w) = - \sum_{j=1}^{n_i} \log \mathrm{softmax}(V \tanh(U X_j + a) + b)_{y_j}
             + \frac{1}{2 v N} \lVert w \rVert^2

w are all weights and biases, U, a, V, b, in one vector; the X_j are images of 8 x 8 pixels in
[0, 1] (1797 of ten digits, in scikit-learn's own files). 360 images, chosen at random, are kept for
testing.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from concord.contracts import DataSets, Stream
from concord.options import Count, Options, Positive
from concord.problems.one_data_set import OneDataSet
from concord.problems.points import check_agents
from concord.sampling.partition import AgentData, Partition
from concord_studies.datasets import readers

TEST, TRAINING = 360, 1437
PIXELS, CLASSES = 64, 10


class Params(Options):
    """Options of the network, its prior, and its training images."""

    hidden: Annotated[Count, "hidden units"] = 10
    prior_variance: Annotated[Positive, "variance v of the prior N(0, v I)"] = 1.0
    points: Annotated[
        int, Meta(ge=1, le=TRAINING), "training images, over all agents; 1437 are all"
    ] = TRAINING


check = check_agents


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Digits:
    """Choose test images, and split training images over the agents, perhaps by label."""
    images, labels = readers.digits()
    rows = stream("test").permutation(len(labels))
    training, testing = np.sort(rows[TEST:][: params.points]), np.sort(rows[:TEST])
    parts = partition.split(labels[training], agents, stream("partition"))
    data = AgentData.from_parts(images[training], labels[training], parts)
    return Digits(data, params, images[testing], labels[testing])


class Digits(OneDataSet):
    """The potential of the network's weights, with training images split over agents."""

    posterior = None
    examples: Mapping[str, Mapping[str, int]] = {}

    def __init__(
        self, data: AgentData, params: Params, images: np.ndarray, labels: np.ndarray
    ) -> None:
        self.data, self.counts, self.agents = data, data.counts, len(data.counts)
        self.hidden, self._images = params.hidden, images
        self.tests = {"digits": SimpleNamespace(labels=labels)}
        self.dim = (PIXELS + 1) * self.hidden + (self.hidden + 1) * CLASSES
        self._decay = 1 / (params.prior_variance * self.agents)
        # Zero where rows are padded, as the images are: they have no part in any sum.
        self._classes = np.eye(CLASSES)[data.targets.astype(int)] * data.mask[..., None]

    def _parts(self, w: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return views of U^T, a, V^T and b in the weights w, (..., rows, columns)."""
        shapes = (PIXELS, self.hidden), (1, self.hidden), (self.hidden, CLASSES), (1, CLASSES)
        ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
        pieces = np.split(w, ends, axis=-1)
        return tuple(p.reshape(*p.shape[:-1], *s) for p, s in zip(pieces, shapes, strict=True))

    def _forward(self, w: np.ndarray, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the hidden units, (..., images, units), and log probabilities of classes."""
        first, shift, second, bias = self._parts(w)
        units = images @ first
        units += shift
        np.tanh(units, out=units)
        scores = units @ second
        scores += bias
        scores -= scores.max(axis=-1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        return units, scores

    def _gradients(
        self, w: np.ndarray, images: np.ndarray, classes: np.ndarray, scale: Any = 1.0
    ) -> np.ndarray:
        """Return gradients of the loss at weights w, summed over images, and of the prior.

        w, and the result: (..., dim). images: (..., n, pixels). classes: their labels as unit
        vectors, (..., n, classes). scale: a factor of the loss.
        """
        units, log = self._forward(w, images)
        error = np.exp(log) * classes.sum(axis=-1, keepdims=True) - classes
        back = (error @ self._parts(w)[2].swapaxes(-1, -2)) * (1 - units**2)
        parts = (
            images.swapaxes(-1, -2) @ back,
            back.sum(axis=-2),
            units.swapaxes(-1, -2) @ error,
            error.sum(axis=-2),
        )
        flat = [part.reshape(*w.shape[:-1], -1) for part in parts]
        return np.concatenate(flat, axis=-1) * scale + self._decay * w

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of every f_i at x_i; both are (chains, agents, dim)."""
        return self._gradients(x, self.data.features, self._classes)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of agents (by number, (chains, few)) at x (chains, few, dim)."""
        return self._gradients(x, self.data.features[agents], self._classes[agents])

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return unbiased estimates of every gradient of f_i at x_i, both (chains, agents, dim).

        rows: images of the mini-batches, (chains, agents, batch), numbered within each agent.
        """
        images, labels = self.data.points_at(rows)
        scale = (self.counts / rows.shape[2])[:, None]
        return self._gradients(x, images, np.eye(CLASSES)[labels.astype(int)], scale)

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), (chains, agents), for x (chains, agents, dim)."""
        _, log = self._forward(x, self.data.features)
        return 0.5 * self._decay * (x**2).sum(axis=-1) - (log * self._classes).sum(axis=(-2, -1))

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw starts of shape (chains, agents, dim): weights of variance 1 / fan-in, biases 0."""
        x = rng.standard_normal(shape)
        first, shift, second, bias = self._parts(x)
        first /= np.sqrt(PIXELS)
        second /= np.sqrt(self.hidden)
        shift[...] = bias[...] = 0.0
        return x

    def predictive(self, x: np.ndarray) -> np.ndarray:
        """Return class probabilities, (..., images, classes), at weights x (..., dim)."""
        return np.exp(self._forward(x, self._images)[1])

    def accuracy(self, x: np.ndarray) -> np.ndarray:
        """Return the fraction of test images that each x_i classifies right, (chains, agents)."""
        log = self._forward(x, self._images)[1]
        right = log.argmax(axis=-1) == self.tests["digits"].labels
        return (right & ~np.isnan(log).any(axis=-1)).mean(axis=-1)
