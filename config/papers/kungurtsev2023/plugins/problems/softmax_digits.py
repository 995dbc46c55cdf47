r"""Softmax regression on scikit-learn's digits, of which agents see some classes, or a part.

.. math::
    f_i(w) = - \sum_{j=1}^{n_i} \log \mathrm{softmax}(V^\top X_j)_{y_j}
             + \frac{1}{2 v N} \lVert w \rVert^2

w is V, (65, 10), in one vector, with the intercepts in its last row; the X_j are images of 8 x 8
pixels in [0, 1], and a one. 360 of the 1797 images, chosen at random, are for testing. With
``views: labels`` agent i of N has the images of classes c with i = floor(c N / 10), with
``quarters`` each of four agents has all images, and of them one quarter. The posterior is not
known: it is for predictions. ``partition`` divides nothing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Literal

import numpy as np
from scipy.special import log_softmax, softmax

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Options
from concord.problems.one_data_set import OneDataSet
from concord.sampling.partition import AgentData, Partition, check_rows
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets import readers
from concord_studies.datasets.points import split_test_rows

DECLARES = ProblemDeclaration(name="softmax regression on digits")
TEST, SIDE, CLASSES = 360, 8, 10
PRIOR_VARIANCE = 0.1  # v


class Params(Options):
    """Options of what agents see."""

    views: Annotated[
        Literal["labels", "quarters"], "agents have some classes, or a quarter of every image"
    ] = "labels"


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than classes, or other than four with quarters."""
    if params.views == "quarters" and agents != 4:
        raise ConcordError(f"views: quarters is for 4 agents, not {agents}; set agents")
    if params.views == "labels":
        check_rows(CLASSES, agents)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> SoftmaxDigits:
    """Choose images for testing, and give the others to the agents by class or by quarter."""
    images, labels = readers.digits()
    training, testing = split_test_rows(len(labels), TEST, stream)
    images = np.column_stack([images, np.ones(len(images))])
    if params.views == "labels":
        owner = labels[training] * agents // CLASSES
        parts = [training[owner == agent] for agent in range(agents)]
        data = AgentData.from_parts(images, labels, parts)
    else:
        views = np.ones((4, SIDE * SIDE + 1))
        row, column = np.divmod(np.arange(SIDE * SIDE), SIDE)
        views[:, :-1] = (row // 4 * 2 + column // 4) == np.arange(4)[:, None]
        data = AgentData.from_parts(images, labels, [training] * 4)
        data = AgentData(data.features * views[:, None], data.targets, data.counts)
    return SoftmaxDigits(data, images[testing], labels[testing])


class SoftmaxDigits(OneDataSet):
    """The potentials of the weights, and images for testing."""

    posterior = None

    def __init__(self, data: AgentData, images: np.ndarray, labels: np.ndarray) -> None:
        self.data, self.counts, self.agents = data, data.counts, len(data.counts)
        self.dim = (SIDE * SIDE + 1) * CLASSES
        self._decay = 1 / (PRIOR_VARIANCE * self.agents)
        self._labels = np.eye(CLASSES)[data.targets] * data.mask[..., None]
        self._images = images
        self._last = np.empty(0), np.empty(0)  # positions, and their probabilities
        self.tests = {"digits": SimpleNamespace(labels=labels)}

    def _weights(self, w: np.ndarray) -> np.ndarray:
        """Return V, (..., 65, 10), of weights (..., dim)."""
        return w.reshape(*w.shape[:-1], -1, CLASSES)

    def _probabilities(self, x: np.ndarray) -> np.ndarray:
        """Return class probabilities of each agent's images, (chains, agents, n, classes).

        They are cached for the last x, of which samplers ask for gradients and Hessians.
        """
        if not np.array_equal(self._last[0], x):
            chances = softmax(self.data.features @ self._weights(x), axis=-1)
            self._last = x.copy(), chances * self.data.mask[..., None]
        return self._last[1]

    def _sum_errors(self, errors: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return gradients at x by errors (chains, agents, n, classes), with the prior's part."""
        sums = self.data.features.swapaxes(-1, -2) @ errors
        return sums.reshape(x.shape) + self._decay * x

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of every f_i at x_i, (chains, agents, dim)."""
        return self._sum_errors(self._probabilities(x) - self._labels, x)

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the products of the Hessians at x with v, (chains, agents, dim)."""
        p = self._probabilities(x)
        along = p * (self.data.features @ self._weights(v))
        return self._sum_errors(along - p * along.sum(axis=-1, keepdims=True), v)

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), (chains, agents)."""
        log = log_softmax(self.data.features @ self._weights(x), axis=-1)
        return 0.5 * self._decay * (x**2).sum(axis=-1) - (log * self._labels).sum(axis=(-2, -1))

    def accuracy(self, x: np.ndarray) -> np.ndarray:
        """Return the fraction of test images that each x_i labels right, (chains, agents)."""
        scores = self._images @ self._weights(x)
        right = scores.argmax(axis=-1) == self.tests["digits"].labels
        return (right & ~np.isnan(scores).any(axis=-1)).mean(axis=-1)
