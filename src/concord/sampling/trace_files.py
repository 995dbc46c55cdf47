"""Traces in files: netCDF 4 with ArviZ's groups and dimension names, and a digest.

After the end of the netCDF data, where its readers do not look, come ``DIGEST`` and the SHA-256 of
all before it. It is checked before the file is taken apart, since HDF5 does not notice all changed
numbers, and may loop for ever over a damaged structure.
"""

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from concord.errors import ConcordError, nearest, short
from concord.libraries import optional
from concord.sampling.trace import COORDINATES, GROUPS, Trace

DIGEST = b"\nSHA-256"
DIGEST_LENGTH = len(DIGEST) + hashlib.sha256().digest_size


def write_traces(traces: Mapping[str, Trace], path: Path) -> None:
    """Write the traces of runs into one file, a group each, called like the run.

    A trace with the name "" is the whole file.
    """
    # Into memory, since HDF5 may crash on a full disk.
    image = io.BytesIO()
    with import_netcdf().File(image, "w") as file:
        for run, trace in traces.items():
            coordinates = {
                name: ((name,), np.asarray(values, dtype=np.int64))
                for name, values in trace.coordinates().items()
            }
            for group_name, names in trace.groups().items():
                group = file.create_group(f"{run}/{group_name}" if run else group_name)
                variables = coordinates | {name: trace.variables[name] for name in names}
                for name, (axes, values) in variables.items():
                    for dimension, size in zip(axes, values.shape, strict=True):
                        if dimension not in group.dimensions:
                            group.dimensions[dimension] = size
                    group.create_variable(name, axes, data=np.ascontiguousarray(values))
            (file[run] if run else file).attrs.update(trace.attributes)
    digest = hashlib.sha256(image.getbuffer()).digest()
    image.seek(0, io.SEEK_END)
    image.write(DIGEST + digest)
    path.write_bytes(image.getbuffer())


def import_netcdf() -> Any:
    """Import h5netcdf, which takes time, only where files are read or written."""
    return optional("h5netcdf", "h5netcdf", "a file of a trace")


def read_traces(path: Path) -> dict[str, Trace]:
    """Return all traces of a netCDF file by run; that of one trace alone is called "run".

    A ConcordError if the file is not what ``write_traces`` wrote, or differs from its digest.
    """
    content = path.read_bytes()
    body, end = memoryview(content)[:-DIGEST_LENGTH], content[-DIGEST_LENGTH:]
    if DIGEST + hashlib.sha256(body).digest() != end:
        raise ConcordError(
            f"{path} is no trace, or is damaged: its SHA-256 is not that with which it was "
            "written; delete it to have it made again, or copy it anew"
        )
    with import_netcdf().File(io.BytesIO(content), "r") as file:
        if GROUPS[-1] in file.groups:
            return {"run": _read_trace(file)}
        return {run: _read_trace(group) for run, group in file.groups.items()}


def _read_trace(place: Any) -> Trace:
    """Return the trace in a group of a netCDF file that is open. A KeyError if it has none."""
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
        raise ConcordError(
            f"{path}: it cannot be read ({error.strerror}); name the draws.nc of a run, or a file "
            "that Trace.save wrote"
        ) from None
    if run is None and len(traces) == 1:
        return next(iter(traces.values()))
    if run not in traces:
        raise ConcordError(f"{path}: run: there is no {short(run)} in it; {nearest(run, traces)}")
    return traces[run]
