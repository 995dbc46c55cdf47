"""The trace: a run's recorded arrays, which a netCDF file holds that ArviZ opens.

The file has ArviZ's groups and dimension names: ``posterior`` holds the positions, of which
effective sample sizes and the like are computed, ``sample_stats`` all else. Each group has the
coordinates of its own; the provenance is the file's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from concord.errors import ConcordError, nearest, short, suggest_names
from concord.libraries import pictures
from concord.options import Index, build
from concord.summary import WithLabels, count_named

if TYPE_CHECKING:
    import xarray  # half a second
    from matplotlib.figure import Figure

GROUPS = ("posterior", "sample_stats")
POSITIONS = ("x", "x_average")
COORDINATES = ("chain", "draw", "agent")
AXES = (*COORDINATES, "dim")  # whose names are taken

# What is infinite, and not unknown, of a chain that diverged.
ERRORS = ("consensus_error", "misclassified")

TIMES = ("seconds", "waited")  # what a clock shows

MANY = 20  # chains, from which distances at a single draw are computed

# The part of a run that is its warm-up where none was asked for.
WARM_UP = 0.1


@dataclass(repr=False)
class Trace(WithLabels):
    """What ``concord.sample`` returns: a run's draws, and what its agents paid, by name.

    ``trace["x"]`` has the positions, (chains, draws, agents, dim), ``trace["x_average"]`` their
    mean over agents, and ``trace["unicasts"]``, ``["broadcasts"]`` and ``["gradients"]`` what has
    been paid up to each draw. ``arviz_stats.summary(trace.to_arviz())`` is the table of means,
    standard deviations, intervals, effective sample sizes and R-hat of every agent's coordinates.

    Attributes
    ----------
    variables
        Names of what was recorded, each with its dimensions (of chain, draw, agent, dim) and its
        array. Averages have <name>_mean and <name>_sd, without draw, and their own axes
        <name>_dim_0, ...
    draw
        The recorded iterations, (draws,); 0 is the start.
    agent
        The numbers of the recorded agents, (agents,).
    attributes
        The provenance: versions, seed, sampler, network.
    named
        Of a model, a function from positions (..., dim) to its parameters by name.
    axes, labels
        Of a model, the names of its parameters' axes, and those along such an axis.
    cause
        Where a gradient was not finite by which chains diverged, as a sentence; "" elsewhere.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]]], b=[[1.0], [0.0]])
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.1, iterations=50, chains=4)
    >>> trace["x"].shape, trace.draw[-1].item()
    ((4, 51, 2, 1), 50)
    """

    variables: dict[str, tuple[tuple[str, ...], np.ndarray]]
    draw: np.ndarray
    agent: np.ndarray
    attributes: dict[str, str] = field(default_factory=dict)
    named: Callable[[np.ndarray], dict[str, np.ndarray]] | None = None
    axes: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    labels: Mapping[str, Sequence[object]] = field(default_factory=dict)
    cause: str = ""

    def summary(self) -> dict[str, object]:
        """Return the sampler, the network, the sizes and the number of diverged chains, by name."""
        attributes = self.attributes
        at = self.variables.get("diverged_at", ((), np.zeros(0)))[1]
        axes = self.variables["x"][1].shape[3:] if "x" in self else ()
        names = self.label_agents(self.agent) if self.agent_names else None
        return {
            "sampler": attributes.get("sampler"),
            "network": attributes.get("network"),
            "chains": f"{len(at)}{' (for the law of each draw)' if len(at) >= MANY else ''}",
            "draws": f"{len(self.draw)}, of iterations {min(self.draw)} to {max(self.draw)}",
            "agents": count_named(len(self.agent), names),
            "dim": count_named(axes[0], self.coordinate_names) if axes else None,
            "diverged": f"{(at >= 0).sum()} chains",
            "variables": ", ".join(self.variables),
        }

    def divergence(self) -> str:
        """Return a sentence with the number of chains that diverged, and when. "" if none did."""
        at = self["diverged_at"]
        first = at[at >= 0]
        if not first.size:
            return ""
        return f"{first.size} of {at.size} chains diverged, the first at iteration {first.min()}"

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the array of a variable by its name."""
        if name not in self.variables:
            raise ConcordError(
                f"the trace has no {short(name)}; record it ({nearest(name, self.variables)})"
            )
        return self.variables[name][1]

    def __contains__(self, name: str) -> bool:
        """Return whether the trace has a variable of this name."""
        return name in self.variables

    def coordinates(self) -> dict[str, np.ndarray]:
        """Return the numbers of chains and draws along the axes, and the names of agents.

        Agents without names have their numbers. Where coordinates have names, these are ``dim``.
        """
        along = np.arange(self.chains), self.draw, np.array(self.label_agents(self.agent))
        axes = dict(zip(COORDINATES, along, strict=True))
        if self.coordinate_names:
            axes["dim"] = np.array(self.coordinate_names)
        return axes

    def require_positions(self) -> None:
        """Raise a ConcordError if the trace has neither positions nor their average."""
        if not any(name in self for name in POSITIONS):
            raise ConcordError(
                "the trace has no positions; record draws, or the average (record.draws, "
                "record.average)"
            )

    @property
    def chains(self) -> int:
        """The number of chains in the trace."""
        return len(self["diverged_at"])

    def rows_after_warm_up(self, warm_up: int = -1) -> np.ndarray:
        """Return the numbers of the recorded iterations' rows after ``warm_up``; -1: a tenth."""
        late = self.draw > warm_up if warm_up >= 0 else self.draw >= WARM_UP * self.draw[-1]
        return np.flatnonzero(late)

    def groups(self) -> dict[str, list[str]]:
        """Return the names of variables in each of ``GROUPS`` that has any."""
        inside = [name for name in self.variables if name in POSITIONS]
        outside = [name for name in self.variables if name not in POSITIONS]
        return {g: n for g, n in zip(GROUPS, (inside, outside), strict=True) if n}

    def to_xarray(self) -> xarray.Dataset:
        """Return all variables as one ``xarray.Dataset``, which shares their memory.

        Returns
        -------
        xarray.Dataset
            With x (chain, draw, agent, dim), x_average (chain, draw, dim), diverged_at (chain),
            what each agent has paid until then (unicasts, broadcasts, gradients, and seconds of a
            network with a clock), and whatever else was recorded; draw counts iterations.

        Examples
        --------
        >>> import concord
        >>> problem = concord.Problem(gradient=lambda x: x, agents=4, dim=2)
        >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.1, iterations=100)
        >>> trace.to_xarray().x.mean(["chain", "draw"]).shape
        (4, 2)
        """
        import xarray  # half a second

        return xarray.Dataset(self.variables, self.coordinates(), self.attributes)

    @suggest_names
    def to_arviz(self, warm_up: int | None = None) -> xarray.DataTree:
        """Return the groups posterior and sample_stats for ArviZ 1, without the warm-up.

        Parameters
        ----------
        warm_up
            Iterations up to this one, the start included, are left out; none: those that the record
            asked for (``burn_in``), or else the first tenth, as for metrics of draws that stand for
            a sample.

        Returns
        -------
        xarray.DataTree
            Agents are a dimension. Of a model (``concord.from_pymc``) the parameters have their
            names, and its constraints; of others there is x. ``arviz.from_netcdf`` of a trace.nc
            has the warm-up, too.

        Raises
        ------
        ConcordError
            If nothing is recorded after the warm-up.

        Examples
        --------
        >>> import arviz_stats, concord
        >>> problem = concord.Problem(gradient=lambda x: x, agents=4, dim=2)
        >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.1, iterations=100)
        >>> arviz_stats.rhat(trace.to_arviz()).x.dims
        ('agent', 'dim')
        """
        import xarray  # half a second

        data = self.to_xarray().isel(draw=self.rows_after(warm_up))
        data.attrs = {}
        groups = {group: data[names] for group, names in self.groups().items()}
        if self.named is not None and "x" in data:
            parameters = {
                name: (data.x.dims[:3] + self._axes_of(name, of.ndim - 3), of)
                for name, of in self.named(data.x.values).items()
            }
            posterior = groups["posterior"].drop_vars("x").assign(parameters)
            named = {*posterior.dims} - {*AXES}
            labels = {name: [*of] for name, of in self.labels.items() if name in named}
            groups["posterior"] = posterior.assign_coords(labels)
        root = xarray.Dataset(attrs=self.attributes)
        return xarray.DataTree.from_dict({"/": root, **groups})

    def _axes_of(self, name: str, count: int) -> tuple[str, ...]:
        """Return the names of a parameter's own axes, as the model has them, or by number."""
        own = [*(self.axes.get(name) or ())]
        own = own if len(own) == count and not {*own} & {*AXES} else [None] * count
        return tuple(axis or f"{name}_dim_{k}" for k, axis in enumerate(own))

    def rows_after(self, warm_up: int | None = None) -> np.ndarray:
        """Return the rows of the recorded iterations after a warm-up, as ``to_arviz`` takes it.

        Raises
        ------
        ConcordError
            If ``warm_up`` is no number of an iteration, or nothing is recorded after it.
        """
        if warm_up is None:
            record = json.loads(self.attributes.get("record", "{}"))
            if "run" in self.attributes:  # of a study
                record = json.loads(self.attributes["run"])["record"]
            last = record.get("burn_in", -1)
        else:
            last = build(Index, warm_up, "warm_up")
        rows = self.rows_after_warm_up(last)
        if not rows.size:
            raise ConcordError(
                f"warm_up: no iteration is recorded after {last}, the last is {self.draw[-1]}; "
                "lower it"
            )
        return rows

    def save(self, path: str | Path) -> None:
        """Write the trace as netCDF, which ``concord.load`` and ``arviz.from_netcdf`` read.

        A ConcordError if the name does not end in .nc.
        """
        from concord.sampling.netcdf import write_traces  # of runs that are saved

        path = Path(path)
        if path.suffix != ".nc":
            raise ConcordError(
                f"{path}: a trace is saved as netCDF; give a name that ends in .nc, or make a "
                "table of the draws, to_xarray().x.to_dataframe()"
            )
        write_traces({"": self}, path)

    def select_draws(self, rows: np.ndarray) -> Trace:
        """Return the trace with some of the recorded iterations alone, given by their rows."""
        variables = {
            name: (axes, values.take(rows, axis=axes.index("draw")) if "draw" in axes else values)
            for name, (axes, values) in self.variables.items()
        }
        return replace(self, variables=variables, draw=self.draw[rows])

    @suggest_names
    def plot(self, coordinates: Sequence[object] | None = None, posterior: object = None) -> Figure:
        """Draw the density of each coordinate's draws, and one chain over iterations.

        Colored lines are the first four agents, gray ones others, dashed ones the average of all
        agents; densities are those of the draws after a tenth of the run. Of several chains the
        first that did not diverge is shown.

        Parameters
        ----------
        coordinates
            Numbers or names of the coordinates that are drawn; none: the first four.
        posterior
            A problem, a ``concord.Gaussian`` or draws, (draws, dim), whose density is drawn, too;
            none: none.

        Returns
        -------
        matplotlib.figure.Figure
            A picture, which notebooks show; ``savefig`` writes it.

        Examples
        --------
        >>> import concord
        >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]]], b=[[1.0], [0.0]])
        >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.1, iterations=100)
        >>> len(trace.plot(posterior=problem).axes)
        2
        """
        figure: Figure = pictures("runs").plot_trace(self, coordinates, posterior)
        return figure

    def contiguous(self) -> Trace:
        """Return a copy whose arrays are contiguous in memory, as those read from a file."""
        arrays = {name: (of, np.ascontiguousarray(x)) for name, (of, x) in self.variables.items()}
        return replace(self, variables=arrays)

    def mask_diverged(self) -> Trace:
        """Return the trace with the values of diverged chains replaced by nan.

        From the iteration at which a chain diverged its errors are infinite, its positions and
        other probes nan; its averages over iterations are nan, too. Counts of messages, activations
        and gradients, and clocks, stay.
        """
        at = self["diverged_at"]
        if (at < 0).all():
            return self
        lost = (at[:, None] >= 0) & (self.draw >= at[:, None])
        variables = dict(self.variables)
        for name, (dimensions, values) in self.variables.items():
            if name in TIMES:
                continue
            if dimensions[:1] == ("chain",) and (name in ERRORS or values.dtype.kind == "f"):
                masked = values.astype(np.result_type(values, np.float32))
                gone = lost if dimensions[1:2] == ("draw",) else at >= 0
                masked[gone] = np.inf if name in ERRORS else np.nan
                variables[name] = dimensions, masked
        return replace(self, variables=variables)


def join_traces(traces: Sequence[Trace]) -> Trace:
    """Join traces of the same run that hold different chains.

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
    cause = next((trace.cause for trace in traces if trace.cause), "")
    return Trace(variables, first.draw, first.agent, cause=cause)
