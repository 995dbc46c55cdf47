"""Theorem 3 of tzikas2024, every constant computed from the problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Theorem3:
    """The sufficient condition of Theorem 3 of tzikas2024.

    Attributes
    ----------
    tau_graph
        Condition number of the graph, sqrt(largest eigenvalue of the signless Laplacian / algebraic
        connectivity); inf if it is not connected.
    strong, smooth
        m_f and M_f: the least strong convexity and the largest smoothness of the f_i.
    tau_f
        M_f / m_f.
    limit
        The tau_f below which the condition holds at this m_f and graph; nan if at none.
    rate
        The smallest a over kappa and rho, by (86)-(90): the bound falls by sqrt(a) per iteration;
        1 or more if the condition fails.
    holds
        Whether the condition holds.
    """

    tau_graph: float
    strong: float
    smooth: float
    tau_f: float
    limit: float
    rate: float
    holds: bool


def theorem3(
    strong: float, smooth: float, signless_max: float, algebraic_connectivity: float
) -> Theorem3:
    """Return when Theorem 3 of tzikas2024 lets D-ADMMS converge.

    The condition is sqrt(u^2 + 4 u/tau_G^2) - u > 1/m_f with u = 1/tau_f^2; solved for tau_f,
    tau_f^2 < 4 m_f^2/tau_G^2 - 2 m_f. It is delta > 1/(2 m_f) at the largest delta, (90), and
    a = (2 m_f + 1)/(2 m_f (1 + delta)), (21).

    Parameters
    ----------
    strong, smooth
        m_f and M_f.
    signless_max
        Largest eigenvalue of D + A.
    algebraic_connectivity
        Smallest nonzero eigenvalue of D - A; 0 for a graph in parts.
    """
    tau_f = smooth / strong
    # Rounding leaves 1e-15 or so for a graph in parts.
    connected = algebraic_connectivity > 1e-10 * max(signless_max, 1.0)
    tau_graph = float(np.sqrt(signless_max / algebraic_connectivity)) if connected else np.inf
    u, v = 1 / tau_f**2, 4 / tau_graph**2
    delta = (np.sqrt(u**2 + u * v) - u) / 2
    square = strong**2 * v - 2 * strong
    return Theorem3(
        tau_graph,
        strong,
        smooth,
        tau_f,
        float(np.sqrt(square)) if square >= 1 else float("nan"),
        float((2 * strong + 1) / (2 * strong * (1 + delta))),
        bool(2 * strong * delta > 1),
    )
