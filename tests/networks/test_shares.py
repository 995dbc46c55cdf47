"""Numbers by counters are the same whoever draws them, and have the moments of their laws."""

import itertools

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.networks import shares
from concord.networks.shares import Counters, common
from networks import over_ranks
from networks.over_ranks import STEP
from networks.test_transports import EPOCHS
from networks.threads import over_ranks as threads

KEY = np.array([3, 7], dtype=np.uint64)


@pytest.mark.parametrize("agents", [1, 9, 36, 5000])
def test_parts_draw_the_numbers_of_one(agents):
    ends = np.unique([0, agents // 3, agents // 2, agents])
    whole = Counters(KEY, agents, slice(0, agents))
    parts = [Counters(KEY, agents, slice(*pair)) for pair in itertools.pairwise(ends)]
    for name, rest in (("standard_normal", (3,)), ("random", (2,)), ("random", ())):
        wanted = getattr(whole, name)(out=np.empty((2, agents, *rest)))
        found = [
            getattr(part, name)((2, part._own.stop - part._own.start, *rest)) for part in parts
        ]
        assert np.array_equal(wanted, np.concatenate(found, axis=1))
        together = [common(part).standard_normal(4) for part in (whole, *parts)]
        assert all(np.array_equal(together[0], other) for other in together)


def test_their_moments_are_those_of_independent_normals(monkeypatch):
    monkeypatch.setattr(shares, "TOGETHER", 8)
    counters = Counters(KEY, 20, slice(0, 20))
    draws = np.array([counters.standard_normal((2, 20, 1)).ravel() for _ in range(8000)])
    error = 1 / np.sqrt(len(draws))
    assert abs(draws.mean(axis=0)).max() < 5 * error
    assert abs((draws**2).mean(axis=0) - 1).max() < 5 * np.sqrt(2) * error
    products = draws.T @ draws / len(draws) - np.eye(40)
    np.fill_diagonal(products, 0)
    assert abs(products).max() < 5 * error  # between agents, blocks and chains
    assert abs((draws[1:] * draws[:-1]).mean(axis=0)).max() < 5 * error  # and steps
    uniform = np.array([counters.random((2, 20)).ravel() for _ in range(8000)])
    assert abs(uniform.mean(axis=0) - 0.5).max() < 5 * error / np.sqrt(12)


@pytest.mark.parametrize("kind", ["de_sgld", "local_sgld", "push_sum_sgld"])
def test_runs_by_counters_have_the_same_bytes_over_ranks(kind, monkeypatch):
    monkeypatch.setattr(shares, "TOGETHER", 8)
    options = {**STEP, "common_noise": 0.5} if kind == "local_sgld" else STEP
    case = kind, options, {"kind": "ring"}, "perfect", 36, "linear"
    whole = over_ranks.trace(case, counter=True)
    assert over_ranks.different(whole, over_ranks.trace(case)) != []
    for size in (1, 2, 3):
        found = threads(size, lambda comm: over_ranks.trace(case, comm, counter=True))
        assert not over_ranks.different(whole, found[0])


def test_a_run_by_counters_has_its_exact_law():
    gram = np.array([[[1.0]], [[2.0]], [[3.0]]])
    problem = concord.problems.quadratic(H=gram, b=[[1.0], [0.0], [1.0]])
    how = {"step_size": 0.1, "iterations": 30, "record": {"at": [30]}}
    trace = concord.sample("de_sgld", problem, "ring", counter=True, chains=4000, **how)
    law, x = concord.law("de_sgld", problem, "ring", **how), trace["x"][:, -1, :, 0]
    sd = np.sqrt(law.cov[-1, :, 0, 0])
    assert (abs(x.mean(axis=0) - law.mean[-1, :, 0]) < 5 * sd / np.sqrt(4000)).all()
    assert (abs(x.std(axis=0) / sd - 1) < 5 / np.sqrt(2 * 4000)).all()


@pytest.mark.parametrize(
    ("kind", "network", "options", "words"),
    [
        ("gossip_ula", "ring", {"step_size": 0.1, "fusion": 0.1}, "since in a tick two agents"),
        ("consensus_mc", "server", {"step_size": 0.1}, "since its answer averages the draws"),
        ("d_ula", "ring", EPOCHS, "'permuted' .* are drawn for all agents together"),
    ],
)
def test_what_cannot_be_drawn_by_agents_is_refused(kind, network, options, words):
    problem = over_ranks.problem(9, "linear")
    with pytest.raises(ConcordError, match=words):
        concord.sample(kind, problem, network, counter=True, iterations=1, **options)
