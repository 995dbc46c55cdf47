"""Whole runs of D-ADMMS on a linear regression, as their metrics see them."""

from pathlib import Path

from concord_studies import metrics
from concord_studies.runs.measure import measurement
from concord_studies.runs.run import Run
from concord_studies.runs.sample import sample


def measure(families: list[str], **given) -> dict[tuple[str, str], float]:
    """Sample a run and return its metrics at the last iteration, by metric and agent."""
    run = {
        "paper": "paper",
        "experiment": "experiment",
        "run": "run",
        "labels": {},
        "seed": 1,
        "scale": "paper",
        "assumptions": [],
        "agents": 20,
        "topology": {"kind": "complete"},
        "problem": {
            "kind": "linear_regression",
            "name": "linear",
            "points_per_agent": 50,
            "noise_sd": 4.0,
            "prior_variance": 10.0,
            "legacy_seed": 10,
            **given.pop("problem", {}),
        },
        "partition": {"kind": "consecutive"},
        "sampler": {"kind": "admm", "penalty": 5.0},
        "initial": {"kind": "normal", "mean": 0.0, "sd": 1.0},
        "chains": 2,
        "iterations": 3,
        "record": {"agents": [0]},
        "metrics": families,
        **given,
    }
    made = Run.from_document(run, "run.yaml")
    made.check()
    problem = made.build_problem(Path())
    rows = metrics.measure(families, measurement(made, problem, sample(made, problem)))
    return {(name, agent): value for k, agent, name, value, *_ in rows if k == made.iterations}
