"""Results on other machines: the same bytes with AVX2, the same numbers to 1e-10 elsewhere.

Other processors are simulated by telling the libraries to leave instructions unused: OpenBLAS,
numpy's own loops and the C library's functions.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from concord_cli.__main__ import BACKENDS, KERNELS, THREADS, settle

ROOT = Path(__file__).parents[2]
SAME = THREADS | BACKENDS  # on all machines
INTEL = "processor\t: 0\nflags\t\t: fpu sse4_2 {}\nprocessor\t: 1\nflags\t\t: fpu sse4_2 {}\n"
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


@x86
@pytest.mark.parametrize("processor", PROCESSORS)
def test_golden_draws_and_laws_are_the_same_on_other_processors(processor):
    command = [sys.executable, "tests/golden/compare.py"]
    settings = environment(**PROCESSORS[processor])
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


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
