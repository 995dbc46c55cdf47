r"""A JAX network in a study's folder, its rows split over agents.

.. math::
    f_i(w) = - \sum_{j \in S_i} \log p(y_j \mid h_w(X_j)) + \frac{1}{2 N s^2} \lVert w \rVert^2

``network(**columns, **options)`` of the file returns the arguments of ``concord.from_jax``, by
name; docs/your-network.md explains the rest.

Needs: JAX (the extra ``jax``).
"""

from functools import partial

from concord_studies.problems._network_files import Params, build_network, check, declare

__all__ = ["DECLARES", "Params", "build", "check"]

DECLARES = declare("JAX", "models")
build = partial(build_network, "JAX")
