"""What every sampler promises; most of all that step and law agree.

The law (``affine``) is written from the paper's matrices, the step from its equation per agent.
Here the matrices are read off the step itself, by feeding it basis vectors as chains: rounding is
all that may differ.
"""

import tracemalloc
from typing import Any, cast

import networkx as nx
import numpy as np

from concord.contracts import AffineSampler, Info, ReadOut
from concord.errors import ConcordError
from concord.networks import topology
from concord.networks.channel import Passage
from concord.networks.conditions import Conditions
from concord.networks.network import drawing, under
from concord.options import build
from concord.sampling import streams
from concord.testing import calibration, gate
from concord.testing._outcome import Inapplicable, Prototype, expect, same
from concord.testing.variants import (
    Bare,
    Case,
    Quiet,
    Still,
    Wrapped,
    combinations,
    copied,
    drawn,
    problem,
    stream,
    variants,
    walk,
)


def laws(module: Any, dims: tuple[int, ...] = (1, 3)) -> list[tuple[Case, Any]]:
    """Return the combinations whose law the sampler states, and the laws; with full gradients."""
    if not isinstance(module, AffineSampler):
        raise Inapplicable("it states no exact law (affine)")
    cases = [*combinations(module, dims), *drawn(module, constants=False)]
    found = [
        (case, module.affine(case.prob, case.graph, case.params))
        for case in cases
        if not case.batched
    ]
    found = [(case, law) for case, law in found if law is not None]
    expect(bool(found), "affine states no law for any of the networks and options tried")
    return found


def blocks(state: Any) -> list[str]:
    """Return the names of what makes up the state vector: positions, then auxiliaries."""
    return [
        name
        for name, part in zip(state._fields, state, strict=True)
        if isinstance(part, np.ndarray) and part.shape == state.x.shape
    ]


def advance(case: Case, vectors: np.ndarray, k: int, rng: Any) -> np.ndarray:
    """Return the state vectors one step later, each of ``vectors`` (chains, S) being a chain."""
    chains, shape = len(vectors), (len(vectors), case.prob.agents, case.prob.dim)
    state, step = case.begin(vectors[:, : case.size].reshape(shape).copy(), Still(chains))
    names = blocks(state)
    if len(names) < len(state):  # to what the law takes as known
        state = walk(state, step, Still(chains), range(k))
    parts = [part.reshape(shape).copy() for part in np.split(vectors, len(names), axis=1)]
    state, _ = step(state._replace(**dict(zip(names, parts, strict=True))), k, rng)
    return np.concatenate([getattr(state, name).reshape(chains, -1) for name in names], axis=1)


def state_size(case: Case) -> int:
    """Return the length of the state vector."""
    return len(blocks(case.begin(0 * case.start(2, 0), Still(2))[0])) * case.size


class Erring(Wrapped):
    """The problem with the m-th unit vector, for chain m, added to the gradient."""

    def gradient(self, chains: int) -> Any:
        """Return the gradient with its errors."""
        exact = self.inner.gradient(chains)
        errors = np.eye(chains, self.agents * self.dim)

        def gradient(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            exact(x, out)
            out += errors.reshape(x.shape)
            return out

        return gradient


def is_laid_out_as_its_neighbors(module: Any) -> None:
    """Its text has equation and source, its state begins with x."""
    for needed in (".. math::", "Source:"):
        expect(needed in (module.__doc__ or ""), f"its docstring has no {needed!r}")
    fields = getattr(module.State, "_fields", ())
    expect(fields[:1] == ("x",), "State is no NamedTuple whose first field is x")
    expect(bool(module.State.__doc__), "State has no docstring")


def steps_depend_on_their_arguments_alone(module: Any) -> None:
    """The same generator gives the same chain; x0, global random state and data are untouched."""
    for case in combinations(module, dims=(2,)):
        before = repr(np.random.get_state())  # noqa: NPY002 (to see that nobody uses it)
        gram, x0, results = case.prob.gram.copy(), case.start(4, 1), []
        kept = x0.copy()
        for _ in range(2):
            rng = streams.generator(1, "noise")
            state, step = case.begin(x0, rng)
            for k in range(4):
                state, info = step(state, k, rng)
            expect(isinstance(info, Info), "a step does not return (state, Info)")
            _counts_are_possible(case, info)
            results.append(state.x.copy())
        x = results[0]
        expect(x.shape == x0.shape, f"x has the shape {x.shape}", case)
        expect(x.dtype == x0.dtype, f"x is of type {x.dtype}, not {x0.dtype}", case)
        expect(bool(np.isfinite(x).all()), "x is not finite after four steps", case)
        expect(not np.array_equal(x, x0), "x has not moved in four steps", case)
        expect(
            np.array_equal(*results),
            "two runs with the same generator differ: use no random numbers but rng's",
            case,
        )
        expect(np.array_equal(x0, kept), "init or step writes into x0: copy it", case)
        expect(np.array_equal(case.prob.gram, gram), "a step writes into the data", case)
        after = repr(np.random.get_state())  # noqa: NPY002
        expect(after == before, "it uses numpy's global random state: use rng")


def _counts_are_possible(case: Case, info: Info) -> None:
    """Look at what ``Info`` counts, of four chains."""
    unicasts, broadcasts = np.asarray(info.unicasts), np.asarray(info.broadcasts)
    sizes = ((case.prob.agents,), (4, case.prob.agents))
    expect(
        unicasts.shape == broadcasts.shape and unicasts.shape in sizes,
        f"Info counts messages in the shapes {unicasts.shape} and {broadcasts.shape}, "
        f"not {sizes[0]} or {sizes[1]}",
        case,
    )
    expect(
        bool((broadcasts >= 0).all() and (unicasts >= broadcasts).all()),
        "Info has fewer unicasts than broadcasts, or negative ones",
        case,
    )
    expect(
        bool((unicasts <= broadcasts * case.graph.degrees).all()),
        "Info has more unicasts than neighbors for each broadcast",
        case,
    )
    paid = np.zeros(sizes[0]) if info.gradients is None else np.asarray(info.gradients)
    expect(
        paid.shape in sizes and bool((paid >= 0).all()),
        f"Info counts gradients in another shape than {sizes}, or negative ones",
        case,
    )


def a_step_needs_nothing_of_the_states_before(module: Any) -> None:
    """A step consumes its state: what it was given, and what it returned, may hold anything after.

    Only then may it be given copies, or write into either.
    """
    for case in combinations(module, dims=(2,)):
        rng = streams.generator(1, "noise")
        whole = case.after(4, case.start(4, 1), rng)
        rng = streams.generator(1, "noise")
        state, step = case.begin(case.start(4, 1), rng)
        for k in range(4):
            given = copied(state)
            for part in state:
                part.fill(np.nan)
            state, _ = step(given, k, rng)
        for plain, poisoned in zip(whole, state, strict=True):
            expect(
                np.array_equal(plain, poisoned, equal_nan=True),
                "a step reads an array of a state it was given or returned before; keep a copy",
            )


def chains_do_not_see_each_other(module: Any) -> None:
    """Without noise, a chain moves the same in other company."""
    for case in combinations(module, dims=(2,)):
        x0 = case.start(6, 2)
        whole, part = (
            case.after(3, start.copy(), Quiet(streams.generator(2, "noise"))).x[-2:]
            for start in (x0, x0[4:])
        )
        same(whole, part, "a chain moves otherwise in other company", case)


def nothing_is_heard_where_all_is_lost(module: Any) -> None:
    """What a sampler sends goes through the channel: it knows nothing else of its neighbors.

    Neither where they are nor what data they have.

    One that opens no channel hears in a step as far as it sends vectors.
    """
    heard, tried = "", 0
    loss = {"kind": "bernoulli", "rate": 1.0, "direction": "one_way"}
    for case in combinations(module, dims=(2,)):
        if not case.graph.edges or case.batched or case.graph.messages is not None:
            continue
        lossy = [
            case._replace(graph=under(case.graph, build(Conditions, conditions), ""))
            for policy in ("keep_own_weight", "sender_keeps")
            for conditions in [{"loss": loss, "on_loss": policy}]
        ]
        accepted = [one for one in lossy if one.allowed]
        one = (accepted or lossy)[0]
        other = one._replace(prob=problem(one.prob.agents, 2, other=True))
        try:
            still, moved, changed = _unheard(one), _unheard(one, 1.0), _unheard(other)
        except Exception:
            if accepted:
                raise
            continue  # it refuses both; and one that does hears nothing there either, if it can run
        tried += 1
        if not np.array_equal(still, moved):
            heard = f"agents hear agent 0 where nothing arrives, {case}"
        elif not np.array_equal(still, changed):
            heard = f"agents know agent 0's data, of which nothing arrives, {case}"
    if not tried:
        raise Inapplicable("it takes no network with edges")
    expect(not heard, heard)


def _unheard(case: Case, moved: float = 0.0) -> np.ndarray:
    """Return where agents end that cannot hear agent 0, which has moved since all began."""
    network: Any = drawing(case.graph, stream("masks"))
    rng: Any = Quiet(stream("heard"))
    state, step = case._replace(graph=network).begin(np.zeros((2, case.prob.agents, 2)), rng)
    state.x[:, 0] += moved
    if isinstance(step, Passage):
        return walk(state, step, rng, range(3)).x[:, 1:].copy()
    state, info = step(state, 0, rng)  # it sends by itself, so far
    edges = nx.Graph(network.edges)
    near = nx.single_source_shortest_path_length(edges, 0, int(np.max(info.broadcasts)))
    return state.x[:, np.setdiff1d(np.arange(network.agents), list(near))].copy()


def refuses_in_one_sentence_what_it_cannot_sample(module: Any) -> None:
    """A problem that offers gradients only is sampled, or refused with a remedy."""
    prob, graph, x0 = Bare(5), topology.build("ring", 5), np.ones((2, 5, 2))
    for params in variants(module):
        try:
            module.check(prob, graph, params)
            Case(module, graph, prob, params).after(1, x0.copy(), np.random.default_rng(0))
        except ConcordError as error:
            expect(";" in str(error), f"it refuses a problem without a remedy: {error}")


def step_without_noise_is_the_matrix_of_the_law(module: Any) -> None:
    """``affine`` has the matrix and offset that the step applies."""
    for case, law in laws(module):
        size = state_size(case)
        vectors = np.concatenate([np.zeros((1, size)), np.eye(size)])
        for k in (0, 3, int(stream("later").integers(21, 150))):
            after = advance(case, vectors, k, Still(len(vectors)))
            update = law.at(k)
            expect(
                update.matrix.shape == (size, size),
                f"the law's matrix has the shape {update.matrix.shape}, not {(size, size)}",
                case,
            )
            same(after[0], update.offset, "the law's offset is not the step's", case)
            same(
                (after[1:] - after[0]).T,
                update.matrix,
                "the law's matrix is not the step's",
                case,
            )


def step_with_unit_noise_is_the_covariance_of_the_law(module: Any) -> None:
    """``affine`` has the covariance of the noise that the step adds."""
    for case, law in laws(module):
        size, counter = state_size(case), Still(7)
        advance(case, np.zeros((7, size)), 2, counter)
        chains = max(sum(counter.sizes), 2) + 1 + case.size  # unlike other lengths
        after = advance(case, np.zeros((chains, size)), 2, Still(chains, unit=True))
        gain = (after - after[-1]).T
        same(gain @ gain.T, law.at(2).noise, "the law's noise is not the step's", case)


def errors_of_gradients_enter_as_the_law_says(module: Any) -> None:
    """``affine`` has the gain of errors in the gradients, as mini-batches have."""
    for case, law in laws(module):
        gain = law.at(1).gradient_gain
        if gain is not None:
            chains, erring = case.size + 1, case._replace(prob=Erring(case.prob))
            after = advance(erring, np.zeros((chains, state_size(case))), 1, Still(chains))
            same((after - after[-1])[:-1].T, gain, "gradient_gain is not the step's", case)


def auxiliaries_start_as_the_law_says(module: Any) -> None:
    """``affine`` has the law of what the state holds beside x at the start."""
    for case, law in laws(module, dims=(2,)):
        x0 = case.start(5, 4)
        for draw in (0.0, 1.0, -2.0):  # a start N(m, s^2 I) is m + s times the number drawn
            state, _ = case.begin(x0, Still(5, fill=draw))
            same(state.x, x0, "the state does not start at x0")
            names = blocks(state)[1:]
            expect(
                len(names) == len(law.auxiliary),
                f"the state holds {names} beside x, but the law {len(law.auxiliary)} auxiliaries",
            )
            for name, (mean, spread, matrix) in zip(names, law.auxiliary, strict=True):
                expected = np.broadcast_to(mean + np.asarray(spread) * draw, x0.shape)
                if matrix is not None:
                    expected = expected + (x0.reshape(5, -1) @ matrix.T).reshape(x0.shape)
                same(getattr(state, name), expected, f"{name} starts otherwise than the law says")


def what_is_read_leaves_the_state_as_it_is(module: Any) -> None:
    """``read`` returns positions, and changes nothing."""
    if not isinstance(module, ReadOut):
        raise Inapplicable("it reads its x")
    read = cast(Any, module).read
    for case in combinations(module):
        x0, rng = case.start(4, 5), streams.generator(5, "noise")
        state, step = case.begin(x0, rng)
        for k in range(4):
            before = copied(state)
            shape = read(state, case.params).shape
            expect(shape == x0.shape, f"what is read has the shape {shape}", case)
            kept = all(map(np.array_equal, before, state))
            expect(kept, "read writes into the state", case)
            state, _ = step(state, k, rng)


def positions_have_uniform_ranks_in_their_exact_law(module: Any) -> None:
    """Calibration: many chains are distributed as ``affine`` says, after ten steps."""
    if not isinstance(module, AffineSampler):
        raise Inapplicable("it states no exact law (affine), so nothing is calibrated")
    tried, wrong = calibration.wrong(module)
    expect(bool(tried), "affine states no law for any of the networks and options tried")
    many = f"{len(wrong)} of {tried} combinations are not as the law says"
    expect(not wrong, f"{many}, such as {wrong[0] if wrong else ''}")


def a_step_allocates_nothing_the_size_of_its_state(module: Any) -> None:
    """Buffers are allocated once, in ``init``; with mini-batches in every order too."""
    first: dict[Any, Case] = {}
    for case in combinations(module, dims=(2,)):
        order = getattr(case.params, "batch_order", None)
        first.setdefault(case.batched and (order,), case)
    expect(False in first, "it takes no full gradients")
    for case in first.values():
        part = allocated(case)
        if part >= 0.5:
            raise Prototype(
                f"a step allocates {part:.1f} times its state; allocate buffers in init and write "
                "into them (out=)"
            )


def allocated(case: Case) -> float:
    """Return the most a step allocates, as a part of its state."""
    x0 = np.zeros((40_000, case.prob.agents, case.prob.dim))  # beside it numpy's buffers are small
    rng = streams.generator(1, "noise")
    state, step = case.begin(x0, rng)
    state = walk(state, step, rng, range(3))
    tracemalloc.start()
    try:
        state, _ = step(state, 3, rng)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return float(peak / x0.nbytes)


CHECKS = (
    is_laid_out_as_its_neighbors,
    steps_depend_on_their_arguments_alone,
    a_step_needs_nothing_of_the_states_before,
    chains_do_not_see_each_other,
    nothing_is_heard_where_all_is_lost,
    refuses_in_one_sentence_what_it_cannot_sample,
    step_without_noise_is_the_matrix_of_the_law,
    step_with_unit_noise_is_the_covariance_of_the_law,
    errors_of_gradients_enter_as_the_law_says,
    auxiliaries_start_as_the_law_says,
    what_is_read_leaves_the_state_as_it_is,
    positions_have_uniform_ranks_in_their_exact_law,
    *gate.CHECKS,
    a_step_allocates_nothing_the_size_of_its_state,
)
