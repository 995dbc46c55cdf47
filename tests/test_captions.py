"""Captions state the parameters, reading and assumptions of what they stand below."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pytest
from docutils.core import publish_doctree

from concord.report import captions
from concord.studies.config import load_config
from concord.studies.paper import Paper

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "workflow" / "report" / "caption.rst"
CONFIG = ROOT / "config"
PAPERS = sorted((CONFIG / "papers").iterdir())

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
        "record": {"every": 1, "probes": []},
        "metrics": ["w2", "stationary"],
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
    assert "record.every 1" in items and "metrics w2, stationary" in items
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


def shown(parts):
    """Return what the report shows of a caption; docutils' warnings are errors."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # as Snakemake's
    text = environment.from_string(TEMPLATE.read_text()).render(
        snakemake={"params": {"caption": captions.rst(parts)}}
    )
    return publish_doctree(text, settings_overrides={"report_level": 2, "halt_level": 2}).astext()


def test_the_template_of_the_report_shows_every_part():
    parts = captions.describe("Title", "|w_i - average|", [run(scale="smoke")], ASSUMPTIONS)
    text = shown(parts)
    assert text.startswith("Title. |w_i - average|\n\nSmoke scale")
    assert "Reading: corrected." in text
    assert parts["parameters"][0] in text and parts["assumptions"][0] in text


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_the_report_shows_every_caption_of_the_papers(path):
    paper = Paper(path, load_config(CONFIG / "config.yaml"))
    for section in ("figures", "tables"):
        for name in paper.mapping.get(section, {}):
            parts = paper.caption(section, name)
            text = shown(parts)
            assert text.startswith(f"{parts['title']}. {parts['caption']}".strip())
            for item in (*parts["parameters"], *parts["assumptions"]):
                assert item in text


def test_markdown_says_what_was_typed():
    markup = "<script> [a](javascript:1) `x` *y*"
    assumptions = {"sigma": {"value": markup, "reason": markup}}
    text = captions.markdown(captions.describe(markup, markup, [run()], assumptions))
    assert text.count(r"\<script> \[a\](javascript:1) \`x\` \*y\*") == 4
