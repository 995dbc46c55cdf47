"""What options of figures and tables name: refused where no run shown has it.

Options say by the type of their description that they name labels, runs or iterations
(``option_notes.NamesLabel`` and its like).
"""

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_type_hints

from concord.errors import ConcordError
from concord.options import Options
from concord_studies import selection
from concord_studies.option_notes import NamesIterations, NamesLabel, NamesRuns
from concord_studies.runs.run import recorded_iterations

Runs = Sequence[Mapping[str, Any]]

# What lines and columns of a table may be of, beside labels.
WITHIN_RUNS = {"lines": ("agent",), "across": ("metric", "agent", "iteration")}


def check(options: Options, runs: Runs, where: str, smoke: bool) -> None:
    """Refuse options of a figure or table that name labels or values which no run shown has.

    At smoke scale iterations are few, and those that it leaves out are not missed.
    """
    for name, note, value in _notes(options):
        place = f"{where}.{name}"
        if isinstance(note, NamesRuns):
            check_selection(value, runs, place)
        elif isinstance(note, NamesLabel):
            for label in [value] if isinstance(value, str) else value:
                if label not in WITHIN_RUNS.get(name.rpartition(".")[2], ()):
                    _raise_if_mistaken(place, selection.describe_unknown(runs, label, _NONE))
        elif not smoke:
            check_iterations(value, runs, place, "no run that it shows records")


def check_selection(wanted: Mapping[str, Any], runs: Runs, where: str) -> None:
    """Refuse a selection that names labels or values which no run has, or selects no run."""
    for name, of in wanted.items():
        _raise_if_mistaken(where, selection.describe_unknown(runs, name, _NONE))
        _raise_if_mistaken(f"{where}.{name}", selection.mistake(runs, {name: of}, _NONE))
    _raise_if_mistaken(where, selection.mistake(runs, wanted, _NONE))


_NONE = "no run that it shows"


def _raise_if_mistaken(where: str, mistake: str | None) -> None:
    """Raise a ConcordError at a place if there is a mistake."""
    if mistake is not None:
        raise ConcordError(f"{where}: {mistake}")


def check_iterations(wanted: Sequence[int], runs: Runs, where: str, who: str) -> None:
    """Refuse iterations that no run shown records; ``who`` begins the message."""
    known = [recorded_iterations(run) for run in runs]
    for k in wanted:
        if not any(k in iterations for iterations in known):
            found = {n for i in known for n in i[max(bisect(i, k) - 1, 0) : bisect(i, k) + 1]}
            near = ", ".join(map(str, sorted(found, key=lambda n: abs(n - k))[:2]))
            raise ConcordError(
                f"{where}: {who} iteration {k}; the nearest recorded are {near}; "
                "choose one, or add it to record.at"
            )


def _notes(options: Options) -> Iterator[tuple[str, str, Any]]:
    """Yield place, description and value of every described option that is set."""
    for name, hint in get_type_hints(type(options), include_extras=True).items():
        value = getattr(options, name)
        if value is None:
            continue
        for note in getattr(hint, "__metadata__", ()):
            if isinstance(note, (NamesIterations, NamesLabel, NamesRuns)):
                yield name, note, value
        parts = value if isinstance(value, tuple) else ()
        for number, part in enumerate(parts):
            if isinstance(part, Options):
                for key, note, of_part in _notes(part):
                    yield f"{name}[{number}].{key}", note, of_part
