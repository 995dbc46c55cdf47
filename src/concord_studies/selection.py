"""Which runs are meant: one language for figures, tables, claims, captions and assumptions.

A selection is ``{name: value or [values]}``. A run matches if it has, for every name, one of the
values. A name is a label of the run's sweep; if it has no such label, a key of its document, nested
keys with dots (``sampler.step_size``). A key with options of its own, such as ``topology``, has its
name or kind as value. Values are equal as YAML reads them, or as text: a label is text, and
``"0.005"`` is the label of 0.005.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

from concord.errors import ConcordError, nearest, short

Run = Mapping[str, Any]  # a run's document


class Made(Protocol):
    """A result of a run, such as its metrics, that a selection can pick."""

    @property
    def run(self) -> Run:
        """Return the run's document, as ``runs.yaml`` has it."""

    @property
    def name(self) -> str:
        """Return the name of the run in messages."""


M = TypeVar("M", bound=Made)


def lookup(run: Run, name: str) -> Any:
    """Return a run's value of a label or dotted key. None if it has no such name."""
    found = _find(run, name)
    return None if found is _MISSING else found


def has(run: Run, name: str) -> bool:
    """Return whether a run has a label or key of this name, even with value null."""
    return _find(run, name) is not _MISSING


def is_same(a: Any, b: Any) -> bool:
    """Return whether two values are equal, or one is the text of the other."""
    return a == b or str(a) == str(b)


def values(wanted: Any) -> Sequence[Any]:
    """Return the values that a selection names, as a list also for a single one."""
    return wanted if isinstance(wanted, (list, tuple)) else [wanted]


def matches(run: Run, wanted: Mapping[str, Any]) -> bool:
    """Return whether a run has, for every name, one of the selection's values."""
    return all(any(is_same(lookup(run, key), v) for v in values(of)) for key, of in wanted.items())


def mistake(runs: Sequence[Run], wanted: Mapping[str, Any], none: str = "no run") -> str | None:
    """Return a sentence on the first name or value of a selection that no run has.

    None if every name and value is that of a run, and some run matches all of them.
    """
    for name, of in wanted.items():
        if (sentence := unknown(runs, name, none)) is not None:
            return sentence
        known = [lookup(run, name) for run in runs]
        for value in values(of):
            if not any(is_same(value, other) for other in known):
                return f"{none} has {name} {short(value)}; {nearest(value, {*map(str, known)})}"
    if not any(matches(run, wanted) for run in runs):
        return f"{none} has all of {short(dict(wanted))}; leave some out"
    return None


def unknown(runs: Sequence[Run], name: str, none: str = "no run") -> str | None:
    """Return a sentence if no run has a label or key of this name. None if one has."""
    if any(has(run, name) for run in runs):
        return None
    known = {key for run in runs for key in [*(run.get("labels") or {}), *run]}
    return f"{none} has {short(name)} as a label or parameter; {nearest(name, known)}"


def select(made: Sequence[M], wanted: Mapping[str, Any] | None) -> list[M]:
    """Return the results whose runs match a selection, ordered by its lists of values.

    No run, or none that matches, is refused.
    """
    if not made:
        raise ConcordError("there are no runs to draw; name an experiment")
    chosen = list(made)
    # Last name first: sorting is stable.
    for name, of in reversed(list((wanted or {}).items())):
        chosen = [one for value in values(of) for one in with_value(chosen, name, value)]
    if not chosen:
        raise ConcordError(str(mistake([one.run for one in made], wanted or {})))
    return chosen


def distinct(made: Sequence[M], name: str) -> list[Any]:
    """Return the different values of a name, in the order in which the runs have them."""
    found: list[Any] = []
    for one in made:
        value = lookup(one.run, name)
        if not any(is_same(value, other) for other in found):
            found.append(value)
    return found


def with_value(made: Sequence[M], name: str, value: Any) -> list[M]:
    """Return the results whose run has this value of a label or key."""
    return [one for one in made if is_same(lookup(one.run, name), value)]


def split(made: Sequence[M], name: str | None) -> list[tuple[Any, list[M]]]:
    """Return every value of a name in the runs, each with the results that have it.

    Without a name all results are in one group.
    """
    if name is None:
        return [(None, list(made))]
    if (sentence := unknown([one.run for one in made], name)) is not None:
        raise ConcordError(sentence)
    return [(value, with_value(made, name, value)) for value in distinct(made, name)]


def take_single(made: Sequence[M], what: str) -> M:
    """Return the one result that is shown as ``what``. A ConcordError if there are several."""
    if len(made) > 1:
        raise ConcordError(
            f"runs {made[0].name} and {made[1].name} would both be {what}; "
            "tell them apart with rows, columns or lines, or keep one with select"
        )
    return made[0]


_MISSING = object()


def _find(run: Run, name: str) -> Any:
    """Return the value of a label or dotted key in a run, ``_MISSING`` if there is none."""
    labels = run.get("labels") or {}
    if name in labels:
        label = labels[name]
        return _number(label) if isinstance(label, str) else label
    found: Any = run
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return _MISSING
        found = found[part]
    if isinstance(found, Mapping):
        return found.get("name", found.get("kind", str(dict(found))))
    return found


@cache
def _number(label: str) -> Any:
    """Return the number that a label's text stands for, or the text if it is no number."""
    try:
        value = float(label)
    except ValueError:
        return label
    return int(value) if value.is_integer() and "e" not in label.lower() else value
