"""A ring by formula has the bytes of one whose edges are listed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.networks.cycle import Cycle
from concord.networks.weights import weights_of
from networks import over_ranks
from networks.over_ranks import STEP
from networks.test_transports import mpiexec
from networks.threads import over_ranks as threads


@pytest.mark.parametrize("agents", [3, 4, 10, 50])
@pytest.mark.parametrize("kind", ["metropolis", "lazy_metropolis", "max_degree"])
def test_its_matrices_are_those_of_a_list(agents, kind):
    listed = concord.network("ring", agents)
    cycle = replace(listed, edges=Cycle(agents))
    assert tuple(cycle.edges) == listed.edges and cycle.connected
    assert np.array_equal(cycle.degrees, listed.degrees)
    one, other = weights_of(cycle, kind), weights_of(listed, kind)
    for name in ("rows", "columns", "values"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    for name in ("adjacency", "laplacian"):
        matrix, same = getattr(cycle, name)(), getattr(listed, name)()
        assert np.array_equal(matrix.dense(), same.dense())
        assert len(matrix.rows) == len(same.rows)
    x = np.random.default_rng(1).standard_normal((2, agents, 3))
    sparse = other.operator(2, 3, "sparse")(x, np.empty_like(x))
    assert np.array_equal(one.operator(2, 3)(x, np.empty_like(x)), sparse)


@pytest.mark.parametrize("agents", [4, 5, 36])
@pytest.mark.parametrize(
    ("kind", "options"),
    [("de_sgld", STEP), ("diging_sgld", STEP), ("admm", {"penalty": 0.5}), ("extra_sgld", STEP)],
)
def test_runs_on_it_have_the_bytes_of_a_list(monkeypatch, kind, options, agents):
    case = kind, options, {"kind": "ring"}, "perfect", agents, "linear"
    listed = over_ranks.trace(case)
    network = concord.network

    def formula(graph, agents):
        return replace(network(graph, agents), edges=Cycle(agents))

    monkeypatch.setattr(concord, "network", formula)
    assert not over_ranks.different(listed, over_ranks.trace(case))
    for size in (1, 2, 3):
        found = threads(size, lambda comm: over_ranks.trace(case, comm))
        assert not over_ranks.different(listed, found[0])


def test_large_rings_are_not_listed_and_other_graphs_are_refused():
    assert isinstance(concord.network("ring", 10**8).edges, Cycle)
    with pytest.raises(ConcordError, match="100001 agents are too many for kind star"):
        concord.network("star", 100_001)


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="the extra mpi is not installed")
def test_two_processes_carry_a_ring_that_one_of_their_size_does_not():
    program, agents = str(Path(over_ranks.__file__).with_name("large_ring.py")), "4000000"
    command = [sys.executable, program]
    alone = subprocess.run([*command, "0.28", agents], capture_output=True, text=True)
    assert alone.stdout == "not enough memory\n", alone.stderr
    whole = subprocess.run([*command, "2", agents], capture_output=True, text=True)
    both = mpiexec(2, program, "0.28", agents)
    assert both.returncode == 0, both.stdout + both.stderr
    # Averages of more than one block of agents are summed up block by block, everywhere alike.
    assert both.stdout == whole.stdout
