"""Captions: what a figure or table shows, with which parameters, reading and assumptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from concord.report import markup


def describe(
    title: str,
    caption: str,
    runs: Sequence[Mapping[str, Any]],
    assumptions: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """Return a caption's parts, ready for a template.

    Parameters
    ----------
    title, caption
        As the paper's file states them.
    runs
        The resolved mappings of the runs shown.
    assumptions
        The paper's assumptions; those any run rests on are listed.

    Returns
    -------
    dict
        title, caption, parameters (one text per experiment), readings, assumptions (texts), scale.
    """
    experiments: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        experiments.setdefault(run["experiment"], []).append(run)
    used = sorted({name for run in runs for name in run["assumptions"]})
    return {
        "title": markup.line(title),
        "caption": markup.line(caption),
        "parameters": [f"{key}: {_parameters(group)}" for key, group in experiments.items()],
        "readings": sorted({run["reading"] for run in runs}),
        "assumptions": [
            "{}: {value} ({reason})".format(name, **_each(markup.line, assumptions[name]))
            for name in used
        ],
        "scale": "smoke" if any(run["scale"] == "smoke" for run in runs) else "paper",
    }


def rst(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a caption's parts for a template in reStructuredText."""
    return _each(markup.rst, parts)


def _each(function: Callable[[str], str], parts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: function(part) if isinstance(part, str) else [function(item) for item in part]
        for key, part in parts.items()
    }


def markdown(parts: Mapping[str, Any]) -> str:
    """Return a caption as Markdown."""
    parts = _each(markup.markdown, parts)
    lines = [f"**{parts['title']}.** {parts['caption']}", ""]
    if parts["scale"] == "smoke":
        lines += ["Smoke scale: few chains and iterations, not a result.", ""]
    lines += ["Parameters:", "", *(f"- {item}" for item in parts["parameters"]), ""]
    lines += [f"Reading: {', '.join(parts['readings'])}.", ""]
    if parts["assumptions"]:
        lines += ["Assumptions (the paper does not state these):", ""]
        lines += [f"- {item}" for item in parts["assumptions"]] + [""]
    return "\n".join(lines)


_SHOWN = (
    *("problem", "agents", "topology", "partition", "sampler"),
    *("initial", "chains", "iterations", "seed", "record", "metrics"),
)


def _parameters(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the parameters of an experiment's runs; those that vary list their values."""
    flat = [dict(_flatten({key: run[key] for key in _SHOWN})) for run in runs]
    keys = list(dict.fromkeys(key for mapping in flat for key in mapping))
    texts = []
    for key in keys:
        values = list(dict.fromkeys(_text(m[key]) for m in flat if key in m))
        texts.append(f"{key} {' | '.join(values)}")
    return "; ".join(texts)


def _flatten(mapping: Mapping[str, Any], prefix: str = "") -> Any:
    for key, value in mapping.items():
        name = prefix[:-1] if key == "kind" and prefix else f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield name, value


def _text(value: Any) -> str:
    if isinstance(value, float):
        return format(value, "g")
    if isinstance(value, list) and len(value) > 12:
        return f"[{len(value)} entries]"
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "none"
    return "none" if value is None else str(value)
