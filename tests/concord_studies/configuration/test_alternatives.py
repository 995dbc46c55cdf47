"""Alternatives of assumptions: those of the papers can be run, and change the runs they name."""

import copy
from pathlib import Path

import pytest
import yaml

from concord_studies.configuration.checks import check_study
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

KEYS = sorted(path.name for path in Path("config/papers").iterdir())


@pytest.mark.parametrize("key", KEYS)
def test_every_assumption_has_alternatives_that_can_be_run_or_says_why_not(key):
    """Of each alternative, and each experiment that it changes, one run."""
    paper = Study(Path("config/papers", key), load_config(Path("config/config.yaml")))
    for name, entry in paper.assumptions.items():
        assert bool(entry.alternatives) != bool(entry.fixed), name
    for changes in paper.alternatives.values():
        for change in changes.values():
            some = {r.experiment: r for r in paper.runs.values() if change.holds_for(r)}
            assert some
            for run in some.values():
                other = paper.varied(run, [change])
                assert other.document != run.document or change.reads
                other.check()


STUDY = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "problems": {"linear": {"kind": "linear_regression", "points": 30}},
    "defaults": {"agents": 6, "chains": 10, "iterations": 50, "topology": "ring"},
    "experiments": {
        "one": {
            "problem": "linear",
            "sampler": {"kind": "de_sgld"},
            "metrics": ["w2"],
            "sweep": {"step_size": {"key": "sampler.step_size", "values": [0.005, 0.01]}},
        }
    },
    "claims": {
        "far": {
            "where": "Fig 1",
            "says": "It is drawn.",
            "reason": "nothing is concluded",
            "check": {"kind": "measurement", "quantity": {"experiment": "one", "metric": "w2"}},
        }
    },
}
LAZY = {
    **{"label": "lazy", "says": "(I + W)/2", "reason": "as good"},
    "set": {"sampler.weights": "lazy_metropolis"},
}


def load(tmp_path, *alternatives, **more):
    mapping = copy.deepcopy(STUDY)
    mapping["assumptions"] = {"weights": {"value": "W", "alternatives": [*alternatives], **more}}
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "study.yaml").write_text(yaml.safe_dump(mapping, sort_keys=False))
    return Study(
        folder, {"scale": "paper", "seed": 1, "results": "results", "smoke": {}, "pairs": False}
    )


def test_an_alternative_is_of_the_runs_that_have_what_when_states(tmp_path):
    paper = load(tmp_path, {**LAZY, "when": {"sampler.step_size": 0.01}})
    check_study(paper)
    changed = [
        paper.varied(run, paper.alternatives["weights"].values()).document["sampler"]["weights"]
        for run in paper.runs.values()
    ]
    assert changed == ["metropolis", "lazy_metropolis"]
