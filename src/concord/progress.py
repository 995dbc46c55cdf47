"""Progress: long work says after four seconds what it is, and then how long it will take.

It is a bar on a terminal; elsewhere, as in the log of a job, it is a line a minute.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeVar

from concord.libraries import optional

PATIENCE = 4.0  # seconds
MINUTE = 60.0  # between lines where there is no terminal

T = TypeVar("T")


@contextmanager
def progress(total: int, what: str, shown: bool | None = None) -> Iterator[Callable[..., object]]:
    """Yield a function ``done(n=1)`` that counts finished steps and shows the time that is left.

    total: number of steps. what: the text beside the bar. shown: True for a bar from the start,
    False for none; None: on a terminal a bar if the work lasts, elsewhere a line a minute.
    """
    if shown is None and not sys.stderr.isatty():
        yield _print_each_minute(total, what)
        return
    if not (find_spec("tqdm") if shown is None else shown):
        yield lambda n=1: None
        return
    tqdm = optional("tqdm", "tqdm", "progress=True").tqdm
    with tqdm(total=total, desc=what, delay=0 if shown else PATIENCE, leave=bool(shown)) as bar:
        yield bar.update


def _print_each_minute(total: int, what: str) -> Callable[..., object]:
    """Return ``done(n=1)``, which counts finished steps and prints them at most once a minute.

    total: the number of steps. what: the text in front of the count.
    """
    count, last = 0, time.monotonic()

    def done(n: int = 1) -> None:
        nonlocal count, last
        count += n
        if (now := time.monotonic()) - last > MINUTE:
            last = now
            print(f"{what}: {count} of {total}", file=sys.stderr, flush=True)

    return done


def each(items: Sequence[T], what: str) -> Iterator[T]:
    """Yield the items, and show how many of them are finished; ``what`` is the text beside."""
    with progress(len(items), what) as done:
        for item in items:
            yield item
            done()
