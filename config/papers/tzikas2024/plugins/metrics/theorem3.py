"""Theorem 3 of tzikas2024: condition numbers of graph and problem, and its conditions on them."""

from collections.abc import Iterator

import numpy as np

from concord.networks.network import Network
from concord.networks.spectrum import spectrum_of
from concord.problem import Quadratic
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, unmet_need

from .. import theory

METRICS = ("theorem3.*",)
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
CONDITIONS = ("theorem3.holds",)
LABELS = {
    "theorem3.tau_G": Label("condition number of the graph", "tau_G"),
    "theorem3.limit_at_2": Label(head="limit of tau_f at m_f = 2"),
    "theorem3.limit": Label(head="limit of tau_f"),
    "theorem3.holds": Label(head="condition"),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield Theorem 3's constants, and whether its sufficient condition holds (1) or not (0).

    theorem3.limit is the tau_f below which it holds at this run's m_f, theorem3.limit_at_2 the one
    at m_f = 2, the paper's example; nan where no tau_f will do.
    """
    if not isinstance(m.problem, Quadratic):
        raise unmet_need("theorem3", "linear regression")
    theorem = compute_theorem(m.problem, m.network)
    constants = {
        "tau_G": theorem.tau_graph,
        "limit_at_2": theory.theorem3(2.0, 2.0, *_graph(m.network)).limit,
        "m_f": theorem.strong,
        "M_f": theorem.smooth,
        "tau_f": theorem.tau_f,
        "limit": theorem.limit,
        "a": theorem.rate,
        "holds": float(theorem.rate < 1),
    }
    return final_rows(m, {f"theorem3.{name}": value for name, value in constants.items()})


def compute_theorem(problem: Quadratic, network: Network) -> theory.Theorem3:
    """Return the constants of tzikas2024's Theorem 3 for a problem on a network."""
    curvature = np.linalg.eigvalsh(problem.gram)
    return theory.theorem3(float(curvature.min()), float(curvature.max()), *_graph(network))


def _graph(network: Network) -> tuple[float, float]:
    """Return the largest signless Laplacian eigenvalue and the algebraic connectivity."""
    spectrum = spectrum_of(network.graph)
    return spectrum["signless_max"], spectrum["algebraic_connectivity"]
