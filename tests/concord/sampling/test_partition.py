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


def assert_every_row_once(parts, rows):
    assert sorted(np.concatenate(parts).tolist()) == list(range(rows))


seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(0, 60), seeds)
def test_equal(agents, extra, seed):
    rows = agents + extra
    parts = divided(stream(seed), rows, agents, "equal")
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


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), seeds)
def test_sizes(counts, seed):
    parts = divided(stream(seed), sum(counts), len(counts), "sizes", sizes=counts)
    assert [len(part) for part in parts] == counts
    assert_every_row_once(parts, sum(counts))


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5), st.floats(0.3, 100), seeds)
def test_dirichlet(agents, classes, minimum, concentration, seed):
    labels = stream(seed).integers(classes, size=400) * 2 - 1
    options = {"concentration": concentration, "minimum": minimum}
    parts = divided(stream(seed), labels, agents, "dirichlet", **options)
    assert len(parts) == agents
    assert_every_row_once(parts, 400)
    assert min(len(part) for part in parts) >= minimum


def test_dirichlet_shares_have_the_law_of_the_concentration():
    # A share of the symmetric law over N agents has mean 1/N and variance
    # (1/N)(1 - 1/N)/(N c + 1). At c = 5 no draw is refused, so the law is not conditioned.
    agents, concentration, draws = 4, 5.0, 400
    labels, rng = np.repeat([0, 1], 2000), stream(4)
    shares = np.array(
        [
            [np.count_nonzero(labels[part] == 1) / 2000 for part in parts]
            for parts in (
                divided(rng, labels, agents, "dirichlet", concentration=concentration)
                for _ in range(draws)
            )
        ]
    )
    variance = 0.25 * 0.75 / (agents * concentration + 1)
    assert abs(shares.mean(axis=0) - 0.25).max() < 5 * np.sqrt(variance / draws)
    # The law's kurtosis is below that of the normal one: 2/draws bounds the relative variance.
    assert abs(shares.var(axis=0) / variance - 1).max() < 5 * np.sqrt(2 / draws)


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({}, 10, ": {} does not fit; give a mapping with a kind: consecutive, dirichlet, equal"),
        ({"kind": "equals"}, 10, ".kind: there is no partition 'equals'; did you mean 'equal'?"),
        ({"kind": "equal"}, 2, ": 2 rows cannot give each of 3 agents a row; use fewer agents or"),
        ({"kind": "sizes", "sizes": [5, 5]}, 10, ": 2 sizes for 3 agents; give one per agent"),
        ({"kind": "sizes", "sizes": [5, 5, 5]}, 10, ": sizes add up to 15 but there are 10 rows"),
        ({"kind": "skewed", "ratio": 50.0}, 4, ": 4 rows at ratio 50 leave an agent of 3 without"),
        (
            {"kind": "dirichlet", "concentration": 1.0, "minimum": 4}, 10,
            ": 10 rows cannot give each of 3 agents 4 rows; use fewer agents or more data",
        ),
        (
            {"kind": "dirichlet", "concentration": 0.001, "minimum": 3}, 10,
            ": no draw of 1000 gave each of 3 agents the minimum of 3 rows at concentration 0.001; "
            "lower the minimum or raise the concentration",
        ),
    ],
)  # fmt: skip
def test_wrong_partition(options, rows, message):
    with pytest.raises(ConcordError) as error:
        Partition.parse(options, WHERE).split(np.zeros(rows, dtype=int), 3, stream())
    assert str(error.value).startswith(WHERE + message)
    with pytest.raises(ConcordError, match="needs rows with classes"):
        divided(stream(), 10, 3, "dirichlet", concentration=1.0)


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
