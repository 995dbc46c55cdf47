"""Laws by which settings are chosen: exact where what they leave out is zero."""

import numpy as np
import pytest

from concord.arguments import ChosenSampler
from concord.laws.law import laws_of_versions
from concord.linearized import LinearizedPath
from concord.networks.construction import network
from concord.problems.gaussian_fit import fit
from concord.problems.quadratic_problem import QuadraticProblem
from concord_arena.surrogates import CoordinatewiseLaws, split

SAMPLERS = {
    "de_sgld": {"step_size": 0.1},
    "de_sghmc": {"step_size": 0.2, "friction": 1.0},
    "extra_sgld": {"step_size": 0.1},
    "diging_sgld": {"step_size": 0.05},
    "local_sgld": {"step_size": 0.05, "period": 3},
    "d_ula": {"step_size": 0.01, "fusion": 0.1},
    "graph_gibbs": {"tolerance": 0.5},
}


def problem_of(curved):
    """Agents whose Hessians have one eigenbasis; one Hessian unless they are ``curved``."""
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    values = rng.uniform(0.2, 1.5, (6 if curved else 1, 3))
    gram = np.einsum("da,ia,ea->ide", basis, values, basis)
    return QuadraticProblem(np.broadcast_to(gram, (6, 3, 3)), rng.standard_normal((6, 3)))


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("kind", SAMPLERS)
def test_small_systems_are_exact_where_they_may_be(kind, mean):
    if kind == "graph_gibbs" and mean:
        pytest.skip("colors in turn have no eigenvectors in common")
    problem, graph = problem_of(curved=not mean), network("grid", 6)
    samplers = [ChosenSampler.parse({"kind": kind, **SAMPLERS[kind]}, "sampler").params] * 2
    positions = np.full(3, 0.5), np.diag([1.0, 1.0, 1.0])
    own = laws_of_versions(samplers, [problem] * 2, graph, positions)
    surrogate = CoordinatewiseLaws(samplers, split(fit(problem), positions), graph, mean)
    mix = np.linalg.matrix_power(graph.matrix("metropolis"), 2)
    for read in (None, mix):
        for exact, found in zip(
            own.with_answers(read).marginals_at([1, 7, 40]),
            surrogate.with_answers(read).marginals_at([1, 7, 40]),
            strict=True,
        ):
            np.testing.assert_allclose(found, exact, atol=1e-9)


@pytest.mark.parametrize("kind", sorted(SAMPLERS.keys() - {"graph_gibbs", "local_sgld"}))
def test_linearized_laws_are_exact_on_gaussian_problems(kind):
    problem, graph = problem_of(curved=True), network("path", 6)
    samplers = [ChosenSampler.parse({"kind": kind, **SAMPLERS[kind]}, "sampler").params]
    positions = np.full(3, 0.5), np.eye(3)
    own = laws_of_versions(samplers, [problem], graph, positions)
    found = LinearizedPath(samplers, problem, graph, positions, fit(problem))
    for exact, other in zip(
        own.marginals_at([1, 7, 40]), found.marginals_at([1, 7, 40]), strict=True
    ):
        np.testing.assert_allclose(other, exact, atol=1e-8)
