"""What lasts says what it is after four seconds, and from then on how long it will take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 4.0


@contextmanager
def progress(total: int, what: str, delay: float = PATIENCE) -> Iterator[Callable[..., object]]:
    """Give ``done(n=1)``, which moves a bar of so many steps; there is none but on a terminal."""
    if not sys.stderr.isatty():
        yield lambda n=1: None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=what, delay=delay, leave=False) as bar:
        yield bar.update
