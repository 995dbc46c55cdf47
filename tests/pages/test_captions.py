"""Captions state the parameters, reading and assumptions of what they stand below."""

from pathlib import Path

import jinja2
import pytest
from docutils.core import publish_doctree

from concord.pages import captions
from concord.studies.config import load_config
from concord.studies.sections import Assumption
from concord.studies.shown import Output
from concord.studies.study import Study
from processes import python

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "workflow" / "report" / "caption.rst"
CONFIG = ROOT / "config"
PAPERS = sorted((CONFIG / "papers").iterdir())

ASSUMPTIONS = {
    "sigma": {"value": "sigma = 1", "reason": "not stated"},
    "unused": {"value": "never", "reason": "shown"},
}
READINGS = {"corrected": "as meant", "published": "as printed"}


def described(runs, title="Title", caption="", assumptions=None, metrics=(), titles=None, **entry):
    output = Output("figure", title, ("one",), caption, **entry)
    stated = {name: Assumption(**one) for name, one in (assumptions or ASSUMPTIONS).items()}
    return captions.describe(output, runs, stated, READINGS, metrics, titles)


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
        "labels": {},
        "assumptions": ["sigma"],
        **changes,
    }


def test_an_experiment_states_its_setting_and_each_samplers_parameters():
    parts = described([run(), run(topology="complete", step_size=0.01)], caption="What is\n  seen.")
    assert parts["caption"] == "What is seen."
    (part,) = parts["experiments"]
    setting = dict(part["setting"])
    assert setting["problem"] == "linear regression (points 300)"
    assert setting["network"] == "ring or complete"
    assert (setting["agents"], setting["chains"], setting["seed"]) == ("6", "1000", "1")
    assert part["samplers"] == [("DE-SGLD", "step size 0.005 or 0.01")]
    assert not {"start", "data split"} & set(setting)  # as they usually are


def test_options_that_are_not_usual_are_told_and_part_samplers():
    sampler = {"kind": "d_ula", "fusion": 0.3, "batch_size": None, "update_order": "in_place"}
    power = {"kind": "power", "a": 0.2, "b": 230.0, "exponent": 0.55}
    released = run(sampler={**sampler, "step_size": power}, reading="released")
    printed = run(sampler={**sampler, "step_size": 0.1, "update_order": "simultaneous"})
    (part,) = described([printed, released])["experiments"]
    assert part["samplers"] == [
        ("D-ULA, corrected", "fusion 0.3; step size 0.1"),
        ("D-ULA, released", "fusion 0.3; update order in place; step size 0.2/(230 + k)^0.55"),
    ]


def test_a_sampler_has_its_own_name_whatever_else_is_named():
    names = {"names": {"ark": "arK", "adapt": "DE-SGLD, adapt first"}}
    runs = [run(labels={"posterior": "ark", "sampler": label}) for label in ("de_sgld", "adapt")]
    (part,) = described(runs, options=names)["experiments"]
    assert [name for name, _ in part["samplers"]] == ["DE-SGLD", "DE-SGLD, adapt first"]
    runs = [run(labels={"training": "adapt"})]  # another label tells samplers apart
    (part,) = described(runs, options=names)["experiments"]
    assert [name for name, _ in part["samplers"]] == ["DE-SGLD, adapt first"]


def test_only_assumptions_that_runs_rest_on_are_shown_with_reasons():
    parts = described([run()])
    assert parts["assumptions"] == [("sigma = 1", "not stated")]
    assert "sigma = 1 (not stated)" in captions.markdown(parts)
    assert "never" not in captions.markdown(parts)
    assert "Assumptions" not in captions.markdown(described([run(assumptions=[])]))


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"of": ["stationary"]}, True),
        ({"of": ["accuracy"]}, False),
        ({"shown": {"training": ["isolated", "gossip"]}}, True),
        ({"shown": {"training": "isolated"}}, False),
    ],
)
def test_an_assumption_stands_below_what_it_concerns(limits, told):
    runs = [run(labels={"training": "gossip"})]
    assumptions = {"sigma": {"value": "v", "reason": "r", **limits}}
    parts = described(runs, assumptions=assumptions, metrics=["w2", "stationary_*"])
    assert bool(parts["assumptions"]) is told


def test_readings_and_scale_are_told():
    both = described([run(), run(reading="published")])
    assert both["readings"] == [("corrected", "as meant"), ("published", "as printed")]
    assert "Reading *published*: as printed" in captions.markdown(both)
    assert "Smoke scale" not in captions.markdown(both)
    smoke = described([run(), run(scale="smoke")])
    assert "Smoke scale: few chains and iterations, not a result." in captions.markdown(smoke)


def test_experiments_are_told_apart_by_title_or_reading():
    runs = [run(), run("other", reading="released"), run()]
    parts = described(runs, titles={"linear": "Linear", "other": "Other"})
    assert [part["title"] for part in parts["experiments"]] == ["Linear", "Other"]
    parts = described(runs, titles={"linear": "Linear", "other": "Linear"})
    titles = [part["title"] for part in parts["experiments"]]
    assert titles == ["Linear, corrected", "Linear, released"]


def test_words_that_strangers_do_not_know_are_explained():
    assert described([run()])["terms"] == []
    (term, _), *_ = described([run()], caption="Thin lines are the exact law.")["terms"]
    assert term == "exact law"
    assert "floor" in dict(described([run()], metrics=["w2"])["terms"])


def test_what_print_shows_stands_beside_what_we_show():
    text = captions.markdown(described([run()], printed="One run.", ours="A thousand."))
    assert "*In print:* One run.\n\n*Here:* A thousand." in text


def test_long_lists_are_counted():
    parts = described([run(partition={"kind": "sizes", "sizes": list(range(40))})])
    assert dict(parts["experiments"][0]["setting"])["data split"] == "sizes (sizes [40 entries])"


def shown(parts):
    """Return what the report shows of a caption; docutils' warnings are errors."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # as Snakemake's
    text = environment.from_string(TEMPLATE.read_text()).render(
        snakemake={"params": {"caption": captions.rst(parts)}}
    )
    return publish_doctree(text, settings_overrides={"report_level": 2, "halt_level": 2}).astext()


def everything(part):
    """Yield every text of a caption."""
    if isinstance(part, str):
        yield part.strip()
    else:
        for item in part.values() if isinstance(part, dict) else part:
            yield from everything(item)


def test_the_template_of_the_report_shows_every_part():
    parts = described([run(scale="smoke")], caption="|w_i - average|", printed="p", ours="o")
    text = shown(parts)
    assert text.startswith("Title. |w_i - average|\n\nSmoke scale")
    for said in everything({**parts, "scale": ""}):
        assert said in text


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_the_report_shows_every_caption_of_the_papers(path):
    paper = Study(path, load_config(CONFIG / "config.yaml"))
    for section in ("figures", "tables"):
        for name in paper.outputs(section):
            parts = captions.of(paper, section, name)
            text = shown(parts)
            assert text.startswith(f"{parts['title']}. {parts['caption']}".strip())
            for item in everything({**parts, "scale": ""}):
                assert item in text


def test_markdown_says_what_was_typed():
    markup = "<script> [a](javascript:1) `x` *y*"
    assumptions = {"sigma": {"value": markup, "reason": markup}}
    text = captions.markdown(described([run()], markup, markup, assumptions))
    assert text.count(r"\<script> \[a\](javascript:1) \`x\` \*y\*") == 4


def test_readings_of_a_sampler_are_told_in_the_same_order_in_every_process():
    """A caption is a parameter of its job: another order would draw the figure again."""
    paper, file = CONFIG / "papers" / "bhar2023", CONFIG / "config.yaml"
    settings = {"scale": "smoke", "seed": 1}
    code = (
        "import json; from pathlib import Path; from concord.studies.config import load_config; "
        "from concord.studies.study import Study; from concord.pages import captions; "
        f"p = Study(Path({str(paper)!r}), load_config(Path({str(file)!r}), {settings!r})); "
        "print(json.dumps(captions.of(p, 'tables', 'floors'), default=str))"
    )
    # Seeds which order such sets in two ways.
    assert len({python(code, PYTHONHASHSEED=seed) for seed in ("1", "5")}) == 1
