"""Captions: what a figure or table shows, with which parameters, reading and assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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
        "title": title,
        "caption": " ".join(caption.split()),
        "parameters": [f"{key}: {_parameters(group)}" for key, group in experiments.items()],
        "readings": sorted({run["reading"] for run in runs}),
        "assumptions": [
            f"{name}: {assumptions[name]['value']} ({assumptions[name]['reason']})" for name in used
        ],
        "scale": "smoke" if any(run["scale"] == "smoke" for run in runs) else "paper",
    }


def markdown(parts: Mapping[str, Any]) -> str:
    """Return a caption as Markdown."""
    lines = [f"**{parts['title']}.** {parts['caption']}", ""]
    if parts["scale"] == "smoke":
        lines += ["Smoke scale: few chains and iterations, not a result.", ""]
    lines += ["Parameters:", "", *(f"- {text}" for text in parts["parameters"]), ""]
    lines += [f"Reading: {', '.join(parts['readings'])}.", ""]
    if parts["assumptions"]:
        lines += ["Assumptions (the paper does not state these):", ""]
        lines += [f"- {text}" for text in parts["assumptions"]] + [""]
    return "\n".join(lines)


_SHOWN = (
    *("problem", "agents", "topology", "partition", "sampler"),
    *("initial", "chains", "iterations", "seed"),
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
    return "none" if value is None else str(value)
