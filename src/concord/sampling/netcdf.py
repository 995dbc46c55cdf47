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
    path: Path, groups: Mapping[str, Variables], attributes: Mapping[str, Mapping[str, str]]
) -> None:
    """Write groups of named arrays as netCDF 4; ``run/posterior`` is a group in a group.

    attributes: texts by the name of the group that has them; "" is the file.
    """
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
        for group_name, texts in attributes.items():
            place = file[group_name] if group_name else file
            for name, text in texts.items():
                place.attrs[name] = text
    digest = hashlib.sha256(image.getbuffer()).digest()
    image.seek(0, io.SEEK_END)
    image.write(DIGEST + digest)
    path.write_bytes(image.getbuffer())


def read_groups(path: Path) -> tuple[dict[str, Variables], dict[str, dict[str, str]]]:
    """Return the groups of named arrays in a netCDF file, and their attributes, as written.

    A ConcordError if it is no netCDF file, or differs from its digest. Groups in groups have always
    had one.
    """
    content = path.read_bytes()
    body, end = memoryview(content)[:-_END], content[-_END:]
    is_whole = DIGEST + hashlib.sha256(body).digest() == end
    damaged = ConcordError(
        f"{path} is damaged: its SHA-256 is not that with which it was written; delete it to "
        "have it made again, or copy it anew"
    )
    if end.startswith(DIGEST) and not is_whole:
        raise damaged
    netcdf = _netcdf()
    groups: dict[str, Variables] = {}
    attributes: dict[str, dict[str, str]] = {}

    def read(place: Any, name: str) -> None:
        """Read a group, and all groups in it."""
        attributes[name] = {key: str(value) for key, value in place.attrs.items()}
        arrays = {key: (of.dimensions, of[...]) for key, of in place.variables.items()}
        if arrays:
            groups[name] = arrays
        for key, group in place.groups.items():
            read(group, f"{name}/{key}" if name else key)

    try:
        with netcdf.File(io.BytesIO(content), "r") as file:
            read(file, "")
    except Exception:  # no netCDF, or damaged without a digest
        raise ConcordError(f"{path} is not a trace; delete it to have it made again") from None
    if not is_whole and any("/" in name for name in groups):
        raise damaged
    return groups, attributes


def _netcdf() -> Any:
    """Import h5netcdf, which takes time, only where files are read or written."""
    return optional("h5netcdf", "h5netcdf", "a file of a trace")
