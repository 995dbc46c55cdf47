"""Runs of studies in Python: their arguments, to be repeated or changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord_studies.experiment import read_runs


def load_run(
    path: str | Path, run: str | None = None, resources: str | Path = "resources"
) -> dict[str, Any]:
    """Return the arguments of ``concord.sample`` that repeat a run of a study.

    Parameters
    ----------
    path
        results/<study>/<experiment>/runs.yaml, or that of ``concord run``.
    run
        The run's name, where the file has several.
    resources
        Folder of downloaded data.

    Returns
    -------
    dict
        sampler, problem, network and all the rest: change any before you sample, as in
        ``concord.sample(**concord.load_run(path) | {"step_size": 0.01})``.

    Raises
    ------
    ConcordError
        If the file is no list of runs, or has no such run.

    Examples
    --------
    >>> import concord
    >>> arguments = concord.load_run("runs.yaml")
    >>> trace = concord.sample(**arguments | {"chains": 50})
    >>> trace.chains
    50
    """
    runs = read_runs(Path(path)).runs
    if run is None and len(runs) == 1:
        run = next(iter(runs))
    if run is None or run not in runs:
        raise ConcordError(f"{path}: run: there is no {short(run)}; {nearest(run, runs)}")
    chosen = runs[run]
    stated = chosen.document
    return {
        "sampler": chosen.sampler.kind,
        "problem": chosen.build_problem(Path(resources)),
        "network": chosen.network_of_agents,
        **{key: stated[key] for key in ("iterations", "chains", "seed", "initial", "record")},
        "labels": tuple(chosen.stream_labels),
        **{key: value for key, value in stated["sampler"].items() if key != "kind"},
    }
