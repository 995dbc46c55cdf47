r"""A NumPyro model in a study's folder, its rows split over agents.

.. math::
    f_i(x) = - \sum_{j \in S_i} \ell_j(x) - \frac1N \ell_0(x)

``model(**columns)`` of the file is the model; observed sites are in the plate ``over``, whose size
follows from the arguments.
``concord.from_numpyro`` explains the rest.

Needs: NumPyro (the extra ``numpyro``).
"""

from functools import partial

from concord_studies.problems._model_files import Params, build_model, check, declare

__all__ = ["DECLARES", "Params", "build", "check"]

DECLARES = declare("NumPyro")
build = partial(build_model, "NumPyro")
