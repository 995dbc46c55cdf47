"""The loop, the recorder, and traces on disk."""

from typing import NamedTuple

import numpy as np
import pytest

import concord
from concord.contracts import Info
from concord.errors import ConcordError
from concord.options import build
from concord.sampling import recorder
from concord.sampling.loop import simulate
from concord.sampling.recorder import Record, Recorder
from concord.sampling.trace import DIGEST, read_trace, write_trace

CHAINS, AGENTS, DIM = 3, 4, 2
SHAPE = (CHAINS, AGENTS, DIM)


class State(NamedTuple):
    x: np.ndarray


class Counted:
    """A problem that can be probed."""

    @staticmethod
    def misclassified(x):
        return np.floor(x.sum(axis=-1)).astype(int)

    @staticmethod
    def accuracy(x):
        return x.sum(axis=-1) / 100


def start():
    return np.arange(24, dtype=float).reshape(SHAPE)


def adding(sent=None):
    """A sampler that adds k + 1 to everything, in place, and so reuses its arrays."""
    sent = np.arange(AGENTS) if sent is None else sent

    def step(state, k, rng):
        state.x[...] += k + 1
        return State(state.x), Info(2 * sent, sent)

    return step


def run(iterations, step=None, **record):
    recorder = Recorder(build(Record, record, "tests"), Counted(), SHAPE, iterations)
    step = adding() if step is None else step
    return simulate(State(start()), step, iterations, recorder, np.random.default_rng(0))


def test_iteration_k_is_the_state_after_k_steps():
    trace = run(4)
    assert trace.draw.tolist() == [0, 1, 2, 3, 4]
    for row, total in enumerate([0, 1, 3, 6, 10]):
        np.testing.assert_array_equal(trace["x"][:, row], start() + total)
    assert trace["x"].shape == (CHAINS, 5, AGENTS, DIM)


@pytest.mark.parametrize(
    ("record", "due"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"every": 3}, [0, 3, 6]),
        ({"every": 7}, [0, 7]),
        ({"at": [5, 0, 5, 2]}, [0, 2, 5]),
        ({"at": [7, 100]}, [7]),
    ],
)
def test_only_what_is_due_is_recorded(record, due):
    full, part = run(7), run(7, **record)
    assert part.draw.tolist() == due
    np.testing.assert_array_equal(part["x"], full["x"][:, due])
    np.testing.assert_array_equal(part["broadcasts"], full["broadcasts"][due])


def test_only_chosen_agents_are_kept_but_all_are_averaged():
    trace = run(2, agents=[3, 1], probes=["consensus_error", "accuracy"])
    full = run(2)
    assert trace.agent.tolist() == [3, 1]
    np.testing.assert_array_equal(trace["x"], full["x"][:, :, [3, 1]])
    np.testing.assert_array_equal(trace["x_average"], full["x"].mean(axis=2))
    deviation = full["x"] - full["x"].mean(axis=2, keepdims=True)
    np.testing.assert_allclose(trace["consensus_error"], (deviation**2).sum(axis=(2, 3)) / AGENTS)
    np.testing.assert_array_equal(trace["accuracy"], full["x"].sum(axis=-1)[:, :, [3, 1]] / 100)


def test_nothing_is_kept_that_was_not_asked_for():
    trace = run(3, draws=False, average=False, probes=["misclassified"])
    prices = {"unicasts", "broadcasts", "gradients"}
    assert set(trace.variables) == {"misclassified", "diverged_at"} | prices
    assert trace["misclassified"].dtype.kind == "i"
    with pytest.raises(ConcordError, match=r"the trace has no 'x'; record it"):
        trace["x"]
    assert "x" not in trace and "misclassified" in trace


def test_messages_add_up_whether_or_not_they_are_recorded():
    """Also those of single chains, and those between records."""
    trace = run(6, every=4)
    np.testing.assert_array_equal(trace["broadcasts"], [[0] * 4, [0, 4, 8, 12]])
    np.testing.assert_array_equal(trace["unicasts"], 2 * trace["broadcasts"])
    each = np.arange(CHAINS * AGENTS).reshape(CHAINS, AGENTS)
    trace = run(6, step=adding(each), every=3, agents=[2])
    assert trace.variables["broadcasts"][0] == ("chain", "draw", "agent")
    np.testing.assert_array_equal(trace["broadcasts"][:, :, 0], each[:, 2:3] * [0, 3, 6])


@pytest.mark.parametrize("value", [1e9, -2e8, np.inf, -np.inf, np.nan])
def test_the_iteration_at_which_a_chain_leaves_the_finite_range_is_noted(value):
    def step(state, k, rng):
        if k == 2:
            state.x[1, 3, 0] = value
        if k == 4:
            state.x[1, 3, 0] = 0.0  # coming back does not undo it
            state.x[0] = value
        return state, Info(*np.zeros((2, AGENTS), dtype=int))

    trace = run(6, step=step)
    assert trace["diverged_at"].tolist() == [5, 3, -1]
    assert np.isfinite(trace["x"][2]).all()


def test_large_but_finite_chains_have_not_diverged():
    trace = run(
        2, step=lambda s, k, rng: (State(np.full(SHAPE, 9e6)), Info(*np.zeros((2, 4), int)))
    )
    assert (trace["diverged_at"] == -1).all()


def test_a_start_outside_the_range_is_divergence_at_iteration_zero():
    recorder = Recorder(build(Record, {}, "tests"), None, SHAPE, 1)
    x = start()
    x[2] = np.nan
    trace = simulate(State(x), adding(), 1, recorder, np.random.default_rng(0))
    assert trace["diverged_at"].tolist() == [-1, -1, 0]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"agents": [0, 4]}, r"there is no agent 4 among 4; name agents 0 to 3"),
        ({"probes": ["potential"]}, r"Counted has no 'potential' to probe; remove it"),
        ({"probes": ["__class__"]}, r"tests\.probes\[0\]: '__class__' is not allowed"),
        ({"every": 0}, r"tests\.every: 0 is not a positive integer"),
        ({"at": [-1]}, r"tests\.at\[0\]: -1 is below 0"),
        ({"evry": 2}, r"tests\.evry: unknown key; did you mean 'every'\?"),
    ],
)
def test_what_cannot_be_recorded_is_refused(record, message):
    with pytest.raises(ConcordError, match=message):
        run(2, **record)


def test_a_trace_reads_back_as_it_was_written(tmp_path):
    trace = run(3, agents=[0, 2], probes=["consensus_error", "misclassified", "accuracy"])
    trace.attributes = {"run": '{"chains": 3}', "note": "naïve ≤ 1"}
    write_trace(trace, tmp_path / "trace.nc")
    back = read_trace(tmp_path / "trace.nc")
    assert back.attributes == trace.attributes
    assert back.draw.tolist() == [0, 1, 2, 3] and back.agent.tolist() == [0, 2]
    assert set(back.variables) == set(trace.variables)
    for name, (dimensions, values) in trace.variables.items():
        assert back.variables[name][0] == dimensions
        assert back[name].dtype == values.dtype
        np.testing.assert_array_equal(back[name], values)


def test_xarray_reads_a_trace_with_arviz_names(tmp_path):
    xarray = pytest.importorskip("xarray")
    write_trace(run(3, every=3, agents=[1, 2]), tmp_path / "trace.nc")
    path = tmp_path / "trace.nc"
    with xarray.open_dataset(path, group="posterior", engine="h5netcdf") as data:
        assert data["x"].dims == ("chain", "draw", "agent", "dim")
        assert data["draw"].values.tolist() == [0, 3] and data["agent"].values.tolist() == [1, 2]
        np.testing.assert_array_equal(data["x"].sel(draw=3, agent=2), start()[:, 2] + 6)


@pytest.mark.parametrize("content", [b"", b"not a trace", None])
def test_a_broken_trace_is_named(content, tmp_path):
    path = tmp_path / "trace.nc"
    if content is None:
        write_trace(run(3), path)
        content = path.read_bytes()[:500]
    path.write_bytes(content)
    with pytest.raises(ConcordError, match=r"trace\.nc is not a trace; delete it"):
        read_trace(path)


def same(one, other):
    """Whether two traces hold the same."""
    arrays = ((one.draw, other.draw), (one.agent, other.agent))
    return (
        one.attributes == other.attributes
        and one.variables.keys() == other.variables.keys()
        and all(np.array_equal(*both) for both in arrays)
        and all(np.array_equal(one[name], other[name]) for name in other.variables)
    )


def saved(path):
    trace = run(3, probes=["consensus_error"])
    trace.attributes = {"seed": "1", "note": "naïve ≤ 1"}
    trace.save(path)
    return trace, path.read_bytes()


def test_a_damaged_trace_is_the_same_or_refused_by_its_name(tmp_path):
    path = tmp_path / "trace.nc"
    trace, content = saved(path)
    rng = np.random.default_rng(4)
    damaged = []
    for bit in rng.integers(8 * len(content), size=200).tolist():
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(flipped))
    damaged += [content[:size] for size in rng.integers(len(content), size=20).tolist()]
    damaged += [content[:-1], content[:-32], content[:-33], content[:-41], content + b"x"]
    refused = 0
    for bad in damaged:
        path.write_bytes(bad)
        try:
            assert same(concord.load(path), trace)
        except ConcordError as error:
            assert str(error).startswith(str(path)) and "delete it" in str(error)
            refused += 1
    assert refused > 200


def test_a_trace_without_a_digest_is_read(tmp_path):
    """As version 0.2.0 wrote them."""
    path = tmp_path / "trace.nc"
    trace, content = saved(path)
    path.write_bytes(content[: -len(DIGEST) - 32])
    assert same(concord.load(path), trace)
    path.write_bytes(content[: -len(DIGEST) - 33])
    with pytest.raises(ConcordError, match=r"trace\.nc is not a trace; delete it"):
        concord.load(path)


@pytest.mark.parametrize("seed", range(20))
def test_the_recorder_adds_agents_up_as_numpy_does(seed):
    """To the last bit, of parts of arrays and one dimension, too: it only takes less time."""
    rng = np.random.default_rng(seed)
    chains, agents, dim = (int(n) for n in rng.integers(1, 40, size=3))
    x = rng.standard_normal((chains, agents, dim if seed % 3 else 1))
    x[:, rng.integers(agents)] *= rng.choice([1.0, 1e12, np.inf])
    for part in (x, x[:, : agents // 2 + 1], x.astype(np.float32)):
        np.testing.assert_array_equal(recorder._sum(part), part.sum(axis=1))
