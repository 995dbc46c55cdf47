"""Progress: long work says after four seconds what it is, and then how long it will take.

To a terminal only: logs and programs have no use for it.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeVar

from concord.libraries import optional

PATIENCE = 4.0  # seconds

T = TypeVar("T")


@contextmanager
def progress(total: int, what: str, shown: bool | None = None) -> Iterator[Callable[..., object]]:
    """Give ``done(n=1)``, which moves a bar of so many steps and shows the time that is left.

    shown: at once, wherever to, and left there; or never; None: as all else is.
    """
    if not (sys.stderr.isatty() and find_spec("tqdm") if shown is None else shown):
        yield lambda n=1: None
        return
    tqdm = optional("tqdm", "tqdm", "progress=True").tqdm
    with tqdm(total=total, desc=what, delay=0 if shown else PATIENCE, leave=bool(shown)) as bar:
        yield bar.update


def each(items: Sequence[T], what: str) -> Iterator[T]:
    """Go through items with a bar."""
    with progress(len(items), what) as done:
        for item in items:
            yield item
            done()
