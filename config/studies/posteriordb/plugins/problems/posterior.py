"""A posterior of posteriordb, its rows split over agents, with its reference draws.

The models are in ``models.py``. Problems are sampled in coordinates in which a Gaussian fit to the
posterior is standard normal.

Source: M. Magnusson, P. Bürkner and A. Vehtari, posteriordb, version 0.5, 2023.
Needs: NumPyro (the extra ``numpyro``) and the data sets posteriordb_<posterior>.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from concord.contracts import DataSets, Stream
from concord.models.model import install_hint
from concord.models.numpyro import from_numpyro
from concord.options import Options
from concord.problems import arrays
from concord.sampling.partition import Partition, check_rows
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets import registry
from concord_studies.datasets.registry import verify
from concord_studies.problems._model_files import configure_jax

from .. import readers

ROWS = {
    **{"ark": 195, "diamonds": 5000, "earnings": 1192, "eight_schools": 8, "gauss_mix": 1000},
    **{"gp_pois_regr": 11, "kidiq": 434, "kidiq_z": 434, "kilpisjarvi": 62, "mesquite": 46},
    **{"nes1980": 701, "nes2000": 476, "sblrc": 100, "sblri": 100},
}


class Params(Options):
    """Which posterior."""

    posterior: Annotated[Literal[tuple(ROWS)], "its name"]  # type: ignore[valid-type]


def check(params: Params, agents: int) -> None:
    """Refuse more agents than rows."""
    check_rows(ROWS[params.posterior], agents)


def needs(params: Params) -> tuple[str, ...]:
    """Name the data set with data and draws."""
    return (f"posteriordb_{params.posterior}",)


DECLARES = ProblemDeclaration(
    needs=needs,
    unavailable=partial(install_hint, "NumPyro"),
    job={"environment": "models", "mem_mb": 2000, "runtime": 15},
)
_BUILT: dict[tuple[Any, ...], Any] = {}


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Any:
    """Return the problem, which runs of a process share: it takes seconds to compile."""
    of_rows, resources = arrays.partition_arguments(partition, stream), data_sets.folder
    key = params.posterior, agents, repr(partition.options.plain()), of_rows["seed"], str(resources)
    if key not in _BUILT:
        _BUILT.clear()
        _BUILT[key] = split(params, agents, resources, **of_rows)
    return _BUILT[key]


def split(
    params: Params, agents: int, resources: Path, coordinates: Any = "laplace", **more: Any
) -> Any:
    """Read data and draws, and return the problem of the model's rows, split over agents."""
    configure_jax("NumPyro", resources)
    from .. import models  # of an extra

    (dataset,), posterior = needs(params), models.POSTERIORS[params.posterior]
    names = registry.load_registry()[dataset].files
    files = [verify(f"{dataset}/{name}", resources / dataset / name) for name in names]
    data, draws = readers.posteriordb(*files)
    return from_numpyro(
        posterior.model,
        **posterior.arguments(data),
        over="row",
        agents=agents,
        coordinates=coordinates,
        reference=posterior.draws(draws, data),
        **more,
    )
