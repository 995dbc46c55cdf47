"""The contract of samplers: what every sampler must do, as checks of its class."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import fields, replace

from concord.batch_gradients import MiniBatches
from concord.errors import ConcordError
from concord.laws import exact
from concord.laws.law import laws_of_updates
from concord.laws.read_off import NoLaw, StepReader
from concord.laws.wasserstein import bias2
from concord.loop import pickle_global_generators
from concord.minibatches import Batches
from concord.networks.conditions import Conditions
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.options import build
from concord.problem import CountedProblem, local_of
from concord.sampler import check_state
from concord.sampling.schedules import Schedule
from concord_arena.scores import LEVELS, select_target
from concord_arena.testing.variants import (
    GRAPHS,
    GradientOnly,
    Inapplicable,
    expect,
    regression,
    stream,
    variants,
)

# Standard errors by which averages may be off. A normal number is so far off with a probability of
# 1e-15, and the mean of 2000 squares with one of 4e-12; a run has about a thousand of them.
SURE = 8.0
REPEATS, BLOCK = 200, 20  # times that a step is repeated from one state, and its chains
CHAINS, ITERATIONS = 2000, 12  # chains that are compared with their law, and their steps
# The squared bias that a law may have at a small step, or the part of that at a step four times as
# large. It falls to a sixteenth where the bias is in proportion to the step.
CLOSE, SHRINKS = 1e-6, 0.36
ROUGH = 0.1  # bias of a finite step, of means in standard deviations, and in parts of a variance

Step = Callable[[Any, Iterable[int], Any], Any]


class Trial(NamedTuple):
    """A sampler with the network and problem on which a check runs it."""

    sampler: Any
    network: Network
    problem: Any

    def __str__(self) -> str:
        """Return sampler, network and size of the problem, as text for errors."""
        size = f"{self.problem.agents} agents in {self.problem.dim} dimensions"
        return f"on {self.network.name} of {size}, with {self.sampler}"

    @property
    def is_allowed(self) -> bool:
        """Return whether the sampler accepts the problem and the network."""
        try:
            self.sampler.check(self.problem, self.network)
        except ConcordError:
            return False
        return True

    def draw(self, chains: int) -> np.ndarray:
        """Draw initial positions, (chains, agents, dim)."""
        return stream("start").standard_normal((chains, self.problem.agents, self.problem.dim))

    def begin(self, x0: np.ndarray, rng: Any) -> tuple[Any, Step]:
        """Return the state at x0, and a function that steps from a state.

        The function takes a state, iterations and a generator, and returns the state after them.
        """
        network = self.network.start(x0, stream("network"), local=local_of(self.problem))
        problem = CountedProblem(self.problem, len(x0))
        state = self.sampler.init(x0, problem, network, rng)
        check_state(state, self.sampler, x0.shape)

        def walk(before: Any, iterations: Iterable[int], rng: Any) -> Any:
            """Return the state after steps of the given iterations."""
            for k in iterations:
                network.begin(k)
                with np.errstate(all="ignore"):
                    after = self.sampler.step(before, k, problem, network, rng)
                check_state(after, self.sampler, x0.shape, before)
                before = after
            return before

        return state, walk

    def run(self, x0: np.ndarray, steps: int, rng: Any) -> Any:
        """Return the state after a number of steps from x0."""
        state, walk = self.begin(x0, rng)
        return walk(state, range(steps), rng)

    def answer(self, state: Any) -> np.ndarray:
        """Return the sampler's read-out of a state, or its positions, (chains, agents, dim)."""
        read = getattr(self.sampler, "read_out", None)
        answer: np.ndarray = state.x if read is None else read(state)
        return answer


def trials(sampler: Any, dim: int = 2) -> list[Trial]:
    """Return a trial of each variant of a sampler, and of the first on all networks it accepts.

    dim: the dimension of the problems.
    """
    cases: list[Trial] = []
    for number, variant in enumerate(dict.fromkeys(variants(sampler))):
        turn = number % len(GRAPHS)
        every = (
            Trial(variant, Network(graph), regression(graph.agents, dim))
            for graph in GRAPHS[turn:] + GRAPHS[:turn]
        )
        cases += islice((each for each in every if each.is_allowed), 1 if cases else None)
    expect(cases, "it accepts none of the networks and options tried on linear regression")
    return cases


def a_step_is_local(sampler: Any) -> None:
    """Check that agents learn of each other only by vectors that arrive.

    Agent 0 is moved. Where nothing arrives no other agent notices; where the sampler needs that
    everything arrives, the far end of a path does not.
    """
    loss = {"kind": "bernoulli", "rate": 1.0, "direction": "one_way"}
    cut = [
        (Network(graph, build(Conditions, {"loss": loss, "on_loss": on_loss})), 1)
        for on_loss in ("keep_own_weight", "sender_keeps", "reuse_last")
        for graph in (GRAPHS[0], GRAPHS[5])
    ]
    steps = False
    for variant in variants(sampler):
        for network, far in [*cut, (Network(build_graph("path", 9)), 8)]:
            trial = Trial(variant, network, regression(network.agents, 2))
            if not trial.is_allowed:
                continue
            steps, ends = True, []
            for move in (0.0, 1.0):
                state, walk = trial.begin(trial.draw(2), stream("local"))
                x = state.x.copy()
                x[:, 0] += move
                ends.append(walk(state._replace(x=x), range(3 if far == 1 else 1), stream()))
            one, other = (end.x[:, far:] for end in ends)
            same = np.allclose(one, other, 1e-9, 1e-9, equal_nan=True)
            expect(same, "agents learn of agent 0 what it has not sent them", trial)
            break
    if not steps:
        raise Inapplicable("it takes no network with edges")


def draws_from_its_generator_alone(sampler: Any) -> None:
    """Check that state, iteration and generator determine a step, whatever ran before.

    Global generators stay as they are.
    """
    for trial in trials(sampler):
        before = pickle_global_generators()
        x0 = trial.draw(4)
        one, other = (trial.run(x0, 4, stream("run")) for _ in range(2))
        why = "two runs with the same generator differ: use no random numbers but rng's"
        expect(_are_equal(one, other), why, trial)
        state, walk = trial.begin(x0, stream("run"))
        state = walk(state, range(5), stream("run"))
        now = walk(state, [5], stream("again"))
        walk(state, range(6, 20), stream("run"))
        why = "the same state, iteration and generator give another step later: keep what it needs"
        expect(_are_equal(now, walk(state, [5], stream("again"))), f"{why} in the state", trial)
        alike = pickle_global_generators() == before
        expect(alike, "it uses global random numbers: use rng", trial)
        x = trial.answer(one)
        expect(np.isfinite(x).all(), "its positions are not finite after four steps", trial)
        expect(not np.array_equal(x, x0), "its positions have not moved in four steps", trial)


def _are_equal(one: Any, other: Any) -> bool:
    """Return whether two states have the same arrays."""
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def leaves_its_inputs_as_they_are(sampler: Any) -> None:
    """Check that a sampler works with read-only positions, states and data."""
    for trial in trials(sampler):
        for part in vars(trial.problem).values():
            if isinstance(part, np.ndarray):
                part.setflags(write=False)
        x0 = trial.draw(3)
        x0.setflags(write=False)
        state, walk = trial.begin(x0, stream("frozen"))
        for k in range(3):
            for part in state:
                part.setflags(write=False)
            try:
                trial.answer(state)
                state = walk(state, [k], stream("frozen", k))
            except ValueError as error:
                expect("read-only" not in str(error), "it writes into its inputs: copy them", trial)
                raise


def chains_are_independent(sampler: Any) -> None:
    """Check that chains do not see where others are, and that each has noise of its own.

    A step is repeated from one state. The squared mean of independent chains is on average their
    variance over their number.
    """
    for trial in trials(sampler):
        x0 = trial.draw(4)
        moved = x0 + np.array([1.0, 0, 0, 0])[:, None, None]
        one, other = (trial.run(start, 3, stream("apart")).x[1:] for start in (x0, moved))
        same = np.allclose(one, other, 1e-9, 1e-9, equal_nan=True)
        expect(same, "where a chain is depends on where others are", trial)
        rng = stream("fresh")
        state, walk = trial.begin(trial.draw(1).repeat(BLOCK, axis=0), rng)
        ends = np.array([walk(state, [1], rng).x.reshape(BLOCK, -1) for _ in range(REPEATS)])
        spread = ends.std(axis=0).max(axis=0)
        if not (spread > 1e-12).any() and not np.ptp(ends, axis=1).max() > 1e-9:
            continue  # there is no noise
        expect((spread > 1e-12).any(), "a step repeated has the same noise again", trial)
        z = (ends - ends.mean(axis=0))[..., spread > 1e-12]
        squares = (BLOCK * z.mean(axis=1) ** 2 / z.var(axis=(0, 1))).mean(axis=1)
        off = (squares.mean() - 1) / squares.std() * np.sqrt(REPEATS)
        expect(off < SURE, "chains share noise: draw numbers of each chain", trial)


def takes_any_number_of_chains_and_dimensions(sampler: Any) -> None:
    """Check that one chain in one or three dimensions gives arrays of the usual shape.

    With mini-batches, too, if the sampler takes them.
    """
    for number, trial in enumerate([*trials(sampler, dim=1), *trials(sampler, dim=3)]):
        rng = stream("sizes", number)
        if issubclass(sampler, Batches) and number % 2:
            batched = MiniBatches(trial.problem, Batches(batch_size=2), 1, rng)
            trial = trial._replace(problem=batched)
            if not trial.is_allowed:
                continue
        x0 = trial.draw(1)
        x = trial.answer(trial.run(x0, 3, rng))
        fits = x.shape == x0.shape and x.dtype == x0.dtype
        expect(fits, f"its positions have shape {x.shape} and type {x.dtype}", trial)


def chains_have_their_law(sampler: Any) -> None:
    """Check mean and covariance of many chains against the law computed from the step."""
    why, steps = "", False
    for trial in trials(sampler):
        agents, dim = trial.problem.agents, trial.problem.dim
        center, size = 10 * trial.draw(1)[0], agents * dim
        try:
            update = StepReader(trial.sampler, trial.problem, trial.network).update()
            mean, cov = exact.initial_moments(agents, dim, (center, 0.1), update.start)
            for k in range(ITERATIONS):
                mean, cov = update.at(k).apply(mean, cov)
        except NoLaw as error:
            why = str(error)
            continue
        steps, rng = True, stream("law")
        x0 = center + 0.1 * rng.standard_normal((CHAINS, agents, dim))
        x = trial.run(x0, ITERATIONS, rng).x.reshape(CHAINS, size)
        values, vectors = np.linalg.eigh(cov[:size, :size])
        z, rounding = (x - mean[:size]) @ vectors, 1e-9 * max(1.0, values[-1])
        for each, expected in ((z, 0.0), (z**2, values)):
            chance = each.std(axis=0) / np.sqrt(CHAINS) + rounding
            off = float((np.abs(each.mean(axis=0) - expected) / chance).max())
            expect(off < SURE, f"chains are {off:.0f} standard errors off their law", trial)
    if not steps:
        raise Inapplicable(why)


def tends_to_the_posterior(sampler: Any) -> None:
    """Check that agents and their average approach the posterior as the step size falls.

    At least one variant must, by its law, or where there is none by chains that start from the
    posterior and stay close to it. A sampler that samples another law by design names it in
    ``biased``.
    """
    _expect_posterior(sampler, None)


def local_coordinates_stay_at_home(sampler: Any) -> None:
    """Check a sampler on a problem whose last coordinate belongs to the agent who holds it.

    Where that of agent 0 is moved, those of others are as before after a step, and small steps lead
    to the posterior. A sampler that is not right there refuses the problem (``Needs.local``).
    """
    local = [False, False, True]
    for variant, graph in product(variants(sampler), GRAPHS):
        trial = Trial(variant, Network(graph), regression(graph.agents, 3, local))
        if not trial.is_allowed:
            continue
        ends = []
        for move in (0.0, 1.0):
            state, walk = trial.begin(trial.draw(2), stream("home"))
            x = state.x.copy()
            x[:, 0, -1] += move
            ends.append(walk(state._replace(x=x), [0], stream()).x[:, 1:, -1])
        before, after = ends
        same = np.allclose(before, after, 1e-9, 1e-9, equal_nan=True)
        expect(same, "agents learn of what agent 0 keeps: state needs.local", trial)
    _expect_posterior(sampler, local)


def _expect_posterior(sampler: Any, local: Sequence[bool] | None) -> None:
    """Expect a sampler to tend to the posterior, of a problem with a mask of local coordinates."""
    if sampler.biased:
        raise Inapplicable(f"it says that it samples another law: {sampler.biased}")
    reasons: list[str] = []
    for variant in dict.fromkeys(with_step(each, 1.0) for each in variants(sampler)):
        every = [
            Trial(variant, Network(graph), regression(graph.agents, 3, local))
            for graph in (GRAPHS[0], GRAPHS[3], GRAPHS[7], GRAPHS[8])
        ]
        every = [trial for trial in every if trial.is_allowed]
        why = next((f"{text}, {trial}" for trial in every if (text := _find_miss(trial))), "")
        if every and not why:
            return
        reasons += [why] if every else []
    if not reasons:
        raise Inapplicable("it takes none of the networks tried")
    expect(False, f"with none of its options it tends to the posterior; {reasons[0]}")


def with_step(sampler: Any, step: float) -> Any:
    """Return a sampler of a constant step size, and with 0.1 for its other schedules.

    The step size is the option ``step_size``, or the first that takes a schedule.
    """
    options = {field.name: getattr(sampler, field.name) for field in fields(type(sampler))}
    names = [name for name, value in options.items() if isinstance(value, Schedule)]
    values: dict[str, Any] = dict.fromkeys(names, Schedule(0.1))
    if isinstance(options.get("step_size"), float):
        values["step_size"] = step
    elif names:
        values["step_size" if "step_size" in names else names[0]] = Schedule(step)
    return replace(sampler, **values)


def _find_miss(trial: Trial) -> str:
    """Describe how far a sampler misses the posterior at small steps. "" if it does not."""
    problem, missed = trial.problem, []
    try:
        for step in (4.0**-8, 4.0**-9):
            update = StepReader(with_step(trial.sampler, step), problem, trial.network).update()
            start = exact.initial_moments(problem.agents, problem.dim, (0.0, 1.0), update.start)
            limits = laws_of_updates([update], [start], trial.network, problem.dim).limit()
            if limits is None:  # its steps are not known to repeat
                return _miss_by_chains(trial)
            draws = limits.select(0)
            if not np.isfinite(draws.mean).all():
                return "its law does not settle"
            target, of_average = (select_target(problem.posterior, at) for at in LEVELS[:2])
            each = bias2(draws.mean, draws.cov, target)
            average = bias2(draws.average_mean, draws.average_cov, of_average)
            missed.append(float(max(each.max(), average)))
    except NoLaw:
        return _miss_by_chains(trial)
    if missed[1] < max(CLOSE, SHRINKS * missed[0]):
        return ""
    return f"its law has a squared bias of {missed[1]:.2g} posterior variances for a step near 0"


def _miss_by_chains(trial: Trial) -> str:
    """Describe how far chains that start in the posterior leave it. "" if they stay."""
    posterior, agents = trial.problem.posterior, trial.problem.agents
    chains, step, rng = 2400 // agents, 0.02 / agents, stream("posterior")
    drawn = posterior.sample(chains, rng)
    # Where coordinates are local, the last draw is that of the average.
    theta = drawn[:, :-1] if drawn.ndim == 3 else np.repeat(drawn[:, None], agents, axis=1)
    small = trial._replace(sampler=with_step(trial.sampler, step))
    x = trial.answer(small.run(theta, int(3 / step), rng)).mean(axis=1)
    target = select_target(posterior, "average")
    z = (x - target.mean) @ np.linalg.inv(np.linalg.cholesky(target.cov)).T
    off = float(np.abs([z.mean(axis=0), (z**2).mean(axis=0) - 1]).max())
    if off < ROUGH + SURE * np.sqrt(2 / chains):
        return ""
    return f"chains that start in it leave it: means or variances are {off:.2g} off, once scaled"


def refuses_in_one_sentence_what_it_cannot_sample(sampler: Any) -> None:
    """Check that a sampler runs with gradients alone on any network, or refuses with a remedy."""
    apart = build_graph("edge_list", 4, edges=[[0, 1]])
    for variant, graph in product(
        variants(sampler), [*GRAPHS, build_graph("directed_ring", 5), apart]
    ):
        trial = Trial(variant, Network(graph), GradientOnly(graph.agents))
        try:
            variant.check(None, trial.network)
            variant.check(trial.problem, trial.network)
            trial.run(trial.draw(2), 1, stream("bare"))
        except ConcordError as error:
            expect(
                ";" in str(error), f"it refuses without a remedy after a semicolon: {error}", trial
            )


CHECKS = (
    a_step_is_local,
    draws_from_its_generator_alone,
    leaves_its_inputs_as_they_are,
    chains_are_independent,
    takes_any_number_of_chains_and_dimensions,
    chains_have_their_law,
    tends_to_the_posterior,
    local_coordinates_stay_at_home,
    refuses_in_one_sentence_what_it_cannot_sample,
)
