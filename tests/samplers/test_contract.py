"""What every sampler promises, for each file in ``samplers``; most of all that step and law agree.

The law (``affine``) is written from the paper's matrices, the step from its equation per agent.
Here the matrices are read off the step itself, by feeding it basis vectors as chains: rounding is
all that may differ.
"""

from __future__ import annotations

import inspect
import tracemalloc

import numpy as np
import pytest

from concord.contracts import Info
from concord.options import Options
from concord.sampling import streams
from concord.sampling.gradients import BATCH_ORDERS
from variants import EXACT, GRAPHS, SAMPLERS, Still, allowed, problem, variants

ROUNDING = 1e-12

every_sampler = pytest.mark.parametrize("module", SAMPLERS.values(), ids=SAMPLERS)
every_law = pytest.mark.parametrize("module", EXACT.values(), ids=EXACT)


def combinations(module, dims=(1, 3)):
    """Return every accepted combination of graph, dimension and parameters."""
    found = [
        (graph, prob, params)
        for graph in GRAPHS
        for prob in (problem(graph.agents, dim) for dim in dims)
        for params in variants(module)
        if allowed(module, prob, graph, params)
    ]
    assert found, f"{module.__name__} accepts none of the graphs and parameters tried"
    return found


def batched(params):
    return getattr(params, "batch_size", None) is not None


def laws(module, dims=(1, 3)):
    """Return the combinations whose law the sampler states, and the laws; with full gradients."""
    found = [c for c in combinations(module, dims) if not batched(c[2])]
    found = [(*c, module.affine(c[1], c[0], c[2])) for c in found]
    found = [c for c in found if c[-1] is not None]
    assert found, f"{module.__name__}.affine states no law"
    return found


def blocks(state):
    """Return the names of what makes up the state vector: positions, then auxiliaries."""
    return [
        name
        for name, part in zip(state._fields, state, strict=True)
        if isinstance(part, np.ndarray) and part.shape == state.x.shape
    ]


def advance(module, prob, graph, params, vectors, k, rng):
    """Return the state vectors one step later, each of ``vectors`` (chains, S) being a chain."""
    chains, shape = len(vectors), (len(vectors), prob.agents, prob.dim)
    size = prob.agents * prob.dim
    state, step = module.init(
        prob, graph, params, vectors[:, :size].reshape(shape).copy(), Still(chains)
    )
    names = blocks(state)
    parts = [vectors[:, i * size : (i + 1) * size].reshape(shape).copy() for i in range(len(names))]
    state, _ = step(state._replace(**dict(zip(names, parts, strict=True))), k, rng)
    return np.concatenate([getattr(state, name).reshape(chains, -1) for name in names], axis=1)


def state_size(module, prob, graph, params):
    x0 = np.zeros((2, prob.agents, prob.dim))
    state, _ = module.init(prob, graph, params, x0, Still(2))
    return len(blocks(state)) * prob.agents * prob.dim


def assert_same(found, expected):
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * scale)


class Erring:
    """The problem with the m-th unit vector, for chain m, added to the gradient."""

    def __init__(self, prob):
        self._problem = prob

    def __getattr__(self, name):
        return getattr(self._problem, name)

    def gradient(self, chains):
        exact = self._problem.gradient(chains)
        errors = np.zeros((chains, self.agents * self.dim))
        errors[np.arange(self.agents * self.dim), np.arange(self.agents * self.dim)] = 1.0

        def gradient(x, out):
            exact(x, out)
            out += errors.reshape(x.shape)
            return out

        return gradient


@every_law
def test_step_without_noise_is_the_matrix_of_the_law(module):
    for graph, prob, params, law in laws(module):
        size = state_size(module, prob, graph, params)
        vectors = np.concatenate([np.zeros((1, size)), np.eye(size)])
        for k in (0, 3):
            after = advance(module, prob, graph, params, vectors, k, Still(len(vectors)))
            update = law.at(k)
            assert update.matrix.shape == (size, size), "state and law hold different things"
            assert_same(after[0], update.offset)
            assert_same((after[1:] - after[0]).T, update.matrix)


@every_law
def test_step_with_unit_noise_is_the_covariance_of_the_law(module):
    for graph, prob, params, law in laws(module):
        size = state_size(module, prob, graph, params)
        counter = Still(7)
        advance(module, prob, graph, params, np.zeros((7, size)), 2, counter)
        chains = max(sum(counter.sizes), 2) + 1 + prob.agents * prob.dim  # unlike other lengths
        rng = Still(chains, unit=True)
        after = advance(module, prob, graph, params, np.zeros((chains, size)), 2, rng)
        gain = (after - after[-1]).T
        assert_same(gain @ gain.T, law.at(2).noise)


@every_law
def test_errors_of_gradients_enter_as_the_law_says(module):
    for graph, prob, params, law in laws(module):
        gain = law.at(1).gradient_gain
        if gain is None:
            continue
        size, errors = state_size(module, prob, graph, params), prob.agents * prob.dim
        chains = errors + 1
        after = advance(
            module, Erring(prob), graph, params, np.zeros((chains, size)), 1, Still(chains)
        )
        assert_same((after - after[-1])[:-1].T, gain)


@every_law
def test_auxiliaries_start_as_the_law_says(module):
    for graph, prob, params, law in laws(module, dims=(2,)):
        x0 = streams.generator(4, "x0").standard_normal((5, prob.agents, 2))
        for draw in (0.0, 1.0, -2.0):  # a start N(m, s^2 I) is m + s times the number drawn
            state, _ = module.init(prob, graph, params, x0, Still(5, fill=draw))
            assert_same(state.x, x0)
            names = blocks(state)[1:]
            assert len(names) == len(law.auxiliary)
            for name, (mean, spread, matrix) in zip(names, law.auxiliary, strict=True):
                expected = np.broadcast_to(mean + np.asarray(spread) * draw, x0.shape)
                if matrix is not None:
                    expected = expected + (x0.reshape(5, -1) @ matrix.T).reshape(x0.shape)
                assert_same(getattr(state, name), expected)


@every_sampler
def test_module_is_laid_out_as_its_neighbors(module):
    assert ".. math::" in module.__doc__ and "Source:" in module.__doc__
    assert issubclass(module.Params, Options)  # whose fields test_plugins looks at
    assert module.State._fields[0] == "x" and module.State.__doc__
    assert list(inspect.signature(module.check).parameters) == ["problem", "topology", "params"]
    arguments = ["problem", "topology", "params", "x0", "rng"]
    assert list(inspect.signature(module.init).parameters) == arguments


@every_sampler
def test_steps_depend_on_their_arguments_alone(module):
    """The same generator gives the same chain; x0, global random state and data are untouched."""
    for graph, prob, params in combinations(module, dims=(2,)):
        before = np.random.get_state()[1].copy()  # noqa: NPY002 (to see that nobody uses it)
        gram, results = prob.gram.copy(), []
        x0 = streams.generator(1, "x0").standard_normal((4, prob.agents, prob.dim))
        kept = x0.copy()
        for _ in range(2):
            rng = streams.generator(1, "noise")
            state, step = module.init(prob, graph, params, x0, rng)
            for k in range(4):
                state, info = step(state, k, rng)
            assert isinstance(info, Info)
            assert info.unicasts.shape == info.broadcasts.shape
            assert info.unicasts.shape in ((prob.agents,), (4, prob.agents))
            assert (info.broadcasts >= 0).all() and (info.unicasts >= info.broadcasts).all()
            assert (info.unicasts <= info.broadcasts * graph.degrees).all()
            results.append(state.x.copy())
        assert np.isfinite(results[0]).all() and results[0].shape == x0.shape
        assert not np.array_equal(results[0], x0)
        np.testing.assert_array_equal(*results)
        np.testing.assert_array_equal(x0, kept)
        np.testing.assert_array_equal(prob.gram, gram)
        assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@every_sampler
def test_a_step_needs_nothing_of_the_states_before(module):
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
            np.testing.assert_array_equal(plain, poisoned)


@every_sampler
def test_chains_do_not_see_each_other(module):
    """Without noise, a chain moves the same in other company."""
    for graph, prob, params in combinations(module, dims=(2,)):
        x0 = streams.generator(2, "x0").standard_normal((6, prob.agents, prob.dim))
        both = []
        for chosen in (slice(None), slice(4, 6)):
            start = x0[chosen].copy()
            rng = Quiet(streams.generator(2, "noise"))
            state, step = module.init(prob, graph, params, start, rng)
            for k in range(3):
                state, _ = step(state, k, rng)
            both.append(state.x[-2:].copy())
        np.testing.assert_allclose(*both, rtol=0, atol=1e-12)


class Quiet:
    """A generator without normal noise or shuffling, whose other numbers are one half, or first."""

    def __init__(self, rng):
        self._rng = rng

    def standard_normal(self, size=None, dtype=float, out=None):
        values = np.zeros(size, dtype) if out is None else out
        values[...] = 0.0
        return values

    def random(self, size=None, out=None, **_):
        values = np.zeros(() if size is None else size) if out is None else out
        values[...] = 0.5
        return values if np.ndim(values) else 0.5

    def permuted(self, x, axis=None, out=None):
        return np.copyto(out, x)

    def integers(self, low, high=None, size=None, **_):
        return np.zeros(() if size is None else size, dtype=int) + (0 if high is None else low)

    def __getattr__(self, name):
        return getattr(self._rng, name)


@every_sampler
@pytest.mark.parametrize("batches", [False, True], ids=["full", "batches"])
def test_a_step_allocates_nothing_the_size_of_its_state(module, batches):
    for order in BATCH_ORDERS if batches else [None]:
        found = [
            c
            for c in combinations(module, dims=(2,))
            if batched(c[2]) == batches
            and getattr(c[2], "batch_order", BATCH_ORDERS[0]) in (order or BATCH_ORDERS)
        ]
        if found:
            assert allocated(module, *found[0]) < 0.5
        else:
            assert batches, f"{module.__name__} takes no full gradients"


def allocated(module, graph, prob, params):
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
    return peak / x0.nbytes
