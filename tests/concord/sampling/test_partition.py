"""Partitions: every row once, sizes as asked; and the padded data of agents."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.errors import ConcordError
from concord.sampling.partition import AgentData, Partition, PartitionChoice

WHERE = "config/papers/x.yaml: experiments.a.partition"


def stream(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def divided(rng, rows, agents, kind, **options):
    """Return the rows of each agent; ``rows`` is their number, or the class of each."""
    return Partition(PartitionChoice(kind, **options), WHERE).split(rows, agents, rng)


def equal(rows, agents, rng):
    return divided(rng, rows, agents, "equal")


def sizes(counts, rng):
    return divided(rng, sum(counts), len(counts), "sizes", sizes=list(counts))


def dirichlet(labels, agents, concentration, minimum, rng):
    options = {"concentration": concentration, "minimum": max(minimum, 1)}
    return divided(rng, labels, agents, "dirichlet", **options)


def assert_every_row_once(parts, rows):
    assert sorted(np.concatenate(parts).tolist()) == list(range(rows))


seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(0, 60), seeds)
def test_equal(agents, extra, seed):
    rows = agents + extra
    parts = equal(rows, agents, stream(seed))
    assert len(parts) == agents
    assert_every_row_once(parts, rows)
    counts = [len(part) for part in parts]
    assert max(counts) - min(counts) <= 1


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 300), st.floats(1, 20), seeds)
def test_skewed(agents, extra, ratio, seed):
    """Sizes fall geometrically, up to rounding of either end."""
    rows = 30 * agents + extra
    parts = divided(stream(seed), rows, agents, "skewed", ratio=ratio)
    assert_every_row_once(parts, rows)
    counts = np.array([len(part) for part in parts])
    exact = ratio ** -np.linspace(0, 1, agents)
    assert np.abs(counts - rows * exact / exact.sum()).max() <= 1


def test_a_skew_that_leaves_an_agent_without_rows_is_refused():
    with pytest.raises(ConcordError, match="10 rows at ratio 50 leave an agent of 5 without any"):
        divided(stream(), 10, 5, "skewed", ratio=50.0)


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), seeds)
def test_sizes(counts, seed):
    parts = sizes(counts, stream(seed))
    assert [len(part) for part in parts] == counts
    assert_every_row_once(parts, sum(counts))


@settings(deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(0, 5),
    st.floats(0.3, 100),
    seeds,
)
def test_dirichlet(agents, classes, minimum, concentration, seed):
    labels = stream(seed).integers(classes, size=400) * 2 - 1
    parts = dirichlet(labels, agents, concentration, minimum, stream(seed))
    assert len(parts) == agents
    assert_every_row_once(parts, 400)
    assert min(len(part) for part in parts) >= max(minimum, 1)


def test_parts_are_random_and_repeatable():
    for divide in (
        lambda rng: equal(50, 5, rng),
        lambda rng: sizes([10, 20, 20], rng),
        lambda rng: dirichlet(np.zeros(50), 5, 2.0, 1, rng),
    ):
        first, again, other = (np.concatenate(divide(stream(seed))) for seed in (1, 1, 2))
        assert (first == again).all()
        assert (first != other).any()
        assert (np.diff(first) != 1).any()


def test_each_row_is_as_likely_to_go_to_each_agent():
    # Row 0 goes to one of 5 agents: 1000 draws, 200 expected, deviations within 5 sd.
    rng = stream(3)
    hits = [next(i for i, part in enumerate(equal(20, 5, rng)) if 0 in part) for _ in range(1000)]
    counts = np.bincount(hits, minlength=5)
    assert abs(counts - 200).max() < 5 * np.sqrt(1000 * 0.2 * 0.8)


def test_dirichlet_shares_have_the_law_of_the_concentration():
    # A share of the symmetric law over N agents has mean 1/N and variance
    # (1/N)(1 - 1/N)/(N c + 1). At c = 5 no draw is refused, so the law is not conditioned.
    agents, concentration, draws = 4, 5.0, 400
    labels, rng = np.repeat([0, 1], 2000), stream(4)
    shares = np.array(
        [
            [np.count_nonzero(labels[part] == 1) / 2000 for part in parts]
            for parts in (dirichlet(labels, agents, concentration, 1, rng) for _ in range(draws))
        ]
    )
    variance = 0.25 * 0.75 / (agents * concentration + 1)
    assert abs(shares.mean(axis=0) - 0.25).max() < 5 * np.sqrt(variance / draws)
    # The law's kurtosis is below that of the normal one: 2/draws bounds the relative variance.
    assert abs(shares.var(axis=0) / variance - 1).max() < 5 * np.sqrt(2 / draws)


def test_dirichlet_divides_classes_independently():
    labels = np.repeat([0, 1], 1000)
    parts = dirichlet(labels, 5, 0.5, 20, stream(0))
    shares = [labels[part].mean() for part in parts]
    assert max(shares) - min(shares) > 0.2
    assert min(len(part) for part in parts) >= 20


# The user's choice


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "equal",
            ": 'equal' is not a mapping with a kind: consecutive, dirichlet, equal, sizes",
        ),
        (
            {},
            ": the key 'kind' is missing; add one of consecutive, dirichlet, equal, sizes",
        ),
        ({"kind": "equals"}, ".kind: there is no partition 'equals'; did you mean 'equal'?"),
        ({"kind": 3}, ".kind: there is no partition 3; choose"),
        ({"kind": "equal", "sizes": [1]}, ".sizes: unknown key"),
        ({"kind": "sizes"}, ": the key 'sizes' is missing"),
        ({"kind": "sizes", "sizes": [4, 0, 6]}, ".sizes[1]: 0 is "),
        ({"kind": "sizes", "sizes": [5, 5]}, ": 2 sizes for 3 agents; give one per agent"),
        ({"kind": "sizes", "sizes": [5, 5, 5]}, ": sizes add up to 15 but there are 10 rows"),
        ({"kind": "dirichlet", "concentration": 0}, ".concentration: 0"),
        ({"kind": "dirichlet"}, ": the key 'concentration' is missing"),
        (
            {"kind": "dirichlet", "concentration": 1.0, "minimum": 4},
            ": 10 rows cannot give each of 3 agents 4 rows; use fewer agents or more data",
        ),
        (
            {"kind": "dirichlet", "concentration": 0.001, "minimum": 3},
            ": no draw of 1000 gave each of 3 agents the minimum of 3 rows at concentration 0.001; "
            "lower the minimum or raise the concentration",
        ),
    ],
)
def test_wrong_partition(options, message):
    with pytest.raises(ConcordError) as error:
        Partition.parse(options, WHERE).split(np.zeros(10, dtype=int), 3, stream())
    assert str(error.value).startswith(WHERE + message)


def test_dirichlet_needs_classes():
    chosen = Partition.parse({"kind": "dirichlet", "concentration": 1.0}, WHERE)
    with pytest.raises(ConcordError, match=r"x\.yaml: .*: kind dirichlet needs rows with classes"):
        chosen.split(10, 2, stream())


@pytest.mark.parametrize(
    "divide",
    [
        lambda: equal(3, 4, stream()),
        lambda: dirichlet(np.array([0, 1, 1]), 4, 1.0, 0, stream()),
    ],
)
def test_more_agents_than_rows(divide):
    with pytest.raises(
        ConcordError, match=r": 3 rows cannot give each of 4 agents a row; use fewer"
    ):
        divide()


# AgentData


def test_agent_data_is_padded_with_zeros_and_pools_in_agent_order():
    features = np.arange(1.0, 13.0).reshape(6, 2)
    targets = np.array([1, 2, 3, 4, 5, 6])
    parts = [np.array([4, 0]), np.array([3]), np.array([5, 1, 2])]
    data = AgentData.from_parts(features, targets, parts)
    assert data.counts.tolist() == [2, 1, 3]
    assert data.features.shape == (3, 3, 2)
    assert data.targets.tolist() == [[5, 1, 0], [4, 0, 0], [6, 2, 3]]
    assert data.mask.tolist() == [[1, 1, 0], [1, 0, 0], [1, 1, 1]]
    assert data.mask.dtype == float
    assert (data.features[data.mask == 0] == 0).all()
    pooled_features, pooled_targets = data.all_rows()
    assert pooled_targets.tolist() == [5, 1, 4, 6, 2, 3]
    assert (pooled_features == features[[4, 0, 3, 5, 1, 2]]).all()


def test_consecutive_keeps_the_order():
    parts = Partition.parse({"kind": "consecutive"}, WHERE).split(8, 3, stream())
    assert [part.tolist() for part in parts] == [[0, 1, 2], [3, 4, 5], [6, 7]]
