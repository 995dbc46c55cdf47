"""Runs of studies in Python: their arguments, to be repeated or changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from concord_studies.runs.run import read as read_run


def load_run(path: str | Path, resources: str | Path = "resources") -> dict[str, Any]:
    """Return the arguments of ``concord.sample`` that repeat a run of a study.

    Parameters
    ----------
    path
        The run's run.yaml, from ``concord resolve`` or in results/<study>/<experiment>/<run>.
    resources
        Folder of downloaded data.

    Returns
    -------
    dict
        sampler, problem, network and all the rest: change any before you sample, as in
        ``concord.sample(**concord_studies.load_run(path) | {"step_size": 0.01})``.

    Raises
    ------
    ConcordError
        If the file is no whole run.

    Examples
    --------
    >>> import concord
    >>> import concord_studies
    >>> arguments = concord_studies.load_run("run.yaml")
    >>> trace = concord.sample(**arguments | {"chains": 50})
    >>> trace.chains
    50
    """
    run = read_run(Path(path))
    stated = run.document
    return {
        "sampler": run.sampler.kind,
        "problem": run.build_problem(Path(resources)),
        "network": run.network_of_agents,
        **{key: stated[key] for key in ("iterations", "chains", "seed", "initial", "record")},
        "labels": tuple(run.stream_labels),
        **{key: value for key, value in stated["sampler"].items() if key != "kind"},
    }
