"""The memory that calls look at before they start: what they take, and what there is."""

import json
import subprocess
import sys

import pytest

import concord
from concord import memory
from concord.errors import ConcordError

PROBLEM = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])

# Cases of a process of its own, each in a fork of it, since peaks only grow. What is loaded, and
# computed once, is so before.
PEAKS = """
import json, os, resource, sys
import numpy as np
import concord
from concord import calls, law_call

def call(what, agents, dim, **options):
    gram, shift = np.eye(dim) * np.ones((agents, 1, 1)), np.ones((agents, dim))
    problem = concord.problems.quadratic(gram, shift)
    run = {"network": "ring", "problem": problem} | options
    if what == "recommend":
        return recommendation.recommend(**run, samplers=["de_sgld"], verify=True)
    return getattr(concord, what)("de_sgld", step_size=1e-3, **run)

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

needed = []
look = lambda size, *others: needed.append(size)
calls.require_memory = law_call.require_memory = look
call("sample", 3, 2, iterations=3, chains=60), call("law", 3, 2, iterations=3)
cases = json.loads(sys.argv[1])
if cases[-1]["what"] == "recommend":
    from concord_arena import recommendation

    recommendation.require_memory = look
    call("recommend", 3, 1, budget={"gradients": 20})
for case in cases:
    if not (child := os.fork()):
        before = peak()
        needed.clear()
        call(**case)
        print(needed[0], peak() - before, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
QUICK = [
    {"what": "sample", "agents": 4, "dim": 10, "iterations": 600, "chains": 100},
    {"what": "sample", "agents": 4, "dim": 10, "iterations": 1000, "chains": 50}
    | {"record": {"every": 2, "agents": [0, 1, 2], "probes": ["consensus_error"]}},
    {"what": "sample", "agents": 3, "dim": 1, "iterations": 20_000, "chains": 1},
    {"what": "law", "agents": 4, "dim": 10, "iterations": 3000},
]
LONG = [
    {"what": "law", "agents": 4, "dim": 1, "iterations": 20_000},
    {"what": "sample", "agents": 4, "dim": 10, "iterations": 2000, "chains": 400},
    {"what": "law", "agents": 10, "dim": 60, "iterations": 20},
    {"what": "recommend", "agents": 4, "dim": 4, "budget": {"gradients": 800}},
    {"what": "recommend", "agents": 10, "dim": 4, "budget": {"gradients": 200}},
]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits and peaks are Linux's")


def run_alone(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


@LINUX
@pytest.mark.parametrize("cases", [QUICK, pytest.param(LONG, marks=pytest.mark.thorough)])
def test_estimates_are_within_a_factor_of_two_of_measured_peaks(cases):
    lines = run_alone(PEAKS, json.dumps(cases)).splitlines()
    for case, line in zip(cases, lines, strict=True):
        needed, taken = map(float, line.split())
        assert taken / 2 < needed < 2 * taken, (case, needed, taken)


LIMITED = """
import resource, time
import numpy as np
import concord

small = concord.problems.quadratic(np.ones((3, 1, 1)), np.ones((3, 1)))
large = concord.problems.quadratic(np.eye(130) * np.ones((10, 1, 1)), np.ones((10, 130)))
langevin = {"sampler": "de_sgld", "problem": small, "network": "ring", "step_size": 0.01}
calls = [
    lambda: concord.sample(**langevin, iterations=10**6, chains=200),
    lambda: concord.sample(**langevin, iterations=10**8),
    lambda: concord.law(**langevin, iterations=10**9),
    lambda: concord.recommend(large, "ring", budget={"gradients": 2000}, verify=True),
]
concord.sample(**langevin, iterations=1), concord.law(**langevin, iterations=1)
concord.recommend
resource.setrlimit(resource.RLIMIT_AS, (2_500_000_000, -1))
for call in calls:
    began = time.monotonic()
    try:
        call()
    except concord.ConcordError as error:
        print(time.monotonic() - began, error)
"""


@LINUX
def test_calls_that_exceed_a_limit_are_refused_within_a_second():
    refused = run_alone(LIMITED).splitlines()
    sizes = ["15.4", "900", "1,330", "20.8"]
    for line, size in zip(refused, sizes, strict=True):
        seconds, message = line.split(" ", 1)
        assert float(seconds) < 1
        assert message.startswith(f"memory: the call would take {size} GB, and "), message
        assert message.endswith(", or set memory, in GB, if there is more")


CALLS = {
    "sample": lambda **options: concord.sample("de_sgld", PROBLEM, "ring", **RUN, **options),
    "law": lambda **options: concord.law("de_sgld", PROBLEM, "ring", **RUN, **options),
    "recommend": lambda **options: concord.recommend(
        PROBLEM, "ring", budget={"gradients": 20}, samplers=["de_sgld"], **options
    ),
}
RUN = {"step_size": 0.01, "iterations": 10}


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_counts_in_the_place_of_what_is_available(name, monkeypatch):
    with pytest.raises(ConcordError, match="1e-09 GB are allowed; "):
        CALLS[name](memory=1e-9)
    with pytest.raises(ConcordError, match="memory: 0 does not fit; give number > 0"):
        CALLS[name](memory=0)
    monkeypatch.setattr(memory, "available_memory", lambda: -1.0)
    with pytest.raises(ConcordError, match="0 GB are available; "):
        CALLS[name]()
    CALLS[name](memory=1)
