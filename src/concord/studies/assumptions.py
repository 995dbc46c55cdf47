"""On what an assumption rests: the runs whose keys have the values that its ``rests`` states.

``rests: {sampler: [de_sgld, de_sghmc], topology: ring}`` holds for every run of these samplers on a
ring. Keys are those of run.yaml, nested ones with dots; problem, sampler and the like compare by
their name or kind. Without ``rests`` an assumption holds for all runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concord.errors import nearest, short
from concord.studies.sweep import label_text, label_texts


def holds_for(run: Mapping[str, Any], rests: Mapping[str, Any]) -> bool:
    """Return whether a run has, for every key, one of the values."""
    return all(_value(run, key) in label_texts(wanted) for key, wanted in rests.items())


def mistake(runs: Sequence[Mapping[str, Any]], rests: Mapping[str, Any]) -> str | None:
    """Say which value no run has, or that none has them all; None where all is well."""
    for key, wanted in rests.items():
        values = {value for run in runs if (value := _value(run, key)) is not None}
        if not values:
            return f"no run has the key {short(key)}; {nearest(key, runs[0])}"
        for text in label_texts(wanted):
            if text not in values:
                return f"no run has {key} {short(text)}; {nearest(text, values)}"
    if not any(holds_for(run, rests) for run in runs):
        return "no run has all of this; correct it, or remove the assumption"
    return None


def _value(run: Mapping[str, Any], key: str) -> str | None:
    """Return the value of a run's key as text; None where it has none."""
    value: Any = run
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("name", value.get("kind"))
    return None if value is None else label_text(value)
