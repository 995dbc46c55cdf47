"""What several tests need and none changes: made once in a test run, by the first to want it."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def shared(factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of the test run have."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Let one process at a time work at what a path names."""
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that the first to want it makes, to be copied rather than changed."""
    folder = shared(factory) / name
    done = Path(f"{folder}.done")
    with alone(folder):
        if not done.exists():
            make(folder)
            done.touch()
    return folder
