"""The Langevin kick: its equation, its buffers, the order of its sums."""

import tracemalloc

import numpy as np
import pytest

from concord.sampling.kick import kick, normal

SHAPE, ETA = (50, 6, 40), 0.03


def draw(seed, dtype=float):
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(dtype)


def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sd", [None, 0.5])
def test_it_is_its_equation_to_the_last_bit(sd, dtype):
    g, x, w = draw(1, dtype), draw(2, dtype), rng().standard_normal(SHAPE, dtype)
    w *= np.sqrt(2 * ETA) if sd is None else sd
    move = kick(rng(), ETA, g.copy(), np.empty_like(x), sd=sd)
    assert (move == w - dtype(ETA) * g).all() and move.dtype == dtype
    moved = x.copy()
    assert kick(rng(), ETA, g.copy(), out=moved, x=moved, sd=sd) is moved
    assert (moved == (x - dtype(ETA) * g) + w).all()


def test_noise_at_hand_is_added_and_none_is_drawn():
    g, x, common = draw(1), draw(2), draw(3)[:, :1]
    source = rng()
    before = source.bit_generator.state
    moved = kick(source, ETA, g.copy(), np.empty_like(x), x, noise=common)
    assert (moved == (x - ETA * g) + common).all()
    noise = draw(4)
    assert (kick(source, ETA, g.copy(), noise, noise=noise) == draw(4) - ETA * g).all()
    assert source.bit_generator.state == before


def test_gradients_are_kept_where_there_is_room_for_their_product():
    g, drift = draw(1), np.empty(SHAPE)
    kick(rng(), ETA, g, np.empty(SHAPE), drift=drift)
    assert (g == draw(1)).all() and (drift == ETA * g).all()


@pytest.mark.parametrize("onto", [False, True])
def test_nothing_is_allocated(onto):
    g, out, source = draw(1), draw(2), rng()
    tracemalloc.start()
    try:
        kick(source, ETA, g, out, out if onto else None)
        assert tracemalloc.get_traced_memory()[1] < g.nbytes / 10
    finally:
        tracemalloc.stop()


def test_standard_deviations_broadcast():
    sd = np.arange(1.0, 7.0)[:, None]
    found = normal(rng(), sd, np.empty(SHAPE))
    assert (found == sd * rng().standard_normal(SHAPE)).all()
