"""No claim has a rule that the exact truth fails: truth is put in the middle and on the edge."""

import math
from functools import cache
from pathlib import Path
from typing import Any

import pandas
import pytest

from concord import kinds
from concord_studies.claims import checks
from concord_studies.claims.claim import Case
from concord_studies.claims.quantities import Quantity
from concord_studies.claims.verdicts import FAILS, HOLDS, INSIDE, MEASURED, judge
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.results import COLUMNS, Measured
from concord_studies.selection import lookup

ROOT = Path(__file__).parents[3]
LAST = 9


@cache
def papers() -> dict[str, Study]:
    return load_studies(ROOT / "config", checked=True)[1]


@pytest.fixture(autouse=True)
def at_work():
    """Use the plug-ins of all studies, whatever other tests have used."""
    kinds.use(*(paper.path for paper in papers().values()))


CASES = [(key, *case) for key, paper in papers().items() for case in paper.cases]


def truths(check: Any, where: str) -> dict[int, Any]:
    """Return value(run, iteration) of each quantity, by identity, where the paper is right.

    ``where`` is middle, edge (the last value at which it is still right) or wrong.
    """
    part = {"middle": 0.0, "edge": 1.0, "wrong": 1.1}[where]
    if isinstance(check, checks.Value):
        value = (check.printed + part * check.tolerance) / check.quantity.scale
        beyond = value if check.tolerance or where != "wrong" else value + 1
        return {id(check.quantity): lambda *_: beyond}
    if isinstance(check, checks.Order):
        return {
            id(check.lower): lambda *_: check.factor * (1 + part),
            id(check.higher): lambda *_: 2,
        }
    if isinstance(check, checks.Trend):
        sign = (1 if check.direction == "rising" else -1) * {"wrong": -1, "edge": 0}.get(where, 1)
        return {id(check.quantity): lambda run, _: 99 + sign * rank(run, check.axis)}
    if isinstance(check, checks.Rate):
        low, high = check.at_least, check.at_most
        low = high - 1 if low is None else low
        high = low + 1 if high is None else high
        slope = (low + high) / 2 + part * (high - low) / 2
        if check.at_most is None and where != "middle":
            slope = low if where == "edge" else low - 0.1
        name = check.against
        return {
            id(check.quantity): lambda run, k: (
                (k + 1 if name == "iteration" else axis(run, name)) ** slope
            )
        }
    if isinstance(check, checks.Bound):
        return {id(check.quantity): lambda *_: 1 + part, id(check.bound): lambda *_: 2}
    if isinstance(check, checks.Identity):
        apart = part * check.tolerance / check.left.scale
        return {
            id(check.left): lambda *_: 1 / check.left.scale + apart,
            id(check.right): lambda *_: 1 / check.right.scale,
        }
    if isinstance(check, checks.Spread):
        return {id(check.quantity): lambda *_: 1.0}
    if isinstance(check, checks.Sooner):
        soon, late = {"middle": (2, 5), "edge": (4, 5), "wrong": (5, 4)}[where]
        return {
            id(check.first): lambda _, k: check.threshold * (0.5 if k >= soon else 2),
            id(check.later): lambda _, k: check.threshold * (0.5 if k >= late else 2),
        }
    return dict.fromkeys(map(id, checks.quantities(check)), lambda *_: 1.0)


def axis(run: Any, name: str) -> float:
    return float(lookup(run.document, name))


def rank(run: Any, name: str) -> float:
    """Grow with the axis, which may begin at 0 and hold steps far apart in size."""
    return math.log1p(1e6 * axis(run, name))


def judged(case: Case, where: str, width: float) -> str:
    """Return the verdict on made-up numbers with intervals of a relative half-width."""
    check = case.check
    values = truths(check, where)
    known = {id(q): q for q in checks.quantities(check)}

    def runs(quantity: Quantity) -> list[Measured]:
        side, value = next(
            (n, values[i]) for n, (i, q) in enumerate(known.items()) if q is quantity
        )
        one_curve = isinstance(check, checks.Trend | checks.Rate)
        agents = quantity.agents or (("0",) if one_curve else ("0", "1"))
        ends = (LAST,) if quantity.at == "last" else quantity.at
        ends = (
            range(LAST + 1)
            if ends == "all"
            else ends
            if isinstance(ends, (tuple, range))
            else (ends,)
        )
        found = []
        for run in next(runs for of, runs in case.reads if of is quantity):
            rows = []
            for k in ends:
                for agent in agents:
                    v = float(value(run, k))
                    half = width * abs(v)
                    trials = 1000 if width else 0
                    rows.append((k, str(agent), quantity.metric, v, v - half, v + half, trials))
                    for d in range(3):
                        # Differences, of runs and of sides, must have a spread.
                        jitter = v + (d - 1) * width * (len(found) + side)
                        rows.append((k, str(agent), f"{quantity.metric}_set_{d}", jitter, v, v, 0))
            table = pandas.DataFrame(rows, columns=list(COLUMNS))
            found.append(Measured(run.document, table))
        return found

    return judge(check, runs).verdict


@pytest.mark.parametrize(("key", "name", "label", "reading"), CASES)
def test_the_truth_passes_in_the_middle_and_is_not_refuted_at_the_edge(key, name, label, reading):
    case = papers()[key].cases[name, label, reading]
    verdict = judged(case, "middle", 0.0)
    assert verdict in (HOLDS, INSIDE, MEASURED), verdict
    check = case.check
    if isinstance(check, (checks.Condition, checks.Measurement)):
        return
    assert judged(case, "edge", 1e-6) != FAILS
    if not isinstance(check, checks.Spread):
        assert judged(case, "wrong", 0.0) == FAILS


@pytest.mark.parametrize(("key", "name", "label", "reading"), CASES)
def test_no_tolerance_is_as_large_as_the_printed_number(key, name, label, reading):
    """What a wide tolerance of ours would decide is a measurement."""
    check = papers()[key].cases[name, label, reading].check
    if isinstance(check, checks.Value) and check.printed and not check.at_most:
        assert check.tolerance <= abs(check.printed) / 4


def test_both_sides_of_an_order_are_different_numbers():
    """What is compared with itself can neither be nearer nor farther."""
    for key, name, label, reading in CASES:
        case = papers()[key].cases[name, label, reading]
        if isinstance(case.check, (checks.Order, checks.Sooner, checks.Bound)):
            sides = []
            for quantity, runs in case.reads:
                agents = quantity.agents or ("all",)
                what = (quantity.metric, str(quantity.at))
                sides.append({(r.folder, *what, str(a)) for r in runs for a in agents})
            assert not sides[0] & sides[1], f"{key}: {name} {label}"
