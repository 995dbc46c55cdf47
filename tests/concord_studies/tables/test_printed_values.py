"""Printed numbers beside ours, from made-up metrics."""

import pandas
import pytest

from concord.errors import ConcordError
from concord.options import build
from concord_studies.results import Measured
from concord_studies.tables import printed_values

COLUMNS = ["iteration", "agent", "metric", "value", "lo", "hi"]


def measured(sampler: str, reading: str, value: float) -> Measured:
    rows = [
        (0, "0", "accuracy", 0.1, 0.05, 0.15),
        (10, "0", "accuracy", value, value - 0.01, value + 0.01),
        (10, "1", "accuracy", value / 2, None, None),
    ]
    table = pandas.DataFrame(rows, columns=COLUMNS)
    labels = {"sampler": sampler, "reading": reading}
    return Measured({"experiment": "mnist", "run": sampler, "labels": labels}, table)


RUNS = [
    measured("sgd", "published", 0.5),
    measured("sgd", "released", 0.75),
    measured("d_ula", "published", 0.25),
    measured("d_ula", "released", 1.0),
]
OF = [
    {"name": "SGD", "select": {"sampler": "sgd"}},
    {"name": "agent 2", "select": {"sampler": "d_ula"}, "agent": 1},
]


def table(rows, runs=RUNS, **options):
    params = build(printed_values.Params, {"columns": OF, "rows": rows, **options}, "x")
    return printed_values.tabulate(params, runs)


def test_numbers_stand_beside_print():
    row = {"name": "MNIST, %", "metric": "accuracy", "printed": [74.0, None], "scale": 100}
    made = table([row], by="reading")
    assert made.columns == [
        *("quantity", "of", "reading", "printed", "value", "lo", "hi", "difference", "note")
    ]
    assert made.rows == [
        ["MNIST, %", "SGD", "published", 74.0, 50.0, 49.0, 51.0, -24.0, None],
        ["MNIST, %", "SGD", "released", 74.0, 75.0, 74.0, 76.0, 1.0, None],
        ["MNIST, %", "agent 2", "published", None, 12.5, None, None, None, None],
        ["MNIST, %", "agent 2", "released", None, 50.0, None, None, None, None],
    ]


def test_without_by_a_column_is_one_run():
    row = {"name": "MNIST", "metric": "accuracy"}
    assert [line[3] for line in table([row], RUNS[1::2]).rows] == [0.75, 0.5]
    with pytest.raises(ConcordError, match="column 'SGD'"):
        table([row])


def test_what_was_not_run_is_noted():
    row = {"name": "SVHN", "metric": "accuracy_svhn", "printed": [7.6, 15.9]}
    with pytest.raises(ConcordError, match="accuracy_svhn"):
        table([row], by="reading")
    made = table([{**row, "missing": "not run: its file is missing"}], by="reading")
    assert made.rows[0][3:] == [7.6, None, None, None, None, "not run: its file is missing"]


def test_a_row_may_be_of_one_agent_in_all_columns():
    made = table([{"name": "MNIST", "metric": "accuracy", "agent": 1}], RUNS[1::2])
    assert [line[3] for line in made.rows] == [0.375, 0.5]


def test_values_that_a_column_was_not_run_with_are_left_out():
    made = table([{"name": "MNIST", "metric": "accuracy"}], RUNS[:3], by="reading")
    assert [line[1:3] for line in made.rows] == [
        ["SGD", "published"],
        ["SGD", "released"],
        ["agent 2", "published"],
    ]
    with pytest.raises(ConcordError, match="no run has sampler"):
        table([{"name": "MNIST", "metric": "accuracy"}], RUNS[:2], by="reading")
