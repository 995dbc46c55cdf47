"""Summaries: what ``print`` and notebooks show of objects that hold large arrays."""

import json
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from concord.errors import nearest

SHOWN = 5  # names or numbers of a list that a summary shows


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


def count_named(count: int, names: Sequence[object] | None) -> str | int:
    """Return a number of things, with the first of their names in brackets if they have any."""
    if names is None:
        return count
    more = ", ..." if len(names) > SHOWN else ""
    return f"{count} ({', '.join(map(str, names[:SHOWN]))}{more})"


class WithLabels(Summarized):
    """A result whose agents and coordinates may have names, as sites and columns of data have.

    attributes: of which ``agent_names`` and ``coordinate_names`` are lists in JSON, as files hold
    them, all in the order of their numbers; without them there are numbers.
    """

    attributes: dict[str, str]

    def __getattr__(self, name: str) -> object:
        """Say what there is in the place of an attribute that there is not."""
        what = type(self).__name__
        if name in getattr(self, "__dict__", {}).get("variables", ()):
            raise AttributeError(f"a {what} is indexed by names; write [{name!r}]")
        public = [each for each in dir(type(self)) if each[0] != "_"]
        fields = [*public, *getattr(type(self), "__dataclass_fields__", ())]
        raise AttributeError(f"a {what} has no {name!r}; {nearest(name, fields)}")

    @property
    def agent_names(self) -> list[str] | None:
        """The names of all agents of the network; None: numbers."""
        return json.loads(self.attributes.get("agent_names", "null"))

    @property
    def coordinate_names(self) -> list[str] | None:
        """The names of all coordinates of positions; None: numbers."""
        return json.loads(self.attributes.get("coordinate_names", "null"))

    def label_agents(self, numbers: Iterable[int | str]) -> list[int | str]:
        """Return the names of agents, or their numbers if they have none; "average" stays."""
        names = self.agent_names
        whose = [int(n) if str(n).isdigit() else n for n in numbers]
        return [names[n] if names and isinstance(n, int) else n for n in whose]

    def title_agent(self, number: int | str) -> str:
        """Return how texts call an agent: by its name, "average", or "agent 3"."""
        (label,) = self.label_agents([number])
        return f"agent {label}" if isinstance(label, int) else label

    def title_coordinate(self, number: int) -> str:
        """Return how pictures call a coordinate: by its name, or "x[0]"."""
        return self.coordinate_names[number] if self.coordinate_names else f"x[{number}]"


class WithMoments(Summarized):
    """A law that shows its dimension, and mean and sd of its first coordinates."""

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the law's mean (dim,) and covariance (dim, dim)."""
        raise NotImplementedError

    def summary(self) -> dict[str, object]:
        """Return dimension, mean and standard deviation."""
        mean, cov = self.moments()
        more = ", ..." if len(mean) > SHOWN else ""
        shown = {
            name: ", ".join(f"{v:.4g}" for v in values[:SHOWN]) + more
            for name, values in (("mean", mean), ("sd", np.sqrt(np.diagonal(cov))))
        }
        return {"dim": len(mean), **shown}
