"""Runs that are sampled: compiled where they are long, by streams of their labels."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from concord import fast
from concord_studies.runs.run import Run
from concord_studies.runs.sample import sample

HAS_NUMBA = importlib.util.find_spec("numba") is not None
numba = pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")
if HAS_NUMBA:
    from concord.fast import steps


RUN = {
    **{"paper": "p", "experiment": "e", "run": "r", "labels": {}, "scale": "paper", "seed": 1},
    **{"assumptions": [], "metrics": [], "topology": "ring", "agents": 5, "chains": 60},
    "problem": {"name": "gmm", "kind": "tied_mixture"},
    "partition": {"kind": "equal"},
    "initial": {"kind": "normal"},
    "sampler": {"kind": "gossip_ula", "step_size": 1e-3},
    "iterations": 100,
    "record": {"every": 50},
}


@numba
def test_the_pipeline_asks_for_compiled_steps_of_long_runs_alone(monkeypatch) -> None:
    run, compiled = Run.from_document(RUN, "run.yaml"), []
    problem = run.build_problem(Path())
    choose = steps.CompiledSteps._choose_way
    monkeypatch.setattr(
        steps.CompiledSteps, "_choose_way", lambda *own: compiled.append(1) or choose(*own)
    )
    short = sample(run, problem)
    assert not compiled
    monkeypatch.setattr(fast, "WORTH", 100 * (60 * 5 * 2 + 2 * fast.CALLS))
    long = sample(run, problem)
    np.testing.assert_allclose(long["x"], short["x"], rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(long["gradients"], short["gradients"])
    assert len(compiled) == 2  # blocks of chains


def test_a_runs_streams_keep_their_label_whatever_it_is_named():
    """This text must never change either."""
    labels = {"topology": "ring", "batch": "10"}
    assert Run.stream_name.fget(SimpleNamespace(labels=labels)) == "topology=ring,batch=10"
    assert Run.stream_name.fget(SimpleNamespace(labels={})) == "run"
