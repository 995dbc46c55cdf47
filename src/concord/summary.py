"""Summaries: what ``print`` and notebooks show of objects that hold large arrays."""

from html import escape

import numpy as np


class Summarized:
    """An object whose representation shows a short summary and no arrays."""

    def summary(self) -> dict[str, object]:
        """Return the values that the representation shows, by name; None is left out."""
        return {}

    def _summary_texts(self) -> dict[str, str]:
        """Return the summary's entries as texts, without those that are None."""
        return {name: str(value) for name, value in self.summary().items() if value is not None}

    def __repr__(self) -> str:
        """Return the summary as one line of text."""
        parts = (f"{name}: {text}" for name, text in self._summary_texts().items())
        return f"<{type(self).__name__} {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Return the summary as an HTML table, which notebooks show."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for name, text in self._summary_texts().items()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"


class WithMoments(Summarized):
    """A law that shows its dimension, and mean and sd of its first coordinates."""

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the law's mean (dim,) and covariance (dim, dim)."""
        raise NotImplementedError

    def summary(self) -> dict[str, object]:
        """Return dimension, mean and standard deviation."""
        mean, cov = self.moments()
        more = ", ..." if len(mean) > 5 else ""
        shown = {
            name: ", ".join(f"{v:.4g}" for v in values[:5]) + more
            for name, values in (("mean", mean), ("sd", np.sqrt(np.diagonal(cov))))
        }
        return {"dim": len(mean), **shown}
