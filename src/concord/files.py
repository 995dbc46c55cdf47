"""Writing files: YAML, and results that appear whole or not at all."""

from __future__ import annotations

import glob
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def dump_yaml(mapping: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text, keys in the order given."""
    import yaml

    return yaml.safe_dump(
        json.loads(json.dumps(mapping)), sort_keys=False, allow_unicode=True, width=100
    )


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside ``path``; rename it to ``path`` if all goes well.

    What a killed process left of an earlier attempt at the same file is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.stem)}-*{glob.escape(path.suffix)}"):
        left.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's files are private
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
