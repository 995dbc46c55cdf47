"""The trace: a run's recorded arrays, as a netCDF file with ArviZ's dimension names."""

from __future__ import annotations

import io
from collections.abc import Sequence
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
    provenance.
    """

    variables: dict[str, tuple[tuple[str, ...], np.ndarray]]
    draw: np.ndarray
    agent: np.ndarray
    attributes: dict[str, str] = field(default_factory=dict)

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


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace as netCDF 4 with ArviZ's dimension names."""
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
    path.write_bytes(image.getbuffer())


def read_trace(path: Path) -> Trace:
    """Read a trace back.

    Stages check its seal first: HDF5 does not notice all changed numbers, and may loop for ever
    over changed structure.

    Raises
    ------
    ConcordError
        If the file is not what ``write_trace`` wrote; it should be deleted and sampled again.
    """
    import h5netcdf

    content = path.read_bytes()
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
        raise ConcordError(f"{path} is not a trace; delete it to have it made again") from None
    return Trace(variables, draw, agent, attributes)
