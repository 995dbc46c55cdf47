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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Count, Index, Options, Positive
from concord.problems.one_data_set import OneDataSet
from concord.sampling.partition import Partition, check_rows
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets.readers import digits as sklearn_digits

from .. import readers

# Of each layer, with 6 and 16 maps of 5 x 5 kernels: its outputs, and the inputs of each (fan-in).
UNITS, FANS = np.array([6, 16, 120, 84, 10]), np.array([25, 150, 400, 120, 84])
SIZES = UNITS * (FANS + 1)  # weights, then biases, as the vector has them
SIDE = 32  # of LeNet-5's input
SVHN = Path("svhn", "test_32x32.mat")
TRAIN = 60000
CHUNK = 1000  # images per forward pass where all images are needed
First = Annotated[str, Meta(pattern="^first_[0-9]$")]


class Params(Options):
    """Options of the network, the box of its initial weights, the test sets and examples."""

    activation: Annotated[Literal["tanh", "relu"], "what follows all layers but the last"] = "tanh"
    pooling: Annotated[
        Literal["max", "average"], "the largest, or the mean, of the outputs in each 2 x 2 block"
    ] = "max"
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
        dict[str, tuple[Index | First, ...]] | None,
        "test images reported one by one: {set: [row, or first_<label>, ...]}",
    ] = None
    training_images: Annotated[
        Count | None, "train on only so many images, the first ones; none: all"
    ] = None


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError if there are more agents than images."""
    check_rows(min(TRAIN, params.training_images or TRAIN), agents)


def unavailable() -> str | None:
    """Return how to install PyTorch if it is missing; None if the problem can be computed."""
    if find_spec("torch") is None:
        return (
            "LeNet needs PyTorch, which is not installed; install the extra with "
            "`python -m pip install -e '.[lenet]'`, or let conda do it: `snakemake --sdm conda`"
        )
    return None


DECLARES = ProblemDeclaration(
    name="LeNet",
    needs=lambda params: ("mnist",),
    takes=lambda params: ("svhn",) if "svhn" in params.out_of_distribution else (),
    unavailable=unavailable,
    # Minutes for which a job lasts long enough to show its progress.
    job={"environment": "lenet", "mem_mb": 3000, "runtime": 60},
    amplifies="training: the last digit of a sum over a batch moves every later step",
)


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


@dataclass(eq=False)
class Images:
    """Labels (n,), and a function that loads their images when they are needed.

    ``load()`` returns (n, rows, columns) in [0, 1], or uint8 for [0, 255]. Images of another size
    than 32 x 32 are resized bilinearly, or smaller ones ``padded`` with zeros on all sides.
    """

    labels: np.ndarray
    load: Callable[[], np.ndarray]
    padded: bool = False

    @cached_property
    def tensor(self) -> Any:
        """Return the images as a torch tensor of single precision, (n, 1, 32, 32)."""
        functional = _torch().nn.functional
        images = _torch().from_numpy(self.load())[: len(self.labels), None]
        if not images.is_floating_point():
            images = images / 255
        if self.padded:
            images = functional.pad(images, [(SIDE - images.shape[2]) // 2] * 4)
        elif images.shape[2] != SIDE:
            images = functional.interpolate(images, size=(SIDE, SIDE), mode="bilinear")
        return images.to(_device())


def _device() -> str:
    """Return the name of the device of torch: a GPU where there is one, else the CPU."""
    return "cuda" if _torch().cuda.is_available() else "cpu"


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> LeNet:
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
    examples = {
        name: {str(image): _find_example(image, tests[name].labels) for image in chosen}
        for name, chosen in (params.examples or {}).items()
        if name in tests
    }
    parts = partition.split(train.labels, agents, stream("partition"))
    return LeNet(params, train, parts, tests, examples)


def _find_example(image: int | str, labels: np.ndarray) -> int:
    """Return the row of an example image: a row itself, or the first one of ``first_<label>``."""
    if isinstance(image, str):
        rows = np.flatnonzero(labels == int(image.removeprefix("first_")))
    else:
        rows = np.arange(len(labels))[image : image + 1]
    if not rows.size:
        raise ConcordError(
            f"examples: {image!r} names none of {len(labels)} images; give a smaller row"
        )
    return int(rows[0])


class LeNet(OneDataSet):
    """The potential of the network's weights, with training images split over agents.

    train: training images; ``parts`` are the rows of each agent.

    tests: test sets by name; the first is of the same kind as the training images.

    examples: for each test set, the rows of images that are reported one by one, by name.
    """

    posterior, dim, dtype = None, int(SIZES.sum()), np.dtype(np.float32)

    def __init__(
        self,
        params: Params,
        train: Images,
        parts: Sequence[np.ndarray],
        tests: Mapping[str, Images],
        examples: Mapping[str, Mapping[str, int]],
    ) -> None:
        self.params, self.train, self.parts = params, train, parts
        self.tests, self.examples, self.agents = tests, examples, len(parts)
        self.counts = np.array([len(part) for part in parts])

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw weights uniformly from the prior's box, (chains, agents, dim).

        Its half width is box / sqrt(fan-in) for a weight and its bias: Kaiming-uniform with gain
        box / sqrt(3).
        """
        bounds = np.repeat(self.params.box / np.sqrt(FANS), SIZES)
        return ((rng.random(shape) * 2 - 1) * bounds).astype(self.dtype)

    @cached_property
    def _layers(self) -> Any:
        """Return the network as a module of torch, whose weights are set before it is used.

        Both activations rise, so the largest of four is taken before them: a quarter of the work.
        """
        nn = _torch().nn
        act = {"tanh": nn.Tanh, "relu": nn.ReLU}[self.params.activation]()
        pool = {"max": nn.MaxPool2d, "average": nn.AvgPool2d}[self.params.pooling](2)
        after = (pool, act) if self.params.pooling == "max" else (act, pool)
        layers = (
            *(nn.Conv2d(1, 6, 5), *after, nn.Conv2d(6, 16, 5), *after, nn.Flatten()),
            *(nn.Linear(400, 120), act, nn.Linear(120, 84), act, nn.Linear(84, 10)),
        )
        return nn.Sequential(*layers).to(_device())

    def _scores(self, x: np.ndarray, images: Any) -> Any:
        """Return the scores (n, 10) of images (n, 1, 32, 32) for weights x (dim,).

        Channels come last in memory, for which torch takes about half the time.
        """
        torch = _torch()
        weights = torch.from_numpy(x).to(images.device)
        torch.nn.utils.vector_to_parameters(weights, self._layers.parameters())
        layers = self._layers.to(memory_format=torch.channels_last)
        return layers(images.contiguous(memory_format=torch.channels_last))

    def _loss_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the gradient at x (dim,) of the cross-entropy summed over some training images."""
        torch, images = _torch(), self.train.tensor
        labels = torch.from_numpy(self.train.labels[rows]).to(images.device)
        scores = self._scores(x, images[torch.from_numpy(rows).to(images.device)])
        loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
        slopes = torch.autograd.grad(loss, tuple(self._layers.parameters()))
        slope: np.ndarray = torch.cat([each.flatten() for each in slopes]).to("cpu").numpy()
        return slope

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient over all of each agent's images, (chains, agents, dim)."""
        slopes = np.zeros_like(x)
        for chain, agent in np.ndindex(x.shape[:2]):
            for rows in np.split(self.parts[agent], range(CHUNK, self.counts[agent], CHUNK)):
                slopes[chain, agent] += self._loss_gradient(x[chain, agent], rows)
        return slopes

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return mini-batch gradients (``WithMiniBatches``), (chains, agents, dim).

        rows: images of the mini-batches, (chains, agents, batch), numbered within each agent. A
        loop over agents takes less time than grouped convolutions or vmap.
        """
        slopes, scale = np.empty_like(x), self.counts / rows.shape[2]
        for chain, agent in np.ndindex(x.shape[:2]):
            chosen = self.parts[agent][rows[chain, agent]]
            slopes[chain, agent] = scale[agent] * self._loss_gradient(x[chain, agent], chosen)
        return slopes

    def predictive(self, x: np.ndarray) -> np.ndarray:
        """Return class probabilities of all test images, (chains, agents, images, classes).

        The sets follow each other in the order of ``tests``.
        """
        torch = _torch()
        chunks = [part for test in self.tests.values() for part in test.tensor.split(CHUNK)]
        chances = []
        with torch.no_grad():
            for weights in x.reshape(-1, self.dim):
                scores = torch.cat([self._scores(weights, chunk) for chunk in chunks])
                chances.append(torch.softmax(scores, dim=1).to("cpu").numpy())
        return np.stack(chances).reshape(*x.shape[:2], *chances[0].shape)
