"""Traces read from files, which ``netcdf`` writes."""

import hashlib
import io
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord.sampling.netcdf import DIGEST, DIGEST_LENGTH, import_netcdf
from concord.sampling.trace import COORDINATES, GROUPS, Trace

HDF5 = b"\x89HDF"  # the beginning of a netCDF file
NAME_ONE = "name the draws.nc of a run, or a file that Trace.save wrote"


def read_traces(path: Path) -> dict[str, Trace]:
    """Read all traces of a netCDF file, by the run's name ("run" for a file of one trace).

    A ConcordError if the file is not what ``write_traces`` wrote, or differs from its digest.
    """
    content = path.read_bytes()
    body, end = memoryview(content)[:-DIGEST_LENGTH], content[-DIGEST_LENGTH:]
    if DIGEST + hashlib.sha256(body).digest() != end:
        if not content.startswith(HDF5):
            raise ConcordError(f"{path}: it is no file of a trace (netCDF); {NAME_ONE}")
        raise ConcordError(
            f"{path}: it is damaged, or no trace: its SHA-256 is not that with which traces are "
            f"written; copy it anew, or {NAME_ONE}"
        )
    with import_netcdf().File(io.BytesIO(content), "r") as file:
        if GROUPS[-1] in file.groups:
            return {"run": _read_trace(file)}
        return {run: _read_trace(group) for run, group in file.groups.items()}


def _read_trace(place: Any) -> Trace:
    """Read the trace in a group of an open netCDF file. A KeyError if the group has none.

    place: the group, or the file.
    """
    groups = [place.groups[name] for name in GROUPS if name in place.groups]
    arrays = {n: (of.dimensions, of[...]) for each in groups for n, of in each.variables.items()}
    draw, agent = (place.groups[GROUPS[-1]].variables[name][...] for name in COORDINATES[1:])
    attributes = {key: str(value) for key, value in place.attrs.items()}
    variables = {name: of for name, of in arrays.items() if name not in COORDINATES}
    return Trace(variables, draw, agent, attributes)


def load(path: str | Path, run: str | None = None) -> Trace:
    """Load the trace of a run from a file.

    Parameters
    ----------
    path
        What ``Trace.save`` or ``concord run`` wrote, or results/<study>/<experiment>/draws.nc.
        (ArviZ opens it, too.)
    run
        The run's name, where the file has several.

    Raises
    ------
    ConcordError
        If there is no such file, or it is no trace.

    Examples
    --------
    >>> import concord
    >>> problem = concord.Problem(gradient=lambda x: x, agents=4, dim=2)
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.1, iterations=10)
    >>> trace.save("trace.nc")
    >>> concord.load("trace.nc").chains
    100
    """
    try:
        traces = read_traces(Path(path))
    except OSError as error:
        raise ConcordError(f"{path}: it cannot be read ({error.strerror}); {NAME_ONE}") from None
    if run is None and len(traces) == 1:
        return next(iter(traces.values()))
    if run not in traces:
        raise ConcordError(f"{path}: run: there is no {short(run)} in it; {nearest(run, traces)}")
    return traces[run]
