r"""A network of dense layers that labels digits or air showers: only its predictions are known.

.. math::
    f_i(w) = - \sum_{j \in S_i} \log \mathrm{softmax}(h_w(X_j))_{y_j}
             + \frac{1}{2 v N} \lVert w \rVert^2, \qquad
    h_w(X) = V_L \tanh(\ldots \tanh(V_1 X + a_1) \ldots) + a_L

w are the weights V_l and shifts a_l of all layers in one vector of single precision; S_i are the
rows of agent i of N. The rows are scikit-learn's digits, images of 8 x 8 pixels in [0, 1] of ten
classes, or those of MAGIC, ten standardized numbers of two classes. Three parts are kept apart:
agents have training rows, drawn anew for each data set; steps are chosen on rows for validation and
judged on rows for testing, which are the same for all data sets.

Needs: nothing for digits; magic is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from concord.contracts import DataSets, Stream
from concord.options import Count, Options, Positive, Some
from concord.problems.one_data_set import OneDataSet
from concord.problems.points import check_agents
from concord.sampling.partition import AgentData, Partition
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets import readers

TRAINING = 1237  # rows, of as many as digits have beside those kept apart
KEPT = {"test": 360, "validation": 200}
FLOAT = np.float32


class Params(Options):
    """Options of the network, its prior, and its training rows."""

    dataset: Annotated[Literal["digits", "magic"], "data set"] = "digits"
    hidden: Annotated[Some[Count], "units of each hidden layer"] = (10,)
    prior_variance: Annotated[Positive, "variance v of the prior N(0, v I)"] = 1.0
    points: Annotated[
        int, Meta(ge=1, le=TRAINING), "training rows, over all agents; 1237 are all digits"
    ] = TRAINING


DECLARES = ProblemDeclaration(
    name="dense network",
    needs=lambda params: ("magic",) if params.dataset == "magic" else (),
    amplifies="training: the last digit of a sum over a batch moves every later step",
)
check = check_agents


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> DenseNetwork:
    """Draw training rows, and split them over the agents, perhaps by label."""
    if params.dataset == "digits":
        X, y = readers.digits()
    else:
        X, y = readers.magic(data_sets.folder / "magic" / "magic04.data")
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(y))  # the same parts for every data set
    test, validation, others = np.split(order, np.cumsum(list(KEPT.values())))
    rows = np.sort(stream("training").permutation(others)[: params.points])
    parts = partition.split(y[rows], agents, stream("partition"))
    data = AgentData.from_parts(X[rows].astype(FLOAT), y[rows], parts)
    held_out = {"test": test, "validation": validation}
    kept = {name: (X[part].astype(FLOAT), y[part]) for name, part in held_out.items()}
    return DenseNetwork(data, params, kept, int(y.max()) + 1)


class DenseNetwork(OneDataSet):
    """The potential of a network's weights, with training rows split over agents.

    kept: features and labels of rows for "test" and "validation". classes: their number.
    """

    posterior = None
    dtype = np.dtype(FLOAT)
    examples: Mapping[str, Mapping[str, int]] = {}

    def __init__(
        self,
        data: AgentData,
        params: Params,
        kept: Mapping[str, tuple[np.ndarray, np.ndarray]],
        classes: int,
    ) -> None:
        self.data, self.counts, self.agents = data, data.counts, len(data.counts)
        self.test, self.validation = kept["test"], kept["validation"]
        self.tests = {"test": SimpleNamespace(labels=self.test[1])}
        sizes = [data.features.shape[-1], *params.hidden, classes]
        self._shapes = [*pairwise(sizes)]
        self.dim = sum((inputs + 1) * units for inputs, units in self._shapes)
        self._decay = FLOAT(1 / (params.prior_variance * self.agents))
        self._units = np.eye(classes, dtype=FLOAT)
        # Zero where rows are padded, so that they have no part in any sum.
        self._classes = self._units[data.targets.astype(int)] * FLOAT(data.mask[..., None])

    def _layers(self, w: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield views of V^T and a of each layer in the weights w, (..., rows, columns)."""
        start = 0
        for inputs, units in self._shapes:
            middle, end = start + inputs * units, start + (inputs + 1) * units
            yield (
                w[..., start:middle].reshape(*w.shape[:-1], inputs, units),
                w[..., None, middle:end],
            )
            start = end

    def _forward(self, w: np.ndarray, X: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the inputs of each layer, (..., rows, units), and log probabilities of classes."""
        entering, scores = [X], np.empty(0)
        for V, a in self._layers(w):
            if scores.size:
                entering.append(np.tanh(scores))
            scores = entering[-1] @ V
            scores += a
        scores -= scores.max(axis=-1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        return entering, scores

    def _gradients(
        self, w: np.ndarray, X: np.ndarray, classes: np.ndarray, scale: Any = 1
    ) -> np.ndarray:
        """Return gradients of the loss at weights w, summed over rows, and of the prior.

        w, and the result: (..., dim). X: rows, (..., n, features). classes: their labels as unit
        vectors, (..., n, classes). scale: a factor of the loss.
        """
        entering, log = self._forward(w, X)
        error = np.exp(log) * classes.sum(axis=-1, keepdims=True) - classes
        parts: list[np.ndarray] = []
        for (V, _), h in reversed([*zip(self._layers(w), entering, strict=True)]):
            slopes = h.swapaxes(-1, -2) @ error
            parts[:0] = [slopes.reshape(*w.shape[:-1], -1), error.sum(axis=-2)]
            if h is not X:
                error = (error @ V.swapaxes(-1, -2)) * (1 - h**2)
        return np.concatenate(parts, axis=-1) * scale + self._decay * w

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of every f_i at x_i; both are (chains, agents, dim)."""
        return self._gradients(x, self.data.features, self._classes)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of agents (by number, (chains, few)) at x (chains, few, dim)."""
        return self._gradients(x, self.data.features[agents], self._classes[agents])

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return unbiased estimates of every gradient of f_i at x_i, both (chains, agents, dim).

        rows: of the mini-batches, (chains, agents, batch), numbered within each agent.
        """
        X, labels = self.data.points_at(rows)
        scale = (self.counts / rows.shape[2]).astype(FLOAT)[:, None]
        return self._gradients(x, X, self._units[labels.astype(int)], scale)

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), (chains, agents), for x (chains, agents, dim)."""
        _, log = self._forward(x, self.data.features)
        return 0.5 * self._decay * (x**2).sum(axis=-1) - (log * self._classes).sum(axis=(-2, -1))

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw starts of shape (chains, agents, dim): weights of variance 1 / fan-in, shifts 0.

        All agents of a chain start at the same weights.
        """
        x = rng.standard_normal((shape[0], 1, self.dim), dtype=FLOAT)
        for (V, a), (inputs, _) in zip(self._layers(x), self._shapes, strict=True):
            V /= np.sqrt(inputs)
            a[...] = 0
        return np.repeat(x, shape[1], axis=1)

    def predict(self, x: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return class probabilities, (..., rows, classes), of rows X at weights x (..., dim)."""
        return np.exp(self._forward(x, np.asarray(X, dtype=FLOAT))[1])

    def predictive(self, x: np.ndarray) -> np.ndarray:
        """Return class probabilities of the test rows, (..., rows, classes)."""
        return self.predict(x, self.test[0])

    def accuracy(self, x: np.ndarray) -> np.ndarray:
        """Return the fraction of test rows that each x_i classifies right, (chains, agents)."""
        log = self._forward(x, self.test[0])[1]
        right = log.argmax(axis=-1) == self.test[1]
        return (right & ~np.isnan(log).any(axis=-1)).mean(axis=-1)
