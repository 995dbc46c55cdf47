"""Sparse logistic regression against the dense formulas, and the splits of its chains."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import everything
from concord import streams
from concord.errors import ConcordError
from concord.sampling.partition import Partition
from concord_studies.datasets.folder import DataFolder

readers = everything.shared("parayil2020", "readers")

sparse_logistic = everything.kind("problems", "sparse_logistic")
Params, SparseLogistic = sparse_logistic.Params, sparse_logistic.SparseLogistic
ROWS, DIM = 60, 9


def table(seed=0):
    rng = np.random.default_rng(seed)
    dense = (rng.random((ROWS, DIM)) < 0.4).astype(float)
    dense[:, -1] = 1
    dense[3] = 0
    return dense, rng.integers(0, 2, ROWS)


def problem(agents=3, kind=None, **options):
    dense, labels = table()
    params = Params(**{"train_rows": 44, **options})
    partition = Partition.parse(kind or {"kind": "equal"}, "partition")
    return SparseLogistic(csr_array(dense), labels, params, agents, partition, streams_of)


def streams_of(what):
    return streams.generator(5, what)


def dense_gradient(p, x, rows, scale):
    """The gradient row by row: likelihood times ``scale``, and the prior's share."""
    dense, labels = table()
    out = np.empty_like(x)
    for chain, agent in np.ndindex(*x.shape[:2]):
        features = dense[rows[chain][agent]]
        residual = 1 / (1 + np.exp(-features @ x[chain, agent])) - labels[rows[chain][agent]]
        sign = 1 if p.params.prior_sign == "right" else -1
        prior = sign * np.sign(x[chain, agent]) / (p.agents * p.params.prior_scale)
        out[chain, agent] = scale[agent] * features.T @ residual + prior
    return out


@pytest.mark.parametrize("sign", ["right", "opposite"])
def test_batch_gradient_is_the_dense_one_at_every_call(sign):
    """Called twice with other rows, so that a stale index would show."""
    p = problem(prior_scale=0.7, prior_sign=sign)
    rng = np.random.default_rng(1)
    parts = p.splits(2)[0]
    for _ in range(2):
        x = rng.standard_normal((2, 3, DIM))
        rows = rng.integers(0, p.counts[:, None], (2, 3, 5))
        chosen = np.take_along_axis(parts, rows, axis=2)
        expected = dense_gradient(p, x, chosen, p.counts / 5)
        np.testing.assert_allclose(p.batch_gradient(x, rows), expected, rtol=1e-12, atol=1e-12)


def test_full_gradient_is_the_dense_one():
    p = problem(prior_scale=0.5)
    x = np.random.default_rng(2).standard_normal((2, 3, DIM))
    parts = p.splits(2)[0]
    rows = [[part[:count] for part, count in zip(own, p.counts, strict=True)] for own in parts]
    expected = dense_gradient(p, x, rows, np.ones(3))
    np.testing.assert_allclose(p.gradient(x), expected, rtol=1e-12)
    np.testing.assert_allclose(p.prior_gradient(x), np.sign(x) / (3 * 0.5))


def test_splits_are_shared_by_all_numbers_of_agents_and_use_every_row_once():
    one, many = problem(agents=1), problem(agents=5)
    assert (one.splits(3)[1] == many.splits(3)[1]).all()
    assert (one.splits(2)[1] == one.splits(3)[1][:2]).all()
    for p in (one, many):
        for parts, tests in zip(p.splits(3)[0], p.splits(3)[1], strict=True):
            held = [part[:count] for part, count in zip(parts, p.counts, strict=True)]
            assert sorted(np.concatenate([*held, tests])) == list(range(ROWS))
    tests = one.splits(3)[1]
    assert not np.array_equal(np.sort(tests[0]), np.sort(tests[1]))


def test_a_block_of_chains_has_the_splits_of_its_own_numbers():
    p = problem()
    whole, later = p.splits(5), p.from_chain(1).from_chain(2)
    np.testing.assert_array_equal(later.splits(2)[0], whole[0][3:])
    np.testing.assert_array_equal(later.splits(2)[1], whole[1][3:])
    x = np.random.default_rng(2).standard_normal((5, 3, DIM))
    np.testing.assert_array_equal(later.accuracy(x[3:]), p.accuracy(x)[3:])
    rows = np.random.default_rng(3).integers(0, 14, (5, 3, 4))
    found = later.batch_gradient(x[3:], rows[3:])
    expected = p.batch_gradient(x, rows)[3:]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_tied_chains_have_the_split_of_the_first_one():
    own, tied = problem(), problem(splits="tied")
    for found in (tied.splits(3), tied.from_chain(2).splits(3)):
        np.testing.assert_array_equal(found[1], own.splits(1)[1][[0, 0, 0]])
        np.testing.assert_array_equal(found[0], own.splits(1)[0][[0, 0, 0]])


def test_without_intercept_the_column_of_ones_is_missing(tmp_path, monkeypatch):
    dense = csr_array(table()[0])
    monkeypatch.setattr(readers, "a9a", lambda path: (dense, table()[1]))
    data, partition = DataFolder(tmp_path), Partition.parse({"kind": "equal"}, "partition")
    ones, none = (
        sparse_logistic.build(
            Params(train_rows=44, intercept=text), 3, partition, streams_of, data
        ).features
        for text in ("ones", "none")
    )
    assert ones.shape == (ROWS, DIM + 1) and (ones.toarray()[:, -1] == 1).all()
    np.testing.assert_array_equal(none.toarray(), dense.toarray())


@pytest.mark.parametrize("splits", ["own", "tied"])
def test_accuracy_counts_the_chains_own_test_rows(splits):
    p = problem(splits=splits)
    dense, labels = table()
    x = np.random.default_rng(5).standard_normal((2, 2, DIM))
    for chain, tests in enumerate(p.splits(2)[1]):
        expected = ((x[chain] @ dense[tests].T >= 0) == (labels[tests] == 1)).mean(axis=1)
        np.testing.assert_allclose(p.accuracy(x)[chain], expected, rtol=1e-14)


def test_weights_that_are_no_numbers_classify_nothing_right():
    """Compared with a threshold they would all be of one class."""
    p = problem()
    assert (p.accuracy(np.full((2, 2, DIM), np.nan)) == 0).all()


def test_refusals():
    with pytest.raises(ConcordError, match="train_rows 40000 is not between 5"):
        sparse_logistic.check(Params(train_rows=40000), 5)
    with pytest.raises(ConcordError, match="fixed numbers of rows"):
        problem(kind={"kind": "dirichlet", "concentration": 0.5}).splits(3)
