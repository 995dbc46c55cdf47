r"""Bayesian logistic regression on sparse 0/1 features; every chain has its own train/test split.

.. math::
    f_i(x) = \sum_{j=1}^{n_i} \left[ \log(1 + e^{z_j}) - y_j z_j \right]
             + \frac{s}{N b} \lVert x \rVert_1, \qquad z_j = x^\top X_j^i, \quad y_j \in \{0, 1\}

with independent Laplace priors of scale b, and s = 1, or -1 for the prior's gradient with the
opposite sign. Source: parayil2020, section 5.2 and supplement S5.2; the sign is what its released
code computes.

Chain c draws its test rows, and the division of its other rows over the agents, from streams that
do not depend on the number of agents, so that every N is tested on the same rows. A row is the list
of its non-zero columns: an average of 15 of a9a's 124, so products cost a tenth of dense ones.

Needs: the data set that it reads.
"""

from __future__ import annotations

import copy
from typing import Annotated, Any, Literal

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Options, Positive
from concord.problems.arithmetic import sigmoid
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration

from .. import readers

ROWS = 32561  # of a9a


class Params(Options):
    """Options of a9a's split into training and test rows, and of the prior."""

    train_rows: Annotated[int, "rows of each chain's training part; the rest is its test part"]
    prior_scale: Annotated[Positive, "scale b of the Laplace prior"] = 1.0
    prior_sign: Annotated[
        Literal["right", "opposite"],
        "the prior pulls weights to 0 (right), or its gradient pushes them away (opposite)",
    ] = "right"
    intercept: Annotated[Literal["ones", "none"], "a last column of ones, or no intercept"] = "ones"
    splits: Annotated[
        Literal["own", "tied"], "every chain splits the rows in its own way, or all in the same"
    ] = "own"


def needs(params: Params) -> tuple[str, ...]:
    """Return the name of the data set that the problem reads, as a tuple."""
    return ("a9a",)


DECLARES = ProblemDeclaration(needs=needs)


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than training rows, or if no row is left to test."""
    if not agents <= params.train_rows < ROWS:
        raise ConcordError(
            f"train_rows {params.train_rows} is not between {agents} (a row for each agent) and "
            f"{ROWS - 1} (one row left to test); choose it in between"
        )


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> SparseLogistic:
    """Load a9a, and append an intercept column of ones unless the options leave it out."""
    features, labels = readers.a9a(data_sets.folder / "a9a" / "a9a")
    if params.intercept == "ones":
        from scipy import sparse  # not at the start of every job

        features = sparse.hstack([features, sparse.csr_array(np.ones((len(labels), 1)))])
    return SparseLogistic(features, labels, params, agents, partition, stream)


class SparseLogistic:
    """Logistic regression on a sparse table that each chain splits into test rows and agents.

    features, labels: a sparse table (rows, dim) of zeros and ones; labels 0 or 1, shape (rows,).
    params, agents, partition, stream: as for ``build``. Every chain must give an agent as many rows
    as the other chains do.
    """

    posterior = None

    def __init__(
        self,
        features: Any,
        labels: np.ndarray,
        params: Params,
        agents: int,
        partition: Partition,
        stream: Stream,
    ) -> None:
        self.features = features.tocsr()
        self.labels = labels.astype(float)
        self.agents, self.dim = agents, features.shape[1]
        self.params, self.partition, self._stream = params, partition, stream
        sign = {"right": 1, "opposite": -1}[params.prior_sign]
        self._prior_slope = sign / (agents * params.prior_scale)
        self._columns = _columns(self.features)
        self._first = 0
        self._splits: dict[int, tuple[np.ndarray, np.ndarray, list[Any]]] = {}
        self.counts = np.array([len(part) for part in self._draw(1)[0][1]])

    def from_chain(self, first: int) -> SparseLogistic:
        """Return the problem whose chain 0 has the splits of chain ``first`` of the options."""
        later = copy.copy(self)
        later._first, later._splits = self._first + first, {}
        return later

    def _draw(self, chains: int) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """Draw each chain's test rows and agents' rows, from streams of the chain's number."""
        split, divide = self._stream("split"), self._stream("partition")
        drawn, tied = [], self.params.splits == "tied"
        for _ in range(1 if tied else self._first + chains):
            order = split.permutation(len(self.labels))
            train, test = np.split(order, [self.params.train_rows])
            parts = self.partition.split(self.labels[train], self.agents, divide)
            drawn.append((test, [train[part] for part in parts]))
        return drawn * chains if tied else drawn[self._first :]

    def splits(self, chains: int) -> tuple[np.ndarray, np.ndarray, list[Any]]:
        """Return the rows that agents hold, the test rows, and these rows of the table, by chain.

        Shapes (chains, agents, n_max), zero-padded, (chains, rows), and tables (rows, dim).
        """
        if chains not in self._splits:
            parts = np.zeros((chains, self.agents, self.counts.max()), dtype=np.int32)
            drawn = self._draw(chains)
            for places, (_, rows) in zip(parts, drawn, strict=True):
                if any(len(row) != count for row, count in zip(rows, self.counts, strict=True)):
                    raise ConcordError(
                        "partition: every chain divides its own training rows, so agents need "
                        "fixed numbers of rows; use kind equal or sizes"
                    )
                for agent, row in enumerate(rows):
                    places[agent, : len(row)] = row
            tests = np.array([test for test, _ in drawn])
            self._splits[chains] = parts, tests, [self.features[rows] for rows in tests]
        return self._splits[chains]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the full gradients, (chains, agents, dim), computed one chain at a time."""
        parts = self.splits(len(x))[0]
        is_row = np.arange(parts.shape[2]) < self.counts[:, None]
        slopes = [
            self._likelihood_gradients(x[c : c + 1], parts[c : c + 1], is_row)
            for c in range(len(x))
        ]
        return np.concatenate(slopes) + self.prior_gradient(x)

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return mini-batch gradients (``WithMiniBatches``), (chains, agents, dim).

        rows: points of the mini-batches, (chains, agents, batch), numbered within each agent.
        """
        chosen = np.take_along_axis(self.splits(len(x))[0], rows, axis=2)
        scale = (self.counts / rows.shape[2])[:, None]
        return self._likelihood_gradients(x, chosen, scale) + self.prior_gradient(x)

    def _likelihood_gradients(
        self, x: np.ndarray, rows: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Return the likelihood's gradients over weighted rows of the table, (chains, agents, dim).

        rows, weight: row numbers and weights, both (chains, agents, rows). Non-zero columns become
        places in the flat x of all chains and agents, each with one coordinate more for the padding
        of short rows.
        """
        wide = np.zeros((*x.shape[:2], self.dim + 1))
        wide[..., : self.dim] = x
        first = np.arange(wide[..., 0].size).reshape(*x.shape[:2], 1, 1) * (self.dim + 1)
        places = self._columns.take(rows, axis=0) + first
        logits = wide.reshape(-1).take(places).sum(axis=-1)
        residual = weight * (sigmoid(logits) - self.labels.take(rows))
        each = np.repeat(residual.reshape(-1), places.shape[-1])
        slopes = np.bincount(places.reshape(-1), each, wide.size).reshape(wide.shape)
        return slopes[..., : self.dim]

    def prior_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the prior's gradient s sign(x) / (N b), (chains, agents, dim)."""
        return np.sign(x) * self._prior_slope

    def accuracy(self, x: np.ndarray) -> np.ndarray:
        """Return the fraction of its chain's test rows that each x_i classifies right.

        x: (chains, some agents, dim). A row is given label 1 where P(y = 1 | x_i) >= 1/2; an x_i
        that is not finite gets those rows wrong whose probability is not a number.
        """
        _, tests, tables = self.splits(len(x))
        right = np.empty(x.shape[:2])
        for chain, features in enumerate(tables):
            scores = features @ np.ascontiguousarray(x[chain].T)
            truth = self.labels[tests[chain]] > 0.5
            correct = ((scores >= 0) == truth[:, None]) & ~np.isnan(scores)
            right[chain] = correct.mean(axis=0)
        return right


def _columns(features: Any) -> np.ndarray:
    """Return the non-zero columns of each row, (rows, most), padded with the number of columns."""
    counts = np.diff(features.indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(rows)) - np.repeat(features.indptr[:-1], counts)
    columns = np.full((len(counts), counts.max()), features.shape[1], dtype=np.int32)
    columns[rows, places] = features.indices
    return columns
