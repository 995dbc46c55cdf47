"""Spectra of graphs: eigenvalues of weights and Laplacians on which rates of convergence depend."""

import numpy as np

from concord.errors import ConcordError
from concord.networks.graph import Graph, as_dense

# Agents up to which spectra are computed: a dense solver takes seconds beyond.
SPECTRUM_AGENTS = 2000


def spectrum_of(graph: Graph) -> dict[str, float]:
    """Return the eigenvalues on which rates of convergence depend, by name.

    Of the weights W: ``lambda_2`` and ``lambda_N``, the second largest and the smallest;
    ``gamma_bar``, the larger of their moduli; ``spectral_gap`` = 1 - gamma_bar. Of the
    Laplacian: ``laplacian_max`` and ``algebraic_connectivity``, the largest and the second
    smallest. Of D + A: ``signless_max``, the largest. A ConcordError for directed graphs and
    beyond ``SPECTRUM_AGENTS``.
    """
    graph.refuse_directed("this spectrum")
    if graph.agents > SPECTRUM_AGENTS:
        raise ConcordError(
            f"topology {graph.name}: spectra are of at most {SPECTRUM_AGENTS} agents; use fewer"
        )
    weights, laplacian, adjacency = map(
        as_dense, (graph.metropolis, graph.laplacian, graph.adjacency)
    )
    of_weights = np.linalg.eigvalsh(weights)[:-1] if graph.agents > 1 else np.zeros(1)
    of_laplacian = np.linalg.eigvalsh(laplacian)
    gamma_bar = max(abs(of_weights[-1]), abs(of_weights[0]))
    eigenvalues = {
        "lambda_2": of_weights[-1],
        "lambda_N": of_weights[0],
        "gamma_bar": gamma_bar,
        "spectral_gap": 1 - gamma_bar,
        "laplacian_max": of_laplacian[-1],
        "algebraic_connectivity": of_laplacian[1] if graph.agents > 1 else 0.0,
        "signless_max": np.linalg.eigvalsh(np.diag(graph.degrees) + adjacency)[-1],
    }
    return {name: float(value) for name, value in eigenvalues.items()}
