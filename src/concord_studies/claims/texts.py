"""Texts with numbers: a study's captions and reasons, whose placeholders results fill in.

``{name}`` is a number that the study defines (``Number``), ``{sampler.step_size}`` a setting of the
runs shown, ``{linear_batch.chains}`` of those of one experiment, ``{options.points}`` an option of
the figure or table, ``{name.at}`` a key of a number. A sentence is left out if a number
in it does not exist or breaks its bounds: what a text says of results is so, or is not said.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from concord.errors import ConcordError, nearest
from concord.options import Some, build, plain
from concord.values import FINITE_RANGE
from concord_studies import markup, words
from concord_studies.claims.checks import pair_common
from concord_studies.claims.quantities import (
    DivergedQuantity,
    Missing,
    Numbers,
    Quantity,
    gather,
    plan_numbers,
)
from concord_studies.results import Measured
from concord_studies.runs.run import Run

PLACEHOLDER = re.compile(r"\{(\w[\w.]*)\}")
Document = Mapping[str, Any]  # a run's
Ends = tuple[np.ndarray, np.ndarray, np.ndarray]  # values and the ends of their intervals


class Number(Quantity, kw_only=True):
    """A number in texts: a quantity of the runs shown, and what of it is written."""

    # Claims have to name one.
    experiment: Annotated[str | Some[str] | None, "id or ids; none: the runs that are shown"] = None  # type: ignore[assignment]
    show: Annotated[
        Literal["range", "count", "first"],
        "the smallest and the largest value; how many values are within the bounds; or the first "
        "iteration after which the values stay within a factor of the last",
    ] = "range"
    within: Annotated[float, Meta(gt=1), "that factor"] = 1.1
    ratio_to: Annotated[
        dict[str, Any] | None, "what values are divided by: keys in which it differs from them"
    ] = None
    at_least: Annotated[float | None, "sentences are left out if a value may be less"] = None
    at_most: Annotated[float | None, "sentences are left out if a value may be more"] = None

    @property
    def experiments(self) -> tuple[str, ...]:
        """Return the ids of the experiments that are named."""
        return () if self.experiment is None else super().experiments

    def list_quantities(self, where: str = "") -> list[Quantity]:
        """Return the quantity and, of a ratio, what it is divided by; refuse unknown keys of it."""
        one = replace(self, at="all") if self.show == "first" else self
        if self.ratio_to is None:
            return [one]
        return [one, build(Number, {**plain(one), **self.ratio_to, "ratio_to": None}, where)]

    def check(self, where: str, runs: Sequence[Sequence[Run]]) -> None:
        """Refuse a ratio of quantities that cannot be paired in planned runs, of each quantity."""
        sides = [plan_numbers(*of) for of in zip(self.list_quantities(), runs, strict=True)]
        try:
            pair_common(*sides) if len(sides) > 1 else None
        except Missing as missing:
            raise ConcordError(f"{where}.ratio_to: {missing}") from None

    def describe(self, runs: Sequence[Sequence[Measured]]) -> str | None:
        """Return the number in words; None if it does not exist or is out of bounds.

        runs: of each of its quantities.
        """
        try:
            quantities = self.list_quantities()
            numbers = gather(zip(quantities, runs, strict=True)).numbers()
            value, lo, hi = _divide(*numbers)
        except (Missing, DivergedQuantity):
            return None
        if self.show == "first":
            value = lo = hi = _find_settled(numbers[0], self.within)
        at_least = -math.inf if self.at_least is None else self.at_least
        at_most = math.inf if self.at_most is None else self.at_most
        # Beyond the finite range a run has diverged, whether its law is still finite or not.
        is_within = (lo >= at_least) & (hi <= at_most) & (np.abs(value) < FINITE_RANGE)
        if self.show == "count":
            return str(is_within.sum())
        return (
            words.range_of_numbers(*np.array([value, lo, hi]).tolist()) if is_within.all() else None
        )


class NumberWithRuns(NamedTuple):
    """A number of a study's texts, and the runs that each of its quantities reads."""

    number: Number
    runs: Sequence[Sequence[Run]]


def _divide(numbers: Numbers, others: Numbers | None = None) -> Ends:
    """Return the ratios of all pairs of like numbers, with intervals of positive ones.

    others: what they are divided by; None: nothing.
    """
    if others is None:
        return numbers.value, numbers.lo, numbers.hi
    i, j = pair_common(numbers, others)
    with np.errstate(divide="ignore", invalid="ignore"):
        pairs = (("value", "value"), ("lo", "hi"), ("hi", "lo"))
        value, lo, hi = (getattr(numbers, a)[i] / getattr(others, b)[j] for a, b in pairs)
    return value, lo, hi


def _find_settled(numbers: Numbers, within: float) -> np.ndarray:
    """Return, for each curve, the first iteration from which on it is near its last value.

    within: the largest factor between a value and the last one. Infinite values are never near.
    """
    curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
    rows = zip(numbers.run, numbers.agent, numbers.iteration, numbers.value, strict=True)
    for run, agent, iteration, value in rows:
        curves.setdefault((run.name, agent), []).append((iteration, value))
    settled = []
    for curve in curves.values():
        iterations, values = np.array(curve).T
        with np.errstate(divide="ignore", invalid="ignore"):
            is_near = np.abs(np.log(values / values[-1])) <= math.log(within)
        first = len(values) - np.argmin([*is_near[::-1], False])
        settled.append([*iterations, math.inf][first])
    return np.array(settled)


def list_placeholders(*texts: str) -> list[str]:
    """Return the names of the placeholders of texts, each once."""
    return list(dict.fromkeys(name for text in texts for name in PLACEHOLDER.findall(text)))


def fill_in(text: str, find: Callable[[str], str | None]) -> str:
    """Return a text on one line, with the words that ``find`` returns for its placeholders.

    A sentence with a placeholder for which there are none is left out.
    """
    sentences = markup.sentences(markup.line(text))
    kept = [s for s in sentences if None not in map(find, list_placeholders(s))]
    return PLACEHOLDER.sub(lambda placeholder: str(find(placeholder[1])), " ".join(kept))


def fill_in_settings(text: str, documents: Sequence[Document]) -> str:
    """Return a text on one line, with settings of runs in the place of its placeholders."""
    return fill_in(text, partial(find_setting, documents))


def find_setting(documents: Iterable[Document], path: str) -> str | None:
    """Return the value, or all values, of a setting in runs' documents; None if none has it.

    path: keys with dots, such as "sampler.step_size"; the first may be an experiment's id. What is
    drawn is a document of its own, with the key "options".
    """
    experiment, _, rest = path.partition(".")
    documents = list(documents)
    of_experiment = [run for run in documents if rest and run.get("experiment") == experiment]
    keys = (rest if of_experiment else path).split(".")
    values = [value for run in of_experiment or documents for value in _walk(run, keys)]
    return words.join_alternatives(map(words.value, values)) if values else None


def _walk(value: Any, keys: Sequence[str]) -> list[Any]:
    """Return the value below nested keys, in a list; [] if there is none."""
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return []
        value = value[key]
    return [value]


def check_placeholders(
    texts: Mapping[str, str], numbers: Iterable[str], documents: Sequence[Document]
) -> None:
    """Refuse placeholders that are neither one of the numbers nor a setting of the runs shown.

    texts: by their place.
    """
    for where, text in texts.items():
        for name in list_placeholders(text):
            if name not in numbers and find_setting(documents, name) is None:
                known = [*numbers, *dict.fromkeys(key for run in documents for key in run)]
                raise ConcordError(
                    f"{where}: there is no number and no setting {name!r}; {nearest(name, known)}"
                )


def state_number(of: NumberWithRuns) -> dict[str, Any]:
    """Return a number and its runs as plain data, for the job that shows it.

    of: both.
    """
    runs = [[[run.experiment, run.name] for run in runs] for runs in of.runs]
    return {"number": plain(of.number), "runs": runs}
