r"""A PyMC model in a study's folder, its rows split over agents.

.. math::
    f_i(x) = - \sum_{j \in S_i} \ell_j(x) - \frac1N \ell_0(x)

``model(**columns)`` of the file returns a ``pymc.Model``; observed variables, and data that rows
need (``pymc.Data``), have the dimension ``over``.
``concord.from_pymc`` explains the rest.

Needs: PyMC (the extra ``pymc``).
"""

from functools import partial

from concord_studies.problems._model_files import Params, build_model, check, declare

__all__ = ["DECLARES", "Params", "build", "check"]

DECLARES = declare("PyMC")
build = partial(build_model, "PyMC")
