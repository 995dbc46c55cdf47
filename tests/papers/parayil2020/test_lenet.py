"""LeNet: its gradients and predictions by torch's own layers, its files, and what it refuses."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import everything
from concord import streams
from concord.errors import ConcordError
from concord.options import build
from concord.sampling.partition import Partition
from concord_studies.datasets.folder import DataFolder
from processes import python

lenet = everything.kind("problems", "lenet")
VERIFY = lenet.readers.verify
REASON = "PyTorch is not installed; install the extra: python -m pip install -e '.[lenet]'"
EQUAL = Partition.parse({"kind": "equal"}, "partition")
pytestmark = pytest.mark.thorough


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason=REASON)


def images(count: int, seed: int) -> lenet.Images:
    rng = np.random.default_rng(seed)
    pixels = rng.random((count, 32, 32), dtype=np.float32)
    return lenet.Images(rng.integers(0, 10, count), lambda: pixels)


def problem(agents: int, rows: int = 6, **options) -> lenet.LeNet:
    parts = np.array_split(np.random.default_rng(3).permutation(agents * rows), agents)
    tests = {"mnist": images(7, 5), "digits": images(4, 6)}
    return lenet.LeNet(lenet.Params(**options), images(agents * rows, 4), parts, tests, {})


@pytest.mark.parametrize("pooling", ["max", "average"])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_gradients_and_predictions_are_those_of_torchs_layers(torch, activation, pooling):
    """In the textbook's order: the activation, then the pooling; n_i times a batch's mean loss."""
    pool = {"max": torch.nn.MaxPool2d, "average": torch.nn.AvgPool2d}[pooling](2)
    act = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[activation]()
    layers = torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 6, 5), act, pool, torch.nn.Conv2d(6, 16, 5), act, pool),
        *(torch.nn.Flatten(), torch.nn.Linear(400, 120), act, torch.nn.Linear(120, 84), act),
        torch.nn.Linear(84, 10),
    )
    model, rng = problem(3, activation=activation, pooling=pooling), np.random.default_rng(0)
    x, rows = model.initial((2, 3, model.dim), rng), rng.integers(0, 6, (2, 3, 4))
    found, whole, chances = model.batch_gradient(x, rows), model.gradient(x), model.predictive(x)
    pictures, labels = model.train.tensor.cpu(), torch.from_numpy(model.train.labels)
    tests = torch.cat([test.tensor.cpu() for test in model.tests.values()])
    for chain, agent in np.ndindex(2, 3):
        weights = torch.from_numpy(x[chain, agent])
        torch.nn.utils.vector_to_parameters(weights, layers.parameters())
        own = model.parts[agent]
        for slope, chosen in ((found, own[rows[chain, agent]]), (whole, own)):
            layers.zero_grad()
            torch.nn.functional.cross_entropy(layers(pictures[chosen]), labels[chosen]).backward()
            flat = torch.nn.utils.parameters_to_vector([p.grad for p in layers.parameters()])
            # float32 sums in another order
            np.testing.assert_allclose(slope[chain, agent], 6 * flat, rtol=1e-4, atol=1e-5)
        expected = layers(tests).softmax(dim=1).detach()
        np.testing.assert_allclose(chances[chain, agent], expected, rtol=1e-5, atol=1e-7)


def test_initial_weights_fill_the_box():
    """Of half width 1 / sqrt(fan-in): 25, 150, 400, 120 and 84; a bias has that of its weights."""
    x = problem(1).initial((400, 1, 61706), np.random.default_rng(0))
    widths = np.abs(x).max(axis=(0, 1))
    fans = np.repeat([25, 150, 400, 120, 84], [156, 2416, 48120, 10164, 850])
    np.testing.assert_allclose(widths, 1 / np.sqrt(fans), rtol=0.05)
    wide = problem(1, box=2.0).initial((400, 1, 61706), np.random.default_rng(0))
    np.testing.assert_array_equal(wide, 2 * x)
    assert x.dtype == np.float32


def test_images_are_resized_and_scaled(torch):
    small = np.full((2, 28, 28), 255, dtype=np.uint8)
    small[1, :14] = 0
    tensor = lenet.Images(np.zeros(2, int), lambda: small).tensor.cpu()
    assert tensor.shape == (2, 1, 32, 32) and tensor.dtype == torch.float32
    assert (tensor[0] == 1).all()
    # The edge between dark and bright lies halfway, and each side stays as it is.
    assert (tensor[1, 0, :15] == 0).all() and (tensor[1, 0, 17:] == 1).all()
    assert tensor[1, 0, 15, 0] + tensor[1, 0, 16, 0] == 1
    padded = lenet.Images(np.zeros(2, int), lambda: small, padded=True).tensor.cpu()
    np.testing.assert_array_equal(padded[:, 0], np.pad(small, ((0, 0), (2, 2), (2, 2))) / 255)


def test_results_do_not_depend_on_the_number_of_threads(torch):
    model, found = problem(1, rows=200), []
    x = model.initial((1, 1, model.dim), np.random.default_rng(0))
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(model.gradient(x))
    np.testing.assert_array_equal(*found)


def test_without_torch_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(lenet, "find_spec", lambda name: None)
    model = problem(2)
    with pytest.raises(ConcordError, match=r"pip install -e '\.\[lenet\]'"):
        model.gradient(np.zeros((1, 2, model.dim), dtype=np.float32))


def test_importing_the_problem_does_not_import_torch():
    code = "import sys; from pathlib import Path; from concord import kinds; "
    code += "import concord_studies; "
    code += "kinds.use(Path(sys.argv[1])); kinds.find('problems', 'lenet').Params(); "
    code += "assert 'torch' not in sys.modules"
    python(code, everything.ROOT / "config" / "papers" / "parayil2020")


@pytest.fixture
def resources(tmp_path, monkeypatch):
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
    savemat(tmp_path / lenet.SVHN, {"X": colors, "y": classes})
    monkeypatch.setattr(lenet, "TRAIN", 12)
    monkeypatch.setattr(lenet.readers, "verify", lambda name, path: path)
    return tmp_path


def built(resources: Path, **options) -> lenet.LeNet:
    params = build(lenet.Params, options, "problem")
    return lenet.build(
        params, 3, EQUAL, lambda what: streams.generator(1, what, "mnist"), DataFolder(resources)
    )


def test_sets_and_parts_come_from_the_files(resources, monkeypatch):
    model = built(resources, examples={"svhn": ["first_8", 0], "digits": [3]})
    assert list(model.tests) == ["mnist", "svhn", "digits"]
    assert [len(test.labels) for test in model.tests.values()] == [5, 4, 1797]
    assert model.tests["svhn"].labels.tolist() == [1, 8, 0, 8]
    assert model.examples == {"svhn": {"first_8": 1, "0": 0}, "digits": {"3": 3}}
    assert sorted(np.concatenate(model.parts)) == list(range(12))
    assert built(resources, training_images=7).counts.tolist() == [3, 2, 2]
    with pytest.raises(ConcordError, match="examples: 9 names none of 5 images"):
        built(resources, examples={"mnist": [9]})
    monkeypatch.setattr(lenet.readers, "verify", VERIFY)
    with pytest.raises(ConcordError, match=r"ubyte\.gz: has \d+ bytes"):
        built(resources)


def test_svhn_is_left_out_where_its_file_is_not_at_hand(resources):
    (resources / lenet.SVHN).unlink()
    assert lenet.DECLARES.takes(lenet.Params()) == ("svhn",)
    model = built(resources, examples={"svhn": ["first_8"]})
    assert list(model.tests) == ["mnist", "digits"] and model.examples == {}
