r"""A NumPyro model in a study's folder, its rows split over agents.

.. math::
    f_i(x) = - \sum_{j \in S_i} \ell_j(x) - \frac1N \ell_0(x)

``model(**columns)`` of the file is the model; observed sites are in the plate ``over``, whose size
follows from the arguments.
``concord.from_numpyro`` explains the rest.

Needs: NumPyro (the extra ``numpyro``).
"""

from functools import partial

from concord.models.model import install_hint
from concord_studies.problems._model_files import FILES, JOB, Params, build_model, check

NAME = "NumPyro model"
__all__ = ["FILES", "JOB", "NAME", "Params", "build", "check", "unavailable"]

unavailable = partial(install_hint, "NumPyro")
build = partial(build_model, "NumPyro")
