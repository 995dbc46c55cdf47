r"""A PyMC model in a study's folder, its rows split over agents.

.. math::
    f_i(x) = - \sum_{j \in S_i} \ell_j(x) - \frac1N \ell_0(x)

``model(**columns)`` of the file returns a ``pymc.Model``; observed variables, and data that rows
need (``pymc.Data``), have the dimension ``over``.
``concord.from_pymc`` explains the rest.

Needs: PyMC (the extra ``pymc``).
"""

from pathlib import Path

from concord.contracts import Stream
from concord.problems._model_files import FILES, JOB, Params, check, read
from concord.problems._models import Model, lacking
from concord.sampling.partition import Partition

__all__ = ["FILES", "JOB", "Params", "build", "check", "unavailable"]


def unavailable() -> str | None:
    """Say what to install where the model cannot be computed."""
    return lacking("PyMC")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, resources: Path
) -> Model:
    """Make the model of its columns, and split its rows."""
    from concord.problems._pymc import from_pymc

    function, columns, options = read(params, "PyMC", partition, stream, resources)
    return from_pymc(function(**columns), agents=agents, **options)
