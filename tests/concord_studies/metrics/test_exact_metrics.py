"""Metrics that rest on the exact law: stationary widths, stable steps, Theorem 3, draws."""

import copy

import pytest

from concord.errors import ConcordError
from concord.laws.law import SIZE_LIMIT
from concord.sampler import Sampler
from concord.samplers.de_sgld import DESGLD
from concord_studies.metrics import states_law
from whole_runs import measure


def test_the_width_of_d_admms_is_the_limit_of_its_law():
    """On a complete graph of 20 rounding in the conserved duals must not hide the limit."""
    found = measure(["stationary"])
    late = measure(["w2"], iterations=4000, record={"agents": [0], "at": [4000]})
    for agent in ("0", "average"):
        assert found["stationary_bias", agent] < 1e-6
        expected = pytest.approx(late["w2_exact", agent], rel=1e-6)
        assert found["stationary_w2", agent] == expected
    assert found["spectral_radius", "network"] < 1


def test_widths_of_one_agent_are_the_closed_form():
    """x' = x - eta (H x - b) + sqrt(2 eta) w has covariance H^-1 (I - eta H / 2)^-1."""
    eta, one = 0.4, {"agents": 1, "topology": {"kind": "no_edges"}}
    found = measure(
        ["stationary", "stable_step"], sampler={"kind": "de_sgld", "step_size": eta}, **one
    )
    low, trace, high = (
        found[f"stationary_{name}", "0"] for name in ("narrowest", "trace", "widest")
    )
    assert high == pytest.approx(1 / (1 - eta / found["stable.step_size", "network"]), rel=1e-4)
    variances = [eta / 2 / (1 - 1 / ratio) for ratio in (low, high)]  # of the posterior
    expected = (low * variances[0] + high * variances[1]) / sum(variances)
    assert trace == pytest.approx(expected, rel=1e-9)
    assert 1 < low < 0.9 * high


@pytest.mark.parametrize(
    "sampler",
    [
        {"kind": "de_sgld", "step_size": 0.01},
        {"kind": "d_ula", "step_size": 0.001, "fusion": 0.02, "update_order": "in_place"},
    ],
    ids=["de_sgld", "d_ula_in_place"],
)
def test_stable_steps_are_where_stability_ends(sampler):
    found = measure(["stable_step"], sampler=sampler, agents=5)
    for step in ("step_size", "fusion"):
        if step not in sampler:
            continue
        assert found[f"used.{step}", "network"] == sampler[step]
        limit = found[f"stable.{step}", "network"]
        radii = [
            measure(["stationary"], sampler={**sampler, step: factor * limit}, agents=5)[
                "spectral_radius", "network"
            ]
            for factor in (0.999, 1.001)
        ]
        assert radii[0] < 1 < radii[1]


def test_a_law_that_is_too_large_is_left_to_monte_carlo():
    agents = SIZE_LIMIT // 2 + 1
    given = {"agents": agents, "topology": {"kind": "ring"}, "problem": {"points_per_agent": 3}}
    found = measure(["w2"], **given)
    assert ("w2", "0") in found
    assert ("w2_exact", "0") not in found
    with pytest.raises(ConcordError, match="exceed"):
        measure(["stationary"], **given)


def test_divergence_and_consensus_error_of_d_ula():
    """The exact consensus error is that of many chains, and the divergence falls towards zero."""
    given = {
        "sampler": {
            "kind": "d_ula",
            "step_size": {"kind": "power", "a": 0.1, "b": 1, "exponent": 0.6},
            "fusion": {"kind": "power", "a": 0.2, "b": 1, "exponent": 0.05},
        },
        "agents": 5,
        "topology": {"kind": "ring"},
        "chains": 4000,
        "record": {"every": 15, "probes": ["consensus_error"]},
        "problem": {"points_per_agent": 4, "noise_sd": 4.0},
    }
    early = measure(["kl", "consensus_error"], iterations=15, **copy.deepcopy(given))
    expected = pytest.approx(early["consensus_error", "network"], rel=0.05)
    assert early["consensus_exact", "network"] == expected
    late = measure(["kl"], iterations=3000, **{**given, "chains": 2})
    assert 0 < late["kl_average", "network"] < 0.01 * early["kl_average", "network"]
    assert late["theorem2_step.a below (26)", "network"] in (0, 1)
    with pytest.raises(ConcordError, match="D-ULA"):
        measure(["kl"])


def test_a_step_that_fails_is_left_to_its_jobs():
    """Planning asks whether a sampler has a law, and ends in no error of a plug-in's."""

    class Broken(Sampler):
        def step(self, *arguments):
            raise RuntimeError("boom")

    assert states_law(Broken())


@pytest.mark.parametrize("batches", [{"batch_scale": "mean"}, {"batch_order": "epochs"}])
def test_a_step_is_as_affine_with_mini_batches_as_without(batches):
    assert states_law(DESGLD(0.1, batch_size=2, **batches))
