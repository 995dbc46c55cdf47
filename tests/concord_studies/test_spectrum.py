"""Spectra of graphs against closed forms."""

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.networks.topology import build_graph as build
from concord_studies.spectrum import spectrum_of

EXACT = 1e-12  # rounding only


def cosine(agents: int, k: float) -> float:
    return np.cos(np.pi * k / agents)


def of_weights_and_laplacian(weights, least, most, signless):
    """What is known of a spectrum: eigenvalues of W but 1, and the ends of L's and of D + A's."""
    gamma = max(abs(max(weights)), abs(min(weights)))
    return {
        "lambda_2": max(weights),
        "lambda_N": min(weights),
        "gamma_bar": gamma,
        "spectral_gap": 1 - gamma,
        "laplacian_max": most,
        "algebraic_connectivity": least,
        "signless_max": signless,
    }


def closed_form(kind, agents):
    if kind == "complete":
        return of_weights_and_laplacian([0], agents, agents, 2 * (agents - 1))
    if kind == "star":
        return of_weights_and_laplacian([1 - 1 / agents, 0], 1, agents, agents)
    if kind == "path":
        slow, fast = 2 - 2 * cosine(agents, 1), 2 + 2 * cosine(agents, 1)
        return of_weights_and_laplacian([1 - slow / 3, 1 - fast / 3], slow, fast, fast)
    modes = [2 - 2 * cosine(agents, 2 * k) for k in range(1, agents)]
    return of_weights_and_laplacian([1 - mode / 3 for mode in modes], min(modes), max(modes), 4)


@pytest.mark.parametrize(
    ("kind", "agents"),
    [("ring", n) for n in (3, 5, 6, 20, 101)]
    + [("complete", n) for n in (2, 5, 6, 100)]
    + [("star", n) for n in (3, 6, 50)]
    + [("path", n) for n in (3, 4, 7, 40)],
)
def test_spectra_in_closed_form(kind, agents):
    expected = closed_form(kind, agents)
    assert spectrum_of(build(kind, agents)) == pytest.approx(expected, abs=agents * EXACT)


def test_spectra_of_directed_graphs_are_refused():
    with pytest.raises(ConcordError, match="need edges without direction"):
        spectrum_of(build("directed_ring", 3))
