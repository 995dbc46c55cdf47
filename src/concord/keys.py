"""The keys of a run: what a paper's file sets, and what run.yaml holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from concord.errors import ConcordError, short
from concord.parameters import build, param


@dataclass(frozen=True)
class Keys:
    """The keys of a run; those of problem, sampler, topology and so on belong to their kinds.

    The largest numbers are far beyond what can be run, but not beyond what checks can take.
    """

    problem: dict[str, Any] | str = param("name of an entry of problems, or a problem's mapping")
    agents: int = param("number N of agents", minimum=1, maximum=100_000)
    topology: dict[str, Any] | str = param("kind of graph, or a mapping with its kind and options")
    sampler: dict[str, Any] = param("the sampler's kind and options")
    chains: int = param("independent trials of the whole network", minimum=1, maximum=10**6)
    iterations: int = param("steps of every chain", minimum=1, maximum=10**9)
    reading: str = param(
        "which text the run follows",
        default="published",
        choices=("published", "released", "corrected", "published_57"),
    )
    partition: dict[str, Any] = param("how points go to agents", default=None)
    initial: dict[str, Any] = param("law of x^(0)", default=None)
    record: dict[str, Any] = param("what to record, and when", default=None)
    metrics: tuple[str, ...] = param("metrics computed from the trace", default=())
    assumptions: tuple[str, ...] = param("ids of the assumptions the run rests on", default=())


@dataclass(frozen=True)
class Identity:
    """What run.yaml says besides: whose run it is."""

    paper: str = param("key of the paper")
    experiment: str = param("id of the experiment")
    run: str = param("name of the run")
    labels: dict[str, Any] = param("axis: label")
    scale: str = param("paper or smoke", choices=("paper", "smoke"))
    seed: int = param("master seed", minimum=0)


REQUIRED = tuple(field.name for cls in (Identity, Keys) for field in fields(cls))


def check_resolved(run: Mapping[str, Any], where: str) -> None:
    """Check the types of what a run.yaml holds; the parts' options are checked by their kinds.

    Raises
    ------
    ConcordError
        Naming ``where`` and the key.
    """
    for cls in (Identity, Keys):
        build(cls, {field.name: run[field.name] for field in fields(cls)}, where)
    name = run["problem"].get("name") if isinstance(run["problem"], Mapping) else None
    if not isinstance(name, str):
        raise ConcordError(f"{where}.problem.name: {short(name)} is not a text")
