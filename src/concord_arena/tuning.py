"""Which settings of an entry are tried, and which is chosen.

Every entry has 36: the tuned option on 36 values, or on twelve with a second option on three. They
go from the largest stable value downwards by factors of the square root of two, twelve by factors
of two: by smaller ones they would end at a 64th, where most of the best ones are not yet reached.
Where all values are stable they lie around the value that the run states. Where the best is the
first or the last of them the search goes on beyond it, at most three times by twelve settings more;
but not from the largest stable value upwards, and not where everybody pays for its tuning.

What is to reach a target soonest may need far smaller values: 24 settings go down 24 octaves then,
and twelve lie between the neighbors of the best of these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from concord.errors import ConcordError, nearest
from concord.laws import exact
from concord.laws.law import mean_step
from concord.laws.read_off import NoLaw
from concord.networks.network import Network
from concord.options import build, plain
from concord.problem import Problem
from concord.sampler import Sampler
from concord_studies.runs.keys import Arena

SETTINGS = 36
FINE, COARSE = 2, 4  # quarter octaves from one setting to the next
FIRST = 24  # of what aims at a target: so many settings, and octaves
WIDER, MORE = 3, 12  # how often a search goes on beyond its end, and by how many settings


@dataclass(frozen=True)
class Lattice:
    """A sampler's settings, with the values top / 2^(j/4) of its tuned option at places j.

    base: the sampler. tune: the option's name; None: there is one setting. own: the value of a
    second option, by name. limit: the largest stable value of the tuned one; infinite if not known.
    where: what is tuned, for errors.
    """

    base: Sampler
    tune: str | None
    own: Mapping[str, Any]
    top: float
    limit: float
    where: str

    def step(self, j: float) -> float:
        """Return the tuned option's value at place j."""
        return float(self.top * 2.0 ** (-j / 4))

    def values(self, j: float) -> dict[str, Any]:
        """Return the values of the tuned and the second option at place j."""
        return {} if self.tune is None else {**self.own, self.tune: self.step(j)}

    def sampler(self, j: float) -> Sampler:
        """Return the sampler with the option values at place j."""
        return changed(self.base, self.values(j), self.where)


class Setting(NamedTuple):
    """A place of a lattice, with the values of the tuned options and the sampler there."""

    lattice: Lattice
    j: float
    values: Mapping[str, Any]
    sampler: Sampler


def setting_at(lattice: Lattice, j: float) -> Setting:
    """Return the setting at place j of a lattice."""
    return Setting(lattice, j, lattice.values(j), lattice.sampler(j))


def lattice_of(
    sampler: Sampler,
    tune: str,
    own: Mapping[str, Any],
    problem: Problem,
    network: Network,
    octaves: float,
    where: str,
) -> Lattice:
    """Return the lattice of a sampler whose second option has the value ``own``.

    problem, network: those on which values are stable, or not; what happens on the network is left
    out. Where the limit is not known the top lies ``octaves`` above the stated value.
    """
    begin = value_of(sampler, tune, where)
    bare = Network(network.graph, order=network.order)

    def sampler_of(step: float) -> Sampler:
        """Return the sampler with a step and the value of its second option."""
        return changed(sampler, {**own, tune: step}, where)

    limit = stable(sampler_of, begin, problem, bare)
    top = limit if np.isfinite(limit) else begin * 2.0**octaves
    return Lattice(sampler, tune, own, top, limit, where)


def changed(sampler: Sampler, values: Mapping[str, Any], where: str) -> Sampler:
    """Return a sampler with other values of some options."""
    stated = plain(sampler)
    for name in values:
        if name not in stated:
            raise ConcordError(f"{where}.{name}: unknown option; {nearest(name, stated)}")
    found: Sampler = build(type(sampler), {**stated, **values}, where)
    return found


def value_of(sampler: Sampler, name: str, where: str) -> float:
    """Return the stated value of the option to tune, around which the search begins."""
    stated = plain(sampler)
    value = stated.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        what = f"{value!r} is no number" if name in stated else nearest(name, stated)
        raise ConcordError(f"{where}.tune: {name}: {what}; tune an option that is a number")
    return float(value)


def stable(
    sampler_of: Callable[[float], Sampler], value: float, problem: Problem, network: Network
) -> float:
    """Return the largest stable value of an option on a perfect network; infinity if not known.

    For a sampler with random choices the limit is that of its mean step.
    """
    try:
        return exact.stable_limit(
            lambda step: mean_step(sampler_of(step), problem, network), value, 1e-3
        )
    except NoLaw:
        return np.inf


def settings(
    sampler: Sampler,
    arena: Arena,
    problem: Problem,
    network: Network,
    where: str,
) -> tuple[list[list[Setting]], list[float]]:
    """Return a group of settings for each value of the second option, and each group's limit.

    The limit is infinite where it is not known.
    """
    if arena.tune is None:
        alone = Lattice(sampler, None, {}, np.nan, np.nan, where)
        return [[setting_at(alone, 0)]], [np.nan]
    if len(arena.second) > 1:
        raise ConcordError(
            f"{where}.second: {len(arena.second)} options; tune one besides the first"
        )
    name, values = next(iter(arena.second.items()), (None, (None,)))
    apart, count = _apart(arena), (SETTINGS if arena.aim is None else FIRST) // len(values)
    octaves = 0.0 if arena.share is not None else count // 2 * apart / 4
    lattices = []
    for value in values:
        own, of = ({}, where) if name is None else ({name: value}, f"{where}.second")
        lattices.append(lattice_of(sampler, arena.tune, own, problem, network, octaves, of))
    if arena.share is not None:
        lattices = lattices[:1]
        places = [-4 * float(np.log2(arena.share))]
    else:
        places = [apart * i for i in range(1, count + 1)]
    groups = [[setting_at(lattice, j) for j in places] for lattice in lattices]
    return groups, [lattice.limit for lattice in lattices]


def _apart(arena: Arena) -> int:
    """Return how many quarter octaves are between the settings of an entry."""
    if arena.aim is not None:
        return 4 * len(next(iter(arena.second.values()), (None,)))
    return COARSE if arena.second else FINE


def beyond(arena: Arena, best: Setting, up: bool) -> list[Setting]:
    """Return further settings beyond the best one, above it if ``up``, else below."""
    apart = (COARSE if arena.second else FINE) * (-1 if up else 1)
    return [setting_at(best.lattice, best.j + apart * i) for i in range(1, MORE + 1)]


def between(arena: Arena, best: Setting) -> list[Setting]:
    """Return the settings between the best one's neighbors, for an entry that aims at a target."""
    parts = np.linspace(1, -1, SETTINGS - FIRST + 2)[1:-1]
    return [setting_at(best.lattice, best.j + _apart(arena) * part) for part in parts]
