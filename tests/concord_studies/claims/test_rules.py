"""What the claims of all studies compare: no tolerance decides alone, and sides are different."""

import everything
from concord_studies.claims import checks

CASES = [
    (f"{key}: {name} {label}", case)
    for key, study in everything.studies().items()
    for (name, label, _), case in study.cases.items()
]


def test_no_tolerance_is_as_large_as_the_printed_number():
    """What a wide tolerance of ours would decide is a measurement."""
    for where, case in CASES:
        check = case.check
        if isinstance(check, checks.Value) and check.printed and not check.at_most:
            assert check.tolerance <= abs(check.printed) / 4, where


def test_both_sides_of_an_order_are_different_numbers():
    """What is compared with itself can neither be nearer nor farther."""
    for where, case in CASES:
        if isinstance(case.check, (checks.Order, checks.Sooner, checks.Bound)):
            sides = []
            for quantity, runs in case.reads:
                agents = quantity.agents or ("all",)
                what = (quantity.metric, str(quantity.at))
                sides.append({(r.folder, *what, str(a)) for r in runs for a in agents})
            assert not sides[0] & sides[1], where
