"""Lies and robust mixing: what is sent and weighed, and the exact laws of samplers with liars."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.laws.law import update_of
from concord.laws.read_off import NoLaw
from concord.networks.construction import network
from concord.networks.weights import mixing_matrix
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule

ETA, LIAR = 0.05, 1
PROBLEM = concord.problems.gaussian(
    agents=8, condition=4.0, heterogeneity=2.0, curvature_heterogeneity=0.5
)
SIGN = {"kind": "sign", "agents": [LIAR], "factor": 2.0}
NOISE = {"kind": "noise", "agents": [LIAR], "sd": 0.7}
CONSTANT = {"kind": "constant", "agents": [LIAR], "value": 3.0}
SAMPLERS = {
    "de_sgld": {"step_size": ETA},
    "de_sghmc": {"step_size": 0.2, "friction": 2.0},
    "d_ula": {"step_size": 0.01, "fusion": 0.1},
    "extra_sgld": {"step_size": ETA},
    "diging_sgld": {"step_size": ETA},
    "local_sgld": {"step_size": ETA, "period": 2},
    "admm": {"penalty": 0.2},
}


def lying(lie=None, graph="exponential", **options):
    return network(graph, 8, **({"byzantine": lie} if lie else {}), **options)


def heard_by(net, x):
    """Return what agents make of x by weights of one for each neighbor, zero for themselves."""
    running = net.start(x, np.random.default_rng(1))
    running.begin(0)
    return running.mix(net.graph.adjacency, x)


@pytest.mark.parametrize(("lie", "factor", "sd", "value"), [
    (SIGN, -2.0, 0.0, 0.0), (NOISE, 0.0, 0.7, 0.0), (CONSTANT, 0.0, 0.0, 3.0),
])  # fmt: skip
def test_the_update_with_a_liar_is_the_one_worked_out(lie, factor, sd, value):
    """x' = W' x + c + ... with the liar's column of W times the factor, but for itself."""
    net = lying(lie)
    update = update_of(DESGLD(Schedule(ETA)), PROBLEM, net).at(0)
    weights = mixing_matrix(net.graph, "metropolis")
    column = weights[:, LIAR] * (np.arange(8) != LIAR)
    weights = weights.copy()
    weights[:, LIAR] += (factor - 1) * column
    blocks = [ETA * h for h in PROBLEM.gram]
    expected = np.kron(weights, np.eye(2))
    for i, block in enumerate(blocks):
        expected[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] -= block
    np.testing.assert_allclose(update.matrix, expected, atol=1e-13)
    offset = ETA * PROBLEM.shift + value * column[:, None]
    np.testing.assert_allclose(update.offset, offset.ravel(), atol=1e-13)
    noise = 2 * ETA * np.eye(16) + sd**2 * np.kron(np.outer(column, column), np.eye(2))
    np.testing.assert_allclose(update.noise, noise, atol=1e-13)


@pytest.mark.parametrize("lie", [SIGN, NOISE, CONSTANT], ids=lambda lie: lie["kind"])
@pytest.mark.parametrize("sampler", sorted({*SAMPLERS} - {"admm"}))
def test_chains_with_a_liar_have_the_moments_of_the_law(sampler, lie):
    """Within five standard errors; both vectors of DIGing are lies."""
    chains, run = 2000, {"iterations": 25, **SAMPLERS[sampler]}
    law = concord.law(sampler, PROBLEM, lying(lie), **run)
    x = concord.sample(sampler, PROBLEM, lying(lie), chains=chains, **run)["x"][:, -1]
    variance = np.diagonal(law.cov[-1], axis1=1, axis2=2)
    assert (abs(x.mean(axis=0) - law.mean[-1]) <= 5 * np.sqrt(variance / chains)).all()
    assert (abs(x.var(axis=0) / variance - 1) <= 5 * np.sqrt(2 / chains)).all()


@pytest.mark.parametrize("graph", ["exponential", "star", {"kind": "grid", "rows": 2}], ids=str)
def test_medians_are_those_of_a_loop_over_agents(graph):
    """On graphs whose agents hear unequally many."""
    net = lying(graph=graph, robust={"kind": "median"})
    x = np.random.default_rng(3).standard_normal((5, 8, 2))
    near = net.graph.adjacency != 0
    expected = [near[i].sum() * np.median(x[:, near[i]], axis=1) for i in range(8)]
    np.testing.assert_allclose(heard_by(net, x), np.stack(expected, axis=1), atol=1e-12)


@pytest.mark.parametrize("trim", [1, 2])
def test_trimmed_vectors_leave_their_weight_to_the_agents_own(trim):
    net = lying(robust={"kind": "trimmed_mean", "trim": trim})
    x = np.random.default_rng(3).standard_normal((5, 8, 2))
    near = net.graph.adjacency != 0
    expected = [
        np.sort(x[:, near[i]], axis=1)[:, trim:-trim].sum(axis=1) + 2 * trim * x[:, i]
        for i in range(8)
    ]
    np.testing.assert_allclose(heard_by(net, x), np.stack(expected, axis=1), atol=1e-12)


def test_there_is_no_law_of_robust_mixing_nor_of_lies_that_are_remembered_or_lost():
    run = {"iterations": 2, "step_size": ETA}
    with pytest.raises(NoLaw, match="not affine"):
        concord.law("de_sgld", PROBLEM, lying(robust={"kind": "median"}), **run)
    with pytest.raises(NoLaw, match="may be a lie"):
        concord.law("admm", PROBLEM, lying(SIGN, on_loss="reuse_last"), iterations=2, penalty=1.0)
    with pytest.raises(NoLaw, match="depends on what is sent"):
        concord.law("de_sgld", PROBLEM, lying(SIGN, awake=0.5), **run)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"byzantine": {**SIGN, "agents": [8]}}, r"byzantine.agents\[0\]: there is no agent 8"),
        ({"robust": {"kind": "trimmed_mean", "trim": 3}}, r"robust.trim: 3 .* of 5 vectors"),
        ({"robust": {"kind": "median"}, "on_loss": "sender_keeps"}, "on_loss: sender_keeps"),
    ],
    ids=["agent", "trim", "on_loss"],
)
def test_what_has_no_meaning_is_refused(options, message):
    with pytest.raises(ConcordError, match=message):
        lying(**options)
