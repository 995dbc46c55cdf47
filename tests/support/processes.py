"""Python in a process of its own, with this package."""

import os
import subprocess
import sys
from pathlib import Path

import concord

SOURCE = str(Path(concord.__file__).parents[1])


def python(code: str, *words: object, **environment: str) -> str:
    """Run code with these arguments, which must succeed; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
