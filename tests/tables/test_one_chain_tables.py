"""Tables of one chain show its numbers, and no interval."""

from __future__ import annotations

import warnings

import pandas
import pytest
from test_diverged_tables import OPTIONS

from concord.options import build
from concord.plugins import plugin
from concord.results import Measured
from diverged_runs import LAST, measured


def one_chain(case: str) -> Measured:
    """Return a run with what families that tables show say of one chain."""
    families = ("accuracy", "consensus_floor", "w2")
    rows = [row for family in families for row in measured(family, chains=1)]
    rows.append(type(rows[0])(LAST, "network", "diverged", 0.0))
    table = pandas.DataFrame(rows).astype({"value": float, "lo": float, "hi": float})
    labels = {"case": case, "step_size": "0.1"}
    return Measured({"experiment": "e", "run": case, "labels": labels, "chains": 1}, table)


@pytest.mark.parametrize("kind", ["consensus_decay", "final_values"])
def test_a_table_of_one_chain_has_values_and_no_intervals(kind):
    module = plugin("tables", kind, "table")
    params = build(module.Params, OPTIONS[kind], "options")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = module.tabulate(params, [one_chain(case) for case in ("sound", "lost")])
    rows = [dict(zip(made.columns, row, strict=True)) for row in made.rows]
    assert any(pandas.notna(row["value"]) for row in rows)
    assert pandas.isna([[row["lo"], row["hi"]] for row in rows]).all()
    shown = "\n".join(made.markdown().splitlines()[2:])
    assert "[" not in shown and "nan" not in shown
