"""Which settings of an entry are tried, and which is chosen.

Every entry has 36: the tuned option on 36 values, or on twelve with a second option on three. They
go from the largest stable value downwards by factors of the square root of two, twelve by factors
of two: by smaller ones they would end at a 64th, where most of the best ones are not yet reached.
Where all values are stable they lie around the value that the run states. Where the best is the
first or the last of them the search goes on beyond it, at most three times by twelve settings more;
but not from the largest stable value upwards, and not where everybody pays for its tuning.

Of what predicts alone, a network whose chains take long, 9 settings are tried, by factors of two,
around the value that the run states, and so on beyond either end by three.

What is to reach a target soonest may need far smaller values: 24 settings go down 24 octaves then,
and twelve lie between the neighbors of the best of these.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from concord.errors import ConcordError, nearest
from concord.laws import exact
from concord.laws.read_off import NoLaw
from concord.laws.scheduled import read_family
from concord.networks.network import Network
from concord.options import build, plain
from concord.problem import Problem
from concord.reference import WithReference
from concord.sampler import Algorithm
from concord.stability import growth_of_law
from concord_studies.runs.keys import Arena

SETTINGS, PREDICTING = 36, 9  # that are tried, and where predictions alone are scored
FACTOR, COARSE = 2**0.5, 2.0
FIRST = 24  # of what aims at a target: so many settings, and octaves
WIDER = 3  # how often a search goes on beyond its end, each time by a third as many settings


def has_posterior(problem: Problem) -> bool:
    """Return whether a problem's posterior is known, so that results can be compared with it."""
    return isinstance(problem, WithReference) or problem.posterior is not None


class Setting(NamedTuple):
    """Values of the tuned options, and the sampler with these values."""

    values: Mapping[str, Any]
    sampler: Algorithm


def vary(sampler: Algorithm, values: Mapping[str, Any], where: str) -> Algorithm:
    """Return a copy of a sampler with other values of some options.

    where: their place in a file or call, for errors.
    """
    varied: Algorithm = build(type(sampler), {**plain(sampler), **values}, where)
    return varied


def read_value(sampler: Algorithm, tune: str, where: str) -> float:
    """Return the sampler's value of the option to tune, around which the search begins.

    where: the entry's place in the file, for errors.
    """
    stated = plain(sampler)
    value = stated.get(tune)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        what = f"{value!r} is no number" if tune in stated else nearest(tune, stated)
        raise ConcordError(f"{where}.tune: {tune}: {what}; tune an option that is a number")
    return float(value)


def leave_out_conditions(network: Network) -> Network:
    """Return a network on the same graph with ideal conditions."""
    return Network(network.graph, order=network.order)


def find_limit(sampler: Algorithm, tune: str, problem: Problem, network: Network) -> float:
    """Find the largest value of an option at which a sampler's law is stable.

    Stable: ``concord.stability.growth_of_law`` is below 1. nan if no value is stable, infinity if
    all are, or if the law is not known.
    """
    family = read_family(sampler, tune, problem, network)

    def is_stable(value: float) -> bool:
        """Return whether the law is stable at a value of the option."""
        varied = vary(sampler, {tune: value}, tune)
        return growth_of_law(varied, problem, network, family=family) < 1

    try:
        return exact.find_largest(is_stable, read_value(sampler, tune, tune), 1e-3)
    except NoLaw:
        return np.inf


def group_settings(
    sampler: Algorithm,
    arena: Arena,
    problem: Problem,
    network: Network,
    where: str,
) -> tuple[list[list[Setting]], list[float]]:
    """Return settings of an entry's tuned options, grouped by the value of ``arena.second``.

    The second result is the largest stable value of ``arena.tune`` in each group, on the graph
    with ideal conditions, so that settings do not depend on the conditions; infinite where it is
    not known. where: the entry's place in the file, for errors.
    """
    if arena.tune is None:
        return [[Setting({}, sampler)]], [float("nan")]
    if len(arena.second) > 1:
        raise ConcordError(
            f"{where}.second: {len(arena.second)} options; tune one besides the first"
        )
    tune, bare = arena.tune, leave_out_conditions(network)
    begin = read_value(sampler, tune, where)
    groups, limits = [], []
    name, values = next(iter(arena.second.items()), (None, (None,)))
    size = count_settings(problem)
    factor = FACTOR if name is None and size == SETTINGS else COARSE
    count = size // len(values)
    if arena.aim is not None:
        factor, count = 2.0 ** len(values), FIRST // len(values)
    for value in values:
        second = {} if name is None else {name: value}
        one = vary(sampler, second, f"{where}.second")
        limit = find_limit(one, tune, problem, bare)
        limits.append(limit)
        if arena.share is not None:
            steps = [arena.share * (limit if np.isfinite(limit) else begin)]
        else:
            top = limit if np.isfinite(limit) else begin * factor ** (count // 2)
            steps = [top * factor**-i for i in range(1, count + 1)]
        groups.append([Setting({tune: s, **second}, vary(one, {tune: s}, where)) for s in steps])
    if arena.share is not None:
        groups, limits = groups[:1], limits[:1]
    return groups, limits


def count_settings(problem: Problem) -> int:
    """Return the number of settings that are tried of an entry on a problem."""
    return SETTINGS if has_posterior(problem) else PREDICTING


def extend(
    arena: Arena, best: Setting, up: bool, where: str, size: int = SETTINGS
) -> list[Setting]:
    """Return settings with larger or smaller values of the tuned option than the best.

    up: whether larger. where: the entry's place in the file, for errors. size: the number of
    settings that were tried at first; a third as many are returned.
    """
    factor = COARSE if arena.second or size != SETTINGS else FACTOR
    powers = [factor ** (i if up else -i) for i in range(1, size // 3 + 1)]
    return _scale_best(powers, arena, best, where)


def refine(arena: Arena, best: Setting, where: str) -> list[Setting]:
    """Return the settings between the best one's neighbors, for an arena with an ``aim``."""
    factor = 2.0 ** len(next(iter(arena.second.values()), (None,)))
    parts = np.linspace(-1, 1, SETTINGS - FIRST + 2)[1:-1]
    return _scale_best([factor**part for part in parts], arena, best, where)


def _scale_best(factors: Sequence[float], arena: Arena, best: Setting, where: str) -> list[Setting]:
    """Return the best setting with its tuned option times each factor."""
    tune, varied = str(arena.tune), []
    for factor in factors:
        values = {**best.values, tune: float(best.values[tune] * factor)}
        varied.append(Setting(values, vary(best.sampler, values, where)))
    return varied
