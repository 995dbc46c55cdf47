"""Captions state the parameters, reading and assumptions of what they stand below."""

from __future__ import annotations

from pathlib import Path

import jinja2

from concord import captions

TEMPLATE = Path(__file__).parents[1] / "workflow" / "report" / "caption.rst"

ASSUMPTIONS = {
    "sigma": {"value": "sigma = 1", "reason": "not stated"},
    "unused": {"value": "never", "reason": "shown"},
}


def run(experiment="linear", step_size=0.005, topology="ring", **changes):
    return {
        "experiment": experiment,
        "reading": "corrected",
        "scale": "paper",
        "seed": 1,
        "agents": 6,
        "topology": {"kind": topology},
        "problem": {"kind": "linear_regression", "name": "linear", "points": 300},
        "partition": {"kind": "equal"},
        "sampler": {"kind": "de_sgld", "step_size": step_size},
        "initial": {"kind": "normal", "mean": 0.0, "sd": 1.0},
        "chains": 1000,
        "iterations": 150,
        "assumptions": ["sigma"],
        **changes,
    }


def test_parameters_of_an_experiment_are_listed_once_and_what_varies_in_full():
    parts = captions.describe(
        "Title", "What is\n  seen.", [run(), run(topology="complete")], ASSUMPTIONS
    )
    (text,) = parts["parameters"]
    assert text.startswith("linear: ")
    items = text.partition(": ")[2].split("; ")
    assert "topology ring | complete" in items
    assert "sampler de_sgld" in items and "sampler.step_size 0.005" in items
    assert "chains 1000" in items and "seed 1" in items and "problem.points 300" in items
    assert parts["caption"] == "What is seen."


def test_only_assumptions_that_runs_rest_on_are_shown_with_reasons():
    parts = captions.describe("T", "", [run()], ASSUMPTIONS)
    assert parts["assumptions"] == ["sigma: sigma = 1 (not stated)"]
    assert "sigma = 1 (not stated)" in captions.markdown(parts)
    assert "never" not in captions.markdown(parts)
    bare = captions.describe("T", "", [run(assumptions=[])], ASSUMPTIONS)
    assert "Assumptions" not in captions.markdown(bare)


def test_readings_and_scale_are_told():
    both = captions.describe("T", "", [run(), run(reading="published")], ASSUMPTIONS)
    assert both["readings"] == ["corrected", "published"]
    assert "Reading: corrected, published." in captions.markdown(both)
    assert "Smoke scale" not in captions.markdown(both)
    smoke = captions.describe("T", "", [run(), run(scale="smoke")], ASSUMPTIONS)
    assert "Smoke scale: few chains and iterations, not a result." in captions.markdown(smoke)


def test_experiments_have_a_line_each():
    parts = captions.describe("T", "", [run(), run("other"), run()], ASSUMPTIONS)
    assert [text.partition(":")[0] for text in parts["parameters"]] == ["linear", "other"]


def test_long_lists_are_counted():
    parts = captions.describe("T", "", [run(partition={"sizes": list(range(40))})], ASSUMPTIONS)
    assert "partition.sizes [40 entries]" in parts["parameters"][0]


def test_the_template_of_the_report_shows_every_part():
    parts = captions.describe("Title", "Seen.", [run(scale="smoke")], ASSUMPTIONS)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    text = environment.from_string(TEMPLATE.read_text()).render(
        snakemake={"params": {"caption": parts}}
    )
    assert "**Title.** Seen." in text and "*Smoke scale" in text and "Reading: corrected." in text
    assert f"- {parts['parameters'][0]}" in text and f"- {parts['assumptions'][0]}" in text
