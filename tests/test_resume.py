"""A run that is killed goes on with the bytes that it would have had."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from concord import resume
from concord.resume import Checkpoint
from concord.sampling import loop
from networks import over_ranks
from networks.over_ranks import CONDITIONS, QSGD, STEP
from networks.threads import over_ranks as threads

CLOCK = {"compute": {"seconds": 1.0, "spread": 0.5}, "link": {"latency": 0.1}}
CASES = [
    *(("de_sgld", STEP, {"kind": "ring"}, name) for name in CONDITIONS),
    ("de_sgld", {**STEP, "batch_size": 2}, {"kind": "ring"}, "clock"),
    ("de_sgld", STEP, {"kind": "ring"}, "no barrier"),
    ("diging_sgld", STEP, {"kind": "ring"}, "loss, reused"),
    ("admm", {"penalty": 0.5}, {"kind": "star"}, "loss, reused"),
    (
        "choco_sgld",
        {**STEP, "compression": QSGD, "consensus_step": 0.3},
        {"kind": "ring"},
        "perfect",
    ),
    ("gossip_ula", {"step_size": 0.02, "fusion": 0.1}, {"kind": "ring"}, "perfect"),
    ("gossip_ula", {"step_size": 0.02, "fusion": 0.1}, {"kind": "ring"}, "loss"),
    (
        "d_ula",
        {**STEP, "fusion": 0.1, "batch_size": 2, "batch_order": "epochs"},
        {"kind": "ring"},
        "sleep",
    ),
    ("local_sgld", {**STEP, "communication": 0.5}, {"kind": "ring"}, "perfect"),
    ("d_mala", {**STEP, "drift": "half", "correction": "mala"}, {"kind": "ring"}, "perfect"),
]


class Killed(Exception):
    pass


class Killing(Checkpoint):
    """Writes a checkpoint after each iteration, and is killed after one."""

    def __init__(self, beside, end, comm=None):
        super().__init__(beside, "these", 0.0, comm)
        self.end = end

    def write(self, at, made):
        super().write(at, made)
        if at == self.end:
            raise Killed


@pytest.fixture
def more_conditions(monkeypatch):
    monkeypatch.setitem(CONDITIONS, "clock", CLOCK)
    waiting = {**CLOCK, "barrier": False, "on_loss": "reuse_last"}
    monkeypatch.setitem(CONDITIONS, "no barrier", waiting)
    monkeypatch.setattr(loop, "CHAINS_PER_BLOCK", 2)  # so that there are two blocks


@pytest.mark.usefixtures("more_conditions")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[3]}")
@pytest.mark.parametrize("end", [(0, 4), (2, 3)])
def test_a_killed_run_has_the_bytes_of_one_that_was_not(tmp_path, case, end):
    case = (*case, 9, "linear")
    whole = over_ranks.trace(case)
    with pytest.raises(Killed):
        over_ranks.trace(case, checkpoint=Killing(tmp_path / "trace.nc", end))
    again = over_ranks.trace(case, checkpoint=Killing(tmp_path / "trace.nc", None))
    assert not over_ranks.different(whole, again)


def test_a_run_by_counters_goes_on(tmp_path):
    case = "de_sgld", STEP, {"kind": "ring"}, "loss", 9, "linear"
    whole = over_ranks.trace(case, counter=True)
    with pytest.raises(Killed):
        over_ranks.trace(case, checkpoint=Killing(tmp_path / "t.nc", (0, 4)), counter=True)
    again = over_ranks.trace(case, checkpoint=Killing(tmp_path / "t.nc", None), counter=True)
    assert not over_ranks.different(whole, again)


@pytest.mark.usefixtures("more_conditions")
@pytest.mark.parametrize("name", ["perfect", "delay", "compression"])
def test_ranks_go_on_from_the_last_checkpoint_of_all(tmp_path, name):
    case = "de_sgld", STEP, {"kind": "ring"}, name, 36, "linear"
    whole, trace = over_ranks.trace(case), tmp_path / "trace.nc"

    def killed(comm):
        try:
            over_ranks.trace(case, comm, checkpoint=Killing(trace, (0, 5), comm))
        except Killed:
            return True

    assert threads(3, killed) == [True] * 3
    newest = max(tmp_path.glob(".*.2-3.*"), key=lambda path: np.load(path)["at"].tolist())
    newest.write_bytes(newest.read_bytes()[:1000])  # of one rank, which was killed while it wrote
    begun = []

    def again(comm):
        checkpoint = Killing(trace, None, comm)
        begun.append(checkpoint.found()["at"].tolist())
        return over_ranks.trace(case, comm, checkpoint=checkpoint)

    assert not over_ranks.different(whole, threads(3, again)[0])
    assert begun == [[0, 4]] * 3


def test_checkpoints_of_something_else_are_not_looked_at(tmp_path):
    path = tmp_path / "trace.nc"
    Checkpoint(path, "this").write((0, 1), lambda: {"x": np.ones(2)})
    assert Checkpoint(path, "this").found()["x"].tolist() == [1.0, 1.0]
    assert Checkpoint(path, "that").found() is None
    resume.forget(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_a_command_that_was_killed_goes_on(tmp_path):
    from networks.test_transports import resolved

    resolved(tmp_path)
    text = (tmp_path / "run.yaml").read_text()
    long = text.replace("iterations: ", "iterations: 40000 #")
    long = long.replace("every: ", "every: 1000 #")
    (tmp_path / "run.yaml").write_text(long)
    sample = sys.executable, "-m", "concord", "sample", "run.yaml", "--checkpoint", "0.2", "-o"
    subprocess.run([*sample, "whole.nc"], cwd=tmp_path, check=True)
    process = subprocess.Popen([*sample, "trace.nc"], cwd=tmp_path)
    while not list(tmp_path.glob(".trace.nc.*.checkpoint")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "trace.nc").exists()
    subprocess.run([*sample, "trace.nc"], cwd=tmp_path, check=True)
    assert (tmp_path / "trace.nc").read_bytes() == (tmp_path / "whole.nc").read_bytes()
    assert not list(Path(tmp_path).glob(".trace.nc.*"))
