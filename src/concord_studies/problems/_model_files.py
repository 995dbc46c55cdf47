"""PyMC and NumPyro models of a study: a Python file and a table of data in its folder."""

import inspect
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import numpy as np

from concord import kinds
from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.failures import explain
from concord.models.model import install_hint, require_library
from concord.options import Options
from concord.problem import Problem
from concord.problems.arrays import partition_arguments
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets import readers

FILES = ("file", "data", "reference")


class Params(Options):
    """Options of a model's problem: its file, function and data, and the dimension of its rows."""

    file: Annotated[str, "Python file in the study's folder, which is executed"]
    over: Annotated[str, "dimension (PyMC) or plate (NumPyro) whose entries are rows"]
    data: Annotated[
        str | None, "CSV file in the study's folder, whose columns are the function's arguments"
    ] = None
    function: Annotated[str, "function of the file that makes the model, or is it"] = "model"
    coordinates: Annotated[
        Literal["unconstrained", "laplace"],
        "what samplers step in: the unconstrained parameters, or coordinates in which a Gaussian "
        "fit to the posterior is standard normal",
    ] = "unconstrained"
    reference: Annotated[
        str | None,
        "CSV file in the study's folder with draws of the posterior: a column for each parameter, "
        "theta[1], theta[2], ... for one of several entries",
    ] = None
    local: Annotated[
        bool, "whether latents with the dimension stay with the agent who has their rows"
    ] = False


def declare(library: str) -> ProblemDeclaration:
    """Return the declaration of problems that are models of a library, PyMC or NumPyro."""
    return ProblemDeclaration(
        name=f"{library} model",
        unavailable=partial(install_hint, library),
        job={"environment": "models", "mem_mb": 2000, "runtime": 15},
        files=FILES,
    )


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for files that do not exist, or lie outside of the study's folder."""
    require_files(params, FILES)


def require_files(params: Options, keys: Sequence[str]) -> None:
    """Raise a ConcordError unless the files that options of these keys name are in the folder."""
    for key in keys:
        if (path := getattr(params, key)) is not None:
            require_file(Path(path), key)


def require_file(path: Path, key: str) -> Path:
    """Return the path of a study's file. A ConcordError unless it is in the study's folder."""
    if not path.is_file():
        raise ConcordError(f"{key}: there is no file {path}; put it into the study's folder")
    if not any(path.resolve().is_relative_to(study.resolve()) for study in kinds.studies):
        raise ConcordError(f"{key}: {path} is not in the study's folder; copy it there")
    return path


def _execute(path: Path) -> ModuleType:
    """Execute a study's Python file as a module of the package of its folder, and return it."""
    try:
        return import_module(kinds.register_module(path))
    except (Exception, SystemExit) as error:
        raise ConcordError(explain(error, str(path))) from error


def configure_jax(library: str, resources: Path) -> None:
    """Configure JAX for jobs: double precision, one thread, a persistent compilation cache.

    Compiled code suits this machine's processor, and is cached beside the data. With two threads or
    more JAX waits for ever where it factorizes several matrices at once, as in a proximal step of a
    Gaussian process.
    """
    require_library(library)
    os.environ.setdefault("NPROC", "1")
    import jax

    cache = resources / "compiled" / platform.node()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def load_function(file: str, name: str) -> Callable[..., Any]:
    """Return a function of a study's Python file, which is executed."""
    path = require_file(Path(file), "file")
    function: Callable[..., Any] | None = getattr(_execute(path), name, None)
    if not callable(function):
        raise ConcordError(f"{path}: it defines no function {name!r}; name one it has")
    return function


def read_columns(data: str | None) -> dict[str, np.ndarray]:
    """Return the columns of a study's table by name; none without a table."""
    return readers.table(require_file(Path(data), "data")) if data is not None else {}


def check_arguments(function: Callable[..., Any], file: str, arguments: Mapping[str, Any]) -> None:
    """Raise a ConcordError if a function of a study's file does not take arguments of such names.

    They are columns of a table, or options.
    """
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        raise ConcordError(
            f"{file}: {function.__name__} cannot be called with the table's columns and options "
            f"({', '.join(arguments) or 'there are none'}): {error}; give its arguments their names"
        ) from None


def build_model(
    library: str,
    params: Params,
    agents: int,
    partition: Partition,
    stream: Stream,
    data_sets: DataSets,
) -> Problem:
    """Build the problem of a study's model file, called with its table's columns as arguments.

    library: PyMC or NumPyro. params: ``Params``. partition, stream: how the table's rows are split
    over the agents. data_sets: their folder is that in which compiled code is cached.
    """
    configure_jax(library, data_sets.folder)
    function = load_function(params.file, params.function)
    columns = read_columns(params.data)
    check_arguments(function, params.file, columns)
    options = {
        "over": params.over,
        "coordinates": params.coordinates,
        "local": params.local,
        **partition_arguments(partition, stream),
    }
    if params.reference is not None:
        columns_of = readers.table(require_file(Path(params.reference), "reference"))
        options["reference"] = readers.stack_draws(columns_of)
    if library == "PyMC":
        from concord.models.pymc import from_pymc

        return from_pymc(function(**columns), agents=agents, **options)
    from concord.models.numpyro import from_numpyro

    # A column may be called like an option of the problem.
    return from_numpyro(lambda rows: function(**rows), columns, agents=agents, **options)
