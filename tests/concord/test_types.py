"""What mypy knows: the state of a sampler's steps, and what options are built."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from processes import SOURCE

CODE = """
from typing import Any, NamedTuple, assert_type
import numpy as np
from numpy.random import Generator
from concord import Sampler
from concord.networks.network import Network
from concord.options import build
from concord.problem import CountedProblem
from concord.record import Record
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD

class State(NamedTuple):
    x: np.ndarray
    v: np.ndarray

class Own(Sampler[State]):
    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        assert_type(state.v, np.ndarray)
        gradient = problem.gradient(state.w)  # wrong
        return state._replace(y=gradient)  # wrong

class Other(Sampler[State]):
    def step(  # wrong
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> np.ndarray:
        return state.x

class Number(Sampler[int]):  # wrong
    pass

class Plain(Sampler):
    def step(self, state: Any, k: int, problem: Any, network: Network, rng: Generator) -> Any:
        return state._replace(x=state.w)

def run(
    sampler: DESGHMC, other: DESGLD, problem: CountedProblem, network: Network, rng: Generator
) -> None:
    assert_type(build(Record, {"every": 2}), Record)
    x = np.zeros((1, problem.agents, problem.dim))
    state = sampler.step(sampler.init(x, problem, network, rng), 0, problem, network, rng)
    assert_type(state.v, np.ndarray)
    state.w  # wrong
    positions = other.step(other.init(x, problem, network, rng), 0, problem, network, rng)
    positions.v + 1  # wrong
"""


@pytest.mark.slow
def test_states_of_steps_and_options_are_known(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "own.py").write_text(CODE)
    root = Path(SOURCE).parent
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", tmp_path / "own.py"),
            *("--config-file", root / "pyproject.toml", "--cache-dir", root / ".mypy_cache"),
        ],
        env={**os.environ, "MYPYPATH": SOURCE},
        capture_output=True,
        text=True,
    )
    wrong = [n for n, line in enumerate(CODE.splitlines(), 1) if line.endswith("# wrong")]
    found = map(int, re.findall(r"own\.py:(\d+): error", done.stdout))
    assert sorted(found) == wrong, done.stdout + done.stderr
