"""Theorems 1 and 2 of bhar2023: constants by hand, what they bound by simulation, refusals."""

from dataclasses import replace

import numpy as np
import pytest

import everything
import measurements
from concord.errors import ConcordError
from concord.laws import exact, paths
from concord.networks.construction import network
from concord.options import build
from concord.problems.from_options import from_options
from concord.problems.kinds import logistic_regression, tied_mixture
from concord.samplers.d_ula import DULA
from concord.samplers.gossip_ula import GossipULA
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule
from concord_studies.metrics import Measurement
from concord_studies.metrics.stationary import read_choices
from steps import recorded
from variants import problem

theory = everything.shared("bhar2023", "theory")
consensus_floor = everything.kind("metrics", "consensus_floor")
gossip_theorems = everything.kind("metrics", "gossip_theorems")
RING = network("ring", 5)
TRIGGER = {"communication": "triggered", "threshold": 8.0, "decay": 0.51}
CURVATURE = theory.Curvature(3.0, 6.0, 4.0, 5.0)
EXAMPLE = theory.Gossip(5, 2, 1e-4, 0.1, 0.28, 0.4, threshold=8.0, decay=0.51)


def sampled(net=RING, ticks=300, chains=400, prob=None, **options) -> Measurement:
    """Return a measurement of chains that gossip, with every tick recorded."""
    sampler = build(GossipULA, {"step_size": 1e-4, "fusion": 0.1, **options}, "sampler")
    prob = prob or problem(net.agents, 2, points=100)
    trace = recorded(sampler, prob, net, ticks, chains, every=1, probes=("consensus_error",))
    run = {"problem": prob, "network": net, "sampler": sampler, "initial": Law("normal")}
    return measurements.measurement(trace, **run)


def table(m) -> dict[tuple[str, int], float]:
    return {(row.metric, row.iteration): row.value for row in gossip_theorems.rows(m)}


def curve(found, name, ticks) -> np.ndarray:
    return np.array([found[name, k] for k in ticks])


@pytest.mark.parametrize("start", [0, 7, 40])
def test_lemma1_bounds_its_recursion_and_nothing_less(start) -> None:
    sigma, push, decay, offset, value = 0.9, 3.0, 0.5, 0.2, 5.0
    first = max(start, int(np.ceil(decay / abs(np.log(sigma)) - 1)))
    values = [value]
    for k in range(20_000):
        values.append(sigma * values[-1] + push / (k + 1) ** decay + offset)
    k = np.arange(1, len(values))
    bound = theory.lemma1(k, value, sigma, push, decay, offset, first)
    assert (np.array(values[1:]) <= bound * (1 + 1e-12)).all()
    # In the limit nothing but W_3 is left, which is what the recursion settles at.
    limit = theory.lemma1(np.array([1e14]), value, sigma, push, decay, offset, first)[0]
    assert limit == pytest.approx(offset / (1 - sigma), rel=1e-4)
    assert values[-1] == pytest.approx(limit + push / (1 - sigma) / 20_000**decay, rel=1e-3)


def test_the_printed_bound_by_hand() -> None:
    """(27)-(31), among them a negative Y_2: (29) has ln lambda where Lemma 1 needs its half."""
    n, beta, alpha, mu, delta, p = 5, 0.1, 1e-4, 8 / 10**0.51, 0.51, 0.4
    first, gradients, k = 3.0, 40.0, np.array([1, 10, 1000])
    lam = 1 - 2 * beta * (1 - beta) * 0.28
    root = np.sqrt(lam)
    start = max(0, int(np.ceil(delta / abs(np.log(lam)) - 1)))
    t = np.arange(start)
    y1 = first + 2 * beta**2 * n * mu / (1 - root) * (root ** -(t + 1.0) / (t + 1) ** delta).sum()
    y2 = -2 * beta**2 * n * mu / (root * (1 - root)) / (np.log(root) + delta / (start + 1))
    y3 = 2 * alpha * n**2 * (alpha * gradients / (4 * p**2) + 2 * 2) / (1 - root) ** 2
    expected = y1 * root**k + y2 / k**delta + y3
    found = theory.consensus_bound(EXAMPLE, k, first, gradients, printed=True)
    assert np.allclose(found, expected, rtol=1e-12)
    assert y2 < 0
    assert (theory.consensus_bound(EXAMPLE, k, first, gradients, printed=False) > y3).all()


def test_conditions_by_hand() -> None:
    left = 8 * 0.1**3 * 2.0**4 / (1 - np.exp(-0.1))
    met = theory.condition1(0.1, 2.0, 1.0, 1.0)
    assert met.value == pytest.approx(left)
    assert met.holds == (left < 1)
    assert not theory.condition1(1.0, 2.0, 1.0, 1.0).holds
    assert theory.condition1(0.1, 2.0, 0.1, 10.0) is None  # it depends on a rho that is not known
    assert not theory.condition1(1e-9, np.inf, 0.0, np.inf).holds
    second = theory.condition2(EXAMPLE)
    assert second.holds and second.value == pytest.approx(2 * 0.28 * 0.09)
    assert not theory.condition2(replace(EXAMPLE, fusion=0.5, connectivity=2.0)).holds


@pytest.mark.parametrize("drift", ["half", "whole"])
def test_exact_errors_are_those_of_a_simulation(drift) -> None:
    m = sampled(drift=drift)
    found, ticks = table(m), np.arange(1, 301)
    errors = m.trace["consensus_error"][:, 1:]
    exact_errors = curve(found, "gossip_consensus", ticks)
    standard = errors.std(axis=0) / np.sqrt(len(errors))
    assert (np.abs(errors.mean(axis=0) - exact_errors) < 5 * standard).all()
    # The moments that gossip_kl is made of: within a few standard errors of 400 chains.
    average = m.trace["x_average"][:, 300]
    target = m.problem.posterior
    away = average - target.mean
    square = np.einsum("cd,de,ce->c", away, np.linalg.inv(target.cov), away)
    logs = np.linalg.slogdet(target.cov)[1] - np.linalg.slogdet(np.cov(average.T))[1]
    expected = (square.mean() - 2 + logs) / 2
    assert found["gossip_kl", 300] == pytest.approx(expected, abs=0.1)
    assert found["gossip.drift_share", 300] == pytest.approx({"half": 0.5, "whole": 1}[drift])


@pytest.mark.parametrize("drift", ["half", "whole"])
def test_rederived_bounds_hold_and_limits_are_reached(drift) -> None:
    m = sampled(drift=drift, ticks=2000, chains=2)
    found, ticks = table(m), np.arange(1, 2001)
    assert found["gossip.condition_1", 2000] == found["gossip.condition_2", 2000] == 1
    least, most = (curve(found, name, ticks) for name in ("gossip_kl", "gossip_kl_most"))
    assert (least < most).all()
    assert (most < curve(found, "gossip_kl_bound", ticks)).all()
    consensus = curve(found, "gossip_consensus", ticks)
    assert (consensus < curve(found, "gossip_bound", ticks)).all()
    assert found["gossip_floor", 2000] == pytest.approx(consensus[-1], rel=1e-6)
    assert found["gossip_bias", 2000] == pytest.approx(least[-1], rel=1e-4)
    assert found["gossip_excess", 1] == least[0] - found["gossip_bias", 2000]
    assert found["gossip_bound", 0] == np.inf  # (27) is about later ticks


def test_where_everyone_is_active_the_law_is_normal() -> None:
    """Two agents always gossip with each other: no choice, and gossip_kl is the divergence."""
    pair = network("complete", 2)
    m = sampled(pair, ticks=50, chains=2)
    found = table(m)
    choices = read_choices(m.sampler, m.problem, pair)(0)
    step = exact.Affine(choices.matrix[0], choices.offset[0], choices.noise[0])
    start = exact.initial_moments(2, 2, Law("normal").moments(2))
    law = paths.build_path(exact.Update(lambda k: step), start, 2, 2).law([50])
    target = m.problem.posterior
    precision, away = np.linalg.inv(target.cov), law.average_mean[0] - target.mean
    cov = law.average_cov[0]
    logs = np.log(np.linalg.det(target.cov) / np.linalg.det(cov))
    expected = (np.trace(precision @ cov) + away @ precision @ away - 2 + logs) / 2
    assert found["gossip_kl", 50] == pytest.approx(expected)
    assert found["gossip_kl_most", 50] > expected


@pytest.mark.parametrize("drift", ["half", "whole"])
def test_triggering_adds_to_the_floor(drift) -> None:
    m = sampled(ticks=2000, chains=20, drift=drift, **TRIGGER)
    found = table(m)
    windows = {row.iteration: row for row in consensus_floor.rows(m)}
    added = {k: value for (name, k), value in found.items() if name == "gossip_added"}
    assert len(added) > 10
    for k, value in added.items():
        assert value == pytest.approx(windows[k].value - found["gossip_floor", 2000], rel=1e-9)
    assert ("gossip_kl", 2000) not in found
    # (9): the printed common threshold is below the agents' own, the rederived one above.
    own = (8 / (m.trace["activations"][:, -1].min(axis=1) + 1) ** 0.51).mean()
    assert found["gossip.threshold", 2000] == pytest.approx(own)
    limit = {"half": 8 / (10 * 2001) ** 0.51, "whole": 8 * (10 / 2001) ** 0.51}[drift]
    assert found["gossip.threshold_bound", 2000] == pytest.approx(limit)
    assert (limit > own) == (drift == "whole")


@pytest.mark.parametrize("printed", [True, False])
def test_the_bias_constant_by_hand(printed) -> None:
    """(31) and (48), the terms of nu multiplied as printed or added up as in (53)."""
    of, curvature = replace(EXAMPLE, power=0.5 if printed else 1.0), CURVATURE

    def b(alpha=1e-4, n=5.0, p=0.4, d=2.0, noise=70.0, spread=0.3) -> float:
        half = 2 if printed else 1  # weights 1/(2 p), or 1/p
        root = np.sqrt(1 - 2 * 0.1 * 0.9 * 0.28)
        y3 = 2 * alpha * n**2 * (alpha * 40 / (half * p) ** 2 + 2 * d) / (1 - root) ** 2
        gain = (2 / half) ** 2 * (3 * alpha**3 * 9.0 * 36.0 / (2 * p) + alpha * 9.0 / p)
        first = 3 * alpha**3 * 36 * (noise + 36 * spread)
        tick = 2 * alpha * (noise + alpha * 36 * d)
        nu = first + (tick * gain * y3 if printed else tick + gain * y3)
        return nu / -np.expm1(-alpha * 4)

    offset = theory.consensus_offset(of, 40.0)
    found = theory.bias_constant(of, curvature, offset, 70.0, 0.3, printed)
    assert found == pytest.approx(b(), rel=1e-9)
    varied = gossip_theorems._vary_bias(of, curvature, 40.0, 70.0, 0.3, printed)
    small = 1e-10  # of the step in ``b``, 1e-4
    exponents = {"alpha": b(2 * small), "n": b(small, n=10), "p_m": b(small, p=0.8)}
    limits = {"alpha": 2, "n": 2, "p_m": -1} if printed else dict.fromkeys(exponents, 0)
    bends = {
        "C_xi": b(noise=140) + b(noise=0),
        "C_w": b(spread=0.6) + b(spread=0),
        "d_w": b(d=4) + b(d=0),
    }
    for name, value in exponents.items():
        found = varied[f"gossip.exponent_{name}"]
        assert found == pytest.approx(np.log2(value / b(small)), rel=1e-6, abs=1e-9)
        assert found == pytest.approx(limits[name], abs=0.01)
    for name, value in bends.items():
        bend = value / b() - 2
        assert varied[f"gossip.bend_{name}"] == pytest.approx(bend, rel=1e-6, abs=1e-12)
        assert (abs(bend) > 1e-6) == (printed and name == "d_w")


def hessian(prob, x: np.ndarray) -> np.ndarray:
    """Return the Hessians of every f_i at x by central differences, (agents, dim, dim)."""
    columns = []
    for shift in 1e-5 * np.eye(prob.dim):
        ends = [prob.gradient(np.tile(x + sign * shift, (1, prob.agents, 1))) for sign in (1, -1)]
        columns.append((ends[0] - ends[1])[0] / 2e-5)
    return np.stack(columns, axis=-1)


def test_logistic_curvature_holds_everywhere_and_is_reached() -> None:
    prob = from_options(logistic_regression)(5, points=60, feature_variance=1.0)
    least, most = prob.curvature()
    assert np.allclose(hessian(prob, np.zeros(2)), most, atol=1e-6)
    for x in np.random.default_rng(2).standard_normal((20, 2)):
        between = hessian(prob, x)
        assert np.linalg.eigvalsh(between - least).min() > -1e-6
        assert np.linalg.eigvalsh(most - between).min() > -1e-6
    flat = from_options(logistic_regression)(5, points=60, prior="laplace")
    assert np.isinf(flat.curvature()[1]).all()


@pytest.mark.parametrize("second", ["theta_1 + theta_2", "theta_2"])
def test_the_mixture_is_not_lipschitz(second) -> None:
    """Halfway between the components a point's curvature grows like their distance squared."""
    prob = from_options(tied_mixture)(5, points=5, second_mean=second)
    point, sizes = prob.points[0, 0], []
    for distance in (40.0, 80.0):
        first = point - distance / 2
        x = np.array([first, distance if second != "theta_2" else first + distance])
        sizes.append(-hessian(prob, x)[0, 1, 1])
    assert sizes[1] / sizes[0] == pytest.approx(4, rel=0.1)
    assert np.isinf(prob.curvature()).all()


def test_the_mixture_and_others_have_conditions_only() -> None:
    m = sampled(ticks=20, chains=3, prob=from_options(tied_mixture)(5, points=25), **TRIGGER)
    found = {name for name, _ in table(m)}
    assert found == {
        *(f"gossip.condition_{i}{what}" for i in (1, 2) for what in ("", ".value")),
        *("gossip.threshold", "gossip.threshold_bound", "gossip.drift_share"),
    }
    assert table(m)["gossip.condition_1", 20] == 0


@pytest.mark.parametrize(
    "sampler",
    [
        DULA(Schedule(1e-3), fusion=Schedule(0.1)),
        GossipULA(Schedule(1e-3), communication="never"),
        GossipULA(Schedule(1e-3, c=1.0)),
    ],
    ids=["d_ula", "never", "decaying"],
)
def test_other_runs_are_refused(sampler) -> None:
    m = replace(sampled(ticks=2, chains=2), sampler=sampler)
    with pytest.raises(ConcordError, match="metric gossip_theorems needs gossip ULA"):
        list(gossip_theorems.rows(m))
