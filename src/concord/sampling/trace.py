"""The trace: a run's recorded arrays, as a netCDF file with ArviZ's dimension names."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from concord.errors import ConcordError, nearest, short

# What is infinite, and not unknown, of a chain that diverged.
ERRORS = ("consensus_error", "misclassified")


@dataclass
class Trace:
    """A run's recorded arrays.

    variables
        name -> (dimension names, array); dimensions are chain, draw, agent, dim. Averages have
        the variables <name>_mean and <name>_sd without draw, their own axes <name>_dim_0, ...
    Fields draw and agent are coordinates, the recorded iterations and agents; attributes hold the
    provenance; made and sha256, of a trace that was read, what it was made from and its digest.
    """

    variables: dict[str, tuple[tuple[str, ...], np.ndarray]]
    draw: np.ndarray
    agent: np.ndarray
    attributes: dict[str, str] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a variable's array."""
        if name not in self.variables:
            raise ConcordError(
                f"the trace has no {short(name)}; record it ({nearest(name, self.variables)})"
            )
        return self.variables[name][1]

    def __contains__(self, name: str) -> bool:
        """Tell whether the trace has a variable of this name."""
        return name in self.variables

    def marked(self) -> Trace:
        """Return the trace with what its diverged chains recorded taken out.

        A chain is lost from the iteration at which it diverged: its errors are infinite from there
        on, its positions and other probes not a number; averages over iterations are lost with
        it. Counts of messages and of activations stay.
        """
        at = self["diverged_at"]
        if (at < 0).all():
            return self
        lost = (at[:, None] >= 0) & (self.draw >= at[:, None])
        variables = dict(self.variables)
        for name, (dimensions, values) in self.variables.items():
            if dimensions[:1] == ("chain",) and (name in ERRORS or values.dtype.kind == "f"):
                kept = values.astype(np.result_type(values, np.float32))
                gone = lost if dimensions[1:2] == ("draw",) else at >= 0
                kept[gone] = np.inf if name in ERRORS else np.nan
                variables[name] = dimensions, kept
        return replace(self, variables=variables)


def join_traces(traces: Sequence[Trace]) -> Trace:
    """Return one trace of all chains of several, which differ in nothing but their chains.

    Variables without chains are what the chains have in common, such as messages per agent.
    """
    first = traces[0]
    if len(traces) == 1:
        return first
    variables = {}
    for name, (dimensions, values) in first.variables.items():
        if "chain" in dimensions:
            axis = dimensions.index("chain")
            values = np.concatenate([trace[name] for trace in traces], axis=axis)
        variables[name] = dimensions, values
    return Trace(variables, first.draw, first.agent)


_LENGTH = 8  # digits of the number that ends a trace


def write_trace(trace: Trace, path: Path, made: Mapping[str, str] | None = None) -> None:
    """Write a trace as netCDF 4 with ArviZ's dimension names.

    Behind the end, where readers of netCDF do not look, stand what it was ``made`` from and the
    SHA-256 of the file: HDF5 does not notice all changed numbers, and may loop for ever over
    changed structure.
    """
    import h5netcdf

    # Into memory, since HDF5 may crash on a full disk.
    image = io.BytesIO()
    with h5netcdf.File(image, "w") as file:
        file.dimensions["draw"] = len(trace.draw)
        file.dimensions["agent"] = len(trace.agent)
        for names, values in trace.variables.values():
            for name, size in zip(names, values.shape, strict=True):
                if name not in file.dimensions:
                    file.dimensions[name] = size
        for name, values in (("draw", trace.draw), ("agent", trace.agent)):
            file.create_variable(name, (name,), data=np.asarray(values, dtype=np.int64))
        for name, (names, values) in trace.variables.items():
            file.create_variable(name, names, data=np.ascontiguousarray(values))
        for name, text in trace.attributes.items():
            file.attrs[name] = text
    content = image.getbuffer()
    digests = {"made": dict(made or {}), "sha256": hashlib.sha256(content).hexdigest()}
    seal = json.dumps(digests).encode()
    with open(path, "wb") as output:
        output.write(content)
        output.write(seal + f"{len(seal):0{_LENGTH}d}".encode())


def read_trace(path: Path) -> Trace:
    """Read a trace back.

    Raises
    ------
    ConcordError
        If the file is not what ``write`` wrote; it should be deleted and sampled again.
    """
    import h5netcdf

    made, digest, size = sealed_trace(path)
    content = memoryview(path.read_bytes())[:size]
    broken = f"{path} is not a whole trace as it was written; delete it, it is made again"
    if hashlib.sha256(content).hexdigest() != digest:
        raise ConcordError(broken)
    try:
        with h5netcdf.File(io.BytesIO(content), "r") as file:
            variables = {
                name: (variable.dimensions, variable[...])
                for name, variable in file.variables.items()
                if name not in ("draw", "agent")
            }
            attributes = {name: str(value) for name, value in file.attrs.items()}
            draw, agent = file.variables["draw"][...], file.variables["agent"][...]
    except (OSError, KeyError, ValueError):  # no netCDF, or not with a trace's dimensions
        raise ConcordError(broken) from None
    return Trace(variables, draw, agent, attributes, made, digest)


def sealed_trace(path: Path) -> tuple[Mapping[str, str], str, int]:
    """Return what a trace says it was made from, its SHA-256, and the size that this is of.

    Nothing, no text and 0 where the file is missing or not a trace; its bytes are not checked.
    """
    try:
        with open(path, "rb") as file:
            end = file.seek(-_LENGTH, os.SEEK_END)
            size = end - int(file.read())
            file.seek(size)
            digests = json.loads(file.read(end - size))
        return dict(digests["made"]), str(digests["sha256"]), size
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}, "", 0
