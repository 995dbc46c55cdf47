"""Graphs by formula have the bytes of those whose edges are listed, in parts as whole."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.networks import formula, shares
from concord.networks.formula import Formula
from concord.networks.weights import weights_of
from networks import over_ranks
from networks.over_ranks import CONDITIONS, LOSS, STEP
from networks.test_transports import mpiexec
from networks.threads import over_ranks as threads

KINDS = "ring", "torus", "grid", "hypercube", "exponential"


def listed(kind, agents):
    """Return the network of the same graph by networkx."""
    rows = max(r for r in range(1, agents) if agents % r == 0 and r * r <= agents)
    graph = {
        "ring": lambda: nx.cycle_graph(agents),
        "torus": lambda: nx.grid_2d_graph(rows, agents // rows, periodic=True),
        "grid": lambda: nx.grid_2d_graph(rows, agents // rows),
        "hypercube": lambda: nx.hypercube_graph(agents.bit_length() - 1),
        "exponential": lambda: nx.circulant_graph(
            agents, [2**j for j in range(9) if 2**j < agents]
        ),
    }[kind]()
    return concord.network(nx.convert_node_labels_to_integers(graph, ordering="sorted"))


def as_large(monkeypatch):
    """Take small networks for large ones, whose weights are not held."""
    monkeypatch.setattr(formula, "MOST_LISTED", 1)
    monkeypatch.setattr(formula, "BLOCK", 7)


@pytest.mark.parametrize("agents", [4, 8, 16, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_their_matrices_are_those_of_a_list(kind, agents, monkeypatch):
    network, same = concord.network(kind, agents), listed(kind, agents)
    assert network.edges == same.edges and len(network.edges) == len(same.edges)
    assert network.connected and np.array_equal(network.degrees, same.degrees)
    matrices = [
        *((weights_of(n, name) for n in (network, same)) for name in ("metropolis", "max_degree")),
        *((weights_of(n, name) for n in (network, same)) for name in ("lazy_metropolis", 0.05)),
        *((getattr(n, name)() for n in (network, same)) for name in ("adjacency", "laplacian")),
    ]
    as_large(monkeypatch)
    x = np.random.default_rng(1).standard_normal((2, agents, 3))
    for one, other in matrices:
        for name in ("rows", "columns", "values", "diagonal"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert abs(one.sums()[:1] - other.sums()).max() < 1e-12
        whole = other.operator(2, 3, "sparse")(x, np.empty_like(x))
        for own in (slice(0, agents), slice(0, agents // 3), slice(agents // 3, agents)):
            held, part = one.part(own)
            assert np.array_equal(held, other.part(own)[0])
            heard = np.ascontiguousarray(x[:, held])
            found = part.operator(2, 3)(heard, np.empty((2, own.stop - own.start, 3)))
            assert np.array_equal(found, whole[:, own])


@pytest.mark.parametrize("agents", [4, 5, 36])
@pytest.mark.parametrize(
    ("kind", "options"),
    [("de_sgld", STEP), ("diging_sgld", STEP), ("admm", {"penalty": 0.5}), ("extra_sgld", STEP)],
)
def test_runs_on_large_ones_have_the_bytes_of_a_list(monkeypatch, kind, options, agents):
    graph = {"kind": ("torus", "grid", "ring")[agents % 3]}
    case = kind, options, graph, "perfect", agents, "linear"
    network = listed(graph["kind"], agents)
    with monkeypatch.context() as patch:
        patch.setattr(concord, "network", lambda *given: network)
        wanted = over_ranks.trace(case)
    as_large(monkeypatch)
    assert not over_ranks.different(wanted, over_ranks.trace(case))
    for size in (1, 2, 3):
        found = threads(size, lambda comm: over_ranks.trace(case, comm))
        assert not over_ranks.different(wanted, found[0])


SCHEDULES = {
    "kept": {"schedule": {"kind": "kept", "probability": 0.6}},
    "pair": {"schedule": {"kind": "pair"}},
    "one_peer": {"schedule": {"kind": "one_peer"}},
    "link": {"loss": LOSS | {"direction": "link"}},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*CONDITIONS, *SCHEDULES])
def test_what_arrives_by_counters_is_the_same_over_ranks(kind, name, monkeypatch):
    """Each process draws it for its own agents, their neighbors, and those that draw with them."""
    monkeypatch.setattr(shares, "TOGETHER", 4)
    monkeypatch.setattr(over_ranks, "CONDITIONS", CONDITIONS | SCHEDULES)
    if name in ("loss", "schedule", "perfect"):
        as_large(monkeypatch)
    case = "de_sgld", STEP, {"kind": kind}, name, 64, "linear"
    whole = over_ranks.trace(case, counter=True)
    assert (whole is None) == (kind == "grid" and name == "one_peer")
    for size in (2, 4) if whole else ():
        found = threads(size, lambda comm: over_ranks.trace(case, comm, counter=True))
        assert not over_ranks.different(whole, found[0]), size


def test_large_ones_are_not_listed_and_other_graphs_are_refused():
    for kind in KINDS:
        network = concord.network(kind, 2**18)
        assert isinstance(network.edges, Formula) and network.degrees[-1] >= 2
    with pytest.raises(ConcordError, match="100001 agents are too many for kind star"):
        concord.network("star", 100_001)


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="the extra mpi is not installed")
@pytest.mark.parametrize(
    ("limit", "given"), [("0.28", ["4000000"]), ("0.7", ["1000000", "--graph=torus", "--loss=0.2"])]
)
def test_two_processes_carry_what_one_of_their_size_does_not(limit, given):
    program = str(Path(over_ranks.__file__).with_name("large_network.py"))
    command = [sys.executable, program]
    alone = subprocess.run([*command, limit, *given], capture_output=True, text=True)
    assert alone.stdout == "not enough memory\n", alone.stderr
    whole = subprocess.run([*command, "2", *given], capture_output=True, text=True)
    both = mpiexec(2, program, limit, *given)
    assert both.returncode == 0, both.stdout + both.stderr
    # Averages of more than one block of agents are summed up block by block, everywhere alike.
    assert both.stdout == whole.stdout
