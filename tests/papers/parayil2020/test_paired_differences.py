"""Paired differences over replicates."""

import pandas
import pytest

import everything
from concord.errors import ConcordError
from concord.options import build
from concord_studies.results import Measured

paired_differences = everything.kind("tables", "paired_differences")
COLUMNS = ["iteration", "agent", "metric", "value", "lo", "hi"]


def network(agents: int, values: list[float], reading: str = "published") -> Measured:
    rows = [(10, "0", f"sinkhorn_set_{d}", value, None, None) for d, value in enumerate(values)]
    rows += [(10, "0", "sinkhorn", 9.0, 8.0, 10.0), (10, "1", "sinkhorn_set_0", 5.0, None, None)]
    run = {"experiment": "gmm", "run": f"agents={agents}", "agents": agents}
    run["labels"] = {"agents": str(agents), "reading": reading}
    return Measured(run, pandas.DataFrame(rows[::-1], columns=COLUMNS))


def table(*runs: Measured, **options):
    params = build(paired_differences.Params, {"metric": "sinkhorn", **options}, "options")
    return paired_differences.tabulate(params, runs)


def test_pairs_are_matched_by_replicate_and_tested():
    """Differences -1, -2, -3, 2: mean -1, sd sqrt(14/3), t = -1/(sd/2) = -0.926, df 3."""
    made = table(network(1, [1, 2, 3, 4]), network(5, [0, 0, 0, 6]), by="reading")
    assert len(made.rows) == 1
    row = dict(zip(made.columns, made.rows[0], strict=True))
    assert (row["agents (first)"], row["agents (second)"], row["reading"]) == (1, 5, "published")
    assert row["difference"] == pytest.approx(-1)
    half = 3.182446 * (14 / 3) ** 0.5 / 2  # t quantile 0.975 at 3 degrees of freedom
    assert (row["lo"], row["hi"]) == pytest.approx((-1 - half, -1 + half), rel=1e-6)
    assert (row["sets in which it is negative"], row["data sets"]) == (3, 4)
    assert row["p (t test)"] == pytest.approx(0.4228, abs=1e-4)
    assert row["p (sign test)"] == pytest.approx(2 * 5 / 16)


def test_every_pair_of_networks_within_a_reading():
    runs = [network(n, [n, 2 * n, 1], reading) for reading in ("a", "b") for n in (1, 5, 10)]
    made = table(*runs, by="reading")
    assert [row[1:4] for row in made.rows[:3]] == [["a", 1, 5], ["a", 1, 10], ["a", 5, 10]]
    assert len(made.rows) == 6


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0]])
def test_other_replicates_are_refused(values):
    with pytest.raises(ConcordError, match="of the same two or more data sets"):
        table(network(1, [1.0, 2.0, 3.0]), network(5, values), by="reading")
