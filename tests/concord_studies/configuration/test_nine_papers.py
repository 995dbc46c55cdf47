"""The exact numbers of the page of nine papers, made anew."""

import re
from pathlib import Path

import numpy as np
import pytest
from five_papers import Paper, moments
from scipy import special
from scipy.linalg import solve_discrete_lyapunov

import everything
from concord.laws.wasserstein import w2
from concord_studies.datasets.tables import load_table
from shared_folders import shared

bits = everything.kind("metrics", "coded_bits").bound_bits
polynomial = everything.kind("problems", "polynomial")
PAGE = Path(__file__).parents[3] / "docs" / "nine-papers.md"
TEXT = re.sub(r"\s+", " ", PAGE.read_text())
COMPLETE = "topology=complete"


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    folder = shared(tmp_path_factory) / "papers"
    return lambda key: Paper(key, folder)


def stands(sentence, *values):
    """Assert that the page has a sentence, whose numbers are these in as many digits."""
    text = sentence.format(*values)
    assert text in TEXT, text


def worst(found, metric):
    return max(
        value for (name, agent), value in found.items() if name == metric and agent.isdigit()
    )


def test_biases_of_extra2024(papers):
    paper = papers("extra2024")
    plain = worst(paper.limit("laws", "topology=ring"), "stationary_bias")
    stands("up to {:.2f} posterior standard deviations on the ring of 20", plain)
    steps = paper.limit("laws_extra", "reading=two_steps+topology=ring+h=0.001")
    stands("A bias of up to {:.2f} standard deviations stays", worst(steps, "stationary_bias"))
    for h in (0.001, 0.25, 0.5):
        found = paper.limit("laws_extra", f"reading=published+topology=ring+h={h}")
        assert worst(found, "stationary_bias") < 1e-9  # "EXTRA with a memory has none"


def test_floors_of_extra2024(papers):
    paper = papers("extra2024")

    def floor(experiment, name):
        return paper.limit(experiment, name)["stationary_w2", "average"]

    found = [floor("floors", f"reading={reading}") for reading in ("released", "published")]
    stands("the floor is {:.3f} in place of {:.3f}", *found)
    ends = [
        [floor("floors_of_h", f"reading=released+topology={t}+h={h}") for h in H]
        for t in ("complete", "ring")
    ]
    stands("floors over all h differ by {:.4f}", np.ptp(ends, axis=1).max())


H = (0.001, 0.12575, 0.2505, 0.37525, 0.5)


def test_laws_of_fald2023(papers):
    paper = papers("fald2023")

    def bias(method, apart):
        found = paper.limit("drift", f"method={method}+period=5+apart={apart}")
        return found["stationary_bias", "0"]

    stands("{:.2f} standard deviations of bias after five local steps", bias("fald", 1))
    stands("{:.2f} where agents are ten times as far apart", bias("fald", 10))
    assert bias("vr_fald", 10) < 1e-9  # "VR-FALD* has none"
    widest = paper.limit("edge", "f=1")["stationary_widest", "0"]
    stands("variance {:.0f} times the target's in one direction", widest)


def test_laws_of_dglmc2021(papers):
    paper = papers("dglmc2021")
    wide, narrow, tied = (
        paper.limit(experiment, f"rho={rho}")
        for experiment, rho in (("gaussian", 50), ("gaussian", 1), ("coupled", 1))
    )
    traces = [found["stationary_trace", "0"] for found in (wide, narrow)]
    stands("from {:.0f} times the posterior's variance to {:.1f} times", *traces)
    factors = [found["spectral_radius", "network"] for found in (wide, narrow, tied)]
    stands("slows down from {:.2f} to {:.2f} per iteration", *factors[:2])
    stands("by {:.2f} per iteration in place of {:.2f}", factors[2], factors[1])
    for found in (narrow, tied):
        stands("direction is {:.2f} times too wide either way", found["stationary_widest", "0"])


def test_targets_of_depsgld2026(papers):
    paper = papers("depsgld2026")
    target = paper.run("one_d", "reading=released+topology=complete")[1].reference
    polynomial = everything.kind("problems", "polynomial")
    levels = (np.arange(100_000) + 0.5) / 100_000

    def away(gamma):
        law = polynomial.soften(polynomial.POTENTIAL, gamma)
        apart = law.quantiles(levels) - target.quantiles(levels)
        return np.sqrt((apart**2).mean())

    stands("for gamma 0.2, 0.02 and 0.002 (`depsgld2026`, exact)")
    stands("comes nearer to the target as gamma falls: {:.3f}, {:.3f} and {:.3f}", *map(
        away, (0.2, 0.02, 0.002)))  # fmt: skip
    stands("envelope {:.3f} in place of {:.3f} from the target", away(0.0099), away(3.3e-4))
    found = paper.measured("tempered", "run")
    stands(
        "the exact law is {:.3f} from the posterior", found["law_tempered_w1", "network", 1].value
    )
    assert found["law_power", "network", 1].value == 1 / 500


def test_bits_of_qlsd2021():
    short = [1 - bits(784, s, np.log) / bits(784, s, np.log2) for s in (2**4, 2**8, 2**16)]
    stands("messages seem {:.0f} to {:.0f} % shorter", 100 * min(short), 100 * max(short))


def test_small_differences_of_extra2024(papers):
    paper = papers("extra2024")
    floor = paper.limit("floors", "reading=published")["stationary_w2", "average"]
    own = paper.limit("laws_extra", f"reading=published+{COMPLETE}+h=0.5")
    stands("a floor of {:.3f}; from the posterior of their own points {:.3f}", floor, own[
        "stationary_w2", "average"])  # fmt: skip
    problem, (mean, cov, *average) = moments(paper, "floors", "reading=released")
    law = problem.posterior
    ends = [
        [w2(average[0], part * average[1], law), w2(mean, part * cov, law).mean()]
        for part in (1, 99 / 100)  # what n chains' covariance is on average, by n - 1 and by n
    ]
    stands("of the average {:.4f} in place of {:.4f}", *(end[0] for end in ends))
    stands("of agents {:.4f} in place of {:.4f} (exact)", *(end[1] for end in ends))
    paper.run("linear", f"reading=released+{COMPLETE}")  # the recorded table
    recorded = load_table("extra2024_w2", paper.resources)
    values = recorded["w2"][recorded["agent"] == "average"]
    stands("the recorded distances, {:.2f} to {:.2f}", values.min(), values.max())


def test_small_differences_of_depsgld2026(papers):
    """In two dimensions coordinates of a uniform point in the disk have the semicircle's law."""
    x = (np.arange(200_000) + 0.5) / 100_000 - 1
    density = 2 / np.pi * np.sqrt(1 - x**2)
    edge = np.sqrt(1 - x**2)
    inside = 2 / np.pi * (edge * np.sqrt(1 - edge**2) + np.arcsin(edge))
    paper, shares = papers("depsgld2026"), [1 - (density * inside).mean() * 2]
    for experiment in ("linear", "cancer"):
        problem = paper.run(experiment, f"reading=released+{COMPLETE}")[1]
        starts = problem.initial((4000, 1, problem.dim), np.random.default_rng(0))
        shares.append((np.linalg.norm(starts, axis=-1) > problem.radius).mean())
    assert shares[1] == pytest.approx(shares[0], abs=4 * np.sqrt(0.09 / 4000))
    stands("{:.1f} % of starts lie outside with 2 parameters (exact)", 100 * shares[0])
    stands("(exact), {:.0f} % with {}", 100 * shares[2], problem.dim)


def test_small_differences_of_dglmc2021(papers):
    found = papers("dglmc2021").limit("others", "step_size=4.9975e-05")
    stands("leaves {:.4f} of the distance from the start", found["spectral_radius", "network"])


@pytest.mark.parametrize("period", [1, 5])
def test_small_differences_of_fald2023(papers, period):
    """The law of averages with references that are those of the average before: by its own blocks.

    u' = A u + B v with v = u, or v' = u, where A and B are means over agents.
    """
    paper, name = papers("fald2023"), f"method=vr_fald+period={period}+apart=1"
    run, problem = paper.run("drift", name)
    step, (agents, dim, _) = run.sampler.params.step_size(0), problem.gram.shape
    local, apart = np.eye(dim) - step * problem.gram, problem.gram - problem.gram.mean(axis=0)
    power, drawn, pulled = np.broadcast_to(np.eye(dim), local.shape), 0, 0
    for _ in range(period):
        drawn = drawn + 2 * step / agents * power.mean(axis=0) @ power.mean(axis=0).T
        pulled, power = pulled + step * power @ apart, power @ local
    a, b, none = power.mean(axis=0), pulled.mean(axis=0), np.zeros((dim, dim))
    later = np.block([[a, b], [np.eye(dim), none]])
    noise = np.block([[drawn, none], [none, none]])
    root = np.linalg.inv(np.linalg.cholesky(problem.posterior.cov))
    widest = [
        np.linalg.eigvalsh(root @ solve_discrete_lyapunov(*law)[:dim, :dim] @ root.T)[-1]
        for law in ((later, noise), (a + b, drawn))
    ]
    assert widest[1] == pytest.approx(paper.limit("drift", name)["stationary_widest", "0"])
    if period == 1:
        assert widest[0] == pytest.approx(widest[1])  # "nothing with averages after every step"
    else:
        stands(
            "{:.2f} times the target's variance in the widest direction in place of {:.2f}", *widest
        )


def test_small_differences_of_qlsd2021(papers):
    paper = papers("qlsd2021")
    paper.run("synthetic", "variant=sharp+levels=2")  # its table
    table = load_table("qlsd2021_synthetic", paper.resources)
    points, agents = np.stack([table[f"x{j}"] for j in range(1, 11)], axis=1), table["agent"]
    spread = np.arange(1, 11.0) ** -0.6
    apart, right = _differ(points, table["label"], agents)
    assert right == 1  # "one model labels all 555 points right"
    found = []
    for seed in range(100):  # clients draw their own means, noise and models
        rng, points = np.random.default_rng(seed), np.empty_like(points)
        labels = np.empty(len(points))
        for one in range(20):
            mine = agents == one
            noise = spread * rng.standard_normal((mine.sum(), 10))
            points[mine] = noise + rng.standard_normal() + rng.standard_normal(10)
            labels[mine] = points[mine] @ rng.standard_normal((10, 2)) @ [-1, 1] > 0
        found.append(_differ(points, labels, agents))
    others, rights = np.mean(found, axis=0)
    stands("where clients of their own noise have {:.0f} %", 100 * rights)
    text = f"{round(others, -2):.0f}"
    stands("add up to {:.0f} in place of {} {}", apart, text[:-3], text[-3:])
    runs, dim = 30, 50
    stands("30 repetitions {:.3f} of the error", 1 / runs + (1 - 1 / runs) / dim)


def _differ(points, labels, agents):
    """Return agents' squared gradients at the mode, and which part of labels one model has right.

    With the study's prior; the model has next to none.
    """
    modes = []
    for precision in (1000.0, 1e-3):
        theta, step = np.zeros(points.shape[1]), 1.0
        while np.abs(step).max() > 1e-9:
            chance = special.expit(points @ theta)
            curvature = (points.T * (chance * (1 - chance))) @ points
            slope = points.T @ (chance - labels) + precision * theta
            step = np.linalg.solve(curvature + precision * np.eye(len(theta)), slope)
            theta = theta - step
        modes.append(theta)
    off = (special.expit(points @ modes[0]) - labels)[:, None] * points
    own = np.array([off[agents == one].sum(axis=0) for one in range(20)]) + 50 * modes[0]
    return (own**2).sum(), ((points @ modes[1] > 0) == labels).mean()
