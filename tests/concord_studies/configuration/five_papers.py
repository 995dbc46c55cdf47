"""Runs of the five papers of which numbers are recorded, at paper scale, and what they measure."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from concord import kinds
from concord.laws import exact
from concord.laws.law import start_of, update_of
from concord_studies import metrics
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.datasets import fetch
from concord_studies.metrics import stationary
from concord_studies.runs import measure, sample
from shared_folders import alone

CONFIG = Path(__file__).resolve().parents[3] / "config"


@cache
def study(paper):
    return Study(CONFIG / "papers" / paper, load_config(CONFIG / "config.yaml"))


class Paper:
    """Runs of a study; tables are fetched into a folder, and what was measured is kept there."""

    def __init__(self, paper, resources):
        self.study, self.resources = study(paper), resources
        resources.mkdir(exist_ok=True)

    def run(self, experiment, name):
        kinds.use(self.study.path)
        run = self.study.run(experiment, name)
        for name in run.data_sets:
            path = self.resources / name / f"{name}.csv.gz"
            path.parent.mkdir(exist_ok=True)
            with alone(path):
                if not path.exists():
                    fetch.fetch(f"{name}/{path.name}", path)
        return run, run.build_problem(self.resources)

    def limit(self, experiment, name="run"):
        """Stationary numbers of a run, {(metric, agent): value}: exact, without its chains."""
        run, problem = self.run(experiment, name)
        agents = np.arange(problem.agents)
        m = measure.measurement(run, problem, SimpleNamespace(agent=agents), self.resources)
        return {(row.metric, row.agent): row.value for row in stationary.rows(m)}

    def measured(self, experiment, name="run", families=None):
        """Numbers of a run, {(metric, agent, iteration): row}."""
        run, problem = self.run(experiment, name)
        families = families or run.metrics
        kept = self.resources / run.folder.replace("/", "-")
        with alone(kept):
            found = json.loads(kept.read_text()) if kept.exists() else {}
            if missing := [family for family in families if family not in found]:
                trace = sample.sample(run, problem)
                m = measure.measurement(run, problem, trace, self.resources)
                found |= {family: metrics.measure([family], m) for family in missing}
                kept.write_text(json.dumps(found, default=lambda number: number.item()))
        rows = [metrics.Row(*row) for family in families for row in found[family]]
        return {(row.metric, row.agent, row.iteration): row for row in rows}


def moments(paper, experiment, name):
    """Return the problem and the stationary moments of a run's agents and average."""
    run, problem = paper.run(experiment, name)
    update = update_of(run.sampler.params, problem, run.network_of_agents)
    trace = SimpleNamespace(agent=np.arange(problem.agents))
    start = start_of(measure.measurement(run, problem, trace, paper.resources), update)
    limit = exact.limit(update.at(0), *start)
    return problem, exact.marginals(*limit, problem.agents, problem.dim)
