"""LeNet: gradients against differences and by hand, the sampler over torch against numpy."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import everything
from concord import streams
from concord.arguments import ChosenSampler
from concord.batch_gradients import MiniBatches
from concord.errors import ConcordError
from concord.loop import run
from concord.networks.construction import network
from concord.networks.network import Network
from concord.options import build
from concord.problem import CountedProblem
from concord.sampling import initial
from concord.sampling.partition import Partition
from concord_studies.datasets.folder import DataFolder
from processes import python

lenet = everything.kind("problems", "lenet")
VERIFY = lenet.readers.verify
LENET5 = lenet.lenet5()
REASON = "PyTorch is not installed; install the extra: python -m pip install -e '.[lenet]'"
EQUAL = Partition.parse({"kind": "equal"}, "partition")
pytestmark = pytest.mark.thorough


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason=REASON)


def images(count: int, seed: int, side: int = lenet.SIDE) -> lenet.Images:
    rng = np.random.default_rng(seed)
    pixels = rng.random((count, side, side), dtype=np.float32)
    return lenet.Images(rng.integers(0, 10, count), lambda: pixels)


def problem(network: lenet.Network, agents: int = 2, rows: int = 6, **options) -> lenet.Classifier:
    side = options.get("side", lenet.SIDE)
    parts = np.array_split(np.random.default_rng(3).permutation(agents * rows), agents)
    tests = {"mnist": images(7, 5, side), "digits": images(4, 6, side)}
    return lenet.Classifier(network, images(agents * rows, 4, side), parts, tests, **options)


def simulate(sampler, classifier, x0, steps, rng):
    """Return the last state of a sampler's mini-batch chains."""
    chosen = ChosenSampler.parse(sampler, "sampler")
    graph = network("ring", classifier.agents).graph
    running = Network(graph, None, "network", chosen.order).start(x0)
    counted = CountedProblem(MiniBatches(classifier, chosen.batches, len(x0), rng), len(x0))
    return run(chosen.params, counted, running, x0, steps, rng, [])


def test_size_and_box_are_those_of_lenet5():
    assert sum(LENET5.sizes) == 61706
    assert LENET5.bounds.shape == (61706,)
    # fan-in: 25, 150, 400, 120, 84
    np.testing.assert_allclose(
        np.unique(LENET5.bounds), 1 / np.sqrt([400, 150, 120, 84, 25]), rtol=1e-12
    )
    np.testing.assert_allclose(lenet.lenet5(box=6**0.5).bounds, 6**0.5 * LENET5.bounds, rtol=1e-12)


def test_gradient_is_that_of_the_potential(torch):
    classifier = problem(LENET5, rows=2, dtype=np.float64)
    rng = np.random.default_rng(0)
    x = classifier.initial((1, 2, classifier.dim), rng)
    gradient = classifier.gradient(x)
    # Entries of every layer, weights and biases; and a random direction for all the others.
    starts = np.cumsum([0, *LENET5.sizes[:-1]])
    for entry in (*starts, classifier.dim - 1):
        step = np.zeros_like(x)
        step[..., entry] = 1e-5
        slope = (classifier.potential(x + step) - classifier.potential(x - step)) / 2e-5
        np.testing.assert_allclose(slope, gradient[..., entry], rtol=1e-5, atol=1e-6)
    direction = rng.standard_normal(x.shape)
    slope = classifier.potential(x + 1e-6 * direction) - classifier.potential(x - 1e-6 * direction)
    np.testing.assert_allclose(slope / 2e-6, (direction * gradient).sum(axis=-1), rtol=1e-6)


def test_gradient_is_that_of_each_agent_alone(torch):
    classifier = problem(LENET5, agents=3)
    rng = np.random.default_rng(0)
    x = classifier.initial((2, 3, classifier.dim), rng)
    rows = rng.integers(0, 6, (2, 3, 4))
    out = classifier.batch_gradient(x, rows)
    pixels = torch.from_numpy(classifier.train.load())[:, None]
    labels = torch.from_numpy(classifier.train.labels)
    for chain_, agent in np.ndindex(2, 3):
        # The network as torch's own layers, in the textbook's order: tanh, then the maximum.
        layers = torch.nn.Sequential(
            *(torch.nn.Conv2d(1, 6, 5), torch.nn.Tanh(), torch.nn.MaxPool2d(2)),
            *(torch.nn.Conv2d(6, 16, 5), torch.nn.Tanh(), torch.nn.MaxPool2d(2)),
            *(torch.nn.Flatten(), torch.nn.Linear(400, 120), torch.nn.Tanh()),
            *(torch.nn.Linear(120, 84), torch.nn.Tanh(), torch.nn.Linear(84, 10)),
        )
        torch.nn.utils.vector_to_parameters(torch.from_numpy(x[chain_, agent]), layers.parameters())
        chosen = classifier.parts[agent][rows[chain_, agent]]
        loss = torch.nn.functional.cross_entropy(layers(pixels[chosen]), labels[chosen])
        loss.backward()
        flat = torch.nn.utils.parameters_to_vector([p.grad for p in layers.parameters()])
        # n_i times the mean over the batch; float32 sums in another order
        np.testing.assert_allclose(out[chain_, agent], 6 * flat.numpy(), rtol=1e-4, atol=1e-5)


class Softmax:
    """Multinomial logistic regression in numpy: what ``problem`` gives for one linear layer."""

    dtype = np.dtype(np.float64)

    def __init__(self, twin: lenet.Classifier) -> None:
        self.agents, self.dim, self.counts = twin.agents, twin.dim, twin.counts
        self.pixels = twin.train.load().reshape(len(twin.train.labels), -1).astype(float)
        self.hot = np.eye(10)[twin.train.labels]
        self.parts = twin.parts

    def batch_gradient(self, x, rows):
        out = np.empty_like(x)
        for c, i in np.ndindex(x.shape[:2]):
            chosen = self.parts[i][rows[c, i]]
            weight, bias = x[c, i, :-10].reshape(10, -1), x[c, i, -10:]
            scores = self.pixels[chosen] @ weight.T + bias
            share = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            residual = (share - self.hot[chosen]) * self.counts[i] / rows.shape[2]
            out[c, i, :-10] = (residual.T @ self.pixels[chosen]).ravel()
            out[c, i, -10:] = residual.sum(axis=0)
        return out


def test_d_ula_over_torch_is_d_ula_over_numpy(torch):
    def forward(weights, pictures):
        return torch.nn.functional.linear(pictures.flatten(1), *weights)

    linear = lenet.Network(((10, 16), (10,)), forward)
    over_torch = problem(linear, agents=3, dtype=np.float64, side=4)
    over_numpy = Softmax(over_torch)
    options = {"step_size": 0.01, "fusion": 0.1, "batch_size": 3, "batch_order": "epochs"}
    x0 = over_torch.initial((2, 3, over_torch.dim), streams.generator(1, "initial"))
    ends = []
    for each in (over_torch, over_numpy):
        rng = streams.generator(1, "noise")
        ends.append(simulate({"kind": "d_ula", **options}, each, x0, 20, rng).x)
    # float64 on both sides: rounding only
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9, atol=1e-9)
    assert np.abs(ends[0] - x0).max() > 0.1


@pytest.mark.parametrize("ties", [False, True])
def test_pooled_convolution_is_torchs(torch, ties):
    """Values and gradients; images of zeros and ones make blocks with several largest members."""
    rng = np.random.default_rng(0)
    pixels = rng.random((3, 2, 12, 10))
    inputs = [rng.standard_normal((4, 2, 5, 5)), rng.standard_normal(4)]
    inputs.append(pixels.round() if ties else pixels)
    weight, bias, given = (torch.from_numpy(each).requires_grad_() for each in inputs)
    plain = torch.nn.functional.max_pool2d(torch.nn.functional.conv2d(given, weight, bias), 2)
    ours = lenet.convolved_and_pooled(weight, bias, given)
    np.testing.assert_allclose(ours.detach(), plain.detach(), rtol=1e-12, atol=1e-12)
    direction = torch.from_numpy(rng.standard_normal(plain.shape))
    for mine, torchs in zip(
        torch.autograd.grad(ours, (weight, bias, given), direction),
        torch.autograd.grad(plain, (weight, bias, given), direction),
        strict=True,
    ):
        np.testing.assert_allclose(mine, torchs, rtol=1e-12, atol=1e-12)


def test_initial_positions_have_the_problems_dtype():
    classifier = problem(LENET5)
    normal = initial.Law("normal")
    rng = np.random.default_rng(0)
    assert initial.positions(normal, classifier, (1, 2, 5), rng).dtype == np.float32
    plain = SimpleNamespace()
    assert initial.positions(normal, plain, (1, 2, 5), rng).dtype == np.float64
    with pytest.raises(ConcordError, match="states no law of initial positions"):
        initial.positions(initial.Law("problem"), plain, (1, 2, 5), rng)


def test_images_are_resized_and_scaled(torch):
    small = np.full((2, 28, 28), 255, dtype=np.uint8)
    small[1, :14] = 0
    tensor = lenet.Images(np.zeros(2, int), lambda: small).tensor(32, "float32").cpu()
    assert tensor.shape == (2, 1, 32, 32) and tensor.dtype == torch.float32
    assert (tensor[0] == 1).all()
    # The edge between dark and bright lies halfway, and each side stays as it is.
    assert (tensor[1, 0, :15] == 0).all() and (tensor[1, 0, 17:] == 1).all()
    assert tensor[1, 0, 15, 0] + tensor[1, 0, 16, 0] == 1
    same = np.random.default_rng(0).random((1, 32, 32), dtype=np.float32)
    kept = lenet.Images(np.zeros(1, int), lambda: same).tensor(32, "float32").cpu()
    np.testing.assert_array_equal(kept[0, 0], same[0])


def test_padded_images_have_a_border_of_zeros(torch):
    small = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8)
    tensor = lenet.Images(np.zeros(3, int), lambda: small, padded=True).tensor(32, "float64").cpu()
    np.testing.assert_array_equal(tensor[:, 0], np.pad(small, ((0, 0), (2, 2), (2, 2))) / 255)


@pytest.mark.parametrize("pooling", ["max", "average"])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_scores_are_those_of_torchs_layers(torch, activation, pooling):
    kind = {"max": torch.nn.MaxPool2d, "average": torch.nn.AvgPool2d}[pooling]
    act = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[activation]
    layers = torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 6, 5), act(), kind(2), torch.nn.Conv2d(6, 16, 5), act(), kind(2)),
        *(torch.nn.Flatten(), torch.nn.Linear(400, 120), act(), torch.nn.Linear(120, 84), act()),
        torch.nn.Linear(84, 10),
    ).double()
    pictures = torch.from_numpy(np.random.default_rng(0).random((3, 1, 32, 32)))
    network = lenet.lenet5(activation, pooling)
    scores = network.forward(list(layers.parameters()), pictures)
    # float64, sums in another order
    np.testing.assert_allclose(scores.detach(), layers(pictures).detach(), rtol=1e-10, atol=1e-12)


def test_results_do_not_depend_on_the_number_of_threads(torch):
    classifier = problem(LENET5, agents=1, rows=200)
    x = classifier.initial((1, 1, classifier.dim), np.random.default_rng(0))
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(classifier.gradient(x))
    np.testing.assert_array_equal(*found)


def test_gradient_on_a_gpu_is_that_on_the_cpu(torch, monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    rng = np.random.default_rng(0)
    found = []
    for device in ("cuda", "cpu"):
        monkeypatch.setattr(lenet, "_device", lambda device=device: device)
        classifier = problem(LENET5, agents=5, rows=256)
        x = classifier.initial((1, 5, classifier.dim), np.random.default_rng(1))
        rows = np.random.default_rng(2).integers(0, 256, (1, 5, 256))
        found.append(classifier.batch_gradient(x, rows))
        found.append(classifier.predictive(x))
    del rng
    # float32 sums over 256 images in another order
    scale = np.abs(found[2]).max()
    np.testing.assert_allclose(found[0], found[2], rtol=1e-3, atol=1e-5 * scale)
    np.testing.assert_allclose(found[1], found[3], rtol=1e-4, atol=1e-6)


def test_without_torch_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(lenet, "find_spec", lambda name: None)
    assert "pip install -e '.[lenet]'" in str(lenet.unavailable())
    classifier = problem(LENET5)
    x = np.zeros((1, 2, classifier.dim), dtype=np.float32)
    with pytest.raises(ConcordError, match="PyTorch"):
        classifier.batch_gradient(x, np.zeros((1, 2, 2), dtype=int))


def test_importing_the_problem_does_not_import_torch():
    code = "import sys; from pathlib import Path; from concord import kinds; "
    code += "import concord_studies; "
    code += "kinds.use(Path(sys.argv[1])); kinds.find('problems', 'lenet').Params(); "
    code += "assert 'torch' not in sys.modules"
    python(code, everything.ROOT / "config" / "papers" / "parayil2020")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out_of_distribution": ["svnh"]}, "svnh"),
        ({"training_images": 0}, "training_images"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ConcordError, match=message):
        build(lenet.Params, options, "problem")


@pytest.fixture
def resources(tmp_path, monkeypatch):
    """Small files in the formats of MNIST and SVHN, where the data sets' files would be."""
    import gzip

    from scipy.io import savemat

    rng = np.random.default_rng(0)
    (tmp_path / "mnist").mkdir()
    for part, count in (("train", 12), ("t10k", 5)):
        for kind, shape in (("images-idx3", (count, 28, 28)), ("labels-idx1", (count,))):
            head = np.array([0x800 + len(shape), *shape], dtype=">u4").tobytes()
            values = rng.integers(0, 10, shape, dtype=np.uint8).tobytes()
            with gzip.open(tmp_path / "mnist" / f"{part}-{kind}-ubyte.gz", "wb") as file:
                file.write(head + values)
    (tmp_path / "svhn").mkdir()
    colors = rng.integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    classes = np.array([[1], [8], [10], [8]], dtype=np.uint8)
    savemat(tmp_path / lenet.SVHN, {"X": colors, "y": classes})
    monkeypatch.setattr(lenet, "TRAIN", 12)
    monkeypatch.setattr(lenet.readers, "verify", lambda name, path: path)
    return tmp_path


def built(resources: Path, **options) -> lenet.Classifier:
    params = build(lenet.Params, options, "problem")
    return lenet.build(
        params, 3, EQUAL, lambda what: streams.generator(1, what, "mnist"), DataFolder(resources)
    )


def test_sets_and_parts_come_from_the_files(resources):
    classifier = built(resources, examples={"svhn": ["first_8", 0], "digits": [3]})
    assert list(classifier.tests) == ["mnist", "svhn", "digits"]
    assert [len(test.labels) for test in classifier.tests.values()] == [5, 4, 1797]
    assert classifier.tests["svhn"].labels.tolist() == [1, 8, 0, 8]
    assert classifier.examples == {"svhn": {"first_8": 1, "0": 0}, "digits": {"3": 3}}
    assert sorted(np.concatenate(classifier.parts)) == list(range(12))
    assert classifier.counts.tolist() == [4, 4, 4]
    assert built(resources, training_images=7).counts.tolist() == [3, 2, 2]


def test_options_of_the_network_reach_it(torch, resources):
    plain = built(resources)
    x = plain.initial((1, 3, plain.dim), np.random.default_rng(0))
    for options in ({"activation": "relu"}, {"pooling": "average"}, {"images": "padded"}):
        other = built(resources, **options)
        assert not np.allclose(other.predictive(x)[:, :, :5], plain.predictive(x)[:, :, :5])
    wide = built(resources, box=2.0).initial((1, 3, plain.dim), np.random.default_rng(0))
    np.testing.assert_array_equal(wide, 2 * x)


def test_files_are_used_only_as_they_are_registered(resources, monkeypatch):
    monkeypatch.setattr(lenet.readers, "verify", VERIFY)
    with pytest.raises(
        ConcordError, match=r"ubyte\.gz: has \d+ bytes .*; make it with `concord fetch"
    ):
        built(resources)


def test_svhn_is_left_out_where_its_file_is_not_at_hand(resources):
    (resources / lenet.SVHN).unlink()
    params = lenet.Params()
    assert lenet.needs(params) == ("mnist",) and lenet.takes(params) == ("svhn",)
    classifier = built(resources, examples={"svhn": ["first_8"]})
    assert list(classifier.tests) == ["mnist", "digits"]
    assert classifier.examples == {}
    assert lenet.takes(lenet.Params(out_of_distribution=("digits",))) == ()


def test_weights_that_are_no_numbers_classify_nothing_right(torch, resources):
    classifier = built(resources)
    x = np.full((1, 3, classifier.dim), np.nan, dtype=classifier.dtype)
    assert (classifier.accuracy(x) == 0).all()
