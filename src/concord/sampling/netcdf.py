"""Traces as netCDF 4 with ArviZ's groups and dimension names, and a digest.

After the end of the netCDF data, where its readers do not look, come ``DIGEST`` and the SHA-256 of
all before it. It is checked before the file is taken apart, since HDF5 does not notice all changed
numbers, and may loop for ever over a damaged structure.
"""

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from concord.libraries import optional

DIGEST = b"\nSHA-256"
DIGEST_LENGTH = len(DIGEST) + hashlib.sha256().digest_size


def write_traces(traces: Mapping[str, Any], path: Path) -> None:
    """Write the traces of runs into one file, a group each, called like the run.

    A trace with the name "" is the whole file.
    """
    # Into memory, since HDF5 may crash on a full disk.
    image = io.BytesIO()
    with import_netcdf().File(image, "w") as file:
        for run, trace in traces.items():
            along = {"chain": np.arange(trace.chains), "draw": trace.draw, "agent": trace.agent}
            coordinates = {n: ((n,), np.asarray(x, dtype=np.int64)) for n, x in along.items()}
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


def import_netcdf() -> ModuleType:
    """Import h5netcdf, which takes time, only where files are read or written."""
    return optional("h5netcdf", "h5netcdf", "a file of a trace")
