"""What the commands set for the libraries, and results on other machines: equal to 1e-10.

Other processors are simulated by telling the libraries to leave instructions unused: OpenBLAS,
numpy's own loops and the C library's functions.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from concord_cli.__main__ import SETTINGS, settle

ROOT = Path(__file__).parents[2]
PROCESSORS = {
    "AVX2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    "SSE": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-AVX512F",
    },
}
x86 = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="kernels of x86-64"
)


def environment(**settings: str) -> dict[str, str]:
    """Return an environment in which nothing is settled yet but this."""
    kept = {name: text for name, text in os.environ.items() if name not in SETTINGS}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), **settings}


@pytest.mark.thorough
@x86
@pytest.mark.parametrize("processor", PROCESSORS)
def test_golden_draws_and_laws_are_the_same_on_other_processors(processor):
    command = [sys.executable, "tests/golden/compare.py"]
    settings = environment(**PROCESSORS[processor])
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the memory of glibc")
def test_memory_is_kept_between_steps():
    """Five arrays of 8 MB are given back and asked for again, page by page, if nothing is set."""
    code = """
import resource
from concord_cli.__main__ import settle
if {settles}:
    settle()
import numpy as np
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    arrays = [np.ones(10**6) for _ in range(5)]
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    faults = {}
    for settles in (True, False):
        command = [sys.executable, "-c", code.format(settles=settles)]
        kept = {k: v for k, v in environment().items() if not k.startswith("MALLOC_")}
        faults[settles] = int(subprocess.check_output(command, env=kept, text=True))
    assert faults[True] < 0.2 * faults[False]


def test_what_the_user_has_set_stays(monkeypatch):
    found = {"OMP_NUM_THREADS": "4", "PATH": "here"}
    monkeypatch.setattr(os, "environ", found)
    settle()
    assert found == {**SETTINGS, "OMP_NUM_THREADS": "4", "PATH": "here"}


def run_command(*words: str) -> str:
    command = [sys.executable, "-m", "concord", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


@pytest.mark.parametrize(("typed", "found"), [("desc", "describe"), ("compare x --tas", "--tasks")])
def test_the_shell_completes_commands_and_options(typed, found):
    script = run_command("completion", "bash")
    assert len(script.splitlines()) <= 40
    words = ["concord", *typed.split()]
    ask = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _concord; echo $COMPREPLY"
    done = subprocess.run(["bash", "-c", f"{script}{ask}"], capture_output=True, text=True)
    assert done.stdout.strip() == found


def test_the_squared_bias_is_described_though_it_is_no_kind():
    assert "(E f - E_pi f)^2 / Var_pi f" in run_command("describe", "b2")


def test_python_runs_the_command():
    assert run_command("--version").startswith("concord ")
