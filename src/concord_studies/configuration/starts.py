"""Schedules that state the value of their first step, perhaps relative to the network's spectrum.

``{kind: power, start: 1.01 / laplacian_max, b: 230, exponent: 0.04}`` has the value 1.01 over the
largest eigenvalue of the Laplacian at the first step, whatever the network. A run is resolved on a
network, so that its document has the number ``a``.
"""

import math
from collections.abc import Mapping
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord.networks.spectrum import spectrum_of
from concord.networks.topology import ChosenTopology


def resolve_sampler(run: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a sampler's options with ``a`` instead of the ``start`` of every schedule.

    A ConcordError names ``where`` and the key below it.
    """
    sampler = dict(run["sampler"])
    for key, option in sampler.items():
        if isinstance(option, Mapping) and "start" in option:
            place = f"{where}.sampler.{key}"
            if option.get("a") is not None:  # null takes back an ``a`` that was merged before
                raise ConcordError(
                    f"{place}: it has both start and a; leave one out, or write a: null"
                )
            rest = {name: value for name, value in option.items() if name not in ("start", "a")}
            b, exponent = rest.get("b", 1.0), rest.get("exponent", 1.0)
            a = _value(option["start"], run, f"{place}.start", where)
            try:
                # Beyond twelve digits eigenvalues differ between processors, as a run's identity
                # must not.
                sampler[key] = {**rest, "a": float(f"{a * float(b) ** float(exponent):.12g}")}
            except (TypeError, ValueError, ArithmeticError):
                sampler[key] = {**rest, "a": a}  # the schedule says what is wrong with the others
    return sampler


def _value(start: Any, run: Mapping[str, Any], place: str, where: str) -> float:
    """Return the number that a schedule's ``start`` means on the run's network."""
    number, slash, symbol = str(start).partition(" / ")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if isinstance(start, bool) or not 0 < value < math.inf:
        raise ConcordError(
            f"{place}: {short(start)} is no positive number, or such a number over a symbol; "
            "write it like 1.01 / laplacian_max"
        )
    if not slash:
        return value
    chosen = ChosenTopology.parse(run["topology"], f"{where}.topology")
    graph = chosen.graph(run["agents"], f"{where}.topology")
    try:
        spectrum = spectrum_of(graph)
    except ConcordError as error:
        raise ConcordError(f"{place}: {error}") from None
    if symbol not in spectrum:
        raise ConcordError(
            f"{place}: there is no symbol {short(symbol)}; {nearest(symbol, spectrum)}"
        )
    if not spectrum[symbol] > 0:
        raise ConcordError(f"{place}: {symbol} of this network is not positive; write a number")
    return value / spectrum[symbol]
