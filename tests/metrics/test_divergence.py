"""What every metric makes of chains that diverged, and of chains that did not.

Every family that there is, on a run it applies to: chains of exact posterior draws. What diverged
chains leave looks perfect here: no error, every point classified right, draws where the posterior
is; only the iteration at which they diverged tells.
"""

from __future__ import annotations

import math
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import ot  # noqa: F401  before warnings are errors
import pytest

from concord import initial, metrics, streams, topology
from concord.chain import Record, Recorder, Trace, simulate
from concord.errors import ConcordError
from concord.gaussian import Gaussian
from concord.grid import from_log_density
from concord.metrics import Measurement, Row
from concord.plugins import kinds, plugin
from concord.samplers import d_ula, de_sghmc, de_sgld
from concord.schedules import Schedule

CHAINS, LAST, AGENTS, IMAGES = 6, 40, 4, 12
DIVERGED = 20
DIMENSIONS = {
    "x": ("chain", "draw", "agent", "dim"),
    "x_average": ("chain", "draw", "dim"),
    "consensus_error": ("chain", "draw"),
    "predictive_mean": ("chain", "agent", "predictive_dim_0", "predictive_dim_1"),
    "predictive_sd": ("chain", "agent", "predictive_dim_0", "predictive_dim_1"),
}
SAMPLERS = {
    "de_sgld": (de_sgld, de_sgld.Params(Schedule(0.05))),
    "de_sghmc": (de_sghmc, de_sghmc.Params(Schedule(0.01), friction=1.0)),
    "d_ula": (d_ula, d_ula.Params(Schedule(0.1, 1, 1, 0.6), Schedule(0.2, 1, 1, 0.1))),
}


def log_posterior(a: Any, b: Any) -> Any:
    return -0.5 * (a**2 + b**2)


def problem(dim: int) -> SimpleNamespace:
    """Return a Gaussian problem, N(0, I), that is everything else besides."""
    return SimpleNamespace(
        agents=AGENTS,
        dim=dim,
        gram=np.broadcast_to(np.eye(dim) / AGENTS, (AGENTS, dim, dim)),
        shift=np.zeros((AGENTS, dim)),
        posterior=Gaussian(np.zeros(dim), np.eye(dim)),
        log_posterior=log_posterior,
        reference=from_log_density(log_posterior, ((-12, 12), (-12, 12)), 60),
        tests={"set": SimpleNamespace(labels=np.arange(IMAGES) % 3)},
        examples={"set": {"0": 0}},
    )


def sound(dim: int, seed: int) -> Trace:
    """Return a trace of six chains of the posterior's draws, with everything else recorded."""
    rng = np.random.default_rng(seed)
    counts = CHAINS, LAST + 1, AGENTS
    chances = rng.dirichlet(np.ones(3), (CHAINS, AGENTS, IMAGES))
    arrays = {
        "x": rng.standard_normal((*counts, dim)),
        "x_average": rng.standard_normal((*counts[:2], dim)) / 2,
        "consensus_error": rng.uniform(1, 2, counts[:2]),
        "accuracy": rng.uniform(0.5, 0.9, counts),
        "misclassified": rng.integers(20, 900, counts),
        "predictive_mean": chances.astype(np.float32),
        "predictive_sd": (0.1 * chances).astype(np.float32),
        "vectors_sent": np.arange(LAST + 1)[None, :, None].repeat(CHAINS, 0).repeat(AGENTS, 2),
        "diverged_at": np.full(CHAINS, -1),
    }
    named = {
        name: (DIMENSIONS.get(name, ("chain", "draw", "agent")[: array.ndim]), array)
        for name, array in arrays.items()
    }
    return Trace(named, np.arange(LAST + 1), np.arange(AGENTS))


def diverged(trace: Trace, chains: int) -> Trace:
    """Return the trace after its first chains diverged at iteration 20."""
    variables = {name: (dims, array.copy()) for name, (dims, array) in trace.variables.items()}
    changed = Trace(variables, trace.draw, trace.agent)
    lost = slice(0, chains), slice(DIVERGED, None)
    perfect = {"consensus_error": 0, "accuracy": 1, "misclassified": 0}
    for name, value in perfect.items():
        changed[name][lost] = value
    changed["predictive_mean"][:chains] = np.eye(3)[np.arange(IMAGES) % 3]
    changed["diverged_at"][:chains] = DIVERGED
    return changed


def measured(family: str, make: Any) -> list[Row]:
    """Return a family's rows, of the first of the made-up runs that it applies to."""
    refused = []
    for dim in (2, 1):
        for sampler, params in SAMPLERS.values():
            m = Measurement(
                trace=make(dim),
                problem=problem(dim),
                topology=topology.build("ring", AGENTS),
                sampler=sampler,
                sampler_params=params,
                initial=initial.Normal(),
                iterations=LAST,
                stream=lambda label: streams.generator(1, label),
            )
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    rows = metrics.measure([family], m)
            except ConcordError as error:
                refused.append(str(error))
            else:
                return [row for row in rows if not row.metric.startswith("diverged")]
    raise AssertionError(f"{family} applies to none of the runs here; add one: {refused}")


# What does not depend on positions: counts, and what exact draws alone show.
APART = re.compile("vectors_sent|bytes_sent|activation.*|trigger.*|(?!consensus_).*_floor")
# Order statistics of chains, of which a diverged one is the worst.
ORDERED = re.compile(r".*_(min|q25|median|q75|whisker_lo|whisker_hi)")


def changing(family: str) -> set[str]:
    """Return the metrics that chance changes: they differ between two sets of draws."""
    one, other = (measured(family, lambda dim, s=seed: sound(dim, s)) for seed in (0, 1))
    return {
        a.metric
        for a, b in zip(one, other, strict=True)
        if a.chance and not (a.value == b.value or (np.isnan(a.value) and np.isnan(b.value)))
    }


@pytest.mark.parametrize("family", kinds("metrics"))
@pytest.mark.parametrize("chains", [1, CHAINS], ids=["one chain", "all chains"])
def test_no_number_of_a_diverged_run_is_finite(family, chains):
    before = measured(family, lambda dim: sound(dim, 0))
    after = measured(family, lambda dim: diverged(sound(dim, 0), chains))
    numbers = changing(family)
    still = {row.metric for row in before if row.chance} - numbers
    assert all(APART.fullmatch(name) for name in still), still
    assert not any(APART.fullmatch(name) for name in numbers)
    finite = 0
    for old, new in zip(before, after, strict=True):
        assert new[:3] == old[:3] and new.chance == old.chance
        if new.metric not in numbers:
            assert new.value == old.value
        elif not np.isfinite(new.value):
            assert new.lo is None or not np.isfinite([new.lo, new.hi]).any()
        elif new.value == old.value and (new.iteration < DIVERGED or chains < CHAINS):
            finite += 1
        else:
            assert chains < CHAINS and ORDERED.fullmatch(new.metric)
            assert new.value >= old.value or "whisker" in new.metric
    assert finite < len(before) or not numbers


@pytest.mark.parametrize("family", kinds("metrics"))
def test_values_lie_in_their_own_intervals(family):
    for seed in range(3):
        for row in measured(family, lambda dim, s=seed: sound(dim, s)):
            if row.lo is not None and not math.isnan(row.lo):
                assert row.lo <= row.value <= row.hi, row


def test_a_sound_trace_is_left_as_it_is():
    trace = sound(2, 0)
    assert trace.marked() is trace


def test_a_chain_is_lost_from_the_iteration_at_which_it_diverged():
    marked = diverged(sound(2, 0), 2).marked()
    for name, lost in (("x", np.isnan), ("x_average", np.isnan), ("accuracy", np.isnan),
                       ("consensus_error", np.isinf), ("misclassified", np.isinf)):  # fmt: skip
        gone = lost(marked[name])
        assert gone[:2, DIVERGED:].all(), name
        assert not gone[:, :DIVERGED].any() and not gone[2:].any(), name
    gone = np.isnan(marked["predictive_mean"])
    assert gone[:2].all() and not gone[2:].any()
    assert marked["vectors_sent"].dtype.kind == "i"


class Mixture(SimpleNamespace):
    """Two modes at (0, 1) and (0, -1), each agent a quarter of it."""

    agents, dim, posterior = AGENTS, 2, None

    @staticmethod
    def density(a: Any, b: Any) -> Any:
        return np.logaddexp(-2 * (a**2 + (b - 1) ** 2), -2 * (a**2 + (b + 1) ** 2))

    @property
    def reference(self) -> Any:
        return from_log_density(self.density, ((-9, 9), (-9, 9)), 60)

    def gradient(self, x: np.ndarray, *_: Any) -> np.ndarray:
        slope = 4 * x
        slope[..., 1] -= 4 * np.tanh(4 * x[..., 1])
        return slope / AGENTS


@pytest.mark.parametrize(("step", "far"), [(0.02, False), (3.0, True)])
def test_a_step_that_is_too_large_leaves_no_distance(step, far):
    """DE-SGLD on a mixture: each step multiplies the first coordinate by 1 - 3 at the large one."""
    mixture, network = Mixture(), topology.build("ring", AGENTS)
    params, rng = de_sgld.Params(Schedule(step)), np.random.default_rng(0)
    x0 = rng.standard_normal((3, AGENTS, 2))
    state, advance = de_sgld.init(mixture, network, params, x0, rng)
    recorder = Recorder(Record(), mixture, x0.shape, 60)
    trace = simulate(state, advance, 60, recorder, rng)
    m = Measurement(
        trace, mixture, network, de_sgld, params, initial.Normal(), 60,
        lambda label: streams.generator(1, label),
    )  # fmt: skip
    rows = metrics.measure(["posterior_distance", "sinkhorn", "posterior_modes"], m)
    for row in rows:
        if row.metric in ("posterior_w1", "posterior_w2", "sinkhorn", "w1_pooled"):
            assert (row.value == np.inf) == far
        if row.metric == "modes_share":
            assert np.isnan(row.value) == far
    assert ({row.value for row in rows if row.metric == "diverged"} == {1.0}) == far


def test_distances_in_three_dimensions():
    """Any dimension that the reference has: of 25 exact draws each, near the floor's."""
    rng = np.random.default_rng(0)
    normal = SimpleNamespace(sample=lambda count, rng: rng.standard_normal((count, 3)))
    trace = sound(3, 0)
    m = SimpleNamespace(
        problem=SimpleNamespace(reference=normal),
        trace=trace,
        agents=["0", "1", "2", "3"],
        stream=lambda label: rng,
    )
    for family, name in (("posterior_distance", "posterior_w1"), ("sinkhorn", "w1_pooled")):
        rows = list(plugin("metrics", family, "").rows(m))
        (floor,) = (row for row in rows if row.metric == f"{name}_floor")
        for row in rows:
            if row.metric == name:
                assert row.value == pytest.approx(floor.value, rel=0.3)
