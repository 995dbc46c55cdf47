"""Traces on disk: read as they were written, or refused by their name."""

from importlib.util import find_spec

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.networks.construction import network
from concord.samplers.de_sgld import DESGLD
from concord.sampling.trace_files import load
from steps import Regression, recorded

netcdf = pytest.mark.skipif(find_spec("h5netcdf") is None, reason="h5netcdf is not installed")


def run(iterations, **record):
    """Return the trace of a run of three chains of four agents."""
    return recorded(DESGLD(0.01), Regression(4, 2), network("ring", 4), iterations, **record)


@pytest.mark.parametrize("name", ["x.csv", "x", "x.nc.gz", "nc"])
def test_a_trace_is_saved_under_the_name_of_its_format_alone(name, tmp_path):
    sentence = (
        rf"{name}: a trace is saved as netCDF; give a name that ends in \.nc, or make a table"
    )
    with pytest.raises(ConcordError, match=sentence):
        run(3).save(tmp_path / name)
    assert not (tmp_path / name).exists()
    assert len(run(3).to_xarray().x.to_dataframe()) == 3 * 4 * 4 * 2


@netcdf
def test_a_trace_reads_back_as_it_was_written(tmp_path):
    trace = run(3, agents=[0, 2], probes=["consensus_error", "potential"])
    trace.attributes = {"run": '{"chains": 3}', "note": "naïve ≤ 1"}
    trace.save(tmp_path / "trace.nc")
    back = load(tmp_path / "trace.nc")
    assert back.attributes == trace.attributes
    assert back.draw.tolist() == [0, 1, 2, 3] and back.agent.tolist() == [0, 2]
    assert set(back.variables) == set(trace.variables)
    for name, (dimensions, values) in trace.variables.items():
        assert back.variables[name][0] == dimensions
        assert back[name].dtype == values.dtype
        np.testing.assert_array_equal(back[name], values)


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


@netcdf
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
            assert str(error).startswith(str(path)) and "name the draws.nc" in str(error)
            refused += 1
    assert refused > 200
