"""A user's mistake is told in one sentence, by Snakemake and by the commands alike."""

import re

import pytest
from smoke_project import PAPER, Project

from concord_cli.__main__ import main

pytestmark = pytest.mark.workflow

FOLDER = f"config/papers/{PAPER}"
FILE, FIGURES = f"{FOLDER}/study.yaml", f"{FOLDER}/figures.yaml"
# A mistake: what stands in the study's file, and what the user makes of it. Others are in
# tests/concord_studies/configuration/mistakes.yaml.
SWEEP = "topology: [complete, ring, no_edges]"
MISTAKES = {
    "no agents in a sweep": (SWEEP, SWEEP + "\n      agents: [5, 6, 0]"),
    "not YAML": ("agents: 6\n", "agents: [6\n"),
}
TARGETS = {
    f"results/smoke/{PAPER}/figures/fig99.pdf": (
        f"{FIGURES}: figures: there is no entry 'fig99'; did you mean 'fig8'?"
    ),
    f"results/smoke/{PAPER}/linear_stepz/metrics.csv": (
        f"{FILE}: experiments: there is no experiment 'linear_stepz'; did you mean 'linear_step'?"
    ),
    "results/smoke/gurbuz2021/figures/fig1.pdf": (
        f"config/papers: there is no 'gurbuz2021'; did you mean '{PAPER}'?"
    ),
    "gurbuz2021": f"there is no target 'gurbuz2021'; did you mean '{PAPER}'?",
    "legder": "there is no target 'legder'; did you mean 'ledger'?",
    "./legder": "there is no target 'legder'; did you mean 'ledger'?",
    "legder/": "there is no target 'legder'; did you mean 'ledger'?",
    "gurbuz 2021": f"there is no target 'gurbuz 2021'; did you mean '{PAPER}'?",
    "results=second": (
        "there is no target 'results=second'; to set it, type: --config results=second"
    ),
    f"results/smoke/{PAPER}/figures/fig8.jpg": (
        f"there is no target 'results/smoke/{PAPER}/figures/fig8.jpg'; "
        f"did you mean 'results/smoke/{PAPER}/figures/fig8.pdf'?"
    ),
    f"result/smoke/{PAPER}/figures/fig8.pdf": (
        f"there is no target 'result/smoke/{PAPER}/figures/fig8.pdf'; "
        f"did you mean 'results/smoke/{PAPER}/figures/fig8.pdf'?"
    ),
    f"results/full/{PAPER}/figures/fig8.pdf": (
        f"there is no target 'results/full/{PAPER}/figures/fig8.pdf'; "
        "for results of this scale, add: --config scale=full"
    ),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("mistakes"))


def files(project):
    """Return what is there but for Snakemake's own files and what planning writes."""
    hidden = (".snakemake", "__pycache__")
    paths = [path for path in project.folder.rglob("*") if path.is_file()]
    planned = project.folder / "results"
    return {
        path
        for path in paths
        if not any(part in hidden for part in path.parts)
        and not (path.suffix == ".yaml" and path.is_relative_to(planned))
    }


@pytest.mark.parametrize("name", MISTAKES)
def test_snakemake_tells_the_sentence_of_the_command_and_makes_nothing(
    name, shared, capsys, monkeypatch
):
    monkeypatch.chdir(shared.folder)
    before = files(shared)
    with shared.edited(FILE, *MISTAKES[name]):
        done = shared.snakemake()
        assert main(["check", FOLDER, "--scale", "smoke"]) == 2
    assert done.returncode != 0
    sentence = assert_one_sentence(done.stdout, f"concord: {FILE}: ")
    assert capsys.readouterr().err == f"{sentence}\n"
    assert files(shared) == before


@pytest.mark.parametrize("target", TARGETS)
def test_an_unknown_target_is_told_in_one_sentence(target, shared):
    before = files(shared)
    done = shared.snakemake(target)
    assert done.returncode != 0
    assert assert_one_sentence(done.stdout, "concord: ") == f"concord: {TARGETS[target]}"
    assert files(shared) == before


def test_a_wrong_setting_on_the_command_line_is_told_too(shared):
    done = shared.snakemake(config=("sead=3",))
    assert done.returncode != 0
    sentence = assert_one_sentence(done.stdout, "concord: ")
    assert sentence == "concord: config/config.yaml: sead: unknown key; did you mean 'seed'?"


def assert_one_sentence(output, start):
    """Return the sentence, the last line; the others are those Snakemake starts every run with."""
    *others, sentence = output.strip().splitlines()
    assert sentence.startswith(start)
    usual = "Using workflow|Config file|Assuming unrestricted|Building DAG"
    assert [line for line in others if not re.match(usual, line)] == []
    return sentence
