"""What an iteration costs: expectations, not means of a few draws."""

from pathlib import Path

import numpy as np
import pytest

import concord
from concord.arguments import ChosenSampler
from concord.sampler import Sampler
from concord_arena import cells, prices
from concord_arena.entries import ARENA
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from variants import problem


def price(kind, options, agents=8, topology="ring", **happens):
    sampler = ChosenSampler.parse({"kind": kind, "step_size": 0.01, **options}, "").params
    network, rng = concord.network(topology, agents, **happens), np.random.default_rng(1)
    return prices.price_per_iteration(sampler, problem(agents, 1), network, rng)


@pytest.mark.parametrize(
    ("happens", "gradients", "vectors"),
    [
        ({}, 1.0, 2.0),
        ({"awake": 0.5}, 0.5, 1.0),
        ({"schedule": {"kind": "kept", "probability": 0.3}, "awake": 0.9}, 0.9, 0.54),
        ({"schedule": {"kind": "matchings"}}, 1.0, 2 / 3),  # the lowest of three numbers
        ({"schedule": {"kind": "pair"}}, 0.25, 0.25),
        ({"schedule": {"kind": "one_peer"}}, 1.0, 1.0),
        ({"schedule": {"kind": "in_turn", "graphs": [[[0, 1]], [], []]}}, 1.0, 2 / 24),
        ({"loss": {"kind": "bernoulli", "rate": 0.5, "direction": "link"}}, 1.0, 2.0),
    ],
)
def test_what_the_network_decides_by_chance_counts_by_its_probability(happens, gradients, vectors):
    for kind, options, each, sent in (
        ("de_sgld", {}, 1, 1), ("diging_sgld", {}, 1, 2), ("local_sgld", {"period": 3}, 3, 1),
    ):  # fmt: skip
        found = price(kind, options, **happens)
        assert found["gradients"] == pytest.approx(each * gradients, rel=1e-12)
        assert found["bytes"] == pytest.approx(8 * sent * vectors, rel=1e-12)


def test_a_mini_batch_is_one_gradient_and_no_full_one_is_taken(monkeypatch):
    network, rng = concord.network("ring", 4), np.random.default_rng(1)
    prob = concord.problems.dense_network(4, points=80, hidden=(3,))
    monkeypatch.setattr(type(prob), "gradient", lambda self, x: pytest.fail("a full gradient"))
    options = {"kind": "local_sgld", "step_size": 1e-3, "period": 3, "batch_size": 5}
    sampler = ChosenSampler.parse(options, "").params
    found = prices.price_per_iteration(sampler, prob, network, rng)
    assert found["gradients"] == 3 and found["bytes"] == 4 * prob.dim * 2  # of single precision


def test_unequal_agents_pay_by_their_links():
    """On a star a pair is the center and a leaf."""
    found = price("de_sgld", {}, 5, "star", schedule={"kind": "pair"})
    assert found["gradients"] == pytest.approx(2 / 5) and found["bytes"] == pytest.approx(16 / 5)


def test_what_repeats_slowly_or_by_the_samplers_own_chance_is_a_mean_over_many():
    slow = {"compute": {"seconds": 0.005, "slowest": 10.0}}
    found = price("de_sgld", {}, barrier=False, on_loss="reuse_last", **slow)
    assert found["gradients"] == pytest.approx((7 + 0.1) / 8, abs=1e-4)
    assert found["seconds"] == pytest.approx(0.005, rel=1e-3)
    assert price("de_sgld", {}, **slow)["seconds"] == pytest.approx(0.05)
    silent = price("local_sgld", {"communication": 0.5})
    assert silent["bytes"] == pytest.approx(8, abs=5 * 16 * 0.5 / np.sqrt(prices.MOST_STEPS * 8))


def counted(step, monkeypatch, sends=lambda k: 1, size=lambda k, rng: 8, **changes):
    """Return what is counted of a network of four whose iterations cost ``step(k, rng)``."""
    for name, value in changes.items():
        monkeypatch.setattr(prices, name, value)
    steps = []

    class Paid(Sampler):
        def step(self, state, k, problem, network, rng):
            steps.append(k)
            sent = np.full(4, sends(k))
            network.meter.add_sent(sent, sent, size(k, rng))
            problem.pay(step(k, rng))
            return state

    rng = np.random.default_rng(1)
    found = prices._count(Paid(), problem(4, 1), concord.network("ring", 4), rng)
    return found.gradients.mean(), found.bytes.mean(), len(steps)


def test_what_is_drawn_is_counted_until_its_mean_is_known(monkeypatch):
    found, _, steps = counted(lambda k, rng: rng.integers(5, 8, (8, 4)), monkeypatch)
    assert steps < prices.MOST_STEPS / 2
    assert found == pytest.approx(6, rel=5 * prices.KNOWN_MEAN)  # five standard errors
    *_, steps = counted(lambda k, rng: rng.integers(5, 8, (8, 4)), monkeypatch, KNOWN_MEAN=0)
    assert steps == prices.MOST_STEPS


@pytest.mark.parametrize(
    ("sd", "least", "most"), [(0.1, 480, 480), (2, 960, 2400), (99, 4800, 4800)]
)
def test_bytes_are_counted_until_their_mean_is_known(sd, least, most, monkeypatch):
    """Of a mean of 10 the error sd / sqrt(8 n), after n steps of 8 chains, is to be 0.02."""
    _, found, steps = counted(
        lambda k, rng: 1, monkeypatch, size=lambda k, rng: rng.normal(10, sd, (8, 1))
    )
    assert least <= steps <= most
    assert found == pytest.approx(10, abs=5 * sd / np.sqrt(8 * steps))


def test_what_repeats_slowly_is_counted_to_the_end(monkeypatch):
    """All chains are alike, and the first iterations say nothing of later ones."""

    def slowly(k, rng):
        return 1 + (k == 3) + 2 * (k >= 600)

    mean = 3 - (2 * 600 - 1) / prices.MOST_STEPS
    found, _, steps = counted(slowly, monkeypatch)
    assert steps == prices.MOST_STEPS and found == pytest.approx(mean)
    _, found, steps = counted(lambda k, rng: 1, monkeypatch, size=slowly)
    assert steps == prices.MOST_STEPS and found == pytest.approx(mean)


def test_what_is_sent_now_and_then_is_counted_to_the_end(monkeypatch):
    *_, steps = counted(
        lambda k, rng: rng.integers(5, 8, (8, 4)), monkeypatch, sends=lambda k: k % 100 == 99
    )
    assert steps == prices.MOST_STEPS


def test_settings_whose_largest_diverges_pay_for_their_bytes():
    """Of ten coordinates theta alone, which the server sends back, takes 80 bytes."""
    run = Study(ARENA, load_config()).run("quantized", "problem=wide+entry=layered_ula_16_levels")
    cell = cells._Cell(run, cells.build_task(run, Path("resources")), None, 0.0)
    assert 80 < cell.group(cell.settings[0]).price["bytes"] < 160
