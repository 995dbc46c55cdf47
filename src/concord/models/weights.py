r"""The posterior of a network's weights, with rows of data split over agents.

.. math::
    f_i(w) = - \sum_{j \in S_i} \log p(y_j \mid h_w(X_j)) + \frac{1}{2 N s^2} \lVert w \rVert^2,
    \qquad \sum_i f_i(w) = - \log p(w \mid y) + \mathrm{const}

w are all weights of the network h, in one vector; S_i are the rows of agent i, N is the number of
agents, and the prior of each weight is normal with standard deviation s. A library (PyTorch, JAX)
evaluates log likelihoods and their gradients at a stack of weights, either all at once (``vmap``),
in parts that keep within a bound of memory, or one after the other (``loop``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from time import perf_counter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from concord.errors import ConcordError, short
from concord.memory import GIGABYTE
from concord.models.model import Sharding, make_shards, pad_rows
from concord.options import Positive, build
from concord.problems.one_data_set import OneDataSet
from concord.reference import read_reference
from concord.summary import count_named
from concord.values import check_masks

Array = np.ndarray
Rows = tuple[ArrayLike, ArrayLike]  # features X (rows, ...) and targets y (rows, ...)
# Rows, or those of each agent by its name: {name: (X, y)}, or ({name: X}, {name: y}).
Data = Rows | Mapping[str, Rows] | tuple[Mapping[str, ArrayLike], Mapping[str, ArrayLike]]
Evaluation = Literal["vmap", "loop"] | None  # none: the faster one

ROWS = 1000  # of an agent, that are evaluated together where all rows are
TRIED, BATCH = 40, 32  # weights, and rows of each, by which vmap and loop are timed
CLEARLY = 0.8  # of the loop's time, so that a tie goes to the loop, which takes least memory
COPIES = 3  # of weights, or of what a gradient keeps of a row, that are held at once
TOLERANCE = 1e-3  # relative, of a row's log likelihood in single precision


class Settings(NamedTuple):
    """What ``from_torch`` and ``from_jax`` take alike, as their docstrings explain it."""

    sharding: Sharding
    prior_sd: float | None
    test: Rows | None
    reference: object
    evaluate: Evaluation
    memory: float


class WeightPosterior(OneDataSet):
    """A posterior of the weights of a network, of which a library evaluates the likelihood.

    data: features X (rows, ...) and targets y (rows, ...), or those of each agent by its name.
    shapes: of the parameters, by name, in the order of the weights x. dtype: that of the weights.

    It has gradients, mini-batches, potentials, predictions, names and starts.
    """

    posterior = None
    evaluate: Evaluation
    noise_sd: float | None = None  # of a regression

    def __init__(
        self, data: Data, shapes: Mapping[str, tuple[int, ...]], dtype: np.dtype, settings: Settings
    ) -> None:
        (self._X, self._y), sharding, self.agent_names = read_sites(data, settings.sharding)
        self.test = None if settings.test is None else read_rows(settings.test, "test")
        parts = make_shards(len(self._y), labels_of(self._y), sharding)
        self._rows, self._mask = pad_rows(parts)
        self.counts = np.array([len(part) for part in parts])
        self.agents, self.dtype, self._shapes = len(parts), np.dtype(dtype), dict(shapes)
        self._sizes = [int(np.prod(shape)) for shape in self._shapes.values()]
        self.dim = sum(self._sizes)
        sd = settings.prior_sd
        precision = 0.0 if sd is None else build(Positive, sd, "prior_sd") ** -2
        self._decay = self.dtype.type(precision / self.agents)
        self._memory = build(Positive, settings.memory, "memory") * GIGABYTE
        if settings.reference is not None:
            self.reference = read_reference(settings.reference, self.dim, "reference")
        if settings.evaluate not in ("vmap", "loop", None):
            raise ConcordError(
                f"evaluate: {short(settings.evaluate)} is not known; use 'vmap' or 'loop', or "
                "leave it out"
            )
        self._check_rows()
        self._timed = ""
        self.evaluate = settings.evaluate or self._find_faster()

    # Of a library, at a stack of weights w (n, dim) and rows of the data (n, batch).

    def scores(self, w: Array, rows: Array, mask: Array) -> Array:
        """Return gradients of log likelihoods summed over rows, (n, dim); mask (n, batch)."""
        raise NotImplementedError

    def log_likelihoods(self, w: Array, rows: Array) -> Array:
        """Return the log likelihood of each row, (n, batch)."""
        raise NotImplementedError

    def predictions(self, w: Array, X: Array) -> Array:
        """Return class probabilities (n, rows, classes), or means of a regression."""
        raise NotImplementedError

    @cached_property
    def numbers_of_row(self) -> int:
        """The count of numbers that a gradient keeps in memory for each row of data."""
        raise NotImplementedError

    def draw_start(self, rng: np.random.Generator) -> Array:
        """Return weights as the network initializes them, (dim,)."""
        raise NotImplementedError

    # Of the problem.

    def potential(self, x: Array) -> Array:
        """Return f_i(x_i), (chains, agents), in double precision."""
        likelihood = np.zeros(x.shape[:2])
        for rows, mask in self._parts_of_rows():
            of_rows = self._stack(self.log_likelihoods, x, rows)
            likelihood += np.where(mask, of_rows, 0.0).sum(axis=-1)
        return self._decay / 2 * (x.astype(float) ** 2).sum(axis=-1) - likelihood

    def gradient(self, x: Array) -> Array:
        """Return grad f_i(x_i) from all rows of agent i, (chains, agents, dim)."""
        slopes = self.prior_gradient(x)
        for rows, mask in self._parts_of_rows():
            slopes -= self._stack(self.scores, x, rows, mask)
        return slopes

    def batch_gradient(self, x: Array, rows: Array) -> Array:
        """Return mini-batch gradients (``WithMiniBatches``), (chains, agents, dim)."""
        scale = (self.counts / rows.shape[2]).astype(self.dtype)[:, None]
        chosen = self._rows[np.arange(self.agents)[:, None], rows]
        score = self._stack(self.scores, x, chosen, np.ones(rows.shape, dtype=bool))
        return self.prior_gradient(x) - scale * score

    def prior_gradient(self, x: Array) -> Array:
        """Return the gradient of each agent's share of the prior, (chains, agents, dim)."""
        return self._decay * x.astype(self.dtype, copy=False)

    def predict(self, x: Array, X: ArrayLike) -> Array | tuple[Array, Array]:
        """Return class probabilities of rows X at weights x (..., dim), (..., rows, classes).

        Of a regression means and standard deviations of a normal, each (..., rows).
        """
        features = self._convert(np.asarray(X))
        w = np.ascontiguousarray(x.reshape(-1, self.dim), dtype=self.dtype)
        size = self._chunk(len(features))
        slices = (slice(k, k + size) for k in range(0, len(w), size))
        try:
            parts = [self.predictions(w[part], features) for part in slices]
        except Exception as error:
            given, known = features.shape[1:], self._X.shape[1:]
            if given == known or isinstance(error, ConcordError):
                raise
            raise ConcordError(
                f"X: rows have the shape {given}, and those of the problem's data {known}; give "
                f"the same features ({first_line(error)})"
            ) from error
        predicted = np.concatenate(parts)
        predicted = predicted.reshape(*x.shape[:-1], *predicted.shape[1:])
        if self.noise_sd is None:
            return predicted
        return predicted, np.full_like(predicted, self.noise_sd)

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Array:
        """Return starts (chains, agents, dim): a draw for each chain, where all agents begin."""
        starts = np.stack([self.draw_start(rng) for _ in range(shape[0])])
        return np.repeat(starts[:, None], shape[1], axis=1)

    def constrain(self, x: Array) -> dict[str, Array]:
        """Return the network's parameters by name at weights (..., dim)."""
        pieces = np.split(x, np.cumsum(self._sizes)[:-1], axis=-1)
        named = zip(self._shapes.items(), pieces, strict=True)
        return {name: piece.reshape(*x.shape[:-1], *shape) for (name, shape), piece in named}

    def summary(self) -> dict[str, object]:
        """Return sizes, the rows of each class (of labels), and how gradients are evaluated."""
        labels = None
        if (y := labels_of(self._y)) is not None:
            each = zip(*np.unique(y, return_counts=True), strict=True)
            rows = [f"{label}: {count}" for label, count in each]
            labels = count_named(len(rows), rows)
        evaluated = f"{self.evaluate}{self._timed}"
        return {**super().summary(), "classes": labels, "evaluated by": evaluated}

    def _chunk(self, rows: int) -> int:
        """Return the number of weight vectors that are evaluated at once, of ``rows`` rows each."""
        if self.evaluate == "loop":
            return 1
        numbers = COPIES * self.dim + rows * (self.numbers_of_row + self._X[0].size)
        return max(1, int(self._memory / (numbers * self.dtype.itemsize)))

    def _parts_of_rows(self) -> list[tuple[Array, Array]]:
        """Return all agents' rows, and masks of those that are no padding, in parts of ``ROWS``."""
        starts = range(0, self._rows.shape[1], ROWS)
        return [(self._rows[:, k : k + ROWS], self._mask[:, k : k + ROWS]) for k in starts]

    def _stack(self, function: Callable[..., Array], x: Array, *by_row: Array) -> Array:
        """Return a library's function of every chain and agent, (chains, agents, ...).

        by_row: arrays (agents, batch), or (chains, agents, batch).
        """
        w = np.ascontiguousarray(x.reshape(-1, self.dim), dtype=self.dtype)
        shape = *x.shape[:2], by_row[0].shape[-1]
        each = [np.broadcast_to(array, shape).reshape(-1, shape[-1]) for array in by_row]
        size = self._chunk(shape[-1])
        slices = (slice(k, k + size) for k in range(0, len(w), size))
        parts = [function(w[part], *(array[part] for array in each)) for part in slices]
        return np.concatenate(parts).reshape(*x.shape[:2], -1)

    def _convert(self, X: Array) -> Array:
        """Return features in the type of the weights, if they are floating-point numbers."""
        return X.astype(self.dtype, copy=False) if X.dtype.kind == "f" else X

    def _check_rows(self) -> None:
        """Raise a ConcordError if the log likelihood of a row depends on the rows beside it."""
        w = self.draw_start(np.random.default_rng(0))[None]
        rows = np.arange(min(3, len(self._y)))[None]
        together = self.log_likelihoods(w, rows)
        apart = np.concatenate([self.log_likelihoods(w, rows[:, [k]]) for k in rows[0]], axis=1)
        if not np.isfinite(together).all():
            raise ConcordError(
                f"likelihood: it is {together[0, 0]:g} of the first row at the first weights; "
                "look at the data, or start elsewhere"
            )
        if not np.allclose(together, apart, rtol=TOLERANCE, atol=TOLERANCE):
            raise ConcordError(
                "likelihood: a row's depends on the rows beside it, as where they are normalized "
                "together; agents would have other likelihoods than all data have, so use layers "
                "that see a row alone"
            )

    def _find_faster(self) -> Evaluation:
        """Return vmap if it is clearly faster than the loop, by the shortest of three calls."""
        chains, batch = -(-TRIED // self.agents), min(BATCH, max(1, int(self.counts.min())))
        x = self.initial((chains, self.agents, self.dim), np.random.default_rng(0))
        rows = np.zeros((chains, self.agents, batch), dtype=np.intp)
        seconds: dict[Evaluation, float] = {"vmap": np.inf, "loop": np.inf}
        for turn in range(4):
            for way in seconds:
                self.evaluate = way
                start = perf_counter()
                self.batch_gradient(x, rows)
                if turn:  # the first compiles, or fills caches
                    seconds[way] = min(seconds[way], perf_counter() - start)
        texts = (f"{way} {1e3 * seconds[way]:.3g} ms" for way in seconds)
        self._timed = f" ({', '.join(texts)}, of {chains * self.agents} mini-batches of {batch})"
        return "vmap" if seconds["vmap"] < CLEARLY * seconds["loop"] else "loop"


def first_line(error: Exception) -> str:
    """Return the first line of a library's error, cut, so that a message stays one sentence."""
    return (str(error).splitlines() or [type(error).__name__])[0][:120].rstrip(" .")


def check_labels(y: Array, classes: int) -> None:
    """Raise a ConcordError if targets are no numbers of so many classes."""
    known = np.isin(y, np.arange(classes))
    if not known.all():
        raise ConcordError(
            f"data.y: it has the label {y[~known].ravel()[0]}, and the network tells "
            f"{classes} classes; number them 0 to {classes - 1}"
        )


def labels_of(y: Array) -> Array | None:
    """Return targets y as the labels by which rows may be split; None if they are no labels."""
    return y if y.ndim == 1 and y.dtype.kind in "iub" else None


def read_sites(
    data: object, sharding: Sharding
) -> tuple[tuple[Array, Array], Sharding, tuple[str, ...] | None]:
    """Return all rows of a caller's data, how agents share them, and the agents' names, if any.

    data: as of ``from_torch``. sharding: what the caller says of it beside the data.
    """
    by_name: Mapping[object, object] = {}
    if isinstance(data, Mapping):
        by_name = data
    elif isinstance(data, (tuple, list)) and any(isinstance(part, Mapping) for part in data):
        X, y = data if len(data) == 2 else (None, None)
        if not isinstance(X, Mapping) or not isinstance(y, Mapping) or X.keys() != y.keys():
            raise ConcordError("data: give two mappings, X and y, with the same names as keys")
        by_name = {name: (X[name], y[name]) for name in X}
    if not by_name:
        if sharding[:2] == (None, None):
            raise ConcordError(
                "agents is missing; give their number, or data as mappings from agents' names, "
                "({name: X}, {name: y})"
            )
        return read_rows(data, "data"), sharding, None
    if sharding[:2] != (None, None):
        raise ConcordError("agents: the data say which they are; leave agents and shards out")
    pairs = [read_rows(pair, f"data[{name!r}]") for name, pair in by_name.items()]
    shapes = {X.shape[1:] for X, _ in pairs}
    if len(shapes) > 1:
        raise ConcordError(
            f"data: rows of X have the shapes {short(shapes)}; give all agents the same features"
        )
    ends = np.cumsum([len(y) for _, y in pairs])
    X, y = (np.concatenate(column) for column in zip(*pairs, strict=True))
    shards = np.split(np.arange(ends[-1]), ends[:-1])
    return (X, y), (None, shards, *sharding[2:]), tuple(map(str, by_name))


def read_rows(data: object, name: str) -> tuple[Array, Array]:
    """Return features X (rows, ...) and targets y (rows, ...) of a caller as arrays.

    name: of the pair, for errors.
    """
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ConcordError(f"{name}: {short(data)} is no pair; give features and targets, (X, y)")
    arrays = []
    for part, values in zip("Xy", data, strict=True):
        check_masks(values, f"{name}.{part}")
        array = np.asarray(values)
        if array.dtype.kind not in "fiub" or not array.ndim or not np.isfinite(array).all():
            raise ConcordError(
                f"{name}.{part}: it has entries that are no finite numbers; give an array of rows"
            )
        arrays.append(array)
    X, y = arrays
    if not len(X) == len(y) > 0:
        raise ConcordError(
            f"{name}: X has {len(X)} rows and y {len(y)}; give as many of both, and at least one"
        )
    return X, y
