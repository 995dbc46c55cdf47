"""One input at a time: within limits of time, as a command in this process, as a sealed trace."""

import contextlib
import hashlib
import io
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concord.sampling.netcdf import DIGEST
from concord_cli.__main__ import main

SECONDS = 20  # for one input; the slowest take a tenth of a second


class Hang(BaseException):
    """An input that takes far longer than any other."""


@contextlib.contextmanager
def limited(seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt what takes too long, by the clock of the process: the machine may be busy."""

    def stop(*_: Any) -> None:
        raise Hang(f"more than {seconds} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(beyond: int) -> tuple[int, int]:
    """Let an allocation fail beyond so many more bytes; return the limits before."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + beyond, before[1]))
    return before


def call(*arguments: Any) -> int:
    """Run a command in this process; a failure must be told in one line."""
    return sentence(*arguments)[0]


def sentence(*arguments: Any) -> tuple[int, str]:
    """Run a command in this process; return its exit code, and the line that tells a failure."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = main([str(argument) for argument in arguments])
    text = errors.getvalue()
    if code:
        assert code in (1, 2) and text.count("\n") == 1 and text.startswith("concord: "), text
    return code, text


def sealed(content: bytes, path: Path) -> None:
    """Write any content in the place of draws, with a digest that is right."""
    path.write_bytes(content + DIGEST + hashlib.sha256(content).digest())
