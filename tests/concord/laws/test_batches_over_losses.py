"""Moments with mini-batches, where vectors may get lost too: a reduction, and chains."""

import numpy as np
import pytest

import concord
from concord.laws.law import laws_of_versions
from concord.samplers.diging_sgld import DIGingSGLD

RNG = np.random.default_rng(1)
FEATURES = RNG.standard_normal((48, 2))
PROBLEM = concord.problems.linear_regression(FEATURES, FEATURES @ [1.0, -1.0], agents=4)
RING = [[0, 1], [1, 2], [2, 3], [3, 0]]
ALL_UP = concord.network("ring", 4, schedule={"kind": "in_turn", "graphs": [RING]})
ONE_WAY = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
RUN = {"step_size": 0.02, "batch_size": 2}


@pytest.mark.parametrize("sampler", ["de_sgld", "extra_sgld", "diging_sgld"])
def test_where_all_links_are_up_it_is_the_law_of_the_perfect_network(sampler):
    """Errors of DIGing's gradients are sent, too."""
    lossy, perfect = (
        concord.law(sampler, PROBLEM, network, iterations=20, **RUN) for network in (ALL_UP, "ring")
    )
    np.testing.assert_allclose(lossy.mean, perfect.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(lossy.cov, perfect.cov, rtol=1e-10, atol=1e-12)


def test_constant_errors_of_versions_are_in_their_laws_wherever_vectors_arrive():
    errors = np.broadcast_to([[9.0, 3.0], [3.0, 4.0]], (4, 2, 2))
    two, full = DIGingSGLD(0.02, batch_size=2), DIGingSGLD(0.02)
    lossy, perfect, full = (
        laws_of_versions([sampler], [PROBLEM], network, (0.0, 1.0), errors=batch_errors)
        .marginals_at([20])
        .cov
        for sampler, network, batch_errors in (
            (two, ALL_UP, errors),
            (two, concord.network("ring", 4), errors),
            (full, ALL_UP, None),
        )
    )
    np.testing.assert_allclose(lossy, perfect, rtol=1e-10)
    assert (np.trace(lossy, axis1=-2, axis2=-1) > 1.1 * np.trace(full, axis1=-2, axis2=-1)).all()


HAPPENS = [
    {"schedule": {"kind": "kept", "probability": 0.5}},
    {"loss": ONE_WAY, "on_loss": "reuse_last"},
    {"loss": ONE_WAY, "on_loss": "sender_keeps", "noise": 0.1},
    {"awake": 0.6, "noise": 0.1},
]
OTHERS = [
    ("d_ula", {"step_size": 0.005, "fusion": 0.2}),
    ("de_sghmc", {"step_size": 0.1, "friction": 2.0, "batch_scale": "mean"}),
    ("extra_sgld", {"batch_scale": "none"}),
    ("local_sgld", {"common_noise": 0.4}),
    ("push_sum_sgld", {}),
]


@pytest.mark.parametrize(
    ("sampler", "options", "happens"),
    [
        *((sampler, {}, each) for sampler in ("de_sgld", "diging_sgld") for each in HAPPENS),
        *((sampler, options, {}) for sampler, options in OTHERS),
    ],
    ids=lambda each: each if isinstance(each, str) else "+".join(each),
)
def test_chains_have_the_moments_over_losses_and_mini_batches(sampler, options, happens):
    """Within five standard errors, those of variances from fourth moments."""
    chains, network = 4000, concord.network("ring", 4, **happens)
    steps = {"iterations": 20, "record": {"at": [20]}, **RUN, **options}
    law = concord.law(sampler, PROBLEM, network, **steps)
    x = concord.sample(sampler, PROBLEM, network, chains=chains, **steps)["x"][:, -1]
    variance, off = np.diagonal(law.cov[-1], axis1=1, axis2=2), x - x.mean(axis=0)
    assert (abs(x.mean(axis=0) - law.mean[-1]) <= 5 * np.sqrt(variance / chains)).all()
    errors = (off**2).std(axis=0) / np.sqrt(chains)
    assert (abs((off**2).mean(axis=0) - variance) <= 5 * errors).all()
