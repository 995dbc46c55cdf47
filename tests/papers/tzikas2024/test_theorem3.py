"""Theorem 3 against its printed example, its proof's recursion and exact laws."""

import numpy as np
import pytest

import everything
from concord.networks.spectrum import spectrum_of
from concord.networks.topology import build_graph

tzikas2024 = everything.shared("tzikas2024", "theory")


@pytest.mark.parametrize(
    ("kind", "tau_graph", "limit"),
    # tzikas2024, section 5.3, prints 1.7, 1.26, 1.23 (our 1.236, cut) and sqrt(6).
    [("ring", 1.7013, 1.2361), ("complete", 1.2649, np.sqrt(6))],
)
def test_theorem3_gives_the_printed_example(kind, tau_graph, limit):
    spectrum = spectrum_of(build_graph(kind, 5))
    graph = spectrum["signless_max"], spectrum["algebraic_connectivity"]
    theorem = tzikas2024.theorem3(2.0, 2.0, *graph)
    assert theorem.tau_graph == pytest.approx(tau_graph, abs=1e-4)
    assert theorem.limit == pytest.approx(limit, abs=1e-4)
    assert tzikas2024.theorem3(2.0, 2 * limit * 0.999, *graph).rate < 1
    assert tzikas2024.theorem3(2.0, 2 * limit * 1.001, *graph).rate > 1


def test_theorem3_rate_is_the_minimum_over_kappa_and_rho():
    """Of (20)-(21)."""
    graph = 8.0, 5.0
    for strong, smooth in ((0.5, 0.6), (2.0, 4.0), (3.0, 20.0), (50.0, 60.0)):
        theorem = tzikas2024.theorem3(strong, smooth, *graph)
        kappa = np.geomspace(1.0001, 1e4, 4000)[:, None]
        rho = np.geomspace(1e-3, 1e4, 2000)
        # sigma^2 of the incidence matrices is twice the Laplacians' eigenvalues.
        plus, minus = 2 * graph[0], 2 * graph[1]
        delta = np.minimum(
            (kappa - 1) * minus / (kappa * plus),
            strong / (rho / 4 * plus + kappa * smooth**2 / (rho * minus)),
        ).max()
        best = (2 * strong + 1) / (2 * strong * (1 + delta))
        assert theorem.rate == pytest.approx(best, rel=1e-2)


def test_theorem3_says_nothing_of_graphs_in_parts():
    spectrum = spectrum_of(build_graph("no_edges", 5))
    theorem = tzikas2024.theorem3(
        2.0, 2.0, spectrum["signless_max"], spectrum["algebraic_connectivity"]
    )
    assert theorem.tau_graph == np.inf and theorem.rate > 1
