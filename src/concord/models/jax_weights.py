"""Problems of log likelihoods in JAX: posteriors of weights, with rows split over agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from inspect import signature

import numpy as np
from numpy.typing import ArrayLike

from concord import streams
from concord.errors import ConcordError, short, suggest_names
from concord.models.model import require_library
from concord.models.weights import (
    Data,
    Evaluation,
    Rows,
    Settings,
    WeightPosterior,
    check_labels,
    first_line,
    labels_of,
)
from concord.options import Positive, build
from concord.sampling.partition import PartitionLike

if find_spec("jax"):  # else ``from_jax`` says what to install
    import jax
    import jax.numpy as jnp
    from jax import Array as JaxArray
    from jax import stages, tree_util
    from jax.flatten_util import ravel_pytree

Function = Callable[..., "JaxArray"]  # of pytrees and arrays of JAX


@suggest_names
def from_jax(
    log_likelihood: Function,
    params: object,
    data: Data,
    *,
    agents: int | None = None,
    shards: Sequence[ArrayLike] | None = None,
    partition: PartitionLike = "equal",
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
    prior_sd: float | None = 1.0,
    predict: Function | None = None,
    noise_sd: float | None = None,
    test: Rows | None = None,
    reference: object = None,
    evaluate: Evaluation = None,
    memory: float = 1.0,
) -> JaxPosterior:
    r"""Return the posterior of a network's weights, by its log likelihood in JAX.

    .. math::
        f_i(w) = - \sum_{j \in S_i} \log p(y_j \mid X_j, w)
                 + \frac{1}{2 N s^2} \lVert w \rVert^2

    as of ``concord.from_torch``; w are the numbers in ``params`` as one vector.

    Parameters
    ----------
    log_likelihood
        (params, x, y) -> log p(y | x, params), a number, of one row; or (params, X, y) -> (batch,)
        of a batch of rows. It is compiled, and mapped over chains and agents.
    params
        A pytree of arrays of one floating-point type, where all chains start; or a function that
        draws one, (key) -> params, such as a module's ``init`` with its other arguments given.
    data
        As of ``concord.from_torch``, targets y (rows, ...).
    predict, noise_sd
        (params, X) -> class probabilities (batch, classes), for ``concord.predictive``; or with
        ``noise_sd``, that of a regression, means (batch,).
    agents, shards, partition, seed, rng
        As of ``concord.from_pymc``; labels y may be split by class (``dirichlet``).
    prior_sd, test, reference, evaluate, memory
        As of ``concord.from_torch``.

    Returns
    -------
    JaxPosterior
        A problem with gradients, mini-batches, potentials and predictions, for every first-order
        sampler.

    Raises
    ------
    ConcordError
        If JAX is missing, arguments do not fit each other, or a row's likelihood depends on other
        rows.

    Examples
    --------
    >>> import concord, jax, numpy as np
    >>> X = np.random.default_rng(0).standard_normal((60, 2))
    >>> def log_likelihood(params, x, y):
    ...     return jax.nn.log_softmax(jax.numpy.tanh(x @ params["U"]) @ params["V"])[y]
    >>> def draw(key):
    ...     return {"U": jax.random.normal(key, (2, 8)), "V": jax.numpy.zeros((8, 2))}
    >>> problem = concord.from_jax(log_likelihood, draw, (X, (X[:, 0] > 0) + 0), agents=4)
    >>> steps = {"step_size": 1e-3, "batch_size": 5, "iterations": 20, "chains": 2}
    >>> concord.sample("de_sgld", problem, "ring", **steps)["x"].shape
    (2, 21, 4, 32)
    """
    require_library("JAX", "log_likelihood")
    if not callable(log_likelihood):
        raise ConcordError(f"log_likelihood: {short(log_likelihood)} is no function; give one")
    _check_arguments("log_likelihood", log_likelihood, "params, x, y")
    _check_arguments("predict", predict, "params, X")
    _check_arguments("params", params, "key")
    sharding = agents, shards, partition, streams.seed_of(seed, rng)
    settings = Settings(sharding, prior_sd, test, reference, evaluate, memory)
    problem = JaxPosterior(log_likelihood, predict, params, data, settings)
    if noise_sd is not None:
        problem.noise_sd = build(Positive, noise_sd, "noise_sd")
    elif predict is not None:
        problem.check_classes()
    return problem


def _check_arguments(name: str, function: object, takes: str) -> None:
    """Raise a ConcordError if a caller's function does not take these arguments."""
    if not callable(function):
        return
    try:
        shape = signature(function)
    except ValueError:  # of some that are written in C
        return
    try:
        shape.bind(*takes.split(", "))
    except TypeError as error:
        raise ConcordError(f"{name}: {error}; let it be a function of ({takes})") from None


class JaxPosterior(WeightPosterior):
    """The posterior of weights whose log likelihood is a function of JAX.

    log_likelihood, predict, params: as for ``from_jax``.
    """

    def __init__(
        self,
        log_likelihood: Function,
        predict: Function | None,
        params: object,
        data: Data,
        settings: Settings,
    ) -> None:
        self._log_likelihood, self._predict = log_likelihood, predict
        self._draw = params if callable(params) else lambda key: params
        first = self._draw(jax.random.key(0))
        leaves, _ = tree_util.tree_flatten_with_path(first)
        shapes = {
            tree_util.keystr(path, simple=True, separator=".") or "w": jnp.shape(leaf)
            for path, leaf in leaves
        }
        weights, self._unravel = ravel_pytree(first)
        if not jnp.issubdtype(weights.dtype, jnp.floating):
            raise ConcordError("params: it has no floating-point numbers; give a pytree of arrays")
        super().__init__(data, shapes, weights.dtype, settings)

    def scores(self, w: np.ndarray, rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Return gradients of log likelihoods summed over rows, (n, dim); mask (n, batch)."""
        return np.asarray(self._scores(w, rows, mask, *self._arrays))

    def log_likelihoods(self, w: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the log likelihood of each row, (n, batch)."""
        X, y = self._arrays
        return np.asarray(self._values(w, X[rows], y[rows]))

    def predictions(self, w: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return class probabilities (n, rows, classes), or means of a regression."""
        if self._predict is None:
            raise ConcordError(
                "predict: the log likelihood does not say what is predicted; give predict, "
                "(params, X) -> class probabilities, when the problem is made"
            )
        return np.asarray(self._predictions(w, X), dtype=float)

    def check_classes(self) -> None:
        """Raise a ConcordError if labels are none of the classes that are predicted."""
        p = self.predictions(np.zeros((1, self.dim), self.dtype), self._convert(self._X[:1]))
        if p.ndim == 3 and labels_of(self._y) is not None:
            check_labels(self._y, p.shape[-1])

    def draw_start(self, rng: np.random.Generator) -> np.ndarray:
        """Return weights as ``params`` gives them, (dim,)."""
        key = jax.random.key(int(rng.integers(2**31)))
        return np.asarray(ravel_pytree(self._draw(key))[0])

    @cached_property
    def numbers_of_row(self) -> int:
        """The numbers that a compiled gradient holds of each row: 64 rows' less those of 32."""
        X, y = self._arrays
        w, held = np.zeros((1, self.dim), self.dtype), []
        for count in (32, 64):
            shape = (1, count)
            arrays = w, np.zeros(shape, np.int32), np.ones(shape, dtype=bool), X, y
            analysis = self._scores.lower(*arrays).compile().memory_analysis()
            held.append(0 if analysis is None else analysis.temp_size_in_bytes)
        return max(1, (held[1] - held[0]) // (32 * self.dtype.itemsize))

    @cached_property
    def _arrays(self) -> tuple[JaxArray, JaxArray]:
        """Return features and targets of all rows as arrays of JAX."""
        return jnp.asarray(self._convert(self._X)), jnp.asarray(self._convert(self._y))

    @cached_property
    def _of_rows(self) -> Function:
        """The function (w, X, y) -> log likelihoods (batch,) of rows.

        Of a log likelihood that takes one row, it is mapped over rows.
        """

        def given(w: JaxArray, X: JaxArray, y: JaxArray) -> JaxArray:
            """Return the caller's log likelihoods of rows at weights w (dim,)."""
            return self._log_likelihood(self._unravel(w), X, y)

        w, (X, y) = jnp.zeros(self.dim, self.dtype), self._arrays
        with suppress(Exception):  # it takes batches only
            if jax.eval_shape(given, w, X[0], y[0]).shape == ():
                return jax.vmap(given, in_axes=(None, 0, 0))
        try:
            shape = jax.eval_shape(given, w, X[:2], y[:2]).shape
        except Exception as error:
            raise ConcordError(
                f"log_likelihood: it takes neither a row x {X.shape[1:]} and y {y.shape[1:]} nor "
                f"a batch of rows with params {short(self._shapes)} ({first_line(error)}); let "
                "their shapes fit"
            ) from error
        if shape != (min(2, len(X)),):
            raise ConcordError(
                f"log_likelihood: it has shape {shape} of two rows; return a number of one row, or "
                "(batch,) of a batch"
            )
        return given

    @cached_property
    def _scores(self) -> stages.Wrapped:
        """Return the compiled gradients of log likelihoods summed over rows."""

        def total(w: JaxArray, X: JaxArray, y: JaxArray, mask: JaxArray) -> JaxArray:
            """Return the sum of log p(y_j | X_j, w) over rows j that the mask has."""
            return jnp.where(mask, self._of_rows(w, X, y), 0.0).sum()

        slopes = jax.vmap(jax.grad(total))
        return jax.jit(lambda w, rows, mask, X, y: slopes(w, X[rows], y[rows], mask))

    @cached_property
    def _values(self) -> Function:
        """Return the compiled log likelihoods of rows."""
        return jax.jit(jax.vmap(self._of_rows))

    @cached_property
    def _predictions(self) -> Function:
        """Return the compiled predictions of rows, for each of several weights."""
        predict = self._predict
        assert predict is not None  # as is checked before
        return jax.jit(jax.vmap(lambda w, X: predict(self._unravel(w), X), in_axes=(0, None)))
