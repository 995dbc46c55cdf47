"""What memory is available, by the limits of machine, process and control groups."""

import math
import sys

import pytest

from concord import memory

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")


@LINUX
@pytest.mark.parametrize(
    ("groups", "files", "least"),
    [
        ("", {}, 6e9),
        ("0::/job/step\n", {"job/step/memory.max": "max", "job/memory.max": "5000000000"}, 5e9),
        ("0::/not/seen\n", {"memory.max": "4000000000"}, 4e9),
        ("1:cpu:/a\n2:memory:/a\n", {"memory/a/memory.limit_in_bytes": "3000000000"}, 3e9),
        ("0::/\n", {"memory.max": "7000000000"}, 6e9),
    ],
)
def test_what_is_available_is_the_least_of_all_limits(groups, files, least, tmp_path, monkeypatch):
    """Machines with 6 GB available, and control groups; the process has a page of memory."""
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    texts = {cgroups / name: text for name, text in files.items()}
    texts[proc / "meminfo"] = "MemTotal: 9000000 kB\nMemAvailable:  5859375 kB\n"
    texts |= {proc / "self" / "statm": "2 1 0 0 0 0 0\n", proc / "self" / "cgroup": groups}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(memory, "PROC", proc)
    monkeypatch.setattr(memory, "CGROUPS", cgroups)
    assert math.isclose(memory.available_memory(), least, rel_tol=1e-3)


def test_a_call_that_takes_much_says_so_before(capsys):
    memory.require_memory(0.9e9, 10, "take less")
    assert capsys.readouterr().err == ""
    memory.require_memory(2.34e9, 10, "take less")
    assert capsys.readouterr().err == "concord: the call takes about 2.34 GB of memory\n"
