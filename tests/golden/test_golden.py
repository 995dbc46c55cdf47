"""The golden draws and laws, and the comparer: what is changed a little is reported."""

from pathlib import Path
from typing import Any

import cases
import compare
import numpy as np
import pandas
import pytest

DRAWS = compare.load(compare.HERE / "draws.xz")
EXCEPTIONS = compare.exceptions_of("draws")
CASES = {case["name"]: case for case in cases.cases()}


def test_every_case_is_recorded():
    assert CASES.keys() == DRAWS.keys()


@pytest.mark.parametrize("name", CASES)
def test_draws_and_laws(name: str):
    wanted, found = {name: DRAWS[name]}, {name: cases.outcome(CASES[name])}
    _, wrong = compare.compare(wanted, found, EXCEPTIONS, whole=False)
    assert not wrong


@pytest.mark.parametrize(
    ("wanted", "found", "least", "most"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 2e-9], 0.9e-9, 1.1e-9),
        ([0.0, 2.0], [2e-12, 2.0], 0.9e-12, 1.1e-12),  # zeros are as large as their array
        ([0.0], [1e-300], 0.9, 1.1),
        ([np.nan, np.inf], [np.nan, np.inf], 0, 0),
        ([np.nan], [1.0], np.inf, np.inf),
        ([1.0], [np.nan], np.inf, np.inf),
        ([np.inf], [-np.inf], np.inf, np.inf),
        ([1.0], [1.0, 1.0], np.inf, np.inf),
        ([10**15], [10**15 + 1], np.inf, np.inf),
        (["holds"], ["fails"], np.inf, np.inf),
    ],
)
def test_a_difference(wanted: list, found: list, least: float, most: float):
    assert least <= compare.difference(np.array(wanted), np.array(found)) <= most


def test_what_is_saved_is_loaded(tmp_path: Path):
    numbers = {
        "b/x": {"value": np.array([[np.pi, np.nan], [-np.inf, 1e-300]]), "none": np.zeros((0, 2))},
        "a": {"count": np.array(3), "verdict": np.array(["holds"])},
    }
    compare.save(numbers, tmp_path / "numbers.xz")
    assert not compare.compare(numbers, compare.load(tmp_path / "numbers.xz"), [])[1]
    assert compare.load(tmp_path / "numbers.xz")["b/x"]["none"].shape == (0, 2)


class TestExceptions:
    WANTED, FOUND = (
        {"a/x": {"v": np.array([1.0 + d])}, "b/sinkhorn/0": {"v": np.array([1.0 + 10 * d])}}
        for d in (0.0, 1e-8)
    )

    @pytest.mark.parametrize(
        ("tolerance", "count"), [(1e-7, 0), ("changed", 0), (1e-9, 2)], ids=str
    )
    def test_allow_a_difference(self, tolerance: Any, count: int):
        own = {"pattern": "a/*", "tolerance": tolerance, "reason": "another order of sums"}
        report, wrong = compare.compare(self.WANTED, self.FOUND, [own])
        assert len(wrong) == count
        assert any("another order of sums" in line for line in report)

    @pytest.mark.parametrize(("tolerance", "count"), [(2e-8, 0), (1e-9, 1)], ids=str)
    def test_allow_an_absolute_difference(self, tolerance: float, count: int):
        """Of 1e-8; of no other shape."""
        own = {"pattern": "*", "tolerance": tolerance, "absolute": True, "reason": "rounding"}
        assert len(compare.compare(self.WANTED, self.FOUND, [own], whole=False)[1]) == count
        longer = {"a/x": {"v": np.ones(2)}, "b/sinkhorn/0": self.WANTED["b/sinkhorn/0"]}
        assert len(compare.compare(self.WANTED, longer, [own], whole=False)[1]) == 1

    def test_that_nothing_needs_are_wrong(self):
        own = {"pattern": "*", "tolerance": "changed", "reason": "none"}
        assert "remove it" in compare.compare(self.WANTED, self.WANTED, [own])[1][0]
        assert not compare.compare(self.WANTED, self.WANTED, [own], whole=False)[1]

    def test_allow_what_is_gone_if_they_say_changed(self):
        own = {"pattern": "a/*", "tolerance": "changed", "reason": "it has another name"}
        found = {"b/sinkhorn/0": self.WANTED["b/sinkhorn/0"], "a/y": {}}
        report, wrong = compare.compare(self.WANTED, found, [own])
        assert not wrong and "not recorded" in report[-1]
        assert "missing" in compare.compare(self.WANTED, found, [])[1][0]


def test_results_of_experiments_are_read(tmp_path: Path):
    folder = tmp_path / "study" / "experiment"
    folder.mkdir(parents=True)
    rows = {"iteration": [0, 9], "agent": "average", "metric": "w2", "value": [2.0, 1.0]}
    table = pandas.DataFrame(rows | {"lo": [1.0, None], "hi": [3.0, None], "trials": 8})
    table.assign(run="a", topology="ring", step="1e-03").to_csv(folder / "metrics.csv", index=False)
    row = {"claim": "c", "reading": "published", "case": "", "verdict": "not met"}
    pandas.DataFrame([row]).to_csv(tmp_path / "study" / "claims.csv", index=False)
    numbers = compare.read(tmp_path)
    assert numbers["study/experiment/step=1e-03,topology=ring/w2/average"]["value"].tolist() == [
        2,
        1,
    ]
    assert numbers["study/verdicts/c/published/"]["verdict"] == ["not_met"]
