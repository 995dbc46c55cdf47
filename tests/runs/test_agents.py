"""Agents that are processes: draws, faults and prices are those of the simulation."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml

import concord
from concord.errors import ConcordError
from concord.networks.conditions import Conditions
from concord.networks.weights import weights_of
from concord.options import build, plain
from concord.runs.agents import agents
from concord.runs.run import read
from networks.test_transports import resolved

COMPUTE = {"seconds": 0.01}
FREE = {"compute": COMPUTE, "on_loss": "reuse_last", "barrier": False}


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("usual")
    resolved(folder)
    return (folder / "run.yaml").read_text()


@pytest.fixture
def stated(tmp_path, usual):
    """Return what writes a run on a ring of five, with what happens on it."""
    return partial(write, tmp_path, usual)


def write(folder, usual, network, **more):
    run = yaml.safe_load(usual)
    happens = {"network": plain(build(Conditions, network, "network"))}
    place = list(run).index("metrics")
    run = dict([*list(run.items())[:place], *happens.items(), *list(run.items())[place:]]) | more
    run["record"] |= {"agents": None, "every": 10}
    run["sampler"]["step_size"] = 0.05  # of which 60 steps are long enough to forget the start
    (folder / "run.yaml").write_text(yaml.safe_dump(run, sort_keys=False))


def begun(folder, command="agents"):
    run = sys.executable, "-m", "concord", command, "run.yaml", "-o", f"{command}.nc"
    return subprocess.Popen(run, cwd=folder, stderr=subprocess.PIPE, text=True)


def made(folder, command="agents"):
    process = begun(folder, command)
    said = process.communicate(timeout=100)[1]
    assert process.returncode == 0, said
    return concord.load(folder / f"{command}.nc")


def apart(one, other):
    """Return by how many standard errors means over chains differ, at most."""
    errors = [values.var(axis=0, ddof=1) / len(values) for values in (one, other)]
    return float(np.abs((one.mean(axis=0) - other.mean(axis=0)) / np.sqrt(sum(errors))).max())


@pytest.mark.thorough
def test_with_a_barrier_processes_draw_what_the_simulation_draws(tmp_path, stated):
    stated({"compute": COMPUTE, "link": {"latency": 0.002}}, iterations=40)
    lived, simulated = made(tmp_path), made(tmp_path, "sample")
    for name in ("x", "x_average", "unicasts", "broadcasts"):
        assert lived[name].tobytes() == simulated[name].tobytes()
    steps = np.broadcast_to(lived.draw[:, None], lived["gradients"].shape[1:])
    assert (lived["gradients"] == steps).all()
    assert (lived["seconds"] >= simulated["seconds"]).all()


@pytest.mark.thorough
def test_without_one_lost_vectors_and_a_slow_agent_do_what_the_simulation_says(tmp_path, stated):
    loss = {"kind": "bernoulli", "rate": 0.2, "direction": "one_way"}
    slow = {"compute": COMPUTE | {"slowest": 10.0, "slow_agents": [1]}}
    stated(FREE | slow | {"loss": loss}, iterations=240, chains=50)
    lived = made(tmp_path)
    stated(FREE | slow | {"loss": loss}, iterations=240, chains=50, seed=2)
    simulated = made(tmp_path, "sample")
    late = lived.draw > 120
    for power in (1, 2):
        means = [(trace["x"][:, late] ** power).mean(axis=1) for trace in (lived, simulated)]
        assert apart(*means) < 4.5
    moved, others = lived["activations"][0, -1], [0, 2, 3, 4]
    assert moved[1] <= 25 and 3 * moved[1] < moved[others].min() <= moved.max() <= 242


@pytest.mark.thorough
def test_others_go_on_where_an_agent_is_killed(tmp_path, stated):
    """Whenever each hears the others, the mean to which they go is the same."""
    stated(FREE, iterations=300, chains=50)
    process = begun(tmp_path)
    pids = re.findall(r"\d+", process.stderr.readline().partition("processes")[2])
    time.sleep(0.5)
    os.kill(int(pids[2]), signal.SIGKILL)
    assert process.wait(60) == 0
    assert "agent 2 was killed, the others go on" in process.stderr.read()
    trace, run = concord.load(tmp_path / "agents.nc"), read(tmp_path / "run.yaml")
    problem, x = run.build_problem(Path("unused")), trace["x"]
    dead, late = x[:, -1, 2], trace.draw > 200
    assert (x[:, late, 2] == dead[:, None]).all() and trace["activations"][0, -1, 2] < 250
    alive, eta = [0, 1, 3, 4], run.sampler.params.step_size(0)
    weights = np.kron(weights_of(run.graph, "metropolis").dense(), np.eye(2)).reshape(5, 2, 5, 2)
    pull = np.eye(10).reshape(5, 2, 5, 2) - weights
    for agent in range(5):
        pull[agent, :, agent] += eta * problem.gram[agent]
    from_dead = np.einsum("aibj,cbj->cai", -pull[alive][:, :, [2]], dead[:, None])
    aims = (eta * problem.shift[alive] + from_dead).reshape(len(dead), -1)
    wanted = np.linalg.solve(pull[alive][:, :, alive].reshape(8, 8), aims.T).T
    found = x[:, late][:, :, alive].mean(axis=1).reshape(len(dead), -1) - wanted
    assert apart(found, np.zeros_like(found)) < 4.5
    assert np.abs(x[:, late][:, :, alive].mean(axis=1)).max() > 0.1


@pytest.mark.thorough
def test_with_a_barrier_nobody_goes_on(tmp_path, stated):
    stated({"compute": COMPUTE}, iterations=4000)
    process = begun(tmp_path)
    pids = re.findall(r"\d+", process.stderr.readline().partition("processes")[2])
    os.kill(int(pids[2]), signal.SIGKILL)
    assert process.wait(60) == 2
    assert "agent 2 was killed, and its neighbors wait for it" in process.stderr.read()
    assert not (tmp_path / "agents.nc").exists()
    assert all(not Path("/proc", pid).exists() for pid in pids)


@pytest.mark.parametrize(
    ("network", "more", "sentence"),
    [
        ({}, {}, "need an undirected graph and a network with compute"),
        ({"compute": COMPUTE, "awake": 0.5}, {}, "leave out the rest"),
        ({"compute": COMPUTE}, {"chains": 100}, "with 1 to 50 chains"),
        ({"compute": COMPUTE}, {"noise": "counter"}, "leave out the rest"),
    ],
)
def test_what_processes_do_not_do_is_refused_in_one_sentence(
    tmp_path, stated, network, more, sentence
):
    stated(network, **more)
    with pytest.raises(ConcordError, match=sentence):
        agents(tmp_path / "run.yaml", tmp_path / "agents.nc", Path("unused"))
