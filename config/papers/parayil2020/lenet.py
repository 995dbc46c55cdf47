"""LeNet-5 on MNIST: a neural network's weights, 61 706 of them, under a flat prior.

The prior is uniform on the box from which the weights are drawn at first (Kaiming-uniform); inside
the box its gradient is zero, and weights that leave the box are not brought back: beyond the first
draw the prior is flat. Source: parayil2020, section 5.3 and S5.3.

It reads the data set mnist; and svhn, where its file is at hand.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from concord.errors import ConcordError
from concord_studies.datasets.readers import digits

from .plugins import readers

# Of each layer, with 6 and 16 maps of 5 x 5 kernels: its outputs, and the inputs of each (fan-in).
UNITS, FANS = np.array([6, 16, 120, 84, 10]), np.array([25, 150, 400, 120, 84])
SIZES = UNITS * (FANS + 1)  # weights, then biases, as the vector has them
SIDE = 32  # of LeNet-5's input
SVHN = Path("svhn", "test_32x32.mat")


def network(
    folder: Path,
    activation: Literal["tanh", "relu"] = "tanh",
    pooling: Literal["max", "average"] = "max",
    box: float = 1.0,
    images: Literal["resized", "padded"] = "resized",
    out_of_distribution: Sequence[str] = ("svhn", "digits"),
    examples: Mapping[str, Sequence[int | str]] | None = None,
    training_images: int | None = None,
) -> dict[str, Any]:
    """Return the network with MNIST's images and the test sets.

    folder: of the data sets. activation: what follows all layers but the last. pooling: the
    largest, or the mean, of the outputs in each 2 x 2 block. box: half width of the box of the
    first weights, times the square root of their fan-in: 1, or sqrt(6) where a layer's outputs go
    through relu. images: MNIST's 28 x 28 images are brought to 32 x 32 bilinearly, or by a border
    of zeros. out_of_distribution: sets scored beside MNIST's test images, svhn and digits
    (scikit-learn's, 8 x 8). examples: test images reported one by one, {set: [row, or
    first_<label>, ...]}. training_images: train on only so many images, the first ones.
    """
    train = _read_mnist(folder, "train", images, training_images)
    tests = {"mnist": _read_mnist(folder, "t10k", images)}
    for name in out_of_distribution:
        if name == "digits":
            flat, labels = digits()
            tests[name] = _resize(flat.reshape(-1, 8, 8).astype(np.float32)), labels
        elif (folder / SVHN).is_file():
            pixels, labels = readers.svhn(folder / SVHN)
            tests[name] = _resize(pixels), labels
    rows = {
        name: {str(image): _find_example(image, tests[name][1]) for image in chosen}
        for name, chosen in (examples or {}).items()
        if name in tests
    }
    return {
        "module": make_layers(activation, pooling),
        "data": train,
        "test": tests,
        "examples": rows,
        "prior_sd": None,
        "initial": draw_from_box(box),
        "evaluate": "loop",  # takes less time than grouped convolutions
        "device": "cuda" if torch.cuda.is_available() else "cpu",
    }


class Convolution(nn.Conv2d):
    """A convolution whose channels come last in memory, for which torch takes half the time."""

    def forward(self, images: Tensor) -> Tensor:
        """Return the maps of images (rows, channels, height, width)."""
        kernels = self.weight.to(memory_format=torch.channels_last)
        return self._conv_forward(images, kernels, self.bias)


def make_layers(activation: str, pooling: str) -> nn.Module:
    """Return the network as a module, images (rows, 1, 32, 32) -> scores (rows, 10).

    Both activations rise, so the largest of four is taken before them: a quarter of the work.
    """
    act = {"tanh": nn.Tanh, "relu": nn.ReLU}[activation]()
    pool = {"max": nn.MaxPool2d, "average": nn.AvgPool2d}[pooling](2)
    after = (pool, act) if pooling == "max" else (act, pool)
    return nn.Sequential(
        *(Convolution(1, 6, 5), *after, Convolution(6, 16, 5), *after, nn.Flatten()),
        *(nn.Linear(400, 120), act, nn.Linear(120, 84), act, nn.Linear(84, 10)),
    )


def draw_from_box(box: float) -> Callable[..., np.ndarray]:
    """Return the function that draws weights uniformly from the prior's box.

    Its half width is box / sqrt(fan-in) for a weight and its bias: Kaiming-uniform with gain
    box / sqrt(3).
    """
    bounds = np.repeat(box / np.sqrt(FANS), SIZES)
    return lambda shape, rng: (rng.random(shape) * 2 - 1) * bounds


def _read_mnist(
    folder: Path, part: str, images: str, count: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the images and labels of one part of MNIST, the first ``count``."""
    pixels = readers.mnist_images(folder / "mnist" / f"{part}-images-idx3-ubyte.gz")[:count]
    labels = readers.mnist_labels(folder / "mnist" / f"{part}-labels-idx1-ubyte.gz")[:count]
    return _resize(pixels, images == "padded"), labels


def _resize(pixels: np.ndarray, padded: bool = False) -> np.ndarray:
    """Return images (rows, height, width) in single precision, (rows, 1, 32, 32).

    pixels: in [0, 1], or bytes. Images of another size are resized bilinearly, or smaller ones
    ``padded`` with zeros on all sides.
    """
    images = torch.from_numpy(pixels)[:, None]
    if not images.is_floating_point():
        images = images / 255
    if padded:
        images = nn.functional.pad(images, [(SIDE - images.shape[2]) // 2] * 4)
    elif images.shape[2] != SIDE:
        images = nn.functional.interpolate(images, size=(SIDE, SIDE), mode="bilinear")
    return images.numpy()


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
