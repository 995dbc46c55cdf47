"""Checks of samplers; networks and problems count messages and gradients themselves."""

import random
from typing import Any

import numpy as np

from concord.batch_gradients import MiniBatches
from concord.errors import ConcordError
from concord.laws import exact
from concord.laws.read_off import NoLaw, StepReader
from concord.minibatches import Batches
from concord.networks.conditions import Conditions
from concord.networks.construction import network_under
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.options import build
from concord.problems.quadratic_problem import QuadraticProblem
from concord.rooms import docstring_of
from concord.sampling.schedules import Schedule
from concord_arena.testing._outcome import Inapplicable, Prototype, expect
from concord_arena.testing.noise import LEVEL, least_p
from concord_arena.testing.variants import (
    GRAPHS,
    Bare,
    Case,
    cases,
    draw_tree,
    problem,
    stream,
    variants,
    walk,
    with_schedules,
)

# Steps from one state whose noise is compared, and chains of a block.
STEPS, BLOCK = 100, 50
# Chains that are compared with their law, their steps, and how far they start from where their
# agents do, which is far from each other: it shows who averages with whom.
CHAINS, ITERATIONS, START_SD = 2000, 12, 0.1
# Standard errors by which moments of so many chains may be off. The mean square of normal numbers
# is so far off with a probability of 4e-12, and a run has fewer than a thousand moments.
SURE = 8.0
POINT = 1e-12  # a variance that is none, up to rounding
# By how much a law may miss the posterior: this part of what it misses it by at a step four times
# as large; or this little, in units of the posterior's standard deviation and variance.
SHRINKS, CLOSE = 0.6, 1e-3
# How far moments of chains may be from the posterior's besides chance, for the bias of a finite
# step: in standard deviations and parts of a variance.
ROUGH = 0.1


def says_what_it_does(module: Any) -> None:
    """Check that the docstring of the sampler's file has an equation and a source."""
    for what in (".. math::", "Source:"):
        if what not in docstring_of(module):
            raise Prototype(f"its file's docstring has no {what!r}")


def a_step_is_local(module: Any) -> None:
    """Check that an agent's position and data affect only the agents that it sends vectors to.

    These are the neighbors, and theirs if a step sends vectors twice; nobody where all vectors are
    lost.
    """
    tried = 0
    loss = {"kind": "bernoulli", "rate": 1.0, "direction": "one_way"}
    graphs = [build_graph("path", 9), draw_tree(9), *GRAPHS]
    for number, sampler in enumerate(variants(module)):
        for graph in graphs[number % 2 :]:
            case = Case(sampler, _CountingNetwork(Network(graph)), problem(graph.agents, 2))
            if graph.server_messages is None and len(graph.edges) and case.allowed:
                break
        else:
            continue
        tried += 1
        expect(_is_local(case, 1), "agents learn of agent 0 what it has not sent them", case)
        for on_loss in ("keep_own_weight", "sender_keeps", "reuse_last"):
            under = build(Conditions, {"loss": loss, "on_loss": on_loss})
            lossy = case._replace(network=_CountingNetwork(network_under(graph, under)))
            if lossy.allowed:
                expect(_is_local(lossy, 3), "agents learn of agent 0 where nothing arrives", lossy)
                break
    if not tried:
        raise Inapplicable("it takes no network with edges")


class _CountingNetwork(Network):
    """A network that counts the rounds in which vectors are sent.

    rounds: a list of one number, shared by copies of the network.
    """

    def __init__(self, network: Network) -> None:
        """Copy a network, and count its communication rounds from zero."""
        vars(self).update(vars(network))
        self.rounds = [0]

    def add_sent(self, *counted: Any) -> None:
        """Count a communication round, and the vectors as the network does."""
        self.rounds[0] += 1
        super().add_sent(*counted)

    def add_rounds(self, *counted: Any) -> None:
        """Count a communication round, and the vectors as the network does."""
        self.rounds[0] += 1
        super().add_rounds(*counted)


def _is_local(case: Case, steps: int) -> bool:
    """Return whether a change of agent 0 leaves the agents that it cannot reach unchanged.

    steps: how many steps are run. Agent 0 gets another position and other data.
    """
    network: Any = case.network
    changed, ends = problem(network.agents, 2, other=True), []
    for data, move in ((case.problem, 0.0), (changed, 1.0)):
        state, step = case.begin(case.draw(2, "local"), stream("local"), data)
        x = state.x.copy()
        x[:, 0] += move
        network.rounds[0] = 0
        ends.append(walk(state._replace(x=x), step, stream("local", "steps"), range(steps)).x)
    graph, reached = network.graph, {0}
    for _ in range(network.rounds[0] if network.is_lossless else 0):
        reached |= set(graph.receivers[np.isin(graph.senders, list(reached))].tolist())
    far = np.setdiff1d(np.arange(graph.agents), list(reached))
    return np.allclose(ends[0][:, far], ends[1][:, far], 1e-9, 1e-9, equal_nan=True)


def draws_from_its_generator_alone(module: Any) -> None:
    """Check that runs with equal generators are equal, and leave global generators unused."""
    for number, case in enumerate(cases(module)):
        before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
        x0 = case.draw(4, number)
        one, other = (case.run(x0, 4, stream("alone", number)) for _ in range(2))
        after = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
        expect(after == before, "it uses global random numbers: use rng", case)
        why = "two runs with the same generator differ: use no random numbers but rng's"
        expect(_equal(one, other), why, case)
        x = case.answer(one)
        expect(x.shape == x0.shape, f"its positions have the shape {x.shape}", case)
        expect(x.dtype == x0.dtype, f"its positions are of type {x.dtype}, not {x0.dtype}", case)
        expect(bool(np.isfinite(x).all()), "its positions are not finite after four steps", case)
        expect(not np.array_equal(x, x0), "its positions have not moved in four steps", case)


def _equal(one: Any, other: Any) -> bool:
    """Return whether two states have equal arrays, nan included."""
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def leaves_its_inputs_as_they_are(module: Any) -> None:
    """Check that a sampler works with read-only positions, states and data."""
    for case in cases(module):
        for part in vars(case.problem).values():
            if isinstance(part, np.ndarray):
                part.setflags(write=False)
        x0, rng = case.draw(3, "frozen"), stream("frozen")
        x0.setflags(write=False)
        state, step = case.begin(x0, rng)
        expect(state._fields[:1] == ("x",), "its state is no NamedTuple whose first field is x")
        for k in range(3):
            for part in state:
                part.setflags(write=False)
            try:
                case.answer(state)
                state = step(state, k, rng)
            except ValueError as error:
                expect("read-only" not in str(error), "it writes into its inputs: copy them", case)
                raise


def a_step_is_a_function_of_its_arguments(module: Any) -> None:
    """Check that state, iteration and generator determine a step, whatever ran before."""
    for number, case in enumerate(cases(module, constant=True)):
        rng = stream("history", number)
        start, step = case.begin(case.draw(3, number), rng)
        state = walk(start, step, rng, range(5))
        one = [step(state, 5, stream("again")) for _ in range(2)]
        walk(state, step, rng, range(6, 30))
        one.append(step(state, 5, stream("again")))
        kept = all(_equal(one[0], other) for other in one[1:])
        why = "the same state, iteration and generator give another step later: keep what it needs"
        expect(kept, f"{why} in the state", case)


def chains_do_not_see_each_other(module: Any) -> None:
    """Check that moving the start of one chain leaves all other chains unchanged."""
    for number, case in enumerate(cases(module)):
        x0 = case.draw(4, number)
        moved = x0.copy()
        moved[0] += 1.0
        one, other = (case.run(start, 3, stream("apart", number)).x[1:] for start in (x0, moved))
        same = np.allclose(one, other, 1e-9, 1e-9, equal_nan=True)
        expect(same, "where a chain is depends on where others are", case)


def takes_any_number_of_chains_and_dimensions(module: Any) -> None:
    """Check that one chain and one dimension give arrays of the usual shape.

    With mini-batches, too, if the sampler takes them.
    """
    for number, case in enumerate([*cases(module, dim=1), *cases(module, dim=3)]):
        rng = stream("shapes", number)
        if module.takes_batches and number % 2:
            batched = MiniBatches(case.problem, Batches(batch_size=2), 1, rng)
            case = case._replace(problem=batched)
            if not case.allowed:
                continue
        x0 = case.draw(1, number)
        x = case.answer(case.run(x0, 3, rng))
        expect(x.shape == x0.shape, f"its positions of one chain have the shape {x.shape}", case)


def noise_is_fresh(module: Any) -> None:
    """Check that noise is independent over chains, blocks and steps, and of constant size.

    Every step starts from the same state, so that steps differ by noise alone.
    """
    for number, case in enumerate(cases(module, constant=True)):
        ends = np.array([_single_steps(case, number, block) for block in range(2)])
        if np.isfinite(ends).all():
            p, what = least_p(ends)
            expect(p > LEVEL, f"{what} (p = {p:.0e})", case)


def _single_steps(case: Case, number: int, block: int) -> np.ndarray:
    """Return positions after single steps from one state, (steps, chains, agents * dim).

    number: of the case. block: of chains, which starts at chain BLOCK * block.
    """
    rng, ahead = stream("fresh", number, block), case.sampler.draws_ahead
    x0 = case.draw(1, "fresh").repeat(BLOCK, axis=0)
    state, step = case._replace(problem=case.problem.from_chain(BLOCK * block)).begin(x0, rng)
    first = (np.repeat(p[:1], BLOCK, axis=0) if p.shape[:1] == (BLOCK,) else p for p in state)
    state = type(state)(*first)._replace(**dict.fromkeys(ahead, np.empty(0)))
    return np.array([step(state, k + 1, rng).x.reshape(BLOCK, -1) for k in range(STEPS)])


def chains_have_their_law(module: Any) -> None:
    """Check mean and covariance of many chains against the law that follows from the step."""
    tried, why = 0, ""
    for number, case in enumerate(cases(module)):
        (agents, dim), rng = (case.problem.agents, case.problem.dim), stream("law", number)
        center = 10 * case.draw(1, "law")[0]
        try:
            reader = StepReader(case.sampler, case.problem, case.network)
            start = exact.initial(agents, dim, (center, START_SD), reader.start)
            mean, cov = _propagate_moments(reader, *start)
        except NoLaw as error:
            why = str(error)
            continue
        tried += 1
        x0 = center + START_SD * rng.standard_normal((CHAINS, agents, dim))
        x, size = case.run(x0, ITERATIONS, rng).x.reshape(CHAINS, -1), agents * dim
        values, vectors = np.linalg.eigh(cov[:size, :size])
        still = values < POINT * max(1.0, values[-1])
        z = (x - mean[:size]) @ vectors / np.sqrt(np.where(still, POINT, values))
        expect(
            bool((np.abs(z[:, still]) < SURE).all()), "chains leave the plane of their law", case
        )
        off = _standard_errors(z[:, ~still])
        expect(off < SURE, f"chains are {off:.0f} standard errors off their law", case)
    if not tried:
        raise Inapplicable(why)


def _propagate_moments(reader: StepReader, mean: np.ndarray, cov: np.ndarray) -> tuple[Any, Any]:
    """Return mean and covariance after ITERATIONS steps, averaged over random choices of a step.

    mean, cov: at the start.
    """
    for k in range(ITERATIONS):
        chance, updates, _ = reader.read_step(k)
        means = np.array([update.matrix @ mean + update.offset for update in updates])
        mean, before, cov = chance @ means, cov, np.zeros_like(cov)
        for p, update, off in zip(chance, updates, means - mean, strict=True):
            cov += p * (
                update.matrix @ before @ update.matrix.T + update.noise + np.outer(off, off)
            )
    return mean, cov


def _standard_errors(z: np.ndarray) -> float:
    """Return by how many standard errors z's columns miss mean 0 and mean square 1, at most."""
    off = []
    for values, target in ((z, 0.0), (z**2, 1.0)):
        error = np.maximum(values.std(axis=0), 1e-9) / np.sqrt(len(z))
        off.append(np.abs(values.mean(axis=0) - target) / error)
    return float(np.max(off, initial=0.0))


def tends_to_the_posterior(module: Any) -> None:
    """Check that agents and their average approach the posterior's law as the step size falls.

    By the law where there is one: as the step falls fourfold, what is missing falls too. Otherwise
    by chains that start from the posterior and stay close to it. A sampler that samples something
    else by design says what in ``biased``.
    """
    if module.biased:
        raise Inapplicable(f"it says that it samples another law: {module.biased}")
    graphs = [GRAPHS[n] for n in (2, 4, 8, 7)]
    tried, reasons = [], []
    for sampler in map(with_schedules, variants(module)):
        every = [Case(sampler, Network(graph), Near(graph.agents, 3)) for graph in graphs]
        every = [case for case in every if case.allowed]
        if sampler in tried or not every:
            continue
        tried.append(sampler)
        for case in every:
            try:
                why = _miss_by_law(case)
            except NoLaw:
                why = _miss_by_chains(case)
            if why:
                reasons.append(f"{why}, {case}")
                break
        else:
            return
    if not tried:
        raise Inapplicable("it takes none of the networks tried")
    expect(False, f"with none of {len(tried)} options it tends to the posterior; {reasons[0]}")


class Near(QuadraticProblem):
    """A quadratic problem whose agents have curvatures near 1 and different modes.

    The prior counts for 0.3 of each curvature.
    """

    def __init__(self, agents: int, dim: int) -> None:
        """Draw quadratic potentials whose curvature is near the identity."""
        rng = stream("near", agents, dim)
        skew = 0.1 * rng.standard_normal((agents, dim, dim))
        gram = np.eye(dim) + (skew + skew.swapaxes(1, 2)) / 2
        super().__init__(gram, rng.standard_normal((agents, dim)))

    def prior_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the prior's gradient 0.3 x, (chains, agents, dim)."""
        return 0.3 * x


def _miss_by_law(case: Case) -> str:
    """Return how far a sampler's law misses the posterior at small steps, as text; "" if not."""
    target, agents, dim = case.problem.posterior, case.problem.agents, case.problem.dim
    found = []
    root = np.linalg.inv(np.linalg.cholesky(target.cov))
    each = np.eye(agents * dim).reshape(agents, dim, -1)
    for step in (4.0**-8, 4.0**-9):
        sampler = with_schedules(case.sampler, Schedule(step), Schedule(0.1))
        update = StepReader(sampler, case.problem, case.network).update()
        law = exact.limit(update.at(1000), *exact.initial(agents, dim, (0.0, 1.0), update.start))
        if law is None:
            return "its law does not settle"
        mean, cov = law[0][: agents * dim], law[1][: agents * dim, : agents * dim]
        missing = []
        for place in [*each, each.mean(axis=0)]:
            spread = root @ place @ cov @ place.T @ root.T - np.eye(dim)
            off = np.linalg.norm(root @ (place @ mean - target.mean))
            missing.append(float(off + np.linalg.norm(spread, 2)))
        found.append(max(missing))
    if found[1] < CLOSE or found[1] < SHRINKS * found[0]:
        return ""
    return f"its law misses the posterior by {found[1]:.2g} for a step near 0"


def _miss_by_chains(case: Case) -> str:
    """Return how far chains started in the posterior leave it, as text; "" if they do not."""
    posterior, agents = case.problem.posterior, case.problem.agents
    chains, step, rng = 2400 // agents, 0.02 / agents, stream("posterior", agents)
    theta = np.repeat(posterior.sample(chains, rng)[:, None], agents, axis=1)
    own = case._replace(sampler=with_schedules(case.sampler, Schedule(step), Schedule(0.1)))
    x = case.answer(own.run(theta, int(3 / step), rng)).mean(axis=1)
    z = (x - posterior.mean) @ np.linalg.inv(np.linalg.cholesky(posterior.cov)).T
    if not np.isfinite(z).all():
        return "chains leave the posterior"
    off, ratio = np.abs(z.mean(axis=0)).max(), float((z**2).mean())
    if off > ROUGH + SURE / np.sqrt(chains):
        return f"the mean of chains is {off:.2g} standard deviations from the posterior's"
    if abs(ratio - 1) > ROUGH + SURE * np.sqrt(2 / z.size):
        return f"the variance of chains is {ratio:.2g} times the posterior's"
    return ""


def refuses_in_one_sentence_what_it_cannot_sample(module: Any) -> None:
    """Check that a sampler runs with gradients alone on any network, or refuses with a remedy."""
    graphs = [*GRAPHS, build_graph("directed_ring", 5), build_graph("edge_list", 4, edges=[[0, 1]])]
    for sampler in variants(module):
        for graph in graphs:
            case = Case(sampler, Network(graph), Bare(graph.agents))
            try:
                sampler.check(None, case.network)
                sampler.check(case.problem, case.network)
                case.run(case.draw(2, "bare"), 1, stream("bare"))
            except ConcordError as error:
                expect(";" in str(error), f"it refuses without a remedy: {error}", case)


CHECKS = (
    says_what_it_does,
    a_step_is_local,
    draws_from_its_generator_alone,
    leaves_its_inputs_as_they_are,
    a_step_is_a_function_of_its_arguments,
    chains_do_not_see_each_other,
    takes_any_number_of_chains_and_dimensions,
    noise_is_fresh,
    chains_have_their_law,
    tends_to_the_posterior,
    refuses_in_one_sentence_what_it_cannot_sample,
)
