"""Values and numbers as readers see them, in sentences and legends."""

from __future__ import annotations

from typing import Any

NAMES = {
    "erdos_renyi": "Erdős-Rényi",
    "gossip_ula": "Gossip ULA",
    "sgld": "SGLD",
}


def name(key: str, value: Any) -> str:
    """Return the text for ``value`` of ``key``, such as "No edges", "DE-SGLD" or "agents 5"."""
    last = key.split(".")[-1].replace("_", " ")
    if value is None:
        return "full gradients" if last == "batch size" else f"no {last}"
    if is_number(value):
        return f"{last} {value:g}"
    text = str(value)
    if text in NAMES:
        return NAMES[text]
    if key in ("sampler", "sampler.kind"):
        return text.replace("_", "-").upper()
    return text.replace("_", " ").capitalize()


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(value: float) -> str:
    """Return a number with four digits, or all of a count."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
