r"""A NumPyro model in a study's folder, its rows split over agents.

.. math::
    f_i(x) = - \sum_{j \in S_i} \ell_j(x) - \frac1N \ell_0(x)

``model(**columns)`` of the file is the model; observed sites are in the plate ``over``, whose size
follows from the arguments.
``concord.from_numpyro`` explains the rest.

Needs: NumPyro (the extra ``numpyro``).
"""

from __future__ import annotations

from pathlib import Path

from concord.contracts import Stream
from concord.problems._model_files import FILES, JOB, Params, check, read
from concord.problems._models import Model, lacking
from concord.sampling.partition import Partition

__all__ = ["FILES", "JOB", "Params", "build", "check", "unavailable"]


def unavailable() -> str | None:
    """Say what to install where the model cannot be computed."""
    return lacking("NumPyro")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, resources: Path
) -> Model:
    """Make the model of its columns, and split its rows."""
    function, columns, options = read(params, "NumPyro", partition, stream, resources)
    from concord.problems._numpyro import from_numpyro

    # A column may be called like an option of the problem.
    return from_numpyro(lambda rows: function(**rows), columns, agents=agents, **options)
