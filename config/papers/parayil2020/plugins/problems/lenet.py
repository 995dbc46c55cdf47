r"""LeNet-5 on MNIST: a neural network's weights under a flat prior.

.. math::
    f_i(w) = - \sum_{j=1}^{n_i} \log \mathrm{softmax}(h_w(X_j^i))_{y_j^i}

h_w is the network, w all its weights and biases in one vector (61 706 of them). The prior is
uniform on the box from which the weights are drawn at first (Kaiming-uniform); inside the box its
gradient is zero, and weights that leave the box are not brought back: beyond the first draw the
prior is flat. Source: parayil2020, section 5.3 and S5.3.

The only module that imports torch, and only where it computes. Arrays are float32, of shape
(chains, agents, dim); torch reads and writes them in place (on a GPU, through copies).

Needs: PyTorch (the extra ``lenet``) and the data set mnist; svhn is used where it is at hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Count, Options, Positive
from concord.problems.one_data_set import OneDataSet
from concord.sampling.partition import Partition, check_rows
from concord_studies.datasets.readers import digits as sklearn_digits

from .. import readers

NAME = "LeNet"

# What a job that samples this problem takes: its conda environment (envs/lenet.yaml), memory,
# minutes. It lasts long enough to show its progress.
JOB = {"environment": "lenet", "mem_mb": 3000, "runtime": 60}

AMPLIFIES = "training: the last digit of a sum over a batch moves every later step"

SIDE = 32  # LeNet-5's input is 32 x 32
SVHN = Path("svhn", "test_32x32.mat")
TRAIN = 60000
CHUNK = 1000  # images per forward pass where all images are needed

Activation = Annotated[Literal["tanh", "relu"], "what follows all layers but the last"]
Pooling = Annotated[
    Literal["max", "average"], "the largest, or the mean, of the outputs in each 2 x 2 block"
]


class Params(Options):
    """Options of the network, the box of its initial weights, the test sets and examples."""

    activation: Activation = "tanh"
    pooling: Pooling = "max"
    box: Annotated[
        Positive,
        "half width of the box of the first weights, times the square root of their fan-in: 1, or "
        "sqrt(6) where a layer's outputs go through relu",
    ] = 1.0
    images: Annotated[
        Literal["resized", "padded"],
        "MNIST's 28 x 28 images are brought to 32 x 32 bilinearly, or by a border of zeros",
    ] = "resized"

    out_of_distribution: Annotated[
        tuple[Literal["svhn", "digits"], ...],
        "sets scored beside MNIST's test images: svhn (left out where its file is not at hand), "
        "digits (scikit-learn's, 8 x 8)",
    ] = ("svhn", "digits")
    examples: Annotated[
        dict[str, Any] | None,
        "test images reported one by one: {set: [row, or first_<label>, ...]}",
    ] = None
    training_images: Annotated[
        Count | None, "train on only so many images, the first ones; none: all"
    ] = None


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError if there are more agents than images."""
    check_rows(min(TRAIN, params.training_images or TRAIN), agents)


def needs(params: Params) -> tuple[str, ...]:
    """Return the names of the data sets that must be downloaded."""
    return ("mnist",)


def takes(params: Params) -> tuple[str, ...]:
    """Return the names of the data sets that are used if they are downloaded."""
    return ("svhn",) if "svhn" in params.out_of_distribution else ()


def unavailable() -> str | None:
    """Return how to install PyTorch if it is missing; None if the problem can be computed."""
    if find_spec("torch") is None:
        return (
            "LeNet needs PyTorch, which is not installed; install the extra with "
            "`python -m pip install -e '.[lenet]'`, or let conda do it: `snakemake --sdm conda`"
        )
    return None


def _torch() -> Any:
    """Import torch with one thread and reproducible kernels; a ConcordError if it is missing."""
    reason = unavailable()
    if reason:
        raise ConcordError(reason)
    import torch  # of an extra

    # One thread: sums over a batch depend on how many threads share it, results must not.
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # a GPU is to agree with the CPU to float32
    torch.backends.cudnn.deterministic = True
    return torch


class Network(NamedTuple):
    """A neural network as a function of its weights.

    shapes
        Of the weights, each followed by that of its bias, in the order of the flat vector.
    forward
        ``forward(weights, images)`` with images (n, 1, side, side) returns scores (n, classes).
    box
        Half width of the box of the first draw, times the square root of the fan-in.
    """

    shapes: tuple[tuple[int, ...], ...]
    forward: Callable[[Sequence[Any], Any], Any]
    box: float = 1.0

    @property
    def sizes(self) -> list[int]:
        """Return the number of entries of each weight and bias, in the order of the vector."""
        return [int(np.prod(shape)) for shape in self.shapes]

    @property
    def bounds(self) -> np.ndarray:
        r"""Return the half width of the box of initial weights, for each entry, (dim,).

        box / sqrt(fan-in) for a weight and its bias: Kaiming-uniform with gain box/sqrt(3).
        """
        fans = [int(np.prod(s[1:])) for s in self.shapes[::2]]
        return np.repeat(self.box / np.sqrt(np.repeat(fans, 2)), self.sizes)


@cache
def _largest_of_four() -> Any:
    """Return a torch function that takes the maximum over four quarters of the maps.

    Where several are the largest, the first has the gradient.
    """
    torch = _torch()
    function: Any = torch.autograd.Function

    class LargestOfFour(function):  # type: ignore[misc]
        """The maximum over four quarters of the maps, with its gradient."""

        @staticmethod
        def forward(ctx: Any, four: Any) -> Any:
            """Return the maximum over the four quarters of the maps (n, 4 c, ...), (n, c, ...)."""
            a, b, c, d = four.chunk(4, 1)
            upper, lower = torch.maximum(a, b), torch.maximum(c, d)
            ctx.save_for_backward(a >= b, c >= d, upper >= lower)
            return torch.maximum(upper, lower)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            """Return the gradient by the quarters, (n, 4 c, ...)."""
            first, third, above = ctx.saved_tensors
            upper = gradient * above
            lower = gradient - upper
            a, c = upper * first, lower * third
            return torch.cat([a, upper - a, c, lower - c], 1)

    return LargestOfFour.apply


def convolved_and_pooled(weight: Any, bias: Any, images: Any) -> Any:
    """Return the maximum over 2 x 2 blocks of a convolution with a bias.

    The four members of a block are a convolution of stride 2 with four shifted kernels, so that
    pooling compares whole arrays: on images of one channel half the work of ``max_pool2d``.
    """
    functional = _torch().nn.functional
    shifts = [functional.pad(weight, (x, 1 - x, y, 1 - y)) for y in (0, 1) for x in (0, 1)]
    four = functional.conv2d(images, _torch().cat(shifts), stride=2)
    return _largest_of_four()(four) + bias[:, None, None]


def lenet5(activation: Activation = "tanh", pooling: Pooling = "max", box: float = 1.0) -> Network:
    """Return LeNet-5: 6 and 16 maps with 5 x 5 kernels, then layers of 120, 84 and 10 units.

    activation: of the units. pooling: of 2 x 2 blocks. box: as for ``Network``.
    """

    def forward(weights: Sequence[Any], images: Any) -> Any:
        """Return the scores (n, 10) of images (n, 1, side, side)."""
        functional = _torch().nn.functional
        act = getattr(_torch(), activation)
        if pooling == "max":
            # Both activations rise, so the largest of theirs is that of the largest: a quarter of
            # the work.
            x = act(convolved_and_pooled(weights[0], weights[1], images))
            x = act(functional.max_pool2d(functional.conv2d(x, *weights[2:4]), 2))
        else:
            x = functional.avg_pool2d(act(functional.conv2d(images, *weights[:2])), 2)
            x = functional.avg_pool2d(act(functional.conv2d(x, *weights[2:4])), 2)
        x = x.flatten(1)
        for weight, bias in (weights[4:6], weights[6:8]):
            x = act(functional.linear(x, weight, bias))
        return functional.linear(x, *weights[8:10])

    maps = (6, 1, 5, 5), (6,), (16, 6, 5, 5), (16,)
    layers = (120, 400), (120,), (84, 120), (84,), (10, 84), (10,)
    return Network((*maps, *layers), forward, box)


@dataclass(eq=False)
class Images:
    """Labels (n,), and a function that loads their images when they are needed.

    ``load()`` returns (n, rows, columns) in [0, 1], or uint8 for [0, 255]. Images of another size
    are resized bilinearly, or smaller ones ``padded`` with zeros on all sides.
    """

    labels: np.ndarray
    load: Callable[[], np.ndarray]
    padded: bool = False
    _ready: dict[tuple[int, str], Any] = field(default_factory=dict, repr=False)

    def tensor(self, side: int, dtype: str) -> Any:
        """Return the images as a torch tensor (n, 1, side, side), cached for the next call."""
        torch = _torch()
        functional = torch.nn.functional
        key = side, dtype
        if key not in self._ready:
            raw = torch.from_numpy(self.load())[: len(self.labels), None]
            images = torch.empty((len(raw), 1, side, side), dtype=getattr(torch, dtype))
            for rows in range(0, len(raw), CHUNK):
                part = raw[rows : rows + CHUNK].to(images.dtype)
                if raw.dtype == torch.uint8:
                    part /= 255
                if self.padded:
                    more = side - part.shape[2]
                    part = functional.pad(part, (more // 2, more - more // 2) * 2)
                elif part.shape[2:] != (side, side):
                    part = functional.interpolate(part, size=(side, side), mode="bilinear")
                images[rows : rows + CHUNK] = part
            self._ready[key] = images.to(_device())
        return self._ready[key]


def _device() -> str:
    """Return the name of the device of torch: a GPU where there is one, else the CPU."""
    return "cuda" if _torch().cuda.is_available() else "cpu"


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Classifier:
    """Load MNIST and the other test sets, and split the training images over the agents."""
    mnist = data_sets.folder / "mnist"

    def digits(part: str, used: int | None = None) -> Images:
        """Return the images and labels of one part of MNIST."""
        labels = readers.mnist_labels(mnist / f"{part}-labels-idx1-ubyte.gz")
        images = mnist / f"{part}-images-idx3-ubyte.gz"
        padded = params.images == "padded"
        return Images(labels[:used], lambda: readers.mnist_images(images), padded)

    train = digits("train", params.training_images)
    tests = {"mnist": digits("t10k")}
    for name in map(str, params.out_of_distribution):
        if name == "digits":
            flat, labels = sklearn_digits()
            images = flat.reshape(-1, 8, 8).astype(np.float32)
        elif (data_sets.folder / SVHN).is_file():
            images, labels = readers.svhn(data_sets.folder / SVHN)
        else:
            continue
        tests[name] = Images(labels, partial(np.asarray, images))
    parts = partition.split(train.labels, agents, stream("partition"))
    examples = {}
    for name, chosen in (params.examples or {}).items():
        if name in tests:
            examples[name] = _example_rows(chosen, tests[name].labels, f"examples.{name}")
    network = lenet5(params.activation, params.pooling, params.box)
    return Classifier(network, train, parts, tests, examples)


def _example_rows(chosen: Any, labels: np.ndarray, where: str) -> dict[str, int]:
    """Return the row of each example image, by name, that reports show one by one."""
    rows = {}
    for image in chosen if isinstance(chosen, (list, tuple)) else [chosen]:
        first = re.fullmatch("first_([0-9])", str(image))
        found = np.flatnonzero(labels == int(first[1])).tolist() if first else [image]
        if not found or not isinstance(found[0], int) or not 0 <= found[0] < len(labels):
            raise ConcordError(
                f"{where}: {image!r} names none of {len(labels)} images; "
                "give a row from 0, or first_<label>"
            )
        rows[str(image)] = found[0]
    return rows


class Classifier(OneDataSet):
    """The potential of a network's weights, with training images split over agents.

    train: training images; ``parts`` are the rows of each agent.

    tests: test sets by name; the first is of the same kind as the training images.

    examples: for each test set, the rows of images that are reported one by one, by name.

    dtype: of the arrays. side: of the images, in pixels.
    """

    posterior = None

    def __init__(
        self,
        network: Network,
        train: Images,
        parts: Sequence[np.ndarray],
        tests: Mapping[str, Images],
        examples: Mapping[str, Mapping[str, int]] | None = None,
        *,
        dtype: Any = np.float32,
        side: int = SIDE,
    ) -> None:
        self.network, self.train, self.parts, self.tests = network, train, parts, tests
        self.examples, self.dtype, self.side = examples or {}, np.dtype(dtype), side
        self.agents, self.dim = len(parts), sum(network.sizes)
        self.counts = np.array([len(part) for part in parts])

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw weights uniformly from the prior's box, (chains, agents, dim)."""
        draw = rng.random(shape, dtype=np.float64) * 2 - 1
        return (draw * self.network.bounds).astype(self.dtype)

    @cached_property
    def _train(self) -> tuple[Any, Any]:
        """Return the training images and labels as torch tensors."""
        images = self.train.tensor(self.side, self.dtype.name)
        return images, _torch().from_numpy(self.train.labels).to(images.device)

    def _scores(self, weights: Any, images: Any) -> Any:
        """Return the network's scores (n, classes) of images for a flat vector of weights."""
        parts = weights.split(self.network.sizes)
        shaped = [part.view(shape) for part, shape in zip(parts, self.network.shapes, strict=True)]
        return self.network.forward(shaped, images)

    def _loss(self, weights: Any, rows: np.ndarray) -> Any:
        """Return the cross-entropy summed over some rows of the training images."""
        torch = _torch()
        images, labels = self._train
        chosen = torch.from_numpy(rows).to(images.device)
        return torch.nn.functional.cross_entropy(
            self._scores(weights, images[chosen]), labels[chosen], reduction="sum"
        )

    def _slope(self, x: np.ndarray, rows: np.ndarray, scale: float = 1.0) -> Any:
        """Return ``scale`` times the gradient at x (dim,) of the loss on given rows."""
        torch = _torch()
        weights = torch.from_numpy(x).to(_device()).requires_grad_()
        (gradient,) = torch.autograd.grad(self._loss(weights, rows) * scale, weights)
        return gradient.to("cpu").numpy()

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient over all of each agent's images, (chains, agents, dim)."""
        slopes = np.zeros_like(x)
        for chain, agent in np.ndindex(x.shape[:2]):
            for rows in _chunks(self.parts[agent]):
                slopes[chain, agent] += self._slope(x[chain, agent], rows)
        return slopes

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return mini-batch gradients (``WithMiniBatches``), (chains, agents, dim).

        rows: images of the mini-batches, (chains, agents, batch), numbered within each agent. A
        loop over agents takes less time than grouped convolutions or vmap.
        """
        slopes, scale = np.empty_like(x), (self.counts / rows.shape[2]).tolist()
        for chain, agent in np.ndindex(x.shape[:2]):
            chosen = self.parts[agent][rows[chain, agent]]
            slopes[chain, agent] = self._slope(x[chain, agent], chosen, scale[agent])
        return slopes

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""
        torch = _torch()
        values = np.zeros(x.shape[:2])
        with torch.no_grad():
            for chain, agent in np.ndindex(x.shape[:2]):
                weights = torch.from_numpy(x[chain, agent]).to(_device())
                for rows in _chunks(self.parts[agent]):
                    values[chain, agent] += float(self._loss(weights, rows))
        return values

    def predictive(self, x: np.ndarray) -> np.ndarray:
        """Return class probabilities of all test images, (chains, agents, images, classes).

        The sets follow each other in the order of ``tests``.
        """
        return self._predict(x, list(self.tests))

    def accuracy(self, x: np.ndarray) -> np.ndarray:
        """Return the fraction of the first test set's images classified right, (chains, agents).

        Weights that are not finite predict nothing, and get nothing right.
        """
        name, images = next(iter(self.tests.items()))
        chances = self._predict(x, [name])
        right = (chances.argmax(axis=-1) == images.labels) & ~np.isnan(chances).any(axis=-1)
        return right.mean(axis=-1)

    def _predict(self, x: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Return class probabilities of the images of some test sets, by their names."""
        torch = _torch()
        chunks = [
            chunk
            for name in names
            for chunk in self.tests[name].tensor(self.side, self.dtype.name).split(CHUNK)
        ]
        found = []
        with torch.no_grad():
            for weights in torch.from_numpy(x.reshape(-1, self.dim)).to(_device()):
                scores = torch.cat([self._scores(weights, chunk) for chunk in chunks])
                found.append(torch.softmax(scores, dim=1).to("cpu").numpy())
        return np.stack(found).reshape(*x.shape[:2], *found[0].shape)


def _chunks(rows: np.ndarray) -> list[np.ndarray]:
    """Return rows in pieces that are computed one at a time."""
    return np.split(rows, range(CHUNK, len(rows), CHUNK))
