"""``compare``: several results in a table, or several samplers on the arena's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from concord import distances
from concord.errors import ConcordError, suggest_names, warn_of_divergence
from concord.laws.exact import Law
from concord.reference import Reference
from concord.sampler import Algorithm
from concord.sampling.trace import Trace


@suggest_names
def compare(
    results: Mapping[str, Trace | Law] | Iterable[Trace | Law | str | type[Algorithm]] | str,
    posterior: distances.Posterior | None = None,
    *,
    warm_up: int | None = None,
    tasks: Sequence[str] = (),
) -> Any:
    """Compare results by their distances and costs, or samplers on the same tasks.

    Parameters
    ----------
    results
        Traces and laws, by name or as a list, where they are called by their samplers. Or a list of
        samplers: entries of the arena, kinds (``concord list samplers``), or classes of
        one's own. Each is then tuned on each task, and judged at the same price.
    posterior
        As of ``concord.w2``; none: no distances.
    warm_up
        As of ``concord.w2``; none: distances are those of the last draw.
    tasks
        Of samplers: tasks by their names, such as ``"apart, ring"``, or labels in them, such as
        ``"ring"``; none: all.

    Returns
    -------
    pandas.DataFrame or Comparison
        Of results a row for each: ``iterations``; ``chains``, 0 of a law; ``diverged``, the share
        of chains; ``updates`` of positions, ``unicasts`` (a vector for each neighbor that needs
        it), ``broadcasts`` (one for all of them) and ``gradients`` per agent, means over chains; on
        networks with a clock ``seconds`` until the last agent had ended; ``w2`` and ``bias2`` of
        the worst agent, ``w2_average`` and ``bias2_average`` of the average, each with ``_lo`` and
        ``_hi``; ``print`` shows error, interval, price and verdict of each. Of samplers what
        ``print`` shows as ``concord compare`` does; its ``table`` has a row for each task, price
        and sampler: ``b2``, the worst agent's squared bias in posterior variances, and ``state``:
        scored, diverged, not applicable or not run.

    Raises
    ------
    ConcordError
        If a distance cannot be computed (``concord.w2``), or an entry or a task is not there.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> steps = {"step_size": 0.01, "iterations": 200}
    >>> trace = concord.sample("de_sgld", problem, "ring", **steps)
    >>> other = concord.sample("d_ula", problem, "ring", fusion=0.3, **steps)
    >>> concord.compare([trace, other], problem.posterior).unicasts.tolist()
    [400.0, 400.0]
    >>> found = concord.compare(["de_sgld", "extra_sgld"], tasks=["even, ring"])
    >>> bool(found.table.b2[0] < found.table.b2[1])
    True
    """
    listed = [results] if isinstance(results, (str, Trace, Law)) else [*results]
    if not listed:
        raise ConcordError("results: there are none; give a list of traces, laws or samplers")
    samplers = [one for one in listed if isinstance(one, (str, type, Algorithm))]
    if samplers and not isinstance(results, Mapping):
        if posterior is not None or warm_up is not None:
            raise ConcordError(
                "results: samplers are compared on tasks of the arena, with no posterior; give "
                "them as one list, or for a problem of yours concord.recommend(..., samplers=[...])"
            )
        return import_module("concord_arena.compete").compare_samplers(*listed, tasks=tasks)
    by_name = results.values() if isinstance(results, Mapping) else ()
    if any(isinstance(one, (type, Algorithm)) for one in by_name):
        raise ConcordError(
            "results: samplers have names of their own; give them as a list, "
            "concord.compare([Mine, 'de_sgld'], tasks=['ring'])"
        )
    named = distances.name_results(results if isinstance(results, Mapping) else listed)
    law = None
    for result in named.values():
        law = None if posterior is None else distances.read_posterior(result, posterior)
    divergences = {name: result.divergence() for name, result in named.items()}
    sentences = (f"of {name} {what}" for name, what in divergences.items() if what)
    warn_of_divergence("compare", ", and ".join(sentences))
    rows = {name: _comparison_row(result, law, warm_up) for name, result in named.items()}
    from concord.comparison_table import ComparisonTable  # pandas takes a quarter of a second

    table = ComparisonTable.from_dict(rows, orient="index")
    table.index.name = "sampler"
    return table


def _comparison_row(
    result: Trace | Law, posterior: Reference | None, warm_up: int | None
) -> dict[str, float]:
    """Return the row of ``compare`` for one result, by column.

    warm_up: as of ``compare``.
    """
    if isinstance(result, Law):
        row: dict[str, float] = {"iterations": int(result.iterations[-1]), "chains": 0}
    else:
        row = {"iterations": int(result.draw[-1]), "chains": result.chains}
        row["diverged"] = float((result["diverged_at"] >= 0).mean())
        moves = "activations" in result
        row["updates"] = _last_mean(result, "activations") if moves else float(row["iterations"])
        for name in ("unicasts", "broadcasts", "gradients"):
            row[name] = _last_mean(result, name)
        if "seconds" in result:
            row["seconds"] = float(result["seconds"][:, -1].max(axis=1).mean())
    if posterior is None:
        return row
    for name, distance in (("w2", distances.measure_w2), ("bias2", distances.measure_bias2)):
        dataset = distance(result, posterior, warm_up)
        dataset = dataset.isel(draw=-1) if warm_up is None else dataset
        for suffix in ("", "_average"):
            part = dataset.isel(agent=(dataset.agent == "average") == bool(suffix))
            if part.agent.size:
                worst = part.isel(agent=int(np.argmax(part.value.data)))
                for which, ending in (("value", ""), ("lo", "_lo"), ("hi", "_hi")):
                    if which in worst:
                        row[f"{name}{suffix}{ending}"] = float(worst[which])
    return row


def _last_mean(trace: Trace, name: str) -> float:
    """Return the mean over agents and chains of a recorded count at the last draw."""
    dimensions, values = trace.variables[name]
    return float(values.take(-1, axis=dimensions.index("draw")).mean())
