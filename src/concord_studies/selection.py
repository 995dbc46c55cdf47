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


class RunResult(Protocol):
    """A result of a run, such as its metrics, that a selection can pick."""

    @property
    def run(self) -> Run:
        """Return the run's document, as ``runs.yaml`` has it."""

    @property
    def name(self) -> str:
        """Return the name of the run in messages."""


R = TypeVar("R", bound=RunResult)


def lookup(run: Run, name: str) -> Any:
    """Return a run's value of a label, or of a key such as "sampler.rho". None if it has none."""
    value = _find(run, name)
    return None if value is _MISSING else value


def has(run: Run, name: str) -> bool:
    """Return whether a run has a label or key of this name, even with value null."""
    return _find(run, name) is not _MISSING


def is_same(a: Any, b: Any) -> bool:
    """Return whether two values are equal, or one is the text of the other."""
    return a == b or str(a) == str(b)


def list_values(of: Any) -> Sequence[Any]:
    """Return a selection's entry for a name as a list of values, also if it is a single one."""
    return of if isinstance(of, (list, tuple)) else [of]


def matches(run: Run, selection: Mapping[str, Any]) -> bool:
    """Return whether a run has, for every name, one of the selection's values."""
    return all(is_among(lookup(run, name), of) for name, of in selection.items())


def is_among(value: Any, of: Any) -> bool:
    """Return whether a value is one of a selection's values for a name."""
    values = list_values(of)
    return value in values or str(value) in map(str, values)


def describe_mistake(
    runs: Sequence[Run], selection: Mapping[str, Any], none: str = "no run"
) -> str | None:
    """Return a sentence on the first name or value of a selection that no run has.

    None if every name and value is that of a run, and some run matches all of them.
    none: the sentence's subject, such as "no run of the figure".
    """
    for name, of in selection.items():
        if (sentence := describe_unknown(runs, name, none)) is not None:
            return sentence
        run_values = {str(value): value for value in (lookup(run, name) for run in runs)}
        for value in list_values(of):
            if str(value) not in run_values and not is_among(value, [*run_values.values()]):
                return f"{none} has {name} {short(value)}; {nearest(value, run_values)}"
    if not any(matches(run, selection) for run in runs):
        return f"{none} has all of {short(dict(selection))}; leave some out"
    return None


def describe_unknown(runs: Sequence[Run], name: str, none: str = "no run") -> str | None:
    """Return a sentence, "``none`` has ...", if no run has a label or key of this name."""
    if any(has(run, name) for run in runs):
        return None
    names = {key for run in runs for key in [*(run.get("labels") or {}), *run]}
    return f"{none} has {short(name)} as a label or parameter; {nearest(name, names)}"


def select(results: Sequence[R], selection: Mapping[str, Any] | None) -> list[R]:
    """Return the results whose runs match a selection, ordered by its lists of values.

    A ConcordError if no run matches.
    """
    if not results:
        raise ConcordError("there are no runs to draw; name an experiment")
    chosen = list(results)
    # Last name first: sorting is stable.
    for name, of in reversed(list((selection or {}).items())):
        chosen = [one for value in list_values(of) for one in with_value(chosen, name, value)]
    if not chosen:
        raise ConcordError(str(describe_mistake([one.run for one in results], selection or {})))
    return chosen


def distinct(results: Sequence[R], name: str) -> list[Any]:
    """Return the different values of a name, in the order in which the runs have them."""
    different: list[Any] = []
    for one in results:
        value = lookup(one.run, name)
        if not any(is_same(value, other) for other in different):
            different.append(value)
    return different


def with_value(results: Sequence[R], name: str, value: Any) -> list[R]:
    """Return the results whose run has this value of a label or key."""
    return [one for one in results if is_same(lookup(one.run, name), value)]


def split(results: Sequence[R], name: str | None) -> list[tuple[Any, list[R]]]:
    """Return every value of a name in the runs, each with the results that have it.

    Without a name all results are in one group.
    """
    if name is None:
        return [(None, list(results))]
    if (sentence := describe_unknown([one.run for one in results], name)) is not None:
        raise ConcordError(sentence)
    return [(value, with_value(results, name, value)) for value in distinct(results, name)]


def take_single(results: Sequence[R], what: str) -> R:
    """Return the only result. A ConcordError, about ``what`` shows it, if there are several."""
    if len(results) > 1:
        raise ConcordError(
            f"runs {results[0].name} and {results[1].name} would both be {what}; "
            "tell them apart with rows, columns or lines, or keep one with select"
        )
    return results[0]


_MISSING = object()


def _find(run: Run, name: str) -> Any:
    """Return the value of a label or dotted key in a run, ``_MISSING`` if there is none."""
    labels = run.get("labels") or {}
    if name in labels:
        label = labels[name]
        return _parse_number(label) if isinstance(label, str) else label
    value: Any = run
    for part in name.split("."):
        # A dict most often, and isinstance of a Mapping takes ten times as long.
        if not isinstance(value, (dict, Mapping)) or part not in value:
            return _MISSING
        value = value[part]
    if isinstance(value, Mapping):
        return value.get("name", value.get("kind", str(dict(value))))
    return value


@cache
def _parse_number(label: str) -> Any:
    """Return the number that a label's text stands for, or the text if it is no number."""
    try:
        value = float(label)
    except ValueError:
        return label
    return int(value) if value.is_integer() and "e" not in label.lower() else value
