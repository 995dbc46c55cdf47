"""The shell commands with which every job begins."""

import subprocess
import sys
from pathlib import Path

from concord_studies.job_shell import write_prefix


def write_program(path: Path, line: str) -> str:
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


def test_jobs_run_the_python_of_snakemake_whatever_it_is_called(tmp_path, monkeypatch):
    """Debian's is python3.11, and no python lies beside it; a conda environment has its own."""
    own = write_program(tmp_path / "a bin" / "python3.11", f'exec {sys.executable} "$@"')
    other = Path(write_program(tmp_path / "other" / "python", "echo another; exit 0"))
    monkeypatch.setattr(sys, "executable", own)
    monkeypatch.setenv("PATH", f"{other.parent}:/usr/bin:/bin")
    for installs, said in ((False, "['b c']"), (True, "another")):
        prefix = write_prefix(None, installs).format()
        job = f"set -euo pipefail; {prefix} python -c 'import sys; print(sys.argv[1:])' 'b c'"
        done = subprocess.run(["bash", "-c", job], capture_output=True, text=True)
        assert done.stdout.strip() == said, done.stderr
