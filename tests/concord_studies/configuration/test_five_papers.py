"""Numbers that others worked out for the five papers' codes, in runs of their studies.

Exact ones to the digits that were stated; random ones within four standard errors.
"""

import numpy as np
import pytest
from five_papers import Paper, moments
from sklearn.linear_model import LogisticRegression

from concord.laws.wasserstein import w2
from concord_studies.datasets.tables import load_table
from shared_folders import shared

COMPLETE, RING = "topology=complete", "topology=ring"


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """Studies by key, whose tables lie in one folder."""
    folder = shared(tmp_path_factory) / "papers"
    return lambda key: Paper(key, folder)


def test_the_posteriors_of_extra2024(papers):
    paper = papers("extra2024")
    law = paper.run("linear", f"reading=released+{RING}")[1].posterior
    np.testing.assert_allclose(law.mean, [-0.001465, 3.009638], atol=6e-7)
    cov = [[7.9548e-4, -1.19765e-3], [-1.19765e-3, 2.40873e-3]]
    np.testing.assert_allclose(law.cov, cov, rtol=1e-5)
    law = paper.run("laws", RING)[1].posterior
    np.testing.assert_allclose(law.mean, [0.002296, 2.991094], atol=6e-7)
    np.testing.assert_allclose(np.sqrt(np.diag(law.cov)), [0.06191, 0.10864], atol=6e-6)


@pytest.mark.parametrize(("reading", "away"), [("released", 0.1758), ("published", 0.0710)])
def test_what_agents_of_extra2024_sample_with_small_steps(papers, reading, away):
    """The product of what they hold, from the posterior of all points."""
    problem = papers("extra2024").run("floors", f"reading={reading}")[1]
    cov = np.linalg.inv(problem.gram.sum(axis=0))
    found = w2(cov @ problem.shift.sum(axis=0), cov, problem.posterior)
    assert found == pytest.approx(away, abs=6e-5)


@pytest.mark.parametrize(
    ("name", "bias", "distance"),
    [
        *((COMPLETE, 0.0273, 0.1280), (RING, 0.0481, 0.1788)),
        *((f"{COMPLETE}+h=0.25", 0.0, 0.1352), (f"{COMPLETE}+h=0.5", 0.0, 0.1518)),
        *((f"{RING}+h=0.25", 0.0, 0.1773), (f"{RING}+h=0.5", 0.0, 0.1940)),
    ],
)
def test_a_memory_removes_the_bias_of_extra2024_and_widens_agents(papers, name, bias, distance):
    stated = ("laws_extra", f"reading=published+{name}") if "+" in name else ("laws", name)
    problem, (mean, cov, *_) = moments(papers("extra2024"), *stated)
    target = problem.posterior
    assert np.linalg.norm(mean - target.mean, axis=1).max() == pytest.approx(bias, abs=6e-5)
    assert w2(mean, cov, target).mean() == pytest.approx(distance, abs=6e-5)


@pytest.mark.parametrize(
    ("rho", "narrowest", "widest", "small", "factor"),
    [
        *((50, 17.70, 51.09, (17.61, 50.76), 0.837), (20, 7.74, 21.23, (7.64, 20.90), 0.842)),
        *((10, 4.43, 11.27, (4.32, 10.95), 0.849), (5, 2.78, 6.29, (2.66, 5.98), 0.862)),
        (1, 1.51, 2.28, (1.33, 2.00), 0.917),
    ],
)
def test_the_bias_and_the_mixing_of_dglmc2021(papers, rho, narrowest, widest, small, factor):
    paper = papers("dglmc2021")
    for experiment, wanted in (("gaussian", (narrowest, widest)), ("small_steps", small)):
        found = paper.limit(experiment, f"rho={rho}")
        ends = [found[f"stationary_{end}", "0"] for end in ("narrowest", "widest")]
        np.testing.assert_allclose(ends, wanted, atol=0.0075)
    assert paper.limit("gaussian", f"rho={rho}")["spectral_radius", "network"] == pytest.approx(
        factor, abs=6e-4
    )


def test_the_balls_of_depsgld2026(papers):
    """Four fifths of the least squares estimate, and of scikit-learn's logistic regression."""
    paper = papers("depsgld2026")
    problem = paper.run("linear", f"reading=released+{COMPLETE}")[1]
    table = load_table("depsgld2026_linear", paper.resources)
    points = np.stack([table["one"], table["x"]], axis=1)
    estimate = np.linalg.lstsq(points, table["y"], rcond=None)[0]
    np.testing.assert_allclose(estimate, [1.00899339, 0.996037], atol=6e-7)
    assert problem.radius == pytest.approx(0.8 * np.linalg.norm(estimate), abs=6e-7)
    problem = paper.run("cancer", f"reading=released+{COMPLETE}")[1]
    features, labels = problem.data.features.reshape(-1, 31), problem.data.targets.ravel()
    plain = LogisticRegression().fit(features, labels)
    assert problem.radius == pytest.approx(0.8 * np.linalg.norm(plain.coef_), rel=1e-4)
    others, wanted = problem.test
    assert plain.score(others, wanted) == pytest.approx(0.982, abs=5e-4)
    assert max(wanted.mean(), 1 - wanted.mean()) == pytest.approx(0.632, abs=5e-4)


def test_the_step_of_fald2023_is_at_the_edge_of_stability(papers):
    paper = papers("fald2023")
    run, problem = paper.run("toy", "sampler=fald")
    step = run.sampler.params.step_size(0) / problem.agents
    stiffest = step * np.linalg.eigvalsh(problem.gram.sum(axis=0))[-1]
    assert stiffest == pytest.approx(1.998, abs=6e-4)


def late(found, agents):
    """Return the mean W2 of agents over iterations 150 to 200."""
    return np.mean([found["w2", a, k].value for a in agents for k in range(150, 201)])


AGENTS = [str(a) for a in range(20)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("experiment", "name", "average", "agents", "first"),
    [
        ("linear", COMPLETE, (0.1966, 0.0093), (0.2584, 0.0072), (24, 43, 65)),
        ("linear", RING, (0.1954, 0.0093), (0.2996, 0.0063), (24, 43, 65)),
        ("linear_extra", f"{COMPLETE}+h=0.5", (0.1912, 0.0077), (0.2556, 0.0054), (16, 30, 45)),
    ],
)
def test_distances_of_extra2024(papers, experiment, name, average, agents, first):
    """Means and standard deviations of 30 other runs of 100 chains.

    Curves fall by 0.005 per iteration where they reach 0.3: 0.0093 moves that by two iterations.
    """
    found = papers("extra2024").measured(experiment, f"reading=released+{name}", ["w2"])
    for who, (mean, sd) in ((["average"], average), (AGENTS, agents)):
        assert late(found, who) == pytest.approx(mean, abs=4 * sd)
    for level, k in zip((1.0, 0.5, 0.3), first, strict=True):
        below = next(n for n in range(201) if found["w2", "average", n].value <= level)
        assert abs(below - k) <= 8


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("option", "first"),
    [("metropolis", (18, 33, 50)), ("simultaneous", (35, 63, 94)), ("released", (24, 43, 65))],
)
def test_which_options_decide_the_speed_of_extra2024(papers, option, first):
    """Means of 6 other runs of 100 chains; ours has 1000."""
    found = papers("extra2024").measured("options", f"reading=released+option={option}")
    for level, k in zip((1.0, 0.5, 0.3), first, strict=True):
        below = next(n for n in range(201) if found["w2", "average", n].value <= level)
        assert abs(below - k) <= 4


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("experiment", "last", "mean", "sd"),
    [
        *(("synthetic", 20, 0.9704, 0.0034), ("synthetic_extra", 20, 0.9769, 0.0014)),
        *(("cancer", 100, 0.9349, 0.0033), ("cancer_extra", 100, 0.9431, 0.0020)),
    ],
)
def test_accuracies_of_extra2024(papers, experiment, last, mean, sd):
    """Means over 8 other runs, whose standard deviation is given."""
    name = f"reading=released+{COMPLETE}"
    if experiment.endswith("extra"):
        name += "+h=0.111889" if last == 20 else "+h=0.278222"
    found = papers("extra2024").measured(experiment, name, ["accuracy"])
    assert found["accuracy_mean", "1", last].value == pytest.approx(mean, abs=4 * sd)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("topology", "wanted"),
    [
        ("complete", {("average", 10): 0.427, ("average", 100): 0.399, ("0", 100): 0.384}),
        ("complete", {("average", 300): 0.353, ("0", 10): 0.296, ("0", 300): 0.341}),
        ("ring", {("average", 300): 0.357, ("0", 300): 0.294}),
        ("star", {("average", 300): 0.394, ("1", 300): 0.183}),
        ("no_edges", {("average", 300): 0.421}),
    ],
)
def test_distances_of_depsgld2026(papers, topology, wanted):
    """Means of 20 other runs of as many chains."""
    found = papers("depsgld2026").measured("one_d", f"reading=released+topology={topology}")
    for (agent, k), mean in wanted.items():
        row = found["chains_w2", agent, k]
        assert row.value == pytest.approx(mean, abs=max(row.hi - row.lo, 0.02))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "agents", "average"),
    [(COMPLETE, 0.777, 0.778), (RING, 0.777, 0.779), ("topology=star", 0.789, 0.795)],
)
def test_accuracies_of_depsgld2026(papers, name, agents, average):
    """Means of 400 other chains: four standard errors of both."""
    found = papers("depsgld2026").measured("cancer", f"reading=released+{name}")
    for agent, mean in (("1", agents), ("average", average)):
        assert found["accuracy_mean", agent, 1000].value == pytest.approx(mean, abs=0.035)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rho", "wanted"),
    [(1, {1: 0.5668, 5: 0.5988, 10: 0.6124}), (10, {1: 0.2724, 5: 0.2534, 10: 0.2493})],
)
def test_acceptance_of_dglmc2021(papers, rho, wanted):
    """Of 400 other chains of 1200 iterations, and as printed of one of 100 000."""
    for particles, mean in wanted.items():
        name = f"rho={rho}+particles={particles}"
        row = papers("dglmc2021").measured("pseudo_marginal", name, ["activity"])[
            "activation_rate", "0", 1200
        ]
        assert row.value == pytest.approx(mean, abs=1.5 * (row.hi - row.lo))


@pytest.mark.thorough
def test_variances_of_qlsd2021(papers):
    """Of other points of the same laws, by which agents differ as much within 10 %."""
    wanted = {"full+levels=16": 1.50, "full+levels=256": 1.0}
    wanted |= {"one_point+levels=16": 2.2, "one_point+levels=65536": 1.7}
    for name, width in wanted.items():
        found = papers("qlsd2021").measured("toy", f"gradient={name}", ["posterior_trace"])
        assert found["posterior_trace", "0", 3000].value == pytest.approx(width, rel=0.1)
