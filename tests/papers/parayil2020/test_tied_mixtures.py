"""Mixtures whose chains have sets of points of their own."""

import numpy as np
import pytest

import everything
from concord.problems.from_options import from_options

build = from_options(everything.kind("problems", "tied_mixtures"))


@pytest.mark.parametrize("agents", [1, 5])
def test_chains_of_several_data_sets_see_their_own(agents) -> None:
    """Seven chains on three sets: each has the gradient and the potential of its set alone."""
    several = build(agents=agents, data_sets=3)
    assert (several.sets[0].points == build(agents=agents).sets[0].points).all()
    assert not np.array_equal(several.sets[1].points, several.sets[2].points)
    x = np.random.default_rng(3).standard_normal((7, agents, 2))
    gradients = several.gradient(x)
    potentials = several.potential(x)
    for chain in range(7):
        alone, x_of_chain = several.sets[chain % 3], x[chain : chain + 1]
        expected = alone.gradient(x_of_chain)[0]
        np.testing.assert_allclose(gradients[chain], expected, rtol=1e-12)
        assert np.allclose(potentials[chain], alone.potential(x_of_chain)[0], rtol=1e-14)


def test_exact_pairs_are_the_same_at_every_call_and_for_every_number_of_agents() -> None:
    one, five = build(agents=1, data_sets=2, grid=64), build(agents=5, data_sets=2, grid=64)
    pairs = one.exact_pairs([30, 30])
    assert len(pairs) == 2 and pairs[0].shape == (2, 30, 2)
    for again in (one.exact_pairs([30, 30]), five.exact_pairs([30, 30])):
        assert all(np.array_equal(a, b) for a, b in zip(pairs, again, strict=True))
    assert not np.array_equal(pairs[0][0], pairs[0][1])
