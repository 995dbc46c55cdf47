"""D-MALA: what is accepted, and which law that leaves."""

import numpy as np
import pytest

from concord.networks.construction import network
from concord.samplers.d_mala import DMALA
from steps import EXACT, Quadratic, Regression, chain, start, steps_of

ALONE, RING = network("no_edges", 1), network("ring", 5)
NORMAL = Quadratic([[[1.0]]], [[0.0]])
GRID = np.linspace(-6, 6, 801)
CORRECTED = [("half", "mala"), ("whole", "energy"), ("whole", "released")]
SHARE = {"half": 0.5, "whole": 1.0}


def variance(epsilon, drift, correction):
    """Return the stationary variance for one agent and N(0, 1), by quadrature of the equations."""
    x, y = GRID[:, None], GRID[None, :]
    z = (y - x + SHARE[drift] * epsilon**2 * x) / epsilon
    log = {
        "none": 0 * z,
        "released": -(epsilon**2) / 2 * (z**2 + x**2),
        "energy": -(epsilon**2) / 2 * (z**2 - x**2),
        "mala": (x**2 - y**2) / 2 + (z**2 - ((x - y + epsilon**2 / 2 * y) / epsilon) ** 2) / 2,
    }[correction]
    moves = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) / epsilon * (GRID[1] - GRID[0])
    kernel = moves * np.exp(np.minimum(log, 0))
    kernel[np.arange(len(GRID)), np.arange(len(GRID))] += 1 - kernel.sum(axis=1)
    equations, wanted = kernel.T - np.eye(len(GRID)), np.zeros(len(GRID))
    equations[-1], wanted[-1] = 1.0, 1.0
    weights = np.linalg.solve(equations, wanted)
    return weights @ (GRID - weights @ GRID) ** 2


@pytest.mark.parametrize(("drift", "correction"), [*CORRECTED, ("half", "none")])
def test_one_agent_has_the_law_of_the_equations(drift, correction):
    epsilon, chains = 0.8, 20_000
    x = chain(DMALA(epsilon, drift, correction), NORMAL, ALONE, 40, x0=start(NORMAL, chains))[-1]
    expected = variance(epsilon, drift, correction)
    assert abs(x.var() / expected - 1) < 4 * np.sqrt(2 / chains)
    assert abs(x.mean()) < 4 * np.sqrt(expected / chains)
    assert (abs(expected - 1) < 1e-6) == (correction == "mala")


@pytest.mark.parametrize(("drift", "correction"), [*CORRECTED, ("whole", "none")])
def test_a_network_moves_as_the_equations_say(drift, correction):
    """The equations as printed in the module, with what was tracked before, on a ring."""
    problem, chains = Regression(5, 2), 20
    epsilon = 0.2 if correction == "released" else 0.6
    x = start(problem, chains)
    found = steps_of(DMALA(epsilon, drift, correction), problem, RING, 4, x0=x)
    rng, mix = np.random.default_rng(1), np.zeros((5, 5))
    for i in range(5):
        mix[i, [i - 1, i, (i + 1) % 5]] = 1 / 3
    tracked, before, averaged, of_before, shares = 0.0, 0.0, 0.0, 0.0, []
    for _ in range(4):
        gradient = problem.shift - np.einsum("aij,caj->cai", problem.gram, x)
        tracked = np.einsum("ij,cjd->cid", mix, tracked + gradient - before)
        z = rng.standard_normal(x.shape)
        move = epsilon * z + SHARE[drift] * epsilon**2 * tracked
        before = gradient
        if correction != "none":
            along = move if correction == "mala" else z
            product = np.einsum("aij,caj->cai", problem.gram, along)
            own = product if correction == "mala" else (z * product).sum(axis=2, keepdims=True)
            averaged = np.einsum("ij,cjd->cid", mix, averaged + own - of_before)
            of_before, size = own, (tracked**2).sum(axis=2)
            log = {
                "mala": (2 * tracked * averaged - averaged**2).sum(axis=2) / 4,
                "energy": size - averaged[..., 0],
                "released": -size - averaged[..., 0],
            }[correction] * (epsilon**2 / 2)
            accepted = rng.random((chains, 5)) < np.exp(np.minimum(log, 0))
            shares.append(accepted.mean())
            move = move * accepted[..., None]
        x = np.einsum("ij,cjd->cid", mix, x + move)
    np.testing.assert_allclose(found.x[-1], x, rtol=1e-10, atol=EXACT)
    assert correction == "none" or 0.01 < np.mean(shares) < 0.99
    for state in found.states[1:]:  # averages of what is tracked are those of the agents
        for part in (state.rest, state.remainder):
            assert np.abs(part.sum(axis=1)).max(initial=0.0) < 1e-10
    vectors = {"none": 2, "mala": 3}.get(correction, 2.5)  # a number is half a vector here
    assert found.network.meter.unicasts.tolist() == [4 * 2 * vectors] * 5
    np.testing.assert_array_equal(found.gradients, [4 * (1 if correction == "none" else 3)] * 5)
