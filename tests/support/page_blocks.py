"""The blocks of code that documents show, and what those of Python make."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def list_blocks(page: str | Path, language: str = "python") -> list[str]:
    """Return the blocks of a language in a document, which is named by its path."""
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def run_blocks(page: str | Path, most: int | None = None) -> dict[str, Any]:
    """Run the blocks of Python of a document, one after the other; return what they define.

    most: how many blocks; None: all of them.
    """
    names: dict[str, Any] = {}
    for block in list_blocks(page)[:most]:
        exec(block, names)
    return names
