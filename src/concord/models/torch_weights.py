"""Problems of PyTorch modules: the posterior of their weights, with rows split over agents."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from concord import streams
from concord.errors import ConcordError, short, suggest_names
from concord.models.model import require_library
from concord.models.weights import (
    COPIES,
    Data,
    Evaluation,
    Rows,
    Settings,
    WeightPosterior,
    check_labels,
    first_line,
)
from concord.options import Positive, build
from concord.sampling.partition import PartitionLike

if find_spec("torch"):  # else ``from_torch`` says what to install
    import torch
    from torch import Tensor
    from torch.func import functional_call, grad, vmap
    from torch.nn import functional

Tensors = Callable[..., "Tensor"]  # a function of tensors
Starts = Callable[[tuple[int, int, int], np.random.Generator], ArrayLike]


@suggest_names
def from_torch(
    module: torch.nn.Module,
    data: Data,
    *,
    agents: int | None = None,
    shards: Sequence[ArrayLike] | None = None,
    partition: PartitionLike = "equal",
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
    likelihood: Literal["categorical", "bernoulli", "normal"] | Tensors = "categorical",
    noise_sd: float = 1.0,
    prior_sd: float | None = 1.0,
    predict: Tensors | None = None,
    test: Rows | None = None,
    initial: Starts | None = None,
    reference: object = None,
    evaluate: Evaluation = None,
    memory: float = 1.0,
    device: str = "cpu",
) -> TorchPosterior:
    r"""Return the posterior of a PyTorch module's weights, with rows of data split over agents.

    .. math::
        f_i(w) = - \sum_{j \in S_i} \log p(y_j \mid h_w(X_j))
                 + \frac{1}{2 N s^2} \lVert w \rVert^2

    h is the module, w are all its parameters that require gradients, in one vector, S_i the rows of
    agent i, N the number of agents, and s is ``prior_sd``: the posterior over weights is
    proportional to exp(-sum_i f_i). Neal, Bayesian Learning for Neural Networks (1996), section
    1.2, has it for one place. The module is evaluated in its ``eval`` mode, without dropout.

    Parameters
    ----------
    module
        A ``torch.nn.Module``, which is copied: rows X (batch, ...) -> outputs (batch, ...). Weights
        have its type, mostly float32. Chains start at its own initialization, a draw for each
        chain, by the ``reset_parameters`` of its layers; other parameters start as they are.
    data
        Features X (rows, ...) and targets y (rows,); or mappings from agents' names to theirs,
        ``({name: X}, {name: y})`` or ``{name: (X, y)}``, without ``agents`` and ``shards``.
    agents, shards, partition, seed, rng
        As of ``concord.from_pymc``; labels y may be split by class (``dirichlet``).
    likelihood
        ``categorical``: outputs are scores of classes, and y their numbers; ``bernoulli``: a score
        of y = 1; ``normal``: y is normal about the outputs with ``noise_sd``; or a function
        (outputs, y) -> log likelihoods (batch,).
    prior_sd
        Standard deviation s of each weight's normal prior; None: a flat one.
    predict
        Of a likelihood that is a function: outputs -> class probabilities (batch, classes).
    test
        Features and labels by which ``concord.predictive`` scores.
    initial
        (shape, rng) -> weights (chains, agents, dim) where chains start; None: the module's own
        initialization.
    reference
        Draws of the weights that count as independent, (draws, dim), as of long runs in one place.
    evaluate
        ``vmap``: all chains and agents at once; ``loop``: one after the other, which is as fast for
        convolutions; None: the faster one by timed calls of each, which the representation shows.
        Both differ in the last digits of single precision; name one, and
        ``torch.set_num_threads(1)``, to repeat chains exactly.
    memory
        GB, about, within which ``vmap`` keeps.
    device
        Of torch, such as "cuda"; samplers' own arithmetic is on the CPU.

    Returns
    -------
    TorchPosterior
        A problem with gradients, mini-batches, potentials and predictions, for every first-order
        sampler.

    Raises
    ------
    ConcordError
        If PyTorch is missing, arguments do not fit each other, or a row's likelihood depends on
        other rows.

    Examples
    --------
    >>> import concord, numpy as np, torch
    >>> X = np.random.default_rng(0).standard_normal((60, 2))
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    >>> problem = concord.from_torch(net, (X, X[:, 0] > 0), agents=4)
    >>> steps = {"step_size": 1e-3, "batch_size": 5, "iterations": 20, "chains": 2}
    >>> concord.sample("de_sgld", problem, "ring", **steps)["x"].shape
    (2, 21, 4, 42)
    """
    require_library("PyTorch", "module")
    if not isinstance(module, torch.nn.Module):
        raise ConcordError(f"module: {short(module)} is no torch.nn.Module; give an object of one")
    sharding = agents, shards, partition, streams.seed_of(seed, rng)
    settings = Settings(sharding, prior_sd, test, reference, evaluate, memory)
    sd: float = build(Positive, noise_sd, "noise_sd")
    if callable(likelihood):
        functions = likelihood, predict
    else:
        functions = _find_likelihood(likelihood, sd)
    problem = TorchPosterior(module, functions, data, settings, torch.device(device), initial)
    if likelihood == "normal":
        problem.noise_sd = sd
    return problem


class TorchPosterior(WeightPosterior):
    """The posterior of a PyTorch module's weights.

    functions: log likelihoods of rows by outputs and targets, and class probabilities by outputs
    (None: not known). starts: the caller's own, as ``initial`` of ``from_torch``.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        functions: tuple[Tensors, Tensors | None],
        data: Data,
        settings: Settings,
        device: torch.device,
        starts: Starts | None,
    ) -> None:
        self._fresh = copy.deepcopy(module).cpu()  # of which starts are drawn
        self._module = copy.deepcopy(module).eval().to(device)
        self._log_likelihood, self._probabilities = functions
        self._device, self._starts = device, starts
        weights = {n: p for n, p in self._fresh.named_parameters() if p.requires_grad}
        if not weights:
            raise ConcordError("module: none of its parameters requires a gradient")
        shapes = {name: tuple(parameter.shape) for name, parameter in weights.items()}
        dtype = torch.zeros(0, dtype=next(iter(weights.values())).dtype).numpy().dtype
        super().__init__(data, shapes, dtype, settings)

    def scores(self, w: np.ndarray, rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Return gradients of log likelihoods summed over rows, (n, dim); mask (n, batch)."""
        stack, X, y = self._tensor(w), *self._data_of(rows)
        counted = self._tensor(mask)
        if len(w) > 1:
            return vmap(grad(self._sum))(stack, X, y, counted).cpu().numpy()
        total = self._sum(stack.requires_grad_()[0], X[0], y[0], counted[0])
        return torch.autograd.grad(total, stack)[0].cpu().numpy()

    def log_likelihoods(self, w: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the log likelihood of each row, (n, batch)."""
        with torch.no_grad():
            return _map(self._of_rows, self._tensor(w), *self._data_of(rows)).cpu().numpy()

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return starts (chains, agents, dim): the caller's, or the module's own."""
        if self._starts is None:
            return super().initial(shape, rng)
        return np.asarray(self._starts(shape, rng), dtype=self.dtype)

    def predictions(self, w: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return class probabilities (n, rows, classes), or means of a regression (n, rows)."""
        if self._probabilities is None:
            raise ConcordError(
                "predict: the likelihood is a function, and does not say what outputs predict; "
                "give predict, from outputs to class probabilities, when the problem is made"
            )
        with torch.no_grad():
            features = self._tensor(X)
            outputs = _map(lambda weights: self._outputs(weights, features), self._tensor(w))
            return self._probabilities(outputs.double()).cpu().numpy()

    def draw_start(self, rng: np.random.Generator) -> np.ndarray:
        """Return weights as the module's layers initialize them, (dim,)."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(rng.integers(2**63)))
            for layer in self._fresh.modules():
                if hasattr(layer, "reset_parameters"):
                    layer.reset_parameters()
        named = dict(self._fresh.named_parameters())
        return torch.cat([named[name].detach().flatten() for name in self._shapes]).numpy()

    @cached_property
    def numbers_of_row(self) -> int:
        """The numbers that a gradient holds of each row: copies of two rows' less those of one."""
        w, kept = self._tensor(self.draw_start(np.random.default_rng(0))), [0, 0]
        for count in (1, 2):
            X, y = self._data_of(np.zeros(count, dtype=np.intp))

            def keep(tensor: Tensor, place: int = count - 1) -> Tensor:
                """Count a tensor that is kept for the gradient, and return it."""
                kept[place] += tensor.numel()
                return tensor

            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                self._of_rows(w.requires_grad_(), X, y)
        return COPIES * (kept[1] - kept[0])

    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor]:
        """Return features and targets of all rows as tensors of the device."""
        X, y = (self._tensor(self._convert(array)) for array in (self._X, self._y))
        return X, y

    def _tensor(self, array: np.ndarray) -> Tensor:
        """Return an array as a tensor of the device; numbers of classes are 64-bit integers."""
        tensor = torch.from_numpy(np.require(array, requirements=["C", "W"]))
        is_number = array.dtype.kind in "iu"
        return tensor.to(self._device, dtype=torch.int64 if is_number else None)

    def _data_of(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return features and targets of rows of any shape."""
        places, (X, y) = self._tensor(rows), self._tensors
        return X[places], y[places]

    def _outputs(self, w: Tensor, X: Tensor) -> Tensor:
        """Return the module's outputs of rows X (batch, ...) at weights w (dim,)."""
        pieces = zip(self._shapes.items(), w.split(self._sizes), strict=True)
        weights = {name: piece.reshape(shape) for (name, shape), piece in pieces}
        return functional_call(self._module, weights, (X,))

    def _of_rows(self, w: Tensor, X: Tensor, y: Tensor) -> Tensor:
        """Return log p(y_j | h_w(X_j)) of each row j, (batch,)."""
        return self._log_likelihood(self._outputs(w, X), y)

    def _check_rows(self) -> None:
        """Raise a ConcordError if the module does not take a row, or its outputs do not fit y."""
        w = self._tensor(self.draw_start(np.random.default_rng(0)))
        X, y = self._data_of(np.zeros(1, dtype=np.intp))
        try:
            with torch.no_grad():
                outputs = self._outputs(w, X)
        except Exception as error:
            widths = (getattr(layer, "in_features", None) for layer in self._module.modules())
            width = next((w for w in widths if w), None)
            raise ConcordError(
                f"data.X: the module does not take a row of shape {tuple(X.shape[1:])} "
                f"({first_line(error)}); give rows that fit it"
                + ("" if width is None else f", its first linear layer takes {width} numbers")
            ) from error
        _check_outputs(self._log_likelihood, tuple(outputs.shape), tuple(y.shape))
        if self._log_likelihood in (_categorical, _bernoulli):
            check_labels(self._y, outputs.shape[1] if self._log_likelihood is _categorical else 2)
        super()._check_rows()

    def _sum(self, w: Tensor, X: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        """Return the sum of log p(y_j | h_w(X_j)) over rows j that the mask has."""
        return (self._of_rows(w, X, y) * mask).sum()


def _map(function: Tensors, *stacks: Tensor) -> Tensor:
    """Return a function of each entry of stacks of tensors, as a stack.

    Of a single entry without ``vmap``, which takes longer, and which some layers do not know.
    """
    return (
        vmap(function)(*stacks) if len(stacks[0]) > 1 else function(*(s[0] for s in stacks))[None]
    )


def _find_likelihood(name: object, sd: float) -> tuple[Tensors, Tensors]:
    """Return a likelihood's log density of rows, and what outputs predict.

    sd: of the noise of a regression.
    """
    likelihoods: dict[object, tuple[Tensors, Tensors]] = {
        "categorical": (_categorical, lambda outputs: outputs.softmax(dim=-1)),
        "bernoulli": (_bernoulli, _of_two_classes),
        "normal": (partial(_normal, sd=sd), lambda outputs: outputs.squeeze(-1)),
    }
    if name not in likelihoods:
        raise ConcordError(
            f"likelihood: {short(name)} is not known; use {', '.join(map(str, likelihoods))}, or a "
            "function of outputs and targets"
        )
    return likelihoods[name]


def _check_outputs(likelihood: Tensors, outputs: tuple[int, ...], y: tuple[int, ...]) -> None:
    """Raise a ConcordError if outputs of one row do not fit a likelihood with a name.

    outputs, y: shapes of the outputs and targets of a row, which begin with 1.
    """
    each = outputs[1:]
    if likelihood is _categorical and (not each or each[0] < 2):
        raise ConcordError(
            "likelihood: categorical takes a score of each class, and the module has outputs "
            f"{each} of a row; give it 2 or more, or say likelihood='bernoulli'"
        )
    function = getattr(likelihood, "func", likelihood)  # of a partial
    named = "bernoulli" if function is _bernoulli else "normal" if function is _normal else None
    if named and math.prod(outputs) != math.prod(y):
        other = ", or say likelihood='categorical'" if named == "bernoulli" else ""
        raise ConcordError(
            f"likelihood: {named} takes an output for each target, {y[1:]} of a row, and the "
            f"module has {each}; let it have as many{other}"
        )


def _categorical(outputs: Tensor, y: Tensor) -> Tensor:
    """Return log softmax(outputs)_y of each row."""
    return -functional.cross_entropy(outputs, y.long(), reduction="none")


def _bernoulli(outputs: Tensor, y: Tensor) -> Tensor:
    """Return the log probability of y, 0 or 1, of each row, where outputs are log odds of 1."""
    odds = outputs.reshape(y.shape)
    return -functional.binary_cross_entropy_with_logits(odds, y.to(odds.dtype), reduction="none")


def _of_two_classes(outputs: Tensor) -> Tensor:
    """Return the probabilities of 0 and 1, (..., 2), from log odds (...) or (..., 1)."""
    odds = outputs.squeeze(-1) if outputs.shape[-1] == 1 else outputs
    return torch.stack([(-odds).sigmoid(), odds.sigmoid()], dim=-1)


def _normal(outputs: Tensor, y: Tensor, sd: float) -> Tensor:
    """Return the log density of y about the outputs, of each row."""
    errors = ((y - outputs.reshape(y.shape)) / sd).reshape(len(y), -1)
    return -0.5 * (errors**2 + math.log(2 * math.pi * sd**2)).sum(dim=1)
