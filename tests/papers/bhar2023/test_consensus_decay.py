"""Rates of the consensus error, from errors of a known form."""

from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import everything
from concord.errors import ConcordError
from concord.options import build
from concord.sampling.trace import Trace
from concord_studies.metrics import Measurement
from concord_studies.results import Measured

consensus_floor = everything.kind("metrics", "consensus_floor")
consensus_decay = everything.kind("tables", "consensus_decay")
DRAW = np.arange(0, 20_001, 10)


def run(alpha: float, training: str, rate: float = 0.5, chains: int = 40) -> Measured:
    """Errors alpha + k^-rate / 10 (with triggering), and a little noise."""
    rng = np.random.default_rng([round(1e6 * alpha), len(training)])
    error = np.full(DRAW.shape, alpha)
    if training == "triggered":
        error = error + 0.1 * (DRAW + 1.0) ** -rate
    errors = error * (1 + 0.02 * rng.standard_normal((chains, len(DRAW))))
    trace = Trace({"consensus_error": (("chain", "draw"), errors)}, DRAW, np.arange(3))
    m = Measurement(trace, SimpleNamespace(), None, None, None, int(DRAW[-1]), None)
    table = pandas.DataFrame(list(consensus_floor.rows(m)))
    labels = {"training": training, "step_size": str(alpha)}
    name = f"{training},{alpha}"
    return Measured({"experiment": "c", "run": name, "labels": labels, "chains": chains}, table)


def rows(runs):
    params = build(consensus_decay.Params, {"pair": "training"}, "options")
    table = consensus_decay.tabulate(params, runs)
    return {(quantity, alpha): ends for quantity, alpha, *ends in table.rows}


def test_rates_of_known_errors_are_found() -> None:
    alphas = (0.001, 0.002, 0.004)
    found = rows([run(a, t) for t in ("gossip", "triggered") for a in alphas])
    for alpha in alphas:
        value, lo, hi = found["plateau without triggering", alpha]
        assert lo < alpha < hi or value == pytest.approx(alpha, rel=1e-3)
        value, lo, hi = found["p of what triggering adds, k^-p", alpha]
        assert value == pytest.approx(0.5, abs=0.02)
        assert lo < value < hi
    value, lo, hi = found["p of the plateau, alpha^p", None]
    assert value == pytest.approx(1, abs=0.01)
    assert lo < value < hi


def test_a_row_is_a_step_size() -> None:
    runs = [run(a, t) for t in ("gossip", "triggered") for a in (0.001, 0.002)]
    params = build(consensus_decay.Params, {"pair": "training"}, "options")
    layout = consensus_decay.tabulate(params, runs).layout
    assert [row[0] for row in layout.rows] == ["0.001", "0.002", "all"]
    assert [bool(text) for text in layout.rows[-1]] == [True, *[False] * 4, True]


def test_one_chain_has_no_rates() -> None:
    found = rows([run(0.001, t, chains=1) for t in ("gossip", "triggered")])
    assert np.isnan(found["p of what triggering adds, k^-p", 0.001]).all()


def test_windows_average_and_the_floor_is_the_second_half() -> None:
    errors = np.array([[1.0, 2.0, 4.0, 8.0, 16.0], [1.0, 4.0, 4.0, 8.0, 20.0]])
    draw = np.array([0, 1, 2, 3, 4])
    trace = Trace({"consensus_error": (("chain", "draw"), errors)}, draw, np.arange(2))
    m = Measurement(trace, SimpleNamespace(), None, None, None, 4, None)
    found = list(consensus_floor.rows(m))
    assert found[-1][:4] == (4, "network", "consensus_floor", 13.0)  # (12 + 14) / 2
    windows = {row[0]: row[3] for row in found if row[2] == "consensus_window"}
    assert sorted(windows.values()) == [3.0, 4.0, 8.0, 18.0]


def test_a_missing_partner_is_named() -> None:
    with pytest.raises(ConcordError, match="no run has all of"):
        rows([run(0.001, "gossip"), run(0.002, "gossip"), run(0.002, "triggered")])
