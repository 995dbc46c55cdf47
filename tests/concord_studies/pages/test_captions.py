"""Captions state the parameters, reading and assumptions of what they stand below."""

from functools import partial
from pathlib import Path

import jinja2
import pytest
from docutils.core import publish_doctree

from concord_studies.configuration.config import load_config
from concord_studies.configuration.sections import About, Assumption, Output
from concord_studies.configuration.study import Study
from concord_studies.formulas import split_at_formulas
from concord_studies.markup import sentence, sentences
from concord_studies.pages import captions
from processes import python

ROOT = Path(__file__).parents[3]
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
    return captions.compose(output, runs, stated, READINGS, metrics, titles)


def of(key, section, name):
    study = Study(CONFIG / "papers" / key, load_config(CONFIG / "config.yaml"))
    return captions.describe_output(study, section, name)


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
    runs = [run(labels={"training": "adapt"})]  # as bhar2023 calls them
    (part,) = described(runs, options=names)["experiments"]
    assert [name for name, _ in part["samplers"]] == ["DE-SGLD, adapt first"]


def test_a_sampler_has_the_papers_name_where_no_label_tells_it():
    (one,) = of("tzikas2024", "figures", "fig3")["experiments"]
    assert [sampler for sampler, _ in one["samplers"]] == [
        "D-ADMMS, published",
        "D-ADMMS, released",
    ]
    (five,) = of("tzikas2024", "figures", "fig6")["experiments"]
    names = ["D-ADMMS", "ADMM", "D-SGLD", "D-SGHMC", "D-ULA"]
    assert [sampler for sampler, _ in five["samplers"]] == names


def test_an_assumption_has_the_settings_of_the_runs_shown_that_rest_on_it():
    assumptions = {"sigma": {"value": "{chains} chains, step {sampler.step_size}", "reason": "r"}}
    runs = [run(), run(step_size=0.01, chains=8), run(chains=5, assumptions=[])]
    parts = described(runs, assumptions=assumptions)
    assert parts["assumptions"] == [("1000 or 8 chains, step 0.005 or 0.01", "r")]
    other = {"sigma": {"value": "a penalty of {sampler.penalty}", "reason": "r"}}
    assert described(runs, assumptions=other)["assumptions"] == []


@pytest.mark.parametrize(
    ("read", "was"),
    [
        *[("", True), ("the whole text with its captions", True), ("the print", True)],
        *[("the abstract, and the released code", False), ("two versions of the abstract", False)],
    ],
)
def test_what_was_read_is_print_or_record(read, was):
    assert About("T", "A", 2020, read=read).was_read is was


def test_only_assumptions_that_runs_rest_on_are_shown_with_reasons():
    parts = described([run()])
    assert parts["assumptions"] == [("sigma = 1", "not stated")]
    assert "$σ$ = 1 (not stated)" in captions.markdown(parts)
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


def test_what_is_beyond_five_sentences_is_folded():
    texts = {
        "caption": "One. Two.",
        "printed": "Three (Fig. 3)?",
        "ours": "Four. Five. Six. Seven.",
    }
    text = captions.markdown(described([run()], **texts))
    shown, _, folded = text.partition("<details>")
    assert "One. Two.\n\n*In print:* Three (Fig. 3)?\n\n*Here:* Four. Five.\n" in shown
    assert "*Here:* Six. Seven." in folded
    assert captions.first_sentence(described([run()], **texts)) == "One."
    assert captions.first_sentence(described([run()], "Networks")) == ""


@pytest.fixture
def shown(tmp_path):
    """Return a function that returns what the report shows of a caption, in a file of its own."""
    return partial(report_text, tmp_path / "fig1.caption.rst")


def report_text(path, parts):
    """Return what the report shows of a caption; docutils' warnings are errors."""
    path.write_text(captions.rst(parts))
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # as Snakemake's
    text = environment.from_string(TEMPLATE.read_text()).render(
        snakemake={"output": {"beside": ["json", "yaml", "caption.md", str(path)]}}
    )
    return publish_doctree(text, settings_overrides={"report_level": 2, "halt_level": 2}).astext()


def everything(part):
    """Yield every text of a caption, its formulas in LaTeX."""
    if isinstance(part, str):
        yield "".join(words or formula for words, formula in split_at_formulas(part.strip()))
    else:
        for item in part.values() if isinstance(part, dict) else part:
            yield from everything(item)


def test_the_template_of_the_report_shows_every_part(shown):
    parts = described([run(scale="smoke")], caption="|w_i - average|", printed="p", ours="o")
    text = shown(parts)
    assert text.startswith("Title. |w_i - average|\n\nIn print: p\n\nHere: o\n\nSmoke scale")
    for said in everything({**parts, "scale": ""}):
        assert said in text
    assert "How it was run (linear): problem linear regression" in text


@pytest.mark.parametrize("path", [*PAPERS, CONFIG / "studies/arena"], ids=lambda path: path.stem)
def test_every_caption_has_five_sentences_above_its_fold_and_all_of_it_in_the_report(path, shown):
    paper = Study(path, load_config(CONFIG / "config.yaml"))
    for section in ("figures", "tables"):
        for name in paper.outputs(section):
            parts = captions.describe_output(paper, section, name)
            paragraphs = "\n".join(captions.lines_above_fold(parts, str)).split("\n\n")
            texts = [part.partition(":* ")[2] or part for part in paragraphs if part.strip()]
            assert sum(len(sentences(part)) for part in texts) <= captions.SENTENCES, name
            text = shown(parts)
            first = next(everything(parts["caption"]), "")
            assert text.startswith(f"{sentence(parts['title'])} {first}".strip())
            for item in everything({**parts, "title": "", "scale": ""}):
                assert all(part in text for part in sentences(item))


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
        "import json; from pathlib import Path; "
        "from concord_studies.configuration.config import load_config; "
        "from concord_studies.configuration.study import Study; "
        "from concord_studies.pages import captions; "
        f"p = Study(Path({str(paper)!r}), load_config(Path({str(file)!r}), {settings!r})); "
        "print(json.dumps(captions.describe_output(p, 'tables', 'floors'), default=str))"
    )
    # Seeds which order such sets in two ways.
    assert len({python(code, PYTHONHASHSEED=seed) for seed in ("1", "5")}) == 1
