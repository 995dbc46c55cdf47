"""Runs that several processes divide among them have the bytes of one process."""

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import concord
from concord import compiled, make
from concord.errors import ConcordError
from concord.library.sampling import _prepared
from concord.networks import transports
from concord.networks.transports import Part
from concord.problems._quadratic import QuadraticProblem
from concord.runs.run import ChosenProblem, read
from concord.runs.sample import sample
from concord.sampling import loop
from concord.sampling.initial import Law
from concord.sampling.recorder import Record
from faults.tiny_project import EXPERIMENT, RUNS, TinyProject
from networks import over_ranks
from networks.over_ranks import AGENTS, CONDITIONS, GRAPHS, SAMPLERS
from networks.threads import over_ranks as threads

ROOT = Path(__file__).parents[2]
RUN = "linear", "reading=published+points=50+agents=5+topology=ring+sampler=de_sgld"


def resolved(folder):
    """Write a small run.yaml."""
    place = ROOT / "config/papers/tzikas2024"
    output = "--scale", "smoke", "-o", folder / "run.yaml"
    command = sys.executable, "-m", "concord", "resolve", place, *RUN, *output
    subprocess.run(command, cwd=ROOT, check=True)


def same_over(ranks, case):
    """Check a case; return whether there is one."""
    whole = over_ranks.trace(case)
    if whole is None:
        return False
    for size in ranks:
        traces = threads(size, lambda comm: over_ranks.trace(case, comm))
        assert not over_ranks.different(whole, traces[0]), (case, size)
        assert [trace.chains for trace in traces[1:]] == [0] * (size - 1)
    return True


EPOCHS = {"step_size": 0.1, "fusion": 0.1, "batch_size": 2, "batch_order": "epochs"}

# Each sampler with each condition once, and as many graphs.
SOME = [
    (*sampler, GRAPHS[(i + j) % len(GRAPHS)], name, AGENTS[(i + j) % 2], "linear")
    for i, sampler in enumerate(SAMPLERS)
    for j, name in enumerate(CONDITIONS)
]


def test_a_few_runs_have_the_same_bytes_on_two_and_three_ranks():
    made = [case for case in SOME[::3] if same_over((2, 3), case)]
    assert len(made) > 20


@pytest.mark.thorough
@pytest.mark.parametrize("neighbors", ["together", "in_turn"])
@pytest.mark.parametrize("kind", ["de_sgld", "d_ula", "extra_sgld"])
def test_compiled_kernels_know_that_rows_are_of_some_agents(kind, neighbors, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled, "_awaited", 0)
    options = {"step_size": 0.02, **({"neighbors": neighbors} if kind == "d_ula" else {})}
    options |= {"fusion": 0.1} if kind == "d_ula" else {}
    assert same_over((2, 3), (kind, options, {"kind": "ring"}, "perfect", 9, "linear"))


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("gossip_ula", {"step_size": 0.1, "fusion": 0.1}, "a tick two agents"),
        (
            "de_sgld",
            {"step_size": 0.1, "update_order": "in_place"},
            "in_place cannot be divided over ranks, because they wait",
        ),
        ("admm", {"penalty": 1.0, "primal_neighbors": "first_agents"}, "nobody sends them"),
        ("d_ula", EPOCHS, "'permuted'"),
    ],
)
def test_what_cannot_be_divided_is_refused_in_one_sentence(kind, options, words):
    case = kind, options, {"kind": "ring"}, "perfect", 9, "linear"
    assert over_ranks.trace(case) is not None
    with pytest.raises(ConcordError, match=words):
        threads(2, lambda comm: over_ranks.trace(case, comm))


def test_blocks_are_added_up_by_the_first_that_has_some_of_them(monkeypatch):
    monkeypatch.setattr(transports, "BLOCK", 4)
    x = np.random.default_rng(1).standard_normal((2, 11, 3))

    def summed(rows):
        assert rows.shape[1] in (4, 3)
        return rows.sum(axis=1)

    wanted = transports.blocks(summed, x)
    assert np.abs(wanted - x.sum(axis=1)).max() < 1e-12
    for size in range(1, 12):

        def total(comm):
            part = Part(comm, 11)
            return part.total(summed, x[:, part.own])

        found = threads(size, total)
        assert found[0].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("graph", ["ring", "torus", "hypercube", "complete"])
def test_bytes_on_the_wire_are_those_of_the_ways_between_ranks(graph):
    """Each vector goes once to each rank that needs it: on sparse graphs once over each way."""
    agents, chains, iterations = 64, 2, 7
    network = concord.network(graph, agents)
    problem = over_ranks.problem(agents, "linear")
    ways, rows = [0] * 4, set()
    adjacency = network.adjacency()
    owner = np.searchsorted(np.arange(1, 5) * 16, np.arange(agents), "right")
    for receiver, sender in zip(adjacency.rows, adjacency.columns, strict=True):
        if owner[receiver] != owner[sender]:
            ways[owner[sender]] += 1
            rows.add((int(sender), int(owner[receiver])))

    own = _prepared(
        "de_sgld", problem, network, iterations, chains, None, None, {"step_size": 0.01}
    )
    parts = {}

    class Noting(Part):
        def __init__(self, comm, agents):
            super().__init__(comm, agents)
            parts[comm.rank] = self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "Part", Noting)
        threads(4, lambda comm: loop.sample(
            own.sampler, own.params, problem, own.topology, law=own.keys.initial,
            record=own.keys.record, chains=chains, iterations=iterations, seed=1,
            labels=loop.Labels(), comm=comm,
        ))  # fmt: skip
    sent = [parts[rank].sent for rank in range(4)]
    vector = chains * 3 * 8
    assert sum(sent) == iterations * len(rows) * vector
    if graph != "complete":
        assert sent == [iterations * number * vector for number in ways]


def mpiexec(ranks, *arguments, **options):
    """Run Python on so many ranks of the MPI of this environment."""
    launcher = Path(sys.executable).with_name("mpiexec")
    command = str(launcher), "-n", str(ranks), sys.executable, *arguments
    return subprocess.run(command, capture_output=True, text=True, timeout=240, **options)


mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or not Path(sys.executable).with_name("mpiexec").exists(),
    reason="the extra mpi is not installed",
)


def regression(problem, tmp_path, *probes):
    """Return a run of regression on five agents, which records probes of all."""
    resolved(tmp_path)
    return replace(
        read(tmp_path / "run.yaml"),
        problem=ChosenProblem.parse({"kind": f"{problem}_regression", "points": 60}, "tests"),
        record=Record(every=50, probes=probes),
    )


@pytest.mark.parametrize("problem", ["linear", "logistic"])
def test_ranks_may_have_the_data_of_their_own_agents_alone(problem, tmp_path):
    run = regression(problem, tmp_path, "potential", "consensus_error")
    assert run.record.by_agent and not Record(probes=("accuracy",)).by_agent
    whole = sample(run, run.build_problem(tmp_path))

    def of_rank(comm):
        own = run.build_problem(tmp_path, agents=Part(comm, 5).own)
        assert own.agents < 5 and len(own.counts) == own.agents
        return sample(run, own, comm=comm)

    for size in (2, 3):
        assert not over_ranks.different(whole, threads(size, of_rank)[0])


@pytest.mark.parametrize("problem", ["linear", "logistic"])
def test_potentials_of_some_agents_are_those_of_their_own_data(problem, tmp_path):
    every = regression(problem, tmp_path, "potential")
    some = replace(every, record=Record(every=50, agents=(3, 1), probes=("potential",)))
    whole = every.build_problem(tmp_path)
    expected = sample(every, whole)["potential"][..., [3, 1]]
    np.testing.assert_array_equal(sample(some, whole)["potential"], expected)

    def of_rank(comm, own):
        part = some.build_problem(tmp_path, agents=Part(comm, 5).own) if own else whole
        return sample(some, part, comm=comm)

    for own in (True, False):
        found = threads(2, lambda comm, own=own: of_rank(comm, own))[0]
        np.testing.assert_array_equal(found["potential"], expected)


def test_ranks_start_where_the_problem_of_all_agents_says(tmp_path, monkeypatch):
    resolved(tmp_path)
    known = read(tmp_path / "run.yaml")
    run = replace(known, initial=Law.parse({"kind": "problem"}, "tests"), iterations=20, chains=2)

    class Started(QuadraticProblem):
        def initial(self, shape, rng):
            return np.broadcast_to(self.posterior.mean, shape)

    def build(*given):
        return Started(np.arange(1.0, 6)[:, None, None] * np.eye(2), np.arange(10.0).reshape(5, 2))

    monkeypatch.setattr(run.problem.module, "build", build)
    whole = sample(run, build())
    found = threads(2, lambda comm: make._drawn(run, tmp_path, tmp_path / "trace.nc", comm=comm))
    assert not over_ranks.different(whole, found[0])


@mpi
@pytest.mark.thorough
def test_mpiexec_writes_the_bytes_of_one_process(tmp_path):
    resolved(tmp_path)
    sample = "-m", "concord", "sample", "run.yaml", "-o"
    subprocess.run([sys.executable, *sample, "one.nc"], cwd=tmp_path, check=True)
    for ranks in (2, 4):
        result = mpiexec(ranks, *sample, "several.nc", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert (tmp_path / "one.nc").read_bytes() == (tmp_path / "several.nc").read_bytes()
    result = mpiexec(6, *sample, "none.nc", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("5 agents cannot be divided over 6 processes") == 1


@mpi
@pytest.mark.thorough
def test_snakemake_starts_the_processes_of_a_run_that_says_ranks(tmp_path):
    made = []
    for ranks in (None, 2):
        project = TinyProject(tmp_path / str(ranks))
        sections = project.sections()
        sections["experiments"][EXPERIMENT] |= {"ranks": ranks} if ranks else {}
        project.rewrite(sections)
        metrics = f"{RUNS[0]}/metrics.csv"
        project.make(metrics)
        made.append((project.folder / metrics).read_bytes())
        assert len(list(project.folder.rglob("divide.log"))) == bool(ranks)
    assert made[0] == made[1]


@mpi
@pytest.mark.thorough
def test_cases_over_mpi_have_the_bytes_of_one_process():
    program = Path(over_ranks.__file__).with_name("mpi_cases.py")
    result = mpiexec(3, str(program))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "same: 40" in result.stdout


@mpi
@pytest.mark.thorough
def test_an_exception_on_one_rank_ends_all():
    text = (
        "from concord.networks.transports import launched, together\n"
        "comm = launched()\n"
        "with together(comm):\n"
        "    if comm.rank == 1:\n"
        "        raise ValueError('here')\n"
        "    comm.barrier()\n"
    )
    result = mpiexec(2, "-c", text)
    assert result.returncode
    assert "ValueError: here" in result.stderr


def test_a_communicator_of_another_size_is_refused(monkeypatch):
    class Alone:
        size, rank = 1, 0

    for name in transports.SIZES:
        monkeypatch.delenv(name, raising=False)
    assert transports.launched() is None
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    monkeypatch.setattr(transports, "world", Alone)
    with pytest.raises(ConcordError, match="says 4 processes, and MPI sees 1"):
        transports.launched()


def test_without_mpi_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ConcordError, match=r"pip install -e '\.\[mpi\]'"):
        transports.world()
