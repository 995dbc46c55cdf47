"""What every sampler promises; most of all that step and law agree.

The law (``affine``) is written from the paper's matrices, the step from its equation per agent.
Here the matrices are read off the step itself, by feeding it basis vectors as chains: rounding is
all that may differ.
"""

from __future__ import annotations

import tracemalloc
from typing import Any, cast

import numpy as np

from concord.contracts import AffineSampler, Info, ReadOut
from concord.errors import ConcordError
from concord.networks import topology
from concord.networks.channel import Passage
from concord.networks.conditions import Conditions
from concord.networks.network import drawing, under
from concord.options import build
from concord.samplers import Batching
from concord.sampling import streams
from concord.testing import calibration, gate
from concord.testing._outcome import Inapplicable, Prototype, expect, same
from concord.testing.variants import (
    GRAPHS,
    Bare,
    Quiet,
    Still,
    allowed,
    problem,
    stream,
    variants,
)

Case = tuple[Any, Any, Any]  # network, problem, options


def combinations(module: Any, dims: tuple[int, ...] = (1, 3)) -> list[Case]:
    """Return every accepted combination of graph, dimension and parameters."""
    found = [
        (graph, prob, params)
        for graph in GRAPHS
        for prob in (problem(graph.agents, dim) for dim in dims)
        for params in variants(module)
        if allowed(module, prob, graph, params)
    ]
    expect(bool(found), "it accepts none of the networks and options tried on linear regression")
    return found


def batched(params: Any) -> bool:
    """Whether these options take mini-batches."""
    return isinstance(params, Batching) and params.batch_size is not None


def laws(module: Any, dims: tuple[int, ...] = (1, 3)) -> list[tuple[Any, Any, Any, Any]]:
    """Return the combinations whose law the sampler states, and the laws; with full gradients."""
    if not isinstance(module, AffineSampler):
        raise Inapplicable("it states no exact law (affine)")
    full = [c for c in combinations(module, dims) if not batched(c[2])]
    full += [c for c in gate.cases(module, constants=False) if not batched(c[2])]
    found = [(*c, module.affine(c[1], c[0], c[2])) for c in full]
    found = [c for c in found if c[-1] is not None]
    expect(bool(found), "affine states no law for any of the networks and options tried")
    return found


def blocks(state: Any) -> list[str]:
    """Return the names of what makes up the state vector: positions, then auxiliaries."""
    return [
        name
        for name, part in zip(state._fields, state, strict=True)
        if isinstance(part, np.ndarray) and part.shape == state.x.shape
    ]


def advance(
    module: Any, prob: Any, graph: Any, params: Any, vectors: np.ndarray, k: int, rng: Any
) -> np.ndarray:
    """Return the state vectors one step later, each of ``vectors`` (chains, S) being a chain."""
    chains, shape = len(vectors), (len(vectors), prob.agents, prob.dim)
    size = prob.agents * prob.dim
    x0 = vectors[:, :size].reshape(shape).copy()
    state, step = module.init(prob, graph, params, x0, Still(chains))
    names = blocks(state)
    for earlier in range(k if len(names) < len(state) else 0):  # to what the law takes as known
        state, _ = step(state, earlier, Still(chains))
    parts = [vectors[:, i * size : (i + 1) * size].reshape(shape).copy() for i in range(len(names))]
    state, _ = step(state._replace(**dict(zip(names, parts, strict=True))), k, rng)
    return np.concatenate([getattr(state, name).reshape(chains, -1) for name in names], axis=1)


def state_size(module: Any, prob: Any, graph: Any, params: Any) -> int:
    """Return the length of the state vector."""
    x0 = np.zeros((2, prob.agents, prob.dim))
    state, _ = module.init(prob, graph, params, x0, Still(2))
    return len(blocks(state)) * prob.agents * prob.dim


class Erring:
    """The problem with the m-th unit vector, for chain m, added to the gradient."""

    def __init__(self, prob: Any) -> None:
        """Wrap a problem."""
        self._problem = prob

    def __getattr__(self, name: str) -> Any:
        """Return what else the problem has."""
        return getattr(self._problem, name)

    def gradient(self, chains: int) -> Any:
        """Return the gradient with its errors."""
        exact = self._problem.gradient(chains)
        errors = np.zeros((chains, self.agents * self.dim))
        errors[np.arange(self.agents * self.dim), np.arange(self.agents * self.dim)] = 1.0

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
    for graph, prob, params in combinations(module, dims=(2,)):
        on = f" on {graph.name} of {graph.agents} with {params}"
        before = repr(np.random.get_state())  # noqa: NPY002 (to see that nobody uses it)
        gram, results = prob.gram.copy(), []
        x0 = streams.generator(1, "x0").standard_normal((4, prob.agents, prob.dim))
        kept = x0.copy()
        for _ in range(2):
            rng = streams.generator(1, "noise")
            state, step = module.init(prob, graph, params, x0, rng)
            for k in range(4):
                state, info = step(state, k, rng)
            expect(isinstance(info, Info), "a step does not return (state, Info)")
            unicasts, broadcasts = np.asarray(info.unicasts), np.asarray(info.broadcasts)
            sizes = ((prob.agents,), (4, prob.agents))
            expect(
                unicasts.shape == broadcasts.shape and unicasts.shape in sizes,
                f"Info counts messages in the shapes {unicasts.shape} and {broadcasts.shape}, "
                f"not {sizes[0]} or {sizes[1]}{on}",
            )
            expect(
                bool((broadcasts >= 0).all() and (unicasts >= broadcasts).all()),
                f"Info has fewer unicasts than broadcasts, or negative ones{on}",
            )
            expect(
                bool((unicasts <= broadcasts * graph.degrees).all()),
                f"Info has more unicasts than neighbors for each broadcast{on}",
            )
            paid = None if info.gradients is None else np.asarray(info.gradients)
            expect(
                paid is None or (paid.shape in sizes and bool((paid >= 0).all())),
                f"Info counts gradients in another shape than {sizes}, or negative ones{on}",
            )
            results.append(state.x.copy())
        expect(results[0].shape == x0.shape, f"x has the shape {results[0].shape}{on}")
        expect(results[0].dtype == x0.dtype, f"x is of type {results[0].dtype}, not {x0.dtype}{on}")
        expect(bool(np.isfinite(results[0]).all()), f"x is not finite after four steps{on}")
        expect(not np.array_equal(results[0], x0), f"x has not moved in four steps{on}")
        expect(
            np.array_equal(*results),
            f"two runs with the same generator differ: use no random numbers but rng's{on}",
        )
        expect(np.array_equal(x0, kept), f"init or step writes into x0: copy it{on}")
        expect(np.array_equal(prob.gram, gram), f"a step writes into the problem's data{on}")
        after = repr(np.random.get_state())  # noqa: NPY002
        expect(after == before, "it uses numpy's global random state: use rng")


def a_step_needs_nothing_of_the_states_before(module: Any) -> None:
    """A step consumes its state: what it was given, and what it returned, may hold anything after.

    Only then may it be given copies, or write into either.
    """
    for graph, prob, params in combinations(module, dims=(2,)):
        x0 = streams.generator(1, "x0").standard_normal((4, prob.agents, prob.dim))
        ends = []
        for poison in (False, True):
            rng = streams.generator(1, "noise")
            state, step = module.init(prob, graph, params, x0.copy(), rng)
            for k in range(4):
                if poison:
                    given = type(state)(*(part.copy() for part in state))
                    for part in state:
                        part.fill(np.nan)
                    state = given
                state, _ = step(state, k, rng)
            ends.append(state)
        for plain, poisoned in zip(*ends, strict=True):
            expect(
                np.array_equal(plain, poisoned, equal_nan=True),
                "a step reads an array of a state it was given or returned before; keep a copy",
            )


def chains_do_not_see_each_other(module: Any) -> None:
    """Without noise, a chain moves the same in other company."""
    for graph, prob, params in combinations(module, dims=(2,)):
        x0 = streams.generator(2, "x0").standard_normal((6, prob.agents, prob.dim))
        both = []
        for chosen in (slice(None), slice(4, 6)):
            start = x0[chosen].copy()
            rng: Any = Quiet(streams.generator(2, "noise"))
            state, step = module.init(prob, graph, params, start, rng)
            for k in range(3):
                state, _ = step(state, k, rng)
            both.append(state.x[-2:].copy())
        same(
            both[0],
            both[1],
            f"a chain moves otherwise in other company, on {graph.name} with {params}",
        )


def nothing_is_heard_where_all_is_lost(module: Any) -> None:
    """What a sampler sends goes through the channel: it knows nothing else of its neighbors.

    One that opens no channel hears in a step as far as it sends vectors.
    """
    heard, tried = "", 0
    loss = {"kind": "bernoulli", "rate": 1.0, "direction": "one_way"}
    for graph, prob, params in combinations(module, dims=(2,)):
        if not graph.edges or batched(params) or graph.messages is not None:
            continue
        lossy = [
            under(graph, build(Conditions, {"loss": loss, "on_loss": policy}), "")
            for policy in ("keep_own_weight", "sender_keeps")
        ]
        accepted = [network for network in lossy if allowed(module, prob, network, params)]
        try:
            still, moved = (
                _unheard(module, prob, (accepted or lossy)[0], params, x) for x in (0.0, 1.0)
            )
        except Exception:
            if accepted:
                raise
            continue  # it refuses both; and one that does hears nothing there either, if it can run
        tried += 1
        if not np.array_equal(still, moved):
            heard = f"agents hear agent 0 where nothing arrives, on {graph.name} with {params}"
    if not tried:
        raise Inapplicable("it takes no network with edges")
    expect(not heard, heard)


def _unheard(module: Any, prob: Any, lossy: Any, params: Any, moved: float) -> np.ndarray:
    """Return where agents end that cannot hear agent 0, which has moved since all began."""
    network: Any = drawing(lossy, stream("masks"))
    rng: Any = Quiet(stream("heard"))
    state, step = module.init(prob, network, params, np.zeros((2, prob.agents, 2)), rng)
    state.x[:, 0] += moved
    if isinstance(step, Passage):
        for k in range(3):
            state, _ = step(state, k, rng)
        return state.x[:, 1:].copy()
    state, info = step(state, 0, rng)  # it sends by itself, so far
    return state.x[:, _farther(network, int(np.max(info.broadcasts)))].copy()


def _farther(graph: Any, steps: int) -> np.ndarray:
    """Return the agents that are more than so many edges away from agent 0."""
    reached = {0}
    for _ in range(steps):
        reached |= {int(j) for i in reached for j in graph.neighbors[i]}
    return np.setdiff1d(np.arange(graph.agents), list(reached))


def refuses_in_one_sentence_what_it_cannot_sample(module: Any) -> None:
    """A problem that offers gradients only is sampled, or refused with a remedy."""
    prob, graph, x0 = Bare(5), topology.build("ring", 5), np.ones((2, 5, 2))
    for params in variants(module):
        try:
            module.check(prob, graph, params)
            state, step = module.init(prob, graph, params, x0.copy(), np.random.default_rng(0))
            step(state, 0, np.random.default_rng(0))
        except ConcordError as error:
            expect(";" in str(error), f"it refuses a problem without a remedy: {error}")


def step_without_noise_is_the_matrix_of_the_law(module: Any) -> None:
    """``affine`` has the matrix and offset that the step applies."""
    for graph, prob, params, law in laws(module):
        size, on = state_size(module, prob, graph, params), f", on {graph.name} with {params}"
        vectors = np.concatenate([np.zeros((1, size)), np.eye(size)])
        for k in (0, 3, int(stream("later").integers(21, 150))):
            after = advance(module, prob, graph, params, vectors, k, Still(len(vectors)))
            update = law.at(k)
            expect(
                update.matrix.shape == (size, size),
                f"the law's matrix has the shape {update.matrix.shape}, not {(size, size)}{on}",
            )
            same(after[0], update.offset, f"the law's offset is not the step's{on}")
            same((after[1:] - after[0]).T, update.matrix, f"the law's matrix is not the step's{on}")


def step_with_unit_noise_is_the_covariance_of_the_law(module: Any) -> None:
    """``affine`` has the covariance of the noise that the step adds."""
    for graph, prob, params, law in laws(module):
        size = state_size(module, prob, graph, params)
        counter = Still(7)
        advance(module, prob, graph, params, np.zeros((7, size)), 2, counter)
        chains = max(sum(counter.sizes), 2) + 1 + prob.agents * prob.dim  # unlike other lengths
        rng = Still(chains, unit=True)
        after = advance(module, prob, graph, params, np.zeros((chains, size)), 2, rng)
        gain = (after - after[-1]).T
        told = f"the law's noise is not the step's, on {graph.name} with {params}"
        same(gain @ gain.T, law.at(2).noise, told)


def errors_of_gradients_enter_as_the_law_says(module: Any) -> None:
    """``affine`` has the gain of errors in the gradients, as mini-batches have."""
    for graph, prob, params, law in laws(module):
        gain = law.at(1).gradient_gain
        if gain is None:
            continue
        size, errors = state_size(module, prob, graph, params), prob.agents * prob.dim
        start = np.zeros((errors + 1, size))
        after = advance(module, Erring(prob), graph, params, start, 1, Still(errors + 1))
        told = f"gradient_gain is not the step's, on {graph.name} with {params}"
        same((after - after[-1])[:-1].T, gain, told)


def auxiliaries_start_as_the_law_says(module: Any) -> None:
    """``affine`` has the law of what the state holds beside x at the start."""
    for graph, prob, params, law in laws(module, dims=(2,)):
        x0 = streams.generator(4, "x0").standard_normal((5, prob.agents, prob.dim))
        for draw in (0.0, 1.0, -2.0):  # a start N(m, s^2 I) is m + s times the number drawn
            state, _ = module.init(prob, graph, params, x0, Still(5, fill=draw))
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
    module = cast(Any, module)
    for graph, prob, params in combinations(module):
        on = f", on {graph.name} with {params}"
        x0 = streams.generator(5, "x0").standard_normal((4, prob.agents, prob.dim))
        rng = streams.generator(5, "noise")
        state, step = module.init(prob, graph, params, x0, rng)
        for k in range(4):
            before = [part.copy() for part in state]
            shape = module.read(state, params).shape
            expect(shape == x0.shape, f"what is read has the shape {shape}{on}")
            kept = zip(before, state, strict=True)
            expect(all(np.array_equal(*pair) for pair in kept), f"read writes into the state{on}")
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
        order = getattr(case[2], "batch_order", None)
        first.setdefault(batched(case[2]) and (order,), case)
    expect(False in first, "it takes no full gradients")
    for case in first.values():
        part = allocated(module, *case)
        if part >= 0.5:
            raise Prototype(
                f"a step allocates {part:.1f} times its state; allocate buffers in init and write "
                "into them (out=)"
            )


def allocated(module: Any, graph: Any, prob: Any, params: Any) -> float:
    """Return the most a step allocates, as a part of its state."""
    x0 = np.zeros((40_000, prob.agents, prob.dim))  # numpy's own buffers are small beside it
    rng = streams.generator(1, "noise")
    state, step = module.init(prob, graph, params, x0, rng)
    for k in range(3):
        state, _ = step(state, k, rng)
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
