"""A run of the pipeline in a notebook: its bytes, its trace in ArviZ, and its example."""

import doctest
from pathlib import Path

import arviz_stats
import numpy as np
import pytest
import xarray

import by_hand
import concord
from concord_cli.__main__ import main
from concord_studies import repeat
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.experiment import Experiment

ROOT = Path(__file__).parents[2]
RUN = ("linear_step", "step_size=0.003")


@pytest.fixture(scope="module")
def resolved(tmp_path_factory):
    """A runs.yaml with a run of a paper, and the draws.nc that the stage made of it."""
    runs = tmp_path_factory.mktemp("run") / "runs.yaml"
    experiment, name = RUN
    study = Study(
        ROOT / "config/papers/gurbuzbalaban2021", load_config(ROOT / "config/config.yaml")
    )
    run = study.run(experiment, name).vary(chains=70, iterations=30)
    by_hand.write(Experiment(study.path, {name: run}), runs.parent)
    draws = runs.with_name("draws.nc")
    assert main(["sample", str(runs), "-o", str(draws)]) == 0
    return runs, draws


def test_a_notebook_has_the_bytes_of_the_pipeline(resolved, tmp_path):
    run, path = resolved
    whole, again = concord.load(path), concord.sample(**concord.load_run(run))
    assert whole.chains == 70
    assert list(again.variables) == list(whole.variables)
    for name, (dimensions, values) in whole.variables.items():
        assert again.variables[name][0] == dimensions
        np.testing.assert_array_equal(again[name], values, err_msg=name)
    again.save(tmp_path / "trace.nc")
    np.testing.assert_array_equal(concord.load(tmp_path / "trace.nc")["x"], whole["x"])
    other = concord.sample(**concord.load_run(run) | {"seed": 2})
    assert not np.array_equal(other["x"], whole["x"])


def test_the_trace_of_the_pipeline_opens_in_arviz(resolved):
    found, made = xarray.open_datatree(resolved[1])[RUN[1]], concord.load(resolved[1]).to_arviz()
    assert found.posterior.x.dims == ("chain", "draw", "agent", "dim")
    assert list(found.children) == list(made.children) == ["posterior", "sample_stats"]
    for group in found.children:
        late = found[group].dataset.sel(draw=slice(3, None))  # of thirty iterations
        assert late.identical(made[group].dataset.assign_attrs(late.attrs))
    assert found.attrs["concord"] == made.attrs["concord"]
    for diagnostic in (arviz_stats.ess, arviz_stats.rhat):
        values = diagnostic(found)
        assert values.x.dims == ("agent", "dim") and (values.x > 0).all()


def test_the_example_of_a_run_runs(resolved, tmp_path, monkeypatch):
    (tmp_path / "runs.yaml").write_text(resolved[0].read_text())
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(repeat)
    assert found.attempted and not found.failed
