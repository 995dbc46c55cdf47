"""Every kind of table says that a run diverged, and has no interval of one chain."""

import csv
import io
import warnings
from collections.abc import Iterable
from typing import Any

import pandas
import pytest

from concord import kinds
from concord.options import build
from concord_studies.results import Measured
from concord_studies.tables import Table
from diverged_runs import CHAINS, DIVERGED, LAST, measured

CASES = {"gossip": 0, "triggered": CHAINS}  # as the runs of consensus_decay are called
COLUMNS = [{"name": case, "select": {"case": case}} for case in CASES]
OPTIONS: dict[str, dict[str, Any]] = {
    "consensus_decay": {"pair": "case"},
    "final_values": {"metrics": ["w2", "accuracy_mean"]},
    "paired_differences": {"metric": "sinkhorn", "networks": "case", "by": "step_size"},
    "printed_values": {
        "columns": COLUMNS,
        "rows": [{"name": "accuracy", "metric": "accuracy_digits", "printed": [0.5, 0.5]}],
    },
}


def measured_run(case: str, chains: int = CHAINS, lost: int | None = None) -> Measured:
    """Return a run with the metrics that tables show."""
    lost = CASES[case] if lost is None else lost
    families = ("accuracy", "consensus_floor", "predictions", "sinkhorn", "w2")
    rows = [row for family in families for row in measured(family, chains=chains, lost=lost)]
    table = pandas.DataFrame(rows).astype({"value": float, "lo": float, "hi": float})
    (distance,) = table[(table["metric"] == "sinkhorn") & (table["agent"] == "0")]["value"]
    more = [(LAST, "0", f"sinkhorn_set_{d}", distance + d) for d in range(3)]
    more += [(LAST, "network", "diverged", lost / chains)]
    more += [(DIVERGED, "network", "diverged_first", DIVERGED)] if lost else []
    table = pandas.concat([table, pandas.DataFrame(more, columns=list(table.columns[:4]))])
    labels = {"case": case, "step_size": "0.1"}
    run = {"experiment": "e", "run": case, "labels": labels, "chains": chains}
    return Measured(run, table)


def tabulated(kind: str, runs: Iterable[Measured]) -> Table:
    """Make the table without a warning."""
    assert kind in OPTIONS, f"give {kind} options in OPTIONS, for which it shows the runs of CASES"
    module = kinds.find("tables", kind, "table")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return module.tabulate(build(module.Params, OPTIONS[kind], "options"), list(runs))


# Those of the arena show divergence by their scores (tests/concord_arena/test_cells.py).
ARENA = {"head_to_head", "leaderboard"}


@pytest.mark.parametrize("kind", sorted({*kinds.names("tables")} - ARENA))
def test_a_table_says_what_diverged(kind):
    made = tabulated(kind, map(measured_run, CASES))
    said = f"Diverged: triggered ({CHAINS} of {CHAINS} chains, first at iteration {DIVERGED})"
    assert made.markdown().endswith(f"|\n\n{said}\n")
    assert made.note == said
    lines = list(csv.reader(io.StringIO(made.csv())))
    assert {len(line) for line in lines} == {len(made.columns)}
    # A number of the lost run is none; one of the sound run stands.
    assert any(cell in ("nan", "inf", "-inf", "diverged") for line in lines for cell in line)


def test_a_printed_value_that_diverged_has_a_note():
    made = tabulated("printed_values", map(measured_run, CASES))
    sound, lost = (dict(zip(made.columns, row, strict=True)) for row in made.rows)
    assert lost["value"] is None and lost["note"] == "diverged" and sound["note"] is None


def test_without_divergence_there_is_no_note():
    made = tabulated("final_values", [measured_run("gossip")])
    assert "iverged" not in made.markdown() and made.note == ""


def test_a_run_that_readers_do_not_see_is_not_named(monkeypatch):
    monkeypatch.setitem(OPTIONS["final_values"], "shows", {"case": "gossip"})
    made = tabulated("final_values", map(measured_run, CASES))
    assert "triggered" in made.csv() and "iverged" not in made.markdown()


@pytest.mark.parametrize("kind", ["consensus_decay", "final_values"])
def test_a_table_of_one_chain_has_values_and_no_intervals(kind):
    made = tabulated(kind, (measured_run(case, chains=1, lost=0) for case in CASES))
    rows = [dict(zip(made.columns, row, strict=True)) for row in made.rows]
    assert any(pandas.notna(row["value"]) for row in rows)
    assert pandas.isna([[row["lo"], row["hi"]] for row in rows]).all()
    shown = "\n".join(made.markdown().splitlines()[2:])
    assert "[" not in shown and "nan" not in shown
