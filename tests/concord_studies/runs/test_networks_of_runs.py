"""A run's ``network``: its law."""

from pathlib import Path

import pytest

from concord_studies import metrics
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.runs.measure import measurement
from concord_studies.runs.run import Run
from concord_studies.runs.sample import sample

ROOT = Path(__file__).parents[3]
LOSS = {"loss": {"kind": "bernoulli", "rate": 0.2, "direction": "one_way"}}


@pytest.fixture(scope="module")
def plain():
    """A short run of a paper, without network."""
    config = load_config(ROOT / "config" / "config.yaml", {"scale": "smoke"})
    paper = Study(ROOT / "config" / "papers" / "gurbuzbalaban2021", config, True)
    run = next(
        run
        for run in paper.runs.values()
        if run.sampler.kind == "de_sgld"
        and run.sampler.order == "simultaneous"
        and run.sampler.params.batch_size is None
        and run.topology.kind == "ring"
    )
    short = {"chains": 120, "iterations": 5, "metrics": ["w2"], "record": {"every": 1}}
    return Run.from_document({**run.document, **short}, "tests")


BURSTS = {"kind": "gilbert_elliott", "rate": 1.0, "to_bad": 0.1, "to_good": 0.5}


def lossy(run, network=LOSS, **changes):
    return Run.from_document({**run.document, "network": network, **changes}, "tests")


def measured(run, families):
    problem = run.build_problem(Path("unused"))
    return metrics.measure(families, measurement(run, problem, sample(run, problem)))


def test_the_exact_distance_is_that_of_the_law_under_faults(plain):
    exact = [
        {row.iteration: row.value for row in measured(run, ["w2"]) if row.metric == "w2_exact"}
        for run in (plain, lossy(plain), lossy(plain, {"loss": {**BURSTS, "direction": "link"}}))
    ]
    assert exact[0].keys() == exact[1].keys() and exact[0][5] != exact[1][5]
    assert not exact[2]  # bursts have no law
    complete = lossy(plain, topology={"kind": "complete"}, agents=20, chains=2)
    assert not [row for row in measured(complete, ["w2"]) if row.metric == "w2_exact"]  # too large
