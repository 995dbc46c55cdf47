"""The numbers of DIGing-SGLD's page, made anew by exact laws."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from five_papers import Paper

from concord.laws.wasserstein import w2
from concord_studies.metrics import exact_moments
from concord_studies.runs import measure
from shared_folders import shared

PAGE = Path(__file__).parents[3] / "docs" / "three-papers.md"
TEXT = re.sub(r"\s+", " ", PAGE.read_text())
AVERAGE = 12  # the place of the average, after the agents


@pytest.fixture(scope="module")
def moments(tmp_path_factory):
    """Return a function from a run and an iteration to bias and width of agents and average."""
    paper = Paper("bajwa2025", shared(tmp_path_factory) / "papers")

    def measured(experiment, name, at):
        run, problem = paper.run(experiment, name)
        trace = SimpleNamespace(agent=np.arange(12), draw=np.atleast_1d(at))
        m = measure.measurement(run, problem, trace, paper.resources)
        found = {"bias": [], "trace": []}
        for row in exact_moments.rows(m):
            found[row.metric.removeprefix("exact_")].append(row.value)
        each = (m.law.moments_of(agent) for agent in (*range(12), "average"))
        distance = np.array([w2(*law, problem.posterior) for law in each])
        parts = {name: np.reshape(values, (13, -1)) for name, values in found.items()}
        return SimpleNamespace(**parts, w2=distance)

    return measured


def stands(sentence, *values):
    """Assert that the page has a sentence, whose numbers are these in as many digits."""
    text = sentence.format(*values)
    assert text in TEXT, text


def over_time(network, sampler):
    return "over_time", f"network={network}+sampler={sampler}"


def test_biases(moments):
    names = ("static", "half", "six_turns")
    worst = [moments(*over_time(name, "de_sgld"), 4000).bias[:12].max() for name in names]
    stands(
        "worst agent keeps {:.2f} on the static ring, {:.2f} where half of the links are up, and "
        "{:.2f} where they take six turns",
        *worst,
    )


@pytest.mark.thorough
def test_rates_and_widths(moments):
    rates = []
    for network in ("static", "half"):
        found = moments(*over_time(network, "diging_sgld"), [1800, 2000, 4000])
        assert (found.bias[:, 2] < 1e-6).all()
        rates.append(200 / np.log2(found.bias[AVERAGE, 0] / found.bias[AVERAGE, 1]))
    stands("{:.1f} iterations halve the bias on the static ring, and {:.1f} where half", *rates)
    widths = [
        moments(*over_time(network, "diging_sgld"), 4000).trace[0, 0]
        for network in ("static", "half", "matchings", "six_turns")
    ]
    stands("(DIGing-SGLD {:.2f})", widths.pop(1))
    stands("{:.2f} times as wide on the static ring, {:.2f} times on random matchings and {:.2f} "
           "times with six turns", *widths)  # fmt: skip
    extra = {
        network: moments(*over_time(network, "extra_sgld"), 4000)
        for network in ("half", "matchings", "six_turns")
    }
    stands("agents are {:.1f} times as wide", extra["half"].trace[0, 0])
    stands("{:.0f} times where they take six turns, and its law", extra["six_turns"].trace[0, 0])
    stands("exact distance is {:.0f} 000", extra["matchings"].w2[0, 0] / 1000)


@pytest.mark.thorough
def test_what_the_step_and_the_gap_decide(moments):
    steps = [3e-5, 1e-4, 3e-4]
    slopes, ends = [], {}
    for network in ("static", "half", "matchings", "two_turns", "six_turns"):
        names = [f"network={network}+step={step:g}" for step in steps]
        distance = np.array([moments("steps", name, 10000).w2[:, 0] for name in names])
        slopes.append(np.polyfit(np.log(steps), np.log(distance[:, [0, 3, AVERAGE]]), 1)[0])
        ends[network] = distance[-1, AVERAGE]
    agents, average = np.array(slopes)[:, :2], np.array(slopes)[:, 2]
    stands("exponents are {:.2f} to {:.2f}, those of the network average {:.2f} to {:.2f}",
           agents.min(), agents.max(), average.min(), average.max())  # fmt: skip
    ratios = [ends[network] / ends["static"] for network in ("matchings", "six_turns")]
    stands("{:.2f} times that of the static ring on random matchings, and {:.2f} times", *ratios)
    widths = [
        moments("gaps", f"sampler={sampler}+gap={gap}+step=0.001", 6000).trace[0, 0]
        for sampler, gap in (("diging_sgld", 1), ("diging_sgld", 6), ("de_sgld", 6))
    ]
    stands("a width of {:.1f}, agents are {:.0f}0 times", widths[0], widths[1] / 10)
    stands("DE-SGLD is {:.1f} times as wide", widths[2])


@pytest.mark.thorough
def test_what_directions_and_mini_batches_cost(moments):
    widths = {
        name: moments("directions", f"direction={name}", 10000).trace[AVERAGE, 0]
        for name in ("one_way", "sender_keeps")
    }
    stands("the average is {:.0f} times as wide as the posterior after 10 000", widths["one_way"])
    stands("of what is lost, it is {:.2f} times as wide", widths["sender_keeps"])
    batches = [
        moments("batches_over_time", f"network={network}+batch={batch}", 3000).trace[0, 0]
        for network in ("static", "six_turns")
        for batch in (1, None)
    ]
    stands("{:.2f} times as wide on the static ring in place of {:.2f}, and {:.2f} times with six "
           "turns in place of {:.2f}", *batches)  # fmt: skip
