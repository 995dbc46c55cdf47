"""Random streams: named by labels, and by nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.streams import generator
from processes import python

STREAM = [479857035612217404, 2384650059007145754]

labels = st.lists(st.one_of(st.text(max_size=5), st.integers(0, 99)), min_size=1, max_size=4)


def first(seed, *names):
    return generator(seed, *names).integers(0, 2**63, 4).tolist()


@given(labels, labels)
def test_other_labels_name_another_stream(one, other):
    same = [str(label) for label in one] == [str(label) for label in other]
    assert (first(1, *one) == first(1, *other)) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [(("ab", "c"), ("a", "bc")), (("a", ""), ("a",)), (("a", "b"), ("b", "a")), (("1:a",), ("a",))],
)
def test_labels_are_not_run_together(one, other):
    assert first(1, *one) != first(1, *other)


def test_streams_are_not_correlated():
    """Sample correlations of pairs of streams, within five standard errors."""
    n = 20_000
    draws = np.array([generator(1, "noise", i).standard_normal(n) for i in range(6)])
    correlations = np.corrcoef(draws)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(n)


def test_a_stream_is_the_same_in_every_process_and_version():
    """Hashes of text differ between processes; streams do not. These numbers must never change."""
    assert first(1, "noise", "ring")[:2] == STREAM
    code = "from concord.streams import generator as g;print(g(1, 'noise', 'ring').integers(2**63))"
    assert int(python(code)) == STREAM[0]
