"""Stationary laws and stable steps, of updates that conserve something and of mini-batches too."""

import numpy as np
import pytest
from msgspec.structs import replace

from concord.errors import ConcordError
from concord.laws import exact
from concord.laws.law import batch_noise, laws_of_updates, start_of, update_of
from concord.networks.construction import network
from concord.samplers.c_ula import CULA
from concord.samplers.d_ula import DULA
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.samplers.gossip_ula import GossipULA
from concord.samplers.local_sgld import LocalSGLD
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule
from concord.stability import PRECISION
from concord_studies.metrics import stable_step, stationary
from concord_studies.metrics.stationary import read_choices
from measurements import RING, law_measurement
from tracking import Tracking
from variants import problem


def table(family, m) -> dict[str, float]:
    return {f"{row.metric} {row.agent}": row for row in family.rows(m)}


def limit_of(m, iterations) -> exact.Law:
    """Return the law after many steps of the recursion in time."""
    update = update_of(m.sampler, m.problem, m.network)
    given = [update], [start_of(m, update)], m.network, m.problem.dim
    return laws_of_updates(*given, noise=batch_noise(m)).law([iterations])


def trace_ratio(cov, m) -> float:
    return np.trace(cov) / np.trace(m.problem.posterior.cov)


def test_the_stable_step_of_an_update_that_conserves_something():
    """Against the radius by brute force, without the eigenvalues of what is conserved."""
    m = law_measurement(Tracking(Schedule(1e-4)))
    found = table(stable_step, m)["stable.step_size network"].value

    def radius(step):
        matrix = update_of(Tracking(Schedule(step)), m.problem, RING).at(0).matrix
        values = np.linalg.eigvals(matrix)
        return np.abs(values[np.argsort(np.abs(values - 1))[m.problem.dim :]]).max()

    assert radius(1e-4) < 1
    assert radius(found) < 1 < radius(found * (1 + 2 * PRECISION))


@pytest.mark.parametrize(
    ("mean", "start", "is_biased"),
    [(0.0, "gradient", False), (3.0, "gradient", False), (1.0, "zero", True)],
)
def test_the_stationary_law_of_an_update_that_conserves_something(mean, start, is_biased):
    """Whatever gradient tracking conserves stays as it started.

    It has no bias, unless y starts at zero: its sum keeps the gradients' sum of the start.
    """
    begins = Law("normal", mean=mean, sd=2.0)
    m = law_measurement(Tracking(Schedule(1e-3), start=start), initial=begins)
    found, law = table(stationary, m), limit_of(m, 6000)
    assert found["spectral_radius network"].value < 1
    for agent in range(5):
        expected = pytest.approx(trace_ratio(law.cov[0, agent], m), rel=1e-8)
        assert found[f"stationary_trace {agent}"].value == expected
        difference = law.mean[0, agent] - m.problem.posterior.mean
        bias = np.sqrt(difference @ np.linalg.solve(m.problem.posterior.cov, difference))
        assert found[f"stationary_bias {agent}"].value == pytest.approx(bias, rel=1e-8, abs=1e-8)
        assert bias > 0.1 if is_biased else bias < 1e-8, agent


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize(
    "sampler",
    [
        DESGLD(Schedule(0.004)),
        DESGHMC(Schedule(0.03), friction=8.0),
        DULA(Schedule(0.001), fusion=Schedule(0.2)),
        CULA(Schedule(0.004)),
    ],
    ids=lambda sampler: sampler.name,
)
def test_mini_batches_widen_the_stationary_law(sampler, batch_size):
    net = network("no_edges", 1) if isinstance(sampler, CULA) else RING
    m = law_measurement(replace(sampler, batch_size=batch_size), net)
    full = law_measurement(sampler, net)
    found, without, law = table(stationary, m), table(stationary, full), limit_of(m, 1500)
    for agent, cov in [*enumerate(law.cov[0]), ("average", law.average_cov[0])]:
        name = f"stationary_trace {agent}"
        assert found[name].value == pytest.approx(trace_ratio(cov, m), rel=1e-9)
        assert found[name].value > 1.01 * without[name].value
        bias = f"stationary_bias {agent}"
        assert found[bias].value == pytest.approx(without[bias].value, rel=1e-9, abs=1e-9)


def test_mini_batches_may_leave_no_stationary_law_where_full_gradients_do():
    """The covariance may grow although the mean settles: its growth is found in time, too."""
    prob, seen = problem(3, 2, points=4), set()
    for step in np.geomspace(0.02, 0.3, 12):
        m = law_measurement(DESGLD(step, batch_size=1), network("ring", 3), prob)
        found = table(stationary, m)
        if found["spectral_radius network"].value < 1:
            first, last = (np.trace(limit_of(m, k).cov[0, 0]) for k in (300, 600))
            finite = np.isfinite(found["stationary_trace 0"].value)
            assert finite == bool(last < 1.5 * first)
            seen.add(bool(finite))
    assert seen == {True, False}


TRIGGERED = {"communication": "triggered", "threshold": 1.0, "decay": 0.5}


@pytest.mark.parametrize("family", [stationary, stable_step])
@pytest.mark.parametrize(
    "sampler",
    [DULA(0.001, 0.1, batch_size=2, batch_order="epochs"), GossipULA(1e-3, **TRIGGERED)],
    ids=["epochs", "triggers"],
)
def test_what_has_no_law_is_refused(family, sampler):
    with pytest.raises(ConcordError, match=r"needs an affine sampler .*epochs"):
        list(family.rows(law_measurement(sampler)))


@pytest.mark.parametrize(("drift", "power"), [("half", 0.5), ("whole", 1.0)])
def test_the_stationary_law_of_gossip(drift, power):
    """Against its recursion in time; for small steps the average samples the posterior^power."""
    m = law_measurement(GossipULA(Schedule(1e-4), fusion=Schedule(0.3), drift=drift))
    found = table(stationary, m)
    law = exact.initial_moments(5, 2, m.initial.moments(2))
    step = read_choices(m.sampler, m.problem, RING)(0)
    for _ in range(6000):
        law = step.apply(*law)
    _, each, _, average = exact.marginals(*law, 5, 2)
    for agent in range(5):
        expected = pytest.approx(trace_ratio(each[agent], m), rel=1e-8)
        assert found[f"stationary_trace {agent}"].value == expected
    ratio = found["stationary_trace average"].value
    assert ratio == pytest.approx(trace_ratio(average, m), rel=1e-8)
    assert ratio == pytest.approx(1 / power, rel=0.1)
    assert found["spectral_radius network"].value < 1


def test_a_law_over_choices_is_known_up_to_a_size():
    """With variance reduction the state is twice as large: 5 agents of 2, but not of 5."""
    sampler = LocalSGLD(Schedule(1e-3), communication=0.5, renewal=0.5)
    found = table(stationary, law_measurement(sampler))
    assert 0.5 < found["stationary_trace average"].value < 2
    with pytest.raises(ConcordError, match="metric stationary needs an affine sampler"):
        list(stationary.rows(law_measurement(sampler, prob=problem(5, 5, points=50))))


def test_mini_batches_of_a_step_that_chooses_at_random_have_no_law():
    """Their errors would be missing from the moments averaged over the choices."""
    sampler = LocalSGLD(0.001, communication=0.3, batch_size=2)
    with pytest.raises(ConcordError, match="needs an affine sampler"):
        list(stationary.rows(law_measurement(sampler)))
