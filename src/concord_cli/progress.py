"""What a command says of work that takes long."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from concord import progress


@contextmanager
def announce_if_long(what: str) -> Iterator[None]:
    """Print what the program does, if it lasts longer than ``progress.PATIENCE`` seconds."""

    def say() -> None:
        """Print what the program does, above a progress bar if there is one."""
        if "tqdm" in sys.modules:  # a bar may be there, which makes room
            sys.modules["tqdm"].tqdm.write(f"concord: {what} ...", file=sys.stderr)
        else:
            print(f"concord: {what} ...", file=sys.stderr)

    timer = Timer(progress.PATIENCE, say)
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
