"""What `concord check` sees before anything is sampled: metrics that are read but not computed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from concord.__main__ import main

ROOT = Path(__file__).parents[1]
PAPER = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "problems": {"linear": {"kind": "linear_regression", "points": 30}},
    "defaults": {"agents": 6, "chains": 100, "iterations": 50, "problem": "linear"},
    "experiments": {
        "one": {
            "topology": "ring",
            "sampler": {"kind": "de_sgld", "step_size": 0.005},
            "metrics": ["w2"],
        }
    },
}


def figure(kind, **options):
    return {"figures": {"f": {"kind": kind, "title": "F", "runs": ["one"], "options": options}}}


def table(kind, **options):
    return {"tables": {"t": {"kind": kind, "title": "T", "runs": ["one"], "options": options}}}


def claim(metric):
    check = {"kind": "value", "printed": 1.0, "tolerance": 0.1}
    check["quantity"] = {"experiment": "one", "metric": metric}
    entry = {"where": "Fig 1", "says": "It is one.", "reason": "none", "check": check}
    return {"claims": {"c": entry}}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (claim("w2_exact"), None),
        (claim("diverged"), None),
        (
            claim("consensus_error"),
            "claims.c: one/run does not compute 'consensus_error'; add consensus_error to the "
            "metrics of the experiment",
        ),
        (claim("w2_exat"), "does not compute 'w2_exat'; did you mean 'w2_exact'?"),
        (figure("w2_curves", lines="agent", agents=["average"]), None),
        (figure("box_plots"), "'misclassified_median'; add misclassified to the metrics"),
        (figure("metric_curves", metric="w2", floor="w2_floor"), None),
        (
            figure("metric_curves", metric="w2", x="unicast_bytes"),
            "'unicast_bytes'; add messages to",
        ),
        (table("final_values", metrics=["w2*"]), None),
        (
            table("final_values", metrics=["theorem2.*"]),
            "tables.t: no run that it shows computes 'theorem2.*'; add theorem2 to the metrics",
        ),
    ],
)
def test_metrics_that_no_run_computes_are_refused(section, said, tmp_path, capsys):
    path = tmp_path / "papers" / "x"
    path.mkdir(parents=True)
    (path / "study.yaml").write_text(yaml.safe_dump({**PAPER, **section}, sort_keys=False))
    shutil.copy(ROOT / "config" / "config.yaml", tmp_path)
    code = main(["check", str(path), "--config", str(tmp_path / "config.yaml")])
    error = capsys.readouterr().err
    assert (code, bool(error)) == ((0, False) if said is None else (2, True)), error
    assert said is None or (said in error and error.count("\n") == 1)
