"""Coded messages: how many bits their bound says."""

import math

import pytest

import everything

bits = everything.kind("metrics", "coded_bits").bound_bits


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
