"""Random streams: named by labels, and by nothing else."""

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


def test_a_stream_is_the_same_in_every_process_and_version():
    """Hashes of text differ between processes; streams do not. These numbers must never change."""
    assert first(1, "noise", "ring")[:2] == STREAM
    code = "from concord.streams import generator as g;print(g(1, 'noise', 'ring').integers(2**63))"
    assert int(python(code)) == STREAM[0]
