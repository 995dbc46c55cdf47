"""Results on other machines: the same bytes with AVX2, the same numbers and verdicts elsewhere.

Other processors are simulated by telling the libraries to leave instructions unused: OpenBLAS,
numpy's own loops and the C library's functions.
"""

import csv
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from concord_cli.__main__ import BACKENDS, KERNELS, THREADS, settle

ROOT = Path(__file__).parents[2]
SAME = THREADS | BACKENDS  # on all machines
INTEL = "processor\t: 0\nflags\t\t: fpu sse4_2 {}\nprocessor\t: 1\nflags\t\t: fpu sse4_2 {}\n"
# Runs of all papers at smoke scale: paper, experiment, how many of its runs (all: None).
SAMPLE = (
    ("gurbuzbalaban2021", "linear_step", None),
    ("gurbuzbalaban2021", "logistic_sghmc", None),
    ("tzikas2024", "penalty", None),
    ("bhar2023", "gmm_consensus", None),
    ("parayil2020", "linear", 2),
)
# All stages in one process, which imports once.
MAKE = """
import json, sys
from concord_cli.__main__ import main
for command in json.load(sys.stdin):
    assert main(command) == 0, command
"""
PROCESSORS = {
    "AVX-512, if it is there": {"OPENBLAS_CORETYPE": "", "NPY_DISABLE_CPU_FEATURES": ""},
    "SSE": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-AVX512F",
    },
}
pytestmark = pytest.mark.thorough

x86 = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="kernels of x86-64"
)


def environment(**settings: str) -> dict[str, str]:
    """Return an environment in which nothing is settled yet but this."""
    kept = {name: text for name, text in os.environ.items() if name not in SAME | KERNELS}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), **settings}


def python(code: str, text: str = "", **settings: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(**settings), input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def commands() -> list[list[str]]:
    """The commands that make and judge the sample, with FOLDER for where."""
    scale = ("--scale", "smoke")
    files = {paper: f"config/papers/{paper}" for paper, _, _ in SAMPLE}
    listed = python(MAKE, json.dumps([["check", file, *scale] for file in files.values()]))
    runs, found = [folder.split("/") for folder in listed.split()], []
    for *place, count in SAMPLE:
        for paper, experiment, run in [run for run in runs if run[:2] == place][:count]:
            folder = f"FOLDER/{paper}/{experiment}/{run}"
            made = [f"{folder}/{name}" for name in ("run.yaml", "trace.nc", "metrics.csv")]
            found += [
                ["resolve", files[paper], experiment, run, *scale, "-o", made[0]],
                ["sample", made[0], "-o", made[1]],
                ["measure", *made[:2], "-o", made[2]],
            ]
    for paper, file in files.items():
        claims = ("--results", "FOLDER", "-o", f"FOLDER/{paper}/claims.csv")
        found.append(["judge", file, *scale, *claims])
    return found


def made(folder: Path, commands: list[list[str]], **settings: str) -> dict[str, list[list[str]]]:
    """Return the rows of all tables that the commands make, by path."""
    text = json.dumps(commands).replace("FOLDER", str(folder))
    python(MAKE, text, **settings)
    tables = {}
    for path in folder.rglob("*.csv"):
        with open(path, newline="") as file:
            tables[str(path.relative_to(folder))] = list(csv.reader(file))
    return tables


@pytest.fixture(scope="module")
def usual(tmp_path_factory, commands):
    return made(tmp_path_factory.mktemp("usual"), commands)


def numbers(tables: dict[str, list[list[str]]]) -> np.ndarray:
    """Return all numbers of the metrics; a lacking end of an interval is not a number."""
    rows = [row[3:6] for name in sorted(tables) if "metrics" in name for row in tables[name][1:]]
    return np.array([[float(cell or "nan") for cell in row] for row in rows])


@x86
@pytest.mark.parametrize("processor", PROCESSORS)
def test_numbers_and_verdicts_are_the_same_on_other_processors(
    processor, usual, commands, tmp_path
):
    other = made(tmp_path, commands, **PROCESSORS[processor])
    assert other.keys() == usual.keys()
    for name, rows in usual.items():
        column = rows[0].index("verdict") + 1 if "verdict" in rows[0] else 3
        assert [row[:column] for row in other[name]] == [row[:column] for row in rows], name
    # What is zero but for rounding, such as the bias of an unbiased sampler, differs by that.
    np.testing.assert_allclose(numbers(other), numbers(usual), rtol=1e-8, atol=1e-10)
    claims = [rows for name, rows in usual.items() if "claims" in name]
    verdicts = [row[rows[0].index("verdict")] for rows in claims for row in rows[1:]]
    assert sum(verdict != "not run" for verdict in verdicts) > 5
    assert processor != "SSE" or other != usual  # it is another processor


@x86
def test_commands_use_the_kernels_of_avx2():
    """Bytes are then the same on all processors that have it."""
    if not {"avx2", "fma"} <= set(Path("/proc/cpuinfo").read_text().split()):
        pytest.skip("this processor has no AVX2")
    code = """
import sys
from concord_cli.__main__ import main
assert main(["changes", "no.csv"]) != 0
import json, numpy, scipy.linalg, threadpoolctl
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
blas = [lib["architecture"] for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
print(json.dumps([blas, [name for name in __cpu_dispatch__ if __cpu_features__[name]]]))
"""
    blas, loops = json.loads(python(code))
    assert len(blas) >= 1 and set(blas) == {"Haswell"}
    assert loops == ["X86_V3"]


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        (INTEL.format("avx avx2 fma", "avx avx2 fma"), SAME | KERNELS),
        (INTEL.format("avx2 fma avx512f", ""), SAME | KERNELS),
        (INTEL.format("avx", "avx"), SAME),
        ("processor\t: 0\nFeatures\t: fp asimd avx2 fma\n", SAME),
        (None, SAME),
    ],
    ids=["AVX2", "AVX-512", "AVX", "Arm", "not Linux"],
)
def test_kernels_are_chosen_only_where_they_exist(cpu, expected, tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    if cpu is not None:
        path.write_text(cpu)
    found = {"PATH": "here"}
    monkeypatch.setattr(os, "environ", found)
    settle(path)
    assert found == {"PATH": "here", **expected}


def test_what_the_user_has_set_stays(tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(INTEL.format("avx2 fma", "avx2 fma"))
    found = {"OPENBLAS_CORETYPE": "Zen", "OMP_NUM_THREADS": "4"}
    monkeypatch.setattr(os, "environ", found)
    settle(tmp_path / "cpuinfo")
    assert found == {**SAME, **KERNELS, "OPENBLAS_CORETYPE": "Zen", "OMP_NUM_THREADS": "4"}
