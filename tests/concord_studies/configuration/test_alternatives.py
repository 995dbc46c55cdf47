"""Alternatives of assumptions: those of the papers can be run, and change the runs they name."""

from pathlib import Path

import pytest

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
                other = paper.vary_run(run, [change])
                assert other.document != run.document or change.reads
                other.check()
