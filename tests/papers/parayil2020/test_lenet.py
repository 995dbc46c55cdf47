"""LeNet: its gradients and predictions by torch's own layers, its files, and what it refuses."""

import gzip
import inspect
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import concord
import everything
from concord import streams
from concord.errors import ConcordError
from concord.sampling.partition import Partition
from concord_studies.datasets.folder import DataFolder
from concord_studies.problems import torch as networks
from concord_studies.problems._model_files import load_function

FILE = everything.ROOT / "config/papers/parayil2020/lenet.py"
SVHN = "svhn/test_32x32.mat"
EQUAL = Partition.parse({"kind": "equal"}, "partition")
torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all says how")
pytestmark = pytest.mark.thorough


@pytest.fixture
def lenet():
    """The study's file as a module."""
    everything.use()
    return inspect.getmodule(load_function(str(FILE), "network"))


def images(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pixels = rng.random((count, 1, 32, 32), dtype=np.float32)
    return pixels, rng.integers(0, 10, count)


def problem(lenet, agents: int, activation="tanh", pooling="max", box=1.0, rows: int = 6):
    parts = np.array_split(np.random.default_rng(3).permutation(agents * rows), agents)
    return concord.from_torch(
        lenet.make_layers(activation, pooling),
        images(agents * rows, 4),
        shards=parts,
        prior_sd=None,
        initial=lenet.draw_from_box(box),
        evaluate="loop",
    ), parts


@pytest.mark.parametrize("pooling", ["max", "average"])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_gradients_and_predictions_are_those_of_torchs_layers(lenet, activation, pooling):
    """In the textbook's order: the activation, then the pooling; n_i times a batch's mean loss."""
    pool = {"max": torch.nn.MaxPool2d, "average": torch.nn.AvgPool2d}[pooling](2)
    act = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[activation]()
    layers = torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 6, 5), act, pool, torch.nn.Conv2d(6, 16, 5), act, pool),
        *(torch.nn.Flatten(), torch.nn.Linear(400, 120), act, torch.nn.Linear(120, 84), act),
        torch.nn.Linear(84, 10),
    )
    model, parts = problem(lenet, 3, activation, pooling)
    rng, (pixels, labels) = np.random.default_rng(0), images(18, 4)
    pictures, labels, tests = torch.from_numpy(pixels), torch.from_numpy(labels), images(7, 5)[0]
    x, rows = model.initial((2, 3, model.dim), rng), rng.integers(0, 6, (2, 3, 4))
    found, whole = model.batch_gradient(x, rows), model.gradient(x)
    chances = model.predict(x, tests)
    for chain, agent in np.ndindex(2, 3):
        weights = torch.from_numpy(x[chain, agent])
        torch.nn.utils.vector_to_parameters(weights, layers.parameters())
        own = parts[agent]
        for slope, chosen in ((found, own[rows[chain, agent]]), (whole, own)):
            layers.zero_grad()
            torch.nn.functional.cross_entropy(layers(pictures[chosen]), labels[chosen]).backward()
            flat = torch.nn.utils.parameters_to_vector([p.grad for p in layers.parameters()])
            # float32 sums in another order
            np.testing.assert_allclose(slope[chain, agent], 6 * flat, rtol=1e-4, atol=1e-5)
        expected = layers(torch.from_numpy(tests)).softmax(dim=1).detach()
        np.testing.assert_allclose(chances[chain, agent], expected, rtol=1e-5, atol=1e-7)


def test_initial_weights_fill_the_box(lenet):
    """Of half width 1 / sqrt(fan-in): 25, 150, 400, 120 and 84; a bias has that of its weights."""
    shape = 400, 1, 61706
    x = problem(lenet, 1)[0].initial(shape, np.random.default_rng(0))
    widths = np.abs(x).max(axis=(0, 1))
    fans = np.repeat([25, 150, 400, 120, 84], [156, 2416, 48120, 10164, 850])
    np.testing.assert_allclose(widths, 1 / np.sqrt(fans), rtol=0.05)
    wide = problem(lenet, 1, box=2.0)[0].initial(shape, np.random.default_rng(0))
    np.testing.assert_array_equal(wide, 2 * x)
    assert x.dtype == np.float32


def test_images_are_resized_and_scaled(lenet):
    small = np.full((2, 28, 28), 255, dtype=np.uint8)
    small[1, :14] = 0
    found = lenet._resize(small)
    assert found.shape == (2, 1, 32, 32) and found.dtype == np.float32
    assert (found[0] == 1).all()
    # The edge between dark and bright lies halfway, and each side stays as it is.
    assert (found[1, 0, :15] == 0).all() and (found[1, 0, 17:] == 1).all()
    assert found[1, 0, 15, 0] + found[1, 0, 16, 0] == 1
    padded = lenet._resize(small, padded=True)
    scaled = small.astype(np.float32) / 255
    np.testing.assert_array_equal(padded[:, 0], np.pad(scaled, ((0, 0), (2, 2), (2, 2))))


@pytest.fixture
def resources(tmp_path, monkeypatch, lenet):
    """Small files in the formats of MNIST and SVHN, where the data sets' files would be."""
    rng = np.random.default_rng(0)
    (tmp_path / "mnist").mkdir()
    for part, count in (("train", 12), ("t10k", 5)):
        for kind, shape in (("images-idx3", (count, 28, 28)), ("labels-idx1", (count,))):
            head = np.array([0x800 + len(shape), *shape], dtype=">u4").tobytes()
            values = rng.integers(0, 10, shape, dtype=np.uint8).tobytes()
            file = tmp_path / "mnist" / f"{part}-{kind}-ubyte.gz"
            file.write_bytes(gzip.compress(head + values))
    (tmp_path / "svhn").mkdir()
    colors = rng.integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    classes = np.array([[1], [8], [10], [8]], dtype=np.uint8)
    savemat(tmp_path / SVHN, {"X": colors, "y": classes})
    monkeypatch.setattr(lenet.readers, "verify", lambda name, path: path)
    return tmp_path


def built(resources: Path, **options):
    params = networks.Params(
        file=str(FILE), data_sets=("mnist",), optional_data_sets=("svhn",), options=options
    )
    stream = partial(streams.generator, 1)
    return networks.build(params, 3, EQUAL, stream, DataFolder(resources))


def test_sets_and_parts_come_from_the_files(resources, monkeypatch, lenet):
    model = built(resources, examples={"svhn": ["first_8", 0], "digits": [3]})
    assert list(model.tests) == ["mnist", "svhn", "digits"]
    assert [len(test.labels) for test in model.tests.values()] == [5, 4, 1797]
    assert model.tests["svhn"].labels.tolist() == [1, 8, 0, 8]
    assert model.examples == {"svhn": {"first_8": 1, "0": 0}, "digits": {"3": 3}}
    assert model.counts.tolist() == [4, 4, 4] and model.evaluate == "loop"
    x = model.initial((2, 3, model.dim), np.random.default_rng(0))
    chances = model.predictive(x)
    assert chances.shape == (2, 3, 1806, 10)
    np.testing.assert_array_equal(chances[:, :, :5], model.predict(x, model.test[0]))
    assert built(resources, training_images=7).counts.tolist() == [3, 2, 2]
    with pytest.raises(ConcordError, match="examples: 9 names none of 5 images"):
        built(resources, examples={"mnist": [9]})
    monkeypatch.undo()
    with pytest.raises(ConcordError, match=r"ubyte\.gz: has \d+ bytes"):
        built(resources)


def test_svhn_is_left_out_where_its_file_is_not_at_hand(resources):
    (resources / SVHN).unlink()
    model = built(resources, examples={"svhn": ["first_8"]})
    assert list(model.tests) == ["mnist", "digits"] and model.examples == {}


def test_results_do_not_depend_on_the_number_of_threads(resources):
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        model = built(resources)  # which sets one
        x = model.initial((1, 3, model.dim), np.random.default_rng(0))
        found.append(model.gradient(x))
        assert torch.get_num_threads() == 1
    np.testing.assert_array_equal(*found)
