"""A built-in problem on a table of the study's own: a CSV file in its folder.

Every column but the target is a feature, in the order of the file. ``concord.problems.<model>``
says what the model is; its options are those that it takes in Python.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import field

from concord import plugins
from concord.contracts import Problem, Stream
from concord.datasets import readers
from concord.errors import ConcordError, nearest
from concord.options import Options
from concord.problems._own import split
from concord.sampling.partition import Partition

FILES = ("data",)


class Params(Options):
    """The model, its data and its options."""

    model: Annotated[
        Literal["linear_regression", "logistic_regression", "unknown_noise"], "kind of problem"
    ]
    data: Annotated[str, "CSV file in the study's folder, with a header and numbers"]
    target: Annotated[str, "column of the targets, or of the labels 0 and 1"]
    options: Annotated[dict[str, Any], "of the model, such as noise_sd"] = field(
        default_factory=dict
    )


def check(params: Params, agents: int) -> None:
    """Refuse a file that does not exist, or lies elsewhere."""
    plugins.within(Path(params.data), "data")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, resources: Path
) -> Problem:
    """Read the table, and split its rows over the agents."""
    path = plugins.within(Path(params.data), "data")
    columns = readers.table(path)
    if params.target not in columns:
        raise ConcordError(
            f"target: {path} has no column {params.target!r}; {nearest(params.target, columns)}"
        )
    y = columns.pop(params.target)
    if not columns:
        raise ConcordError(f"{path}: it has no column beside the target; add features")
    X = np.column_stack(list(columns.values()))
    make = plugins.plugin("problems", params.model, "problem.model").from_arrays
    try:
        made: Problem = make(X, y, agents, **split(partition, stream), **params.options)
    except TypeError as error:  # an option that it does not have
        raise ConcordError(f"options: {error}; `concord describe {params.model}`") from None
    return made
