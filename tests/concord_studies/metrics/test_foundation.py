"""The metrics of every paper, and the table they end up in."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import everything
import measurements
from concord import kinds
from concord.laws.gaussian import Gaussian
from concord.laws.wasserstein import fit, w2
from concord.networks.construction import network
from concord.samplers.de_sgld import DESGLD
from concord.sampling import initial
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from concord_studies import metrics
from concord_studies.metrics import w2 as w2_metric
from steps import Quadratic

misclassified = everything.kind("metrics", "misclassified")


RNG = np.random.default_rng(0)


def measurement(variables, draw=(0, 5), agent=(0, 2), **more):
    """A measurement of arrays that were recorded at these iterations, of these agents."""
    diverged = ("chain",), np.full(more.pop("chains", 40), -1)
    trace = Trace({"diverged_at": diverged, **variables}, np.array(draw), np.array(agent))
    normal = SimpleNamespace(dim=2, agents=4, posterior=Gaussian(np.zeros(2), np.eye(2)))
    run = {"problem": normal, "network": network("ring", 4), "sampler": SimpleNamespace()}
    return measurements.measurement(trace, **run | {"initial": initial.Law("normal")} | more)


def table(rows):
    return pandas.DataFrame(list(rows))


def only(frame, **values):
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def test_w2_is_that_of_the_fitted_gaussian_with_an_interval_around_it():
    x, average = RNG.standard_normal((40, 2, 2, 2)), RNG.standard_normal((40, 2, 2))
    m = measurement(
        {
            "x": (("chain", "draw", "agent", "dim"), x),
            "x_average": (("chain", "draw", "dim"), average),
        }
    )
    found = table(w2_metric.rows(m))
    target = m.problem.posterior
    for row, k in enumerate((0, 5)):
        for column, agent in enumerate(("0", "2")):
            (line,) = only(found, metric="w2", agent=agent, iteration=k).itertuples()
            assert line.value == pytest.approx(float(w2(*fit(x[:, row, column]), target)))
            assert line.lo <= line.hi
        (line,) = only(found, metric="w2", agent="average", iteration=k).itertuples()
        assert line.value == pytest.approx(float(w2(*fit(average[:, row]), target)))
    (floor,) = only(found, metric="w2_floor").itertuples()
    assert floor.agent == "network" and 0 < floor.lo <= floor.value <= floor.hi
    assert "w2_exact" not in set(found["metric"])
    (point,) = only(found, metric="w2_point").itertuples()
    assert point.value == pytest.approx(float(w2(target.mean, np.zeros((2, 2)), target)))
    assert not point.chance


def test_w2_exact_is_the_law_of_the_sampler():
    problem = Quadratic(np.array([3.0, 4, 5, 6]).reshape(4, 1, 1), [[1.0], [2], [0], [1]])
    net = network("ring", 4)
    m = measurement(
        {"x": (("chain", "draw", "agent", "dim"), RNG.standard_normal((40, 2, 2, 1)))},
        problem=problem,
        network=net,
        sampler=DESGLD(Schedule(0.05)),
        initial=initial.Law("normal", mean=1.0, sd=2.0),
    )
    found = only(table(w2_metric.rows(m)), metric="w2_exact")
    mean, cov = np.ones(4), 4.0 * np.eye(4)
    weights, gram = net.graph.metropolis, np.diag(problem.gram.ravel())
    for k in range(6):
        for agent in (0, 2) if k in (0, 5) else ():
            (line,) = only(found, agent=str(agent), iteration=k).itertuples()
            deviation = mean[agent] - 4 / 18, np.sqrt(cov[agent, agent]) - np.sqrt(1 / 18)
            assert line.value == pytest.approx(np.hypot(*deviation), rel=1e-9)
            assert pandas.isna([line.lo, line.hi]).all()
        matrix = weights - 0.05 * gram
        mean = matrix @ mean + 0.05 * problem.shift.ravel()
        cov = matrix @ cov @ matrix.T + 0.1 * np.eye(4)
    assert len(found) == 4


def test_every_run_says_how_many_chains_diverged_and_when_the_first_did():
    at = np.array([-1, 7, 3, -1])
    m = measurement({"diverged_at": (("chain",), at)})
    assert metrics.measure([], m)[:2] == [
        metrics.Row(5, "network", "diverged", 0.5),
        metrics.Row(3, "network", "diverged_first", 3),
    ]
    assert metrics.measure([], measurement({})) == [metrics.Row(5, "network", "diverged", 0.0)]


def test_numbers_in_the_table_read_back_exactly():
    values = [0.1 + 0.2, 1e-320, 1 / 3, float("inf"), float("nan"), 12345678901234567.0]
    rows = [metrics.Row(np.int64(3), "average", "w2", np.float64(v), v, trials=7) for v in values]
    table = [metrics.cells(row) for row in rows]
    assert table[0] == [3, "average", "w2", "0.30000000000000004", "0.30000000000000004", "", 7]
    np.testing.assert_array_equal([float(cells[3]) for cells in table], values)
    assert table[4][4] == "" and table[3][4] == "inf"  # what is unknown has one form


def test_the_table_says_what_trials_are_behind_a_number():
    """Forty chains of a mean, no chance in an exact law, a thousand fits of a floor."""
    x = RNG.standard_normal((40, 2, 2, 2))
    m = measurement({"x": (("chain", "draw", "agent", "dim"), x)})
    rows = [*metrics.measure(["w2"], m), metrics.Row(1, "0", "law", 2.0, chance=False)]
    trials = {cells[2]: cells[-1] for cells in map(metrics.cells, rows)}
    assert trials == {"w2": 40, "w2_floor": 1000, "w2_point": 0, "law": 0, "diverged": None}


READS = {"x": "draws", "predictive_mean": "predictive", "predictive_sd": "predictive"}


@pytest.mark.parametrize("family", kinds.names("metrics"))
def test_families_say_what_they_read(family):
    """Some take what there is of draws and average; counts are always recorded."""
    module = kinds.find("metrics", family, "")
    text = Path(module.__file__).read_text()
    read = {READS.get(name, name) for name in re.findall(r'm\.trace\["(\w+)"\]', text)}
    read |= {"draws"} if re.search(r"positions\(m\b", text) else set()
    read -= {"diverged_at", "unicasts", "unicast_bytes", "broadcasts", "activations", "gradients"}
    either = family in ("w2", "chains_w2", "constraint")
    read -= {"x_average"} | ({"draws"} if either else set())
    read -= {"accuracy", "draws"} if family == "recorded" else set()  # what the record is of
    assert set(module.rows.records) == read
