"""Compression of what agents send: what stands for a vector, its size, and samplers that use it."""

import numpy as np
import pytest

from concord import streams
from concord.errors import ConcordError
from concord.networks.compressions import Compression

KINDS = [("qsgd", {"bits": 3}), ("qsgd", {"bits": 6}), ("rand_k", {"share": 0.3})]
DIM, DRAWS = 10, 40_000
VECTOR = streams.generator(1, "vector").standard_normal(DIM) * np.logspace(0, -2, DIM)


def draws(kind, options, vector=VECTOR, number=DRAWS):
    own = Compression(kind, **options)
    x = np.broadcast_to(vector, (number, len(vector))).copy()
    out = own.compress(x, streams.generator(2, kind))
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
