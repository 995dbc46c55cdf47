"""Names become folders and words of a shell: they stay in the results, and nothing is executed."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutations import ODD_TEXTS, dumped
from pieces import CONFIG, of_whole_experiments, others, small_papers
from smoke_project import Project

from concord.errors import ConcordError
from concord_studies.configuration.checks import check_study
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

pytestmark = pytest.mark.thorough

WORDS = r"""../x x/.. x/../../y ..x . ./x / //x x/ x\y x:y x;y x&y x|y x>y x<y x'y x"y x`y $HOME
$x x#y x!y x* x? [x] {x} (x) x=y x,y x%y x^y x~ @x éx CON --x -rf a=b,c=d run 0 1e5 true ｘ"""
ODD = ("x y", "x\ty", "x\x7f", "x\u200b", "x" * 61, "x" * 101)
NAMES = (*ODD_TEXTS, *WORDS.split(), *ODD)
PLAIN = re.compile(r"x/[A-Za-z0-9_]+/[A-Za-z0-9._+=-]+")
HARM = 'x{nowhere} $(touch pwned); `touch pwned` "; touch pwned; " \' ; touch pwned # <b>'


def with_sweep(paper: dict[str, Any], sweep: Any) -> None:
    experiment(paper)["sweep"] = sweep


def with_experiment(paper: dict[str, Any], name: str) -> None:
    paper["experiments"] = {name: experiment(paper)}
    paper["figures"]["fig1"]["runs"] = [name]


def with_figure(paper: dict[str, Any], name: str) -> None:
    paper["figures"] = {name: paper["figures"]["fig1"]}


def with_problem(paper: dict[str, Any], name: str) -> None:
    paper["problems"] = {name: paper["problems"]["linear"]}
    experiment(paper)["problem"] = name


PLACES: dict[str, Callable[[dict[str, Any], str], None]] = {
    "label": lambda paper, name: with_sweep(paper, {"topology": {name: {"topology": "ring"}}}),
    "value": lambda paper, name: with_sweep(paper, {"topology": ["ring", name]}),
    "axis": lambda paper, name: with_sweep(paper, {name: {"ring": {"topology": "ring"}}}),
    "key": lambda paper, name: with_sweep(paper, {"topology": {"key": name, "values": ["ring"]}}),
    "experiment": with_experiment,
    "figure": with_figure,
    "problem": with_problem,
}


def experiment(paper: dict[str, Any]) -> dict[str, Any]:
    (found,) = paper["experiments"].values()
    return found


def paper_of_one() -> dict[str, Any]:
    paper = copy.deepcopy(small_papers()["gurbuzbalaban2021.linear_network"])
    return {**of_whole_experiments(paper), "claims": {}, "tables": {}}


@pytest.mark.parametrize("place", PLACES)
def test_names_in_a_paper(place, tmp_path, reliability):
    path, accepted = tmp_path / "x" / "study.yaml", []
    path.parent.mkdir()
    config = load_config(CONFIG / "config.yaml", {"scale": "smoke"})
    what = f"names that harm, as {place}"
    rule = "refused with file and key, or inside the results"
    for name in NAMES:
        with reliability.trial("inputs", what, rule):
            document = paper_of_one()
            PLACES[place](document, name)
            path.write_bytes(dumped(document).encode())
            try:
                paper = Study(path.parent, config)
                folders = [run.folder for run in paper.runs.values()]
                check_study(paper)
            except ConcordError as error:
                assert str(error).startswith(f"{path}: ")
                continue
            finally:
                assert [*tmp_path.rglob("*")] == [path.parent, path]
            accepted.append(name)
            results = tmp_path / "results"
            figures = paper.sections.figures
            assert all(PLAIN.fullmatch(folder) for folder in folders), folders
            assert all((results / f).resolve().parents[2] == results for f in folders)
            assert all(re.fullmatch("[A-Za-z0-9_]+", figure) for figure in figures)
    assert len(accepted) < (len(NAMES) if place == "problem" else 20)


@pytest.mark.parametrize("name", [n for n in NAMES if n and "/" not in n and "\0" not in n])
def test_names_of_papers(name, tmp_path):
    path = tmp_path / name[:200]
    path.mkdir(exist_ok=True)
    (path / "study.yaml").write_text(dumped(paper_of_one()))
    try:
        key = Study(path, load_config(CONFIG / "config.yaml")).key
    except ConcordError as error:
        reserved = "is a word of the workflow's own" in str(error)
        assert reserved or "letters and digits only" in str(error)
    else:
        assert re.fullmatch("[A-Za-z0-9]{1,60}", key)


def test_names_of_the_results_folder(tmp_path):
    path = tmp_path / "config.yaml"
    for name in NAMES:
        path.write_bytes(dumped({**others()["config"], "results": name}).encode())
        try:
            results = load_config(path)["results"]
        except ConcordError as error:
            assert re.match(rf"{re.escape(str(path))}: (results: |line \d+ )", str(error))
        else:
            assert tmp_path in (tmp_path / results).resolve().parents
            assert re.fullmatch(r"[A-Za-z0-9._/-]+", results)


# Through the real Snakemake ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in a folder whose name harms, with one paper of one run."""
    project = Project(tmp_path_factory.mktemp("hostile") / 'it\'s [a] $(touch pwned); "ü" *')
    document = paper_of_one()
    settings = experiment(document)
    settings.update(topology="ring", metrics=[], title=HARM)
    del settings["sweep"]
    document["figures"]["fig1"].update(title=HARM, caption=HARM)
    document["paper"].update(title=HARM, authors=HARM, reference=HARM)
    for assumption in document["assumptions"].values():
        assumption.update(value=HARM, reason=HARM)
    project.rewrite(document)
    project.paper.rename(project.paper.parent / "x")
    return project


def touched(project: Project) -> list[Path]:
    return [path for path in project.folder.rglob("*") if path.name == "pwned"]


@pytest.mark.workflow
def test_nothing_of_a_configuration_is_executed(hostile):
    target = "results/smoke/x/figures/fig1.svg"
    done = hostile.snakemake(target, config=(f"data_mirror={HARM}",))
    assert done.returncode == 0, done.stdout
    assert (hostile.folder / target).exists() and touched(hostile) == []
    made = {path.parts[0] for path in map(relative(hostile), hostile.folder.rglob("*"))}
    before = {"Snakefile", "config", "envs", "profiles", "src", "workflow"}
    assert made - before <= {"results", ".snakemake"}


def relative(project: Project) -> Callable[[Path], Path]:
    return lambda path: path.relative_to(project.folder)


@pytest.mark.workflow
def test_labels_are_refused_before_anything_runs(hostile):
    document = paper_of_one()
    PLACES["label"](document, "../$(touch pwned); touch pwned")
    path = hostile.folder / "config" / "papers" / "x" / "study.yaml"
    text = path.read_text()
    path.write_text(dumped(document))
    done = hostile.snakemake("reproduce")
    path.write_text(text)
    assert done.returncode != 0 and touched(hostile) == []
    sentence = done.stdout.strip().splitlines()[-1]
    start = "concord: config/papers/x/study.yaml: experiments.linear_network.sweep."
    assert sentence.startswith(start)
    assert "cannot name a folder" in sentence


@pytest.mark.workflow
def test_settings_and_files_are_refused_by_snakemake_too(hostile):
    """What Snakemake itself would read or crash on is told by the same sentences."""
    done = hostile.snakemake(config=("results=../outside",))
    assert "concord: config/config.yaml: results: '../outside' does not match" in done.stdout
    path = hostile.folder / "config" / "config.yaml"
    text = path.read_text()
    for broken, sentence in (
        ("a: [\n", "line 2 column 1: did not find expected node content; correct the YAML"),
        ("[" * 100_000, "line 1 column 51: nested more than 50 deep; make it flatter"),
    ):
        path.write_text(broken)
        done = hostile.snakemake()
        assert done.returncode != 0
        assert done.stdout.strip().splitlines()[-1] == f"concord: config/config.yaml: {sentence}"
    path.write_text(text)


@pytest.mark.workflow
def test_braces_in_the_folder_are_told(tmp_path):
    """Snakemake fills in what stands in braces, in the names of folders too."""
    done = Project(tmp_path / "a {b}").snakemake("--dry-run")
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert (
        done.stdout.strip()
        .splitlines()[-1]
        .endswith("braces in a folder's name for its own; rename it")
    )
