"""Entries: samplers with the option to tune, those of the arena's study and all other kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from concord import kinds
from concord.arguments import class_of
from concord.errors import ConcordError, nearest, short
from concord.options import build
from concord.problems.gaussian_fit import Fit
from concord.sampler import Algorithm
from concord_studies.home import HOME
from concord_studies.io import load_yaml

ARENA = HOME / "config" / "studies" / "arena"
# Mean curvature of agents' potentials in the arena, for whose problems its entries' options stand.
CURVATURE = 0.5
STEP = 0.01  # where the search begins for samplers that the arena has no entry of
OF_ENTRIES = ("tune", "second", "share", "read")


class Entry(NamedTuple):
    """A sampler with its option to tune, and the values to try of a second option, by name."""

    name: str
    kind: str
    sampler: Algorithm
    tune: str
    second: Mapping[str, Sequence[Any]]


def name_samplers(samplers: Sequence[str | type[Algorithm]]) -> list[str]:
    """Return the names of samplers, of which some may be a caller's classes."""
    if isinstance(samplers, str) or not samplers:
        raise ConcordError(f"samplers: {short(samplers)}; give a list, such as ['de_sgld']")
    return [s if isinstance(s, str) else kinds.add_class(class_of(s, "samplers")) for s in samplers]


def state_entry(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a sampler that has no entry, and its arena section (what is tuned).

    By default ``step_size`` is tuned; the sampler's class may state other options and tuning as
    ``ENTRY``. A ConcordError if that states more than ``OF_ENTRIES``.
    """
    stated = getattr(kinds.find("samplers", kind, "sampler"), "ENTRY", {})
    defaults = {"sampler": {"step_size": STEP}, "arena": {"tune": "step_size"}} | stated
    if more := sorted(defaults["arena"].keys() - OF_ENTRIES):
        raise ConcordError(
            f"{kind}: ENTRY says {more[0]}, which is the same for all; it may say "
            + ", ".join(OF_ENTRIES)
        )
    return defaults["sampler"], defaults["arena"]


def scale_entries(
    fit: Fit, samplers: Sequence[str | type[Algorithm]] | None
) -> tuple[list[Entry], list[tuple[str, str]]]:
    """Return all entries with options in a problem's units, and (title, reason) of failures.

    fit: the Gaussian fit to the problem's posterior. samplers: entries, kinds or classes that a
    caller chose; None: all. The unit is a length s, a power of two, such that curvature times s^2
    is about as in the arena.
    """
    arena = load_yaml(ARENA / "study.yaml")
    stated = {
        name: (entry["sampler"]["kind"], entry["sampler"], entry["arena"])
        for experiment in ("sampled", "tasks")
        for name, entry in arena["experiments"][experiment]["sweep"]["entry"].items()
        if "tune" in entry.get("arena", {}) and "share" not in entry["arena"]
    }
    entered = {kind for kind, _, _ in stated.values()}
    names = None if samplers is None else name_samplers(samplers)
    every = [*kinds.names("samplers"), *(names or ())]
    others = [kind for kind in every if kind not in entered and kinds.exists("samplers", kind)]
    stated |= {kind: (kind, *state_entry(kind)) for kind in others}
    if names is not None:
        stated = dict(_choose(stated, names))
    agents, dim = fit.hessians.shape[:2]
    curvature = np.trace(fit.hessians.sum(axis=0)) / (agents * dim)
    unit = float(2.0 ** np.round(np.log2(CURVATURE / curvature) / 2))
    entries, lacking = [], []
    for name, (kind, options, chosen) in stated.items():
        sampler = kinds.find("samplers", kind, "samplers")
        scale = {option: unit**power for option, power in sampler.units.items()}
        params = {k: v * scale[k] if k in scale else v for k, v in options.items() if k != "kind"}
        second = {
            option: [value * scale[option] if option in scale else value for value in values]
            for option, values in chosen.get("second", {}).items()
        }
        title = arena["names"].get(name) or sampler.name or name
        try:
            tuned = build(sampler, params, f"samplers.{name}")
            entries.append(Entry(title, kind, tuned, chosen["tune"], second))
        except ConcordError as error:
            lacking.append((title, f"more than a step has to be chosen: {error}"))
    return entries, lacking


def _choose(stated: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield (name, entry) pairs whose name or kind a caller chose; raise for unknown names.

    stated: all entries by name.
    """
    entry_names = stated.keys() | {kind for kind, _, _ in stated.values()}
    for name in names:
        if name not in entry_names:
            raise ConcordError(
                f"samplers: there is no entry {name!r}; {nearest(name, entry_names)}"
            )
    yield from ((name, of) for name, of in stated.items() if name in names or of[0] in names)
