"""Experiments of a study made without Snakemake: what planning writes, and jobs make of it."""

import json
from collections.abc import Callable
from pathlib import Path

from concord_studies import metrics
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse
from concord_studies.digests import digest
from concord_studies.experiment import Experiment, build_experiment, measure, read_runs
from concord_studies.provenance import write_provenance
from concord_studies.runs.measure import measurement
from concord_studies.runs.run import Run
from concord_studies.runs.sample import sample
from concord_studies.stages import draw

RESOURCES = Path("resources")


def write(experiment: Experiment, folder: Path) -> Path:
    """Write the runs.yaml of an experiment into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "runs.yaml"
    path.write_text(experiment.text())
    return path


def experiments(study: Study) -> dict[str, Experiment]:
    """Return the experiments of a study by name."""
    return {
        name: build_experiment(study.path, {run.name: run for run in study.runs_of(name)})
        for name in study.experiments
    }


def make(study: Study, results: Path, sampled: Callable[[Run], Run] | None = None) -> list[Path]:
    """Make the metrics of all experiments of a study; return their tables.

    sampled: what is sampled in the place of a run.
    """
    tables = []
    for name, experiment in experiments(study).items():
        runs = write(experiment, results / study.key / name)
        tables.append(runs.with_name("metrics.csv"))
        if sampled is None:
            measure(runs, tables[-1], RESOURCES)
            continue
        rows = {}
        for name, run in read_runs(runs).runs.items():
            problem = run.build_problem(RESOURCES)
            trace = sample(sampled(run), problem)
            rows[name] = metrics.measure(run.metrics, measurement(run, problem, trace, RESOURCES))
        tables[-1].write_text(experiment.table(rows))
        write_provenance([tables[-1]], planned=digest(runs.read_text()))
    return tables


def write_nothing(experiment: Experiment, folder: Path) -> None:
    """Write an experiment's runs.yaml, and a table of metrics without any row."""
    runs = write(experiment, folder)
    table = runs.with_name("metrics.csv")
    table.write_text(experiment.table({}))
    write_provenance([table], planned=digest(runs.read_text()))


def make_universes(study: Study, results: Path) -> list[Path]:
    """Make the metrics of all universes of a study; return their tables."""
    tables = []
    for name, universe in Multiverse(study).experiments.items():
        runs = write(universe, results / study.key / "multiverse" / name)
        tables.append(runs.with_name("metrics.csv"))
        measure(runs, tables[-1], RESOURCES)
    return tables


def plan_entry(study: Study, results: Path, section: str, name: str) -> Path:
    """Write the entry of a figure or table as planning does; return its path."""
    path = results / study.key / section / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(draw.output_inputs(study, section, name)))
    return path
