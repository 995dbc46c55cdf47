"""Steps that look at the number of their iteration have their law, or are refused."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import concord
from concord.laws import exact, paths
from concord.laws.iterations import ALWAYS, Iteration, find_cycle
from concord.laws.law import laws_of_versions, update_of
from concord.laws.read_off import NoLaw
from concord.sampler import Positions, Sampler, langevin_noise
from concord.stability import diverges

CHAINS = 4000
SURE = 5.0  # standard errors, in some 400 comparisons
PROBLEM = concord.problems.quadratic(H=[[[1.0]], [[3.0]], [[2.0]]], b=[[6.0], [-3.0], [1.0]])


class Local(Sampler):
    """Local SGD: agents average after every T-th step; late: at multiples of T but zero."""

    period: int
    late: bool = False
    step_size: float = 0.03

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x = state.x - self.step_size * problem.gradient(state.x)
        x = x + langevin_noise(rng, self.step_size, x)
        mixes = k and k % self.period == 0 if self.late else (k + 1) % self.period == 0
        return Positions(network.mix("metropolis", x) if mixes else x)


class Window(Sampler):
    """Agents average outside of a window of iterations, and not in it."""

    begin: int
    end: int

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x = state.x - 0.05 * problem.gradient(state.x) + langevin_noise(rng, 0.05, state.x)
        return Positions(x if self.begin <= k < self.end else network.mix("metropolis", x))


class Cyclic(Sampler):
    """Steps that fall and rise again, by a remainder that is an index, or by a cosine."""

    smooth: bool = False

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        if self.smooth:
            eta = 0.05 * (1.1 + math.cos(2 * math.pi * k / 30))
        else:
            eta = [0.15, 0.1, 0.05, 0.02, 0.01][k // 4 % 5]
        return Positions(
            network.mix("metropolis", state.x)
            - eta * problem.gradient(state.x)
            + langevin_noise(rng, eta, state.x)
        )


class WithAnchor(NamedTuple):
    """Positions, and those of some iterations before."""

    x: np.ndarray
    anchor: np.ndarray


class Anchored(Sampler):
    """Agents are drawn to where they were when the anchor was renewed last."""

    def init(self, x0: Any, problem: Any, network: Any, rng: Any) -> Any:
        return WithAnchor(x0, np.zeros_like(x0))

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x, anchor = state
        move = -0.05 * (problem.gradient(x) + x - anchor) + langevin_noise(rng, 0.05, x)
        x = network.mix("metropolis", x, plus=move)
        return WithAnchor(x, x if k % 6 == 5 else anchor)


class Refreshed(Anchored):
    """Momentum that is drawn anew every fourth iteration, which takes more random numbers."""

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x, v = state
        v = 0.9 * v - 0.1 * problem.gradient(x) + langevin_noise(rng, 0.1, x)
        if k % 4 == 3:
            v = rng.standard_normal(x.shape)
        return WithAnchor(network.mix("metropolis", x, plus=0.1 * v), v)


class Counted(NamedTuple):
    """Positions, and the number of steps so far."""

    x: np.ndarray
    count: np.ndarray


class Counting(Sampler):
    """Steps that shrink with a count in the state."""

    def init(self, x0: Any, problem: Any, network: Any, rng: Any) -> Any:
        return Counted(x0, np.ones(()))

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x, count = state
        eta = 0.1 / math.sqrt(count)
        move = -eta * problem.gradient(x) + langevin_noise(rng, eta, x)
        return Counted(network.mix("metropolis", x, plus=move), count + 1)


class Projected(Sampler):
    """Positions are projected onto a ball in a window of iterations."""

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x = state.x - 0.05 * problem.gradient(state.x) + langevin_noise(rng, 0.05, state.x)
        return Positions(np.clip(x, -1, 1) if 20 <= k < 1000 else x)


COUPLINGS = {
    "to their average": lambda x: x.mean(axis=0),
    "to the first": lambda x: x[:1],
    "to one in the middle": lambda x: x[9:10],
    "to the first ten": lambda x: x[:10].mean(axis=0),
    "to a neighbor": lambda x: np.roll(x, 1, axis=0),
}


class Coupled(Sampler):
    """Chains are drawn to others in some iterations, told apart by remainders or by steps."""

    to: str
    by_step: bool = False

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        eta = 0.1 / (1 + 0.1 * k)
        x = state.x - eta * problem.gradient(state.x) + langevin_noise(rng, eta, state.x)
        apart = eta > 0.053 if self.by_step else k % 10 < 9
        return Positions(x if apart else 0.9 * x + 0.1 * COUPLINGS[self.to](x))


class Adaptive(Sampler):
    """Steps shrink with the gradients of all chains, which they share."""

    def init(self, x0: Any, problem: Any, network: Any, rng: Any) -> Any:
        return Counted(x0, np.ones(()))

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        x, total = state
        g = problem.gradient(x)
        x = x - 0.1 / total * g + langevin_noise(rng, float(0.1 / total), x)
        return Counted(x, np.asarray(total + 0.01 * (g**2).mean()))


class Odd(Sampler):
    """Steps that tell numbers apart in ways of their own."""

    way: str

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        agents = np.arange(3)[:, None]
        eta = {
            "by type": lambda: 0.1 if type(k) is int else 0.01,
            "in turn": lambda: np.where(k % 3 == agents, 0.1, 0.02),
            "in turn, otherwise": lambda: np.where(agents == k % 3, 0.1, 0.02),
            "by few bits": lambda: 0.1 if k - 100 < np.int8(-90) else 0.01,
            "in a loop": lambda: 0.1 / (1 + sum(1 for _ in range(k))),
            "by counting up": lambda: 0.1 / (1 + count_up(k)),
        }[self.way]()
        x = state.x - eta * problem.gradient(state.x)
        return Positions(x + np.sqrt(2 * eta) * rng.standard_normal(x.shape))


def count_up(k: int) -> int:
    """Return k, by as many questions."""
    n = 0
    while n < k:
        n += 1
    return n


PERIODS = (*range(2, 9), 16, 17, 20, 25, 49, 50)
CASES = [
    *[(Local(period=period), 2 * period + 3) for period in PERIODS],
    *[(Local(period=period, late=True), 2 * period + 3) for period in PERIODS],
    (Window(begin=20, end=1000), 200),
    (Window(begin=20, end=1000), 1010),
    (Window(begin=300, end=10**9), 330),
    (Cyclic(), 37),
    (Cyclic(smooth=True), 52),
    (Anchored(), 34),
    (Refreshed(), 35),
    (Counting(), 60),
]


@pytest.mark.parametrize(("sampler", "iterations"), CASES, ids=str)
def test_laws_are_those_of_chains(sampler: Sampler, iterations: int) -> None:
    options: Any = {
        "iterations": iterations,
        "record": {"at": [iterations // 2, iterations]},
        "initial": {"kind": "normal", "mean": 2.0, "sd": 0.5},
    }
    law = concord.law(sampler, PROBLEM, "path", **options)
    draws = concord.sample(sampler, PROBLEM, "path", chains=CHAINS, seed=3, **options)["x"]
    for mean, cov, x in zip(
        law.mean[..., 0], law.cov[..., 0, 0], draws[..., 0].swapaxes(0, 1), strict=True
    ):
        off = np.abs(x.mean(axis=0) - mean) / np.sqrt(cov / CHAINS)
        wide = np.abs(x.var(axis=0) / cov - 1) / np.sqrt(2 / CHAINS)
        assert max(off.max(), wide.max()) < SURE


def test_a_law_is_refused_where_a_step_is_not_affine() -> None:
    concord.law(Projected(), PROBLEM, "path", iterations=20)
    with pytest.raises(NoLaw, match="not affine"):
        concord.law(Projected(), PROBLEM, "path", iterations=21)


@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("to", COUPLINGS)
def test_chains_that_influence_each_other_have_no_law(to: str, by_step: bool) -> None:
    """From the iteration on in which they do."""
    sampler = Coupled(to=to, by_step=by_step)
    concord.law(sampler, PROBLEM, "path", iterations=9)
    with pytest.raises(NoLaw, match=r"influence each other|not affine"):
        concord.law(sampler, PROBLEM, "path", iterations=10)


def test_chains_that_influence_each_other_by_what_they_share_have_no_law() -> None:
    with pytest.raises(NoLaw, match="influence each other"):
        concord.law(Adaptive(), PROBLEM, "path", iterations=5)


def test_a_step_that_does_not_always_send_has_no_law_where_vectors_may_get_lost() -> None:
    loss = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
    with pytest.raises(NoLaw, match="does not send in every iteration"):
        concord.law(Local(period=2), PROBLEM, concord.network("path", 3, loss=loss), iterations=5)


def test_a_counter_of_many_digits_is_followed() -> None:
    """Beyond 2^53 floating-point numbers do not tell one from the next."""

    class Far(Counting):
        def init(self, x0: Any, problem: Any, network: Any, rng: Any) -> Any:
            return Counted(x0, np.array(2**60))

        def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
            eta = 0.1 if int(state.count) & 1 else 0.01
            x = state.x - eta * problem.gradient(state.x) + langevin_noise(rng, eta, state.x)
            return Counted(x, state.count + 1)

    update = update_of(Far(), PROBLEM, concord.network("path", 3))
    assert update.at(3).noise[0, 0] == pytest.approx(0.2)
    assert update.at(4).noise[0, 0] == pytest.approx(0.02)


WAYS = ("by type", "in turn", "in turn, otherwise", "by few bits", "in a loop", "by counting up")


@pytest.mark.parametrize("way", WAYS)
def test_odd_questions_get_the_answers_of_plain_numbers(way: str) -> None:
    """The law is that of steps that are given the plain numbers of iterations."""
    sampler, ends = Odd(way=way), []
    for k in range(25):
        state = Positions(np.zeros((1, 3, 1)))
        zero = type("Zero", (), {"standard_normal": lambda self, shape: np.ones(shape)})()
        ends.append(sampler.step(state, k, PROBLEM, None, zero).x[0, :, 0])
    update = update_of(sampler, PROBLEM, concord.network("path", 3))
    for k, end in enumerate(ends):
        step = update.at(k)
        np.testing.assert_allclose(step.offset + np.sqrt(np.diag(step.noise)), end, rtol=1e-9)


def test_a_step_that_never_repeats_has_a_law_of_a_million_iterations_at_most() -> None:
    with pytest.raises(NoLaw, match="not known to repeat"):
        concord.law(Cyclic(smooth=True), PROBLEM, "path", iterations=10**6 + 1)


def test_powers_lead_over_local_steps() -> None:
    """The law long after all is forgotten is that of the same place in the cycle."""
    law, near = (
        concord.law(Local(period=7), PROBLEM, "path", iterations=end, record={"at": [end]})
        for end in (7 * 10**8 + 3, 7 * 10**2 + 3)
    )
    np.testing.assert_allclose(law.cov, near.cov, rtol=1e-11)
    np.testing.assert_allclose(law.mean, near.mean, rtol=1e-11)


def test_time_averages_see_what_changes_late() -> None:
    """The law of the average of the second half is that of going step by step."""
    sampler, network = Window(begin=300, end=10**9), concord.network("path", 3)
    path = laws_of_versions([sampler], [PROBLEM], network, (2.0, 0.5))
    update = update_of(sampler, PROBLEM, network)
    start = exact.initial_moments(3, 1, (2.0, 0.5), update.start)
    slow = paths.DeterministicPath(
        paths.stack_updates([update]), exact.stack_versions([start]), 3, 1
    )
    for got, expected in zip(path.time_average(1000), slow.time_average(1000), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_stability_is_that_of_a_whole_cycle() -> None:
    """Agents that are alone unstable, and together not: the curvatures are -0.5 and 2.5."""
    problem = concord.problems.quadratic(H=[[[-0.5]], [[2.5]]], b=[[1.0], [1.0]])
    network = concord.network("complete", 2)
    for period, unstable in ((1, False), (2, False), (400, True)):
        sampler = Local(period=period, step_size=0.02)
        assert diverges(sampler, problem, network) is unstable


def test_numbers_that_a_function_computes_from_an_iteration_are_its_own() -> None:
    """Whatever is computed, and however it is asked for, is what a plain number would give."""
    table = list(range(100))
    for function in (
        lambda k: (k + 1) % 7 == 0,
        lambda k: [k * 3 - 1, -k, +k, abs(k), k // 2 % 3, divmod(k, 7), 5 - k, 7 // (k + 1)],
        lambda k: (k / 2, 2**k, k**2, 0.5 * k, math.sqrt(k), float(k), int(k), round(k)),
        lambda k: (k & 1, k >> 1, 1 << k, k | 8, k ^ 3, ~k),
        lambda k: (table[k], table[k % 5], list(range(k)), k in (3, 4), k in {3, 4}),
        lambda k: (f"{k:03d}", str(k), repr(k), hash(k), bool(k), not k, k.bit_length()),
        lambda k: (min(k, 5), max(k, 5), k < 3.5, k >= np.int64(4), k == "x", k != 2),
        lambda k: np.arange(4) * k,
        lambda k: np.full(2, k) + np.float64(2) * k + np.exp(-k),
        lambda k: isinstance(k, int),
        lambda k: 0.0 * k + 1 % (k + 1),
    ):
        for k in (0, 1, 2, 5, 17):
            np.testing.assert_equal(function(Iteration(k, [])), function(k))


@pytest.mark.parametrize(
    ("function", "cycle"),
    [
        (lambda k: 1.0, ALWAYS),
        (lambda k: 0.0 * k, ALWAYS),
        (lambda k: k % 1, ALWAYS),
        (lambda k: bool(k), (1, 1)),
        (lambda k: bool((2 * k + 3) % 5), (0, 5)),
        (lambda k: k >= 20 and k % 4 == 1, (21, 4)),
        (lambda k: 100 - k > 7.5, (93, 1)),
        (lambda k: bool(k % 4 == 1 and k % 6 == 1), (0, 12)),
        (lambda k: [1, 2, 3][k % 3], (0, 3)),
        (lambda k: 0.9**k, None),
        (lambda k: k in {3}, None),
    ],
)
def test_cycles_are_known_by_construction(function: Any, cycle: Any) -> None:
    assert find_cycle(function) == cycle
