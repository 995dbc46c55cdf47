"""A built-in problem on a table of the study's own: a CSV file in its folder.

Every column but the target is a feature, in the order of the file (of ``gamma_poisson``: counts of
a rate). ``concord.problems.<model>`` says what the model is; its options are those that it takes in
Python.
"""

from collections.abc import Collection
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import field

from concord import kinds, options
from concord.contracts import DataSets, Stream
from concord.errors import ConcordError, nearest
from concord.local_coordinates import read_local
from concord.options import Options
from concord.problem import Problem
from concord.problems.arrays import partition_arguments
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets import readers
from concord_studies.problems._model_files import require_file

DECLARES = ProblemDeclaration(files=("data",))


class Params(Options):
    """Options of a built-in problem on a study's own table: the model, the file, model options."""

    model: Annotated[
        Literal["linear_regression", "logistic_regression", "unknown_noise", "gamma_poisson"],
        "kind of problem",
    ]
    data: Annotated[str, "CSV file in the study's folder, with a header and numbers"]
    target: Annotated[str, "column of the targets, the labels 0 and 1, or the exposures"]
    options: Annotated[dict[str, Any], "of the model, such as noise_sd"] = field(
        default_factory=dict
    )
    local: Annotated[
        tuple[str, ...], "columns whose coefficients belong to the agent who holds them"
    ] = ()


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for a missing file or column, or options that no such model has."""
    columns = readers.columns_of(require_file(Path(params.data), "data"))
    _check_columns(params, columns)
    kind, of_call = _kind(params), {"agents", "partition", "seed", "local"}
    takes = signature(kind.from_arrays).parameters
    names = [name for name in takes if name not in of_call][2:]
    for name in params.options:
        if name not in names:
            raise ConcordError(
                f"options: {params.model} has no option {name!r}; {nearest(name, names)}"
            )
    if params.local and "local" not in takes:
        raise ConcordError(f"local: coordinates of {params.model} are all shared; leave it out")
    features = [name for name in columns if name != params.target]
    read_local(list(params.local) or None, len(features), features)
    options.build(kind.Params, params.options, "options")


def _check_columns(params: Params, columns: Collection[str]) -> None:
    """Raise a ConcordError for columns of a table that lack the target, or features beside it."""
    if params.target not in columns:
        remedy = nearest(params.target, columns)
        raise ConcordError(f"target: {params.data} has no column {params.target!r}; {remedy}")
    if len(columns) == 1:
        raise ConcordError(f"{params.data}: it has no column beside the target; add features")


def _kind(params: Params) -> Any:
    """Return the module of the built-in problem that ``model`` names."""
    return kinds.find("problems", params.model, "problem.model")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Problem:
    """Read the table, and build the model with its rows split over the agents."""
    import pandas  # half a second, which planning does without

    path = require_file(Path(params.data), "data")
    columns = readers.table(path)
    _check_columns(params, columns)
    y = columns.pop(params.target)
    X = pandas.DataFrame(columns)
    make = _kind(params).from_arrays
    arguments = partition_arguments(partition, stream) | params.options
    if params.local:
        arguments["local"] = params.local
    built: Problem = make(X, y, agents, **arguments)
    return built
