"""Networks of a study: a Python file in its folder that says what PyTorch or JAX evaluates.

A function of the file is called with the columns of a table, or with the folder of data sets, and
with options. It returns the arguments of ``concord.from_torch`` or ``concord.from_jax`` by name,
but for the agents and how rows are split over them, which the study states. ``test`` may be several
test sets by name, {name: (X, y)}, of which "validation" is not reported: the arena chooses settings
by it. ``examples`` may be rows of these that are reported one by one, {name: {example: row}}.
"""

import inspect
from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from msgspec import field

import concord
from concord.contracts import DataSets, Stream
from concord.errors import ConcordError, nearest, short
from concord.models.model import install_hint, require_library
from concord.models.weights import ROWS, WeightPosterior, labels_of
from concord.options import Options
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration
from concord_studies.problems._model_files import (
    check_arguments,
    configure_jax,
    load_function,
    read_columns,
    require_files,
)

FILES = ("file", "data")
OF_STUDY = {"agents", "shards", "partition", "seed", "rng"}  # arguments that a study states


class Params(Options):
    """Options of a network's problem: its file, function and data."""

    file: Annotated[str, "Python file in the study's folder, which is executed"]
    data: Annotated[
        str | None, "CSV file in the study's folder, whose columns are the function's arguments"
    ] = None
    data_sets: Annotated[
        tuple[str, ...], "registered data sets, whose folder is the function's argument `folder`"
    ] = ()
    optional_data_sets: Annotated[
        tuple[str, ...], "those that it reads where they are at hand"
    ] = ()
    function: Annotated[str, "function of the file that returns the network and its data"] = (
        "network"
    )
    options: Annotated[dict[str, Any], "further arguments of the function"] = field(
        default_factory=dict
    )


def declare(library: str, environment: str) -> ProblemDeclaration:
    """Return the declaration of problems that are networks of a library, PyTorch or JAX.

    environment: of conda, that has it.
    """
    return ProblemDeclaration(
        name=f"{library} network",
        needs=lambda params: params.data_sets,
        takes=lambda params: params.optional_data_sets,
        unavailable=partial(install_hint, library),
        # Minutes for which a job lasts long enough to show its progress.
        job={"environment": environment, "mem_mb": 3000, "runtime": 60},
        files=FILES,
        amplifies="training: the last digit of a sum over a batch moves every later step",
    )


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for files that do not exist, or lie outside of the study's folder."""
    require_files(params, FILES)


def build_network(
    library: str,
    params: Params,
    agents: int,
    partition: Partition,
    stream: Stream,
    data_sets: DataSets,
) -> WeightPosterior:
    """Build the problem of a study's network, with its rows split over the agents.

    library: PyTorch or JAX. Gradients are evaluated as the function says, or by ``vmap``: timed
    calls would choose differently from job to job.
    """
    if library == "JAX":
        configure_jax(library, data_sets.folder)
    else:
        _configure_torch()
    function = load_function(params.file, params.function)
    arguments: dict[str, Any] = dict(read_columns(params.data))
    if params.data_sets or params.optional_data_sets:
        arguments["folder"] = data_sets.folder
    both = sorted(arguments.keys() & params.options)
    if both:
        raise ConcordError(f"options: {both[0]} is a column of {params.data}, too; rename one")
    arguments |= params.options
    check_arguments(function, params.file, arguments)
    stated = function(**arguments)
    make: Any = {"PyTorch": concord.from_torch, "JAX": concord.from_jax}[library]
    _check_returned(stated, make, f"{params.file}: {params.function}")
    stated = dict(stated)
    tests, examples = stated.pop("test", None), stated.pop("examples", {})
    tests = {"test": tests} if isinstance(tests, tuple | list) else dict(tests or {})
    validation = tests.pop("validation", None)
    y = np.asarray(stated["data"][1])
    labels = labels_of(y)
    parts = partition.split(len(y) if labels is None else labels, agents, stream("partition"))
    first = next(iter(tests.values()), None)
    problem: Any = make(**{"evaluate": "vmap", **stated, "test": first, "shards": parts})
    problem.validation = validation
    if tests:
        tests = {name: (np.asarray(X), np.asarray(y)) for name, (X, y) in tests.items()}
        problem.tests = {name: SimpleNamespace(labels=y) for name, (_, y) in tests.items()}
        problem.examples = examples
        problem.predictive = partial(_predict_tests, problem, [*tests.values()])
    return problem


def _configure_torch() -> None:
    """Configure PyTorch for jobs: one thread, and kernels that a GPU repeats."""
    require_library("PyTorch")
    import torch

    # Sums over a batch depend on how many threads share it, results must not.
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # a GPU is to agree with the CPU to float32
    torch.backends.cudnn.deterministic = True


def _check_returned(stated: object, make: Any, where: str) -> None:
    """Raise a ConcordError unless a file's function returned arguments of ``make`` by name."""
    parameters = inspect.signature(make).parameters
    names = [name for name in parameters if name not in OF_STUDY] + ["examples"]
    required = [
        n for n in names if n in parameters and parameters[n].default is inspect.Parameter.empty
    ]
    if not isinstance(stated, Mapping) or not set(required) <= stated.keys():
        raise ConcordError(
            f"{where} returned {short(stated)}; return the arguments of concord.{make.__name__} by "
            f"name, {{{', '.join(f'{name!r}: ...' for name in required)}}}"
        )
    for name in stated:
        if name not in names:
            raise ConcordError(f"{where} returned an argument {name!r}; {nearest(name, names)}")


def _predict_tests(problem: WeightPosterior, tests: list[Any], x: np.ndarray) -> np.ndarray:
    """Return class probabilities of all test rows, (chains, agents, rows, classes).

    Of a regression mean, density and distribution function at the targets, (..., rows, 3). The sets
    follow each other.
    """
    from scipy import stats  # a second

    parts = []
    for X, y in tests:
        for rows in (slice(k, k + ROWS) for k in range(0, len(X), ROWS)):
            predicted = problem.predict(x, X[rows])
            if isinstance(predicted, tuple):
                mean, sd = (np.asarray(part, dtype=float) for part in predicted)
                law = stats.norm(mean, sd)
                predicted = np.stack([mean, law.pdf(y[rows]), law.cdf(y[rows])], axis=-1)
            parts.append(np.asarray(predicted))
    return np.concatenate(parts, axis=2)
