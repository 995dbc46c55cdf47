"""Summaries: what ``print`` and notebooks show of objects that hold large arrays."""

from html import escape
from typing import Any


class Summarized:
    """An object that shows what it is about, and none of its arrays."""

    def summary(self) -> dict[str, Any]:
        """Return what is shown, by name; what is None is left out."""
        return {}

    def _shown(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.summary().items() if value is not None}

    def __repr__(self) -> str:
        """Return the summary in a line."""
        parts = (f"{name}: {text}" for name, text in self._shown().items())
        return f"<{type(self).__name__} {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Return the summary as a table, which notebooks show."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for name, text in self._shown().items()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"
