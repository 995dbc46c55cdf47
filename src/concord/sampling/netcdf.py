"""Groups of arrays as a netCDF file with a digest.

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

from concord.errors import ConcordError
from concord.libraries import optional

Variables = dict[str, tuple[tuple[str, ...], np.ndarray]]  # names of the dimensions, and the array

DIGEST = b"\nSHA-256"
_END = len(DIGEST) + hashlib.sha256().digest_size


def write_groups(
    path: Path, groups: Mapping[str, Variables], attributes: Mapping[str, str]
) -> None:
    """Write groups of named arrays, and the attributes of the file, as netCDF 4."""
    # Into memory, since HDF5 may crash on a full disk.
    image = io.BytesIO()
    with _netcdf().File(image, "w") as file:
        for group_name, variables in groups.items():
            group = file.create_group(group_name)
            for name, (names, values) in variables.items():
                for dimension, size in zip(names, values.shape, strict=True):
                    if dimension not in group.dimensions:
                        group.dimensions[dimension] = size
                group.create_variable(name, names, data=np.ascontiguousarray(values))
        for name, text in attributes.items():
            file.attrs[name] = text
    digest = hashlib.sha256(image.getbuffer()).digest()
    image.seek(0, io.SEEK_END)
    image.write(DIGEST + digest)
    path.write_bytes(image.getbuffer())


def read_groups(path: Path) -> tuple[dict[str, Variables], dict[str, str]]:
    """Return the groups of named arrays in a netCDF file, and the attributes of the file.

    A ConcordError if it is no netCDF file, or differs from its digest.
    """
    content = path.read_bytes()
    body, end = memoryview(content)[:-_END], content[-_END:]
    if end.startswith(DIGEST) and DIGEST + hashlib.sha256(body).digest() != end:
        raise ConcordError(
            f"{path} is damaged: its SHA-256 is not that with which it was written; delete it to "
            "have it made again, or copy it anew"
        )
    netcdf = _netcdf()
    try:
        with netcdf.File(io.BytesIO(content), "r") as file:
            groups = {
                group_name: {
                    name: (variable.dimensions, variable[...])
                    for name, variable in group.variables.items()
                }
                for group_name, group in file.groups.items()
            }
            return groups, {name: str(value) for name, value in file.attrs.items()}
    except Exception:  # no netCDF, or damaged without a digest
        raise ConcordError(f"{path} is not a trace; delete it to have it made again") from None


def _netcdf() -> Any:
    """Import h5netcdf, which takes time, only where files are read or written."""
    return optional("h5netcdf", "h5netcdf", "a file of a trace")
