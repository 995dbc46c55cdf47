"""Compression of what agents send: what stands for a vector, its size, and runs that use it."""

import math

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.metrics import Measurement, messages
from concord.metrics.coded_bits import bits
from concord.networks.channel import connect
from concord.networks.compressions import Compression
from concord.networks.network import drawing
from concord.sampling import streams

KINDS = [("qsgd", {"bits": 3}), ("qsgd", {"bits": 6}), ("rand_k", {"share": 0.3})]
EVERY = [*KINDS, ("top_k", {"share": 0.3})]
DIM, DRAWS = 10, 40_000
VECTOR = streams.generator(1, "vector").standard_normal(DIM) * np.logspace(0, -2, DIM)


def draws(kind, options, vector=VECTOR, number=DRAWS):
    own = Compression(kind, **options)
    x = np.broadcast_to(vector, (number, len(vector))).copy()
    out = np.empty_like(x)
    compress = own.compressor(x.shape, x.dtype)
    compress(x, streams.generator(2, kind), out)
    assert (x == vector).all()  # it is left alone
    return out


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_it_is_unbiased(kind, options):
    """Each coordinate's mean is within 4.5 standard errors: by chance one in 1e5 is not."""
    found = draws(kind, options)
    error = found.std(axis=0) / np.sqrt(DRAWS)
    assert (np.abs(found.mean(axis=0) - VECTOR) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("bits", [2, 3, 6])
def test_rounding_has_the_variance_of_its_levels(bits):
    """s r + u is rounded down: the variance is p (1 - p) of a level, p the part above it."""
    levels = 2 ** (bits - 1) - 1
    length = np.linalg.norm(VECTOR)
    part = (levels * np.abs(VECTOR) / length) % 1
    expected = (length / levels) ** 2 * (part * (1 - part)).sum()
    squares = ((draws("qsgd", {"bits": bits}) - VECTOR) ** 2).sum(axis=1)
    assert abs(squares.mean() - expected) < 4.5 * squares.std() / np.sqrt(DRAWS)
    assert expected <= min(DIM / levels**2, np.sqrt(DIM) / levels) * length**2
    found = draws("qsgd", {"bits": bits}, number=200) / (length / levels)
    np.testing.assert_allclose(found, np.rint(found), atol=1e-9)


def test_levels_may_be_given_in_the_place_of_bits():
    same = draws("qsgd", {"levels": 31}, number=50)
    np.testing.assert_array_equal(same, draws("qsgd", {"bits": 6}, number=50))
    for options in ({}, {"bits": 3, "levels": 4}):
        with pytest.raises(ConcordError, match="bits or levels; give one"):
            draws("qsgd", options, number=2)


def test_coded_messages_take_what_their_bound_says():
    """The factors that qlsd2021's notebooks print, and those by the logarithm of base 2."""
    for dim, natural, right in (
        (784, [7.630142176060252, 6.714773425345526, 3.10710776609446], [6.612, 5.565, 2.330]),
        (50, [7.764, 4.755, 2.607], [7.024, 3.847, 1.961]),
    ):
        for levels, told, found in zip((16, 256, 65536), natural, right, strict=True):
            assert 32 * dim / bits(dim, levels, math.log) == pytest.approx(told, abs=5e-4)
            assert 32 * dim / bits(dim, levels, math.log2) == pytest.approx(found, abs=5e-4)
    assert bits(64, 8, math.log2) == 2.8 * 64 + 32
    few = 2 * (2 + 32)  # s (s + sqrt d) of d = 1024, s = 2
    assert bits(1024, 2, math.log2) == (3 + 1.5 * math.log2(2 * (4 + 1024) / few)) * few + 32


def test_random_coordinates_have_their_variance():
    squares = ((draws("rand_k", {"share": 0.3}) - VECTOR) ** 2).sum(axis=1)
    expected = (DIM / 3 - 1) * (VECTOR**2).sum()
    assert abs(squares.mean() - expected) < 4.5 * squares.std() / np.sqrt(DRAWS)
    assert ((draws("rand_k", {"share": 0.3}, number=200) != 0).sum(axis=1) == 3).all()


@pytest.mark.parametrize("many", [1, 3, DIM])
def test_the_largest_coordinates_are_kept(many):
    for found in draws("top_k", {"share": many / DIM}, number=2):
        kept = np.argsort(-np.abs(VECTOR))[:many]
        assert (found[kept] == VECTOR[kept]).all() and (np.delete(found, kept) == 0).all()
        left = ((found - VECTOR) ** 2).sum()
        assert left <= (1 - many / DIM) * (VECTOR**2).sum()


@pytest.mark.parametrize(("kind", "options"), EVERY)
def test_of_zeros_there_are_zeros(kind, options):
    assert not draws(kind, options, np.zeros(DIM), 50).any()


@pytest.mark.parametrize(
    ("kind", "options", "size"),
    [
        ("qsgd", {"bits": 4}, 8 + 50),  # the length, and half a byte each
        ("top_k", {"share": 0.1}, 10 * 8 + 9),  # ten numbers, and 7 bits for each place
        ("rand_k", {"share": 0.1}, 10 * 8 + 4),  # ten numbers and a seed
        ("rand_k", {"share": 1.0}, 100 * 8 + 4),
    ],
)
def test_its_size_is_in_the_bytes(kind, options, size):
    assert Compression(kind, **options).size(100, 8) == size


def run(sampler="de_sgld", feedback=False, compression=None, dim=10, **options):
    rng = np.random.default_rng(0)
    problem = concord.problems.quadratic(
        H=[(i + 1) * np.eye(dim) for i in range(5)], b=rng.standard_normal((5, dim))
    )
    happens = {"compression": compression} if compression else {}
    if feedback:
        happens["error_feedback"] = True
    network = concord.network("ring", 5, **happens, **options.pop("network", {}))
    extra = {"fusion": 0.2} if sampler == "d_ula" else {}
    extra = {"friction": 1.0} if sampler == "de_sghmc" else extra
    made = {
        "step_size": 0.02,
        "iterations": 40,
        "chains": 20,
        "progress": False,
        **extra,
        **options,
    }
    return concord.sample(sampler, problem, network, **made), problem


@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("sampler", ["de_sgld", "d_ula", "de_sghmc"])
def test_what_leaves_nothing_out_changes_nothing(sampler, feedback):
    """Rounding apart: a lossy channel adds up in another order than a perfect one."""
    whole = {"kind": "top_k", "share": 1.0}
    found, _ = run(sampler, feedback, whole)
    expected, _ = run(sampler)
    np.testing.assert_allclose(found["x"], expected["x"], rtol=1e-11, atol=1e-12)


def averages(feedback, iterations):
    """Return W x, and the mean of what agents average to when they send x again and again."""
    few = {"kind": "top_k", "share": 0.1}
    network = concord.network("ring", 5, compression=few, error_feedback=feedback)
    network = drawing(network, streams.generator(1, "masks"))
    x = streams.generator(1, "x").standard_normal((2, 5, DIM))
    channel = connect(network, x)
    mix = channel.mixer(network.metropolis(), "simultaneous")
    step = channel.through(
        lambda state, k, rng: (mix(state, np.zeros_like(x), np.empty_like(x)), 0)
    )
    made = [step(x, k, None)[0] for k in range(iterations)]
    return network.metropolis().dense() @ x, np.mean(made, axis=0)


def test_feedback_sends_in_time_what_compression_leaves_out():
    """What was sent adds up to T x less what is still left out, which does not grow with T."""
    off = {}
    for iterations in (100, 1000):
        expected, found = averages(True, iterations)
        off[iterations] = np.abs(found - expected).max()
    assert off[1000] < 0.02 and off[1000] < off[100] / 5
    expected, found = averages(False, 100)
    assert np.abs(found - expected).max() > 0.5


def test_masks_are_the_same_with_and_without_compression():
    """So that what compression costs is not what other losses cost."""
    loss = {"loss": {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}}
    whole = {"kind": "qsgd", "bits": 16}
    found, expected = run(compression=whole, network=loss)[0], run(network=loss)[0]
    off = np.abs(found["x"] - expected["x"]).max()
    assert 0 < off < 0.05 * expected["x"].std()


def test_bytes_are_those_of_what_is_sent():
    trace, problem = run(compression={"kind": "rand_k", "share": 0.5})
    compression = {"kind": "rand_k", "share": 0.5}
    m = Measurement(
        trace,
        problem,
        concord.network("ring", 5, compression=compression),
        None,
        None,
        None,
        40,
        None,
    )
    (sent,) = [
        row.value
        for row in messages.rows(m)
        if row.metric == "unicast_bytes" and row.agent == "network" and row.iteration == 40
    ]
    assert sent == 40 * 5 * 2 * (5 * 8 + 4)
