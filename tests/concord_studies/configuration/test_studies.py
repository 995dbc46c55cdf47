"""From a paper's folder to its runs: sweeps, overrides, what is shared, and what is refused."""

import copy
from pathlib import Path

import pytest
import yaml

import everything
from concord.errors import ConcordError
from concord_studies.configuration import expansion
from concord_studies.configuration.checks import check_study
from concord_studies.configuration.config import load_config
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study

ROOT = Path(__file__).parents[3]
CONFIG = {
    "scale": "paper",
    "seed": 3,
    "results": "results",
    "data_mirror": None,
    "smoke": {"chains": 8, "iterations": 12},
}
PAPER = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "assumptions": {},
    "problems": {"linear": {"kind": "linear_regression", "points": 30}},
    "defaults": {"agents": 6, "chains": 100, "iterations": 50},
    "experiments": {
        "one": {
            "problem": "linear",
            "topology": "ring",
            "sampler": {"kind": "de_sgld", "step_size": 0.005},
        }
    },
}


def load(tmp_path, scale="paper", **sections):
    mapping = copy.deepcopy(PAPER)
    for section, change in sections.items():
        if section == "one":
            mapping["experiments"]["one"] |= change
        else:
            mapping[section] = change
    return Study(written(tmp_path, study=mapping), {**CONFIG, "scale": scale})


def written(tmp_path, **files):
    """Return the folder of a paper, with these files."""
    folder = tmp_path / "x"
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        (folder / f"{name}.yaml").write_text(text)
    return folder


def names(paper):
    return [run.name for run in paper.runs.values()]


def test_the_three_kinds_of_axes_multiply(tmp_path):
    sweep = {
        "topology": ["ring", "complete"],
        "step": {"key": "sampler.step_size", "values": [0.001, 0.01]},
        "reading": {
            "published": {"reading": "published", "problem": {"prior_share": "omitted"}},
            "corrected": {"reading": "corrected"},
        },
    }
    runs = list(load(tmp_path, one={"sweep": sweep}).runs.values())
    assert len(runs) == 8 and len({run.folder for run in runs}) == 8
    first = runs[0].document
    assert runs[0].name == "topology=ring+step=0.001+reading=published"
    assert first["labels"] == {"topology": "ring", "step": "0.001", "reading": "published"}
    assert first["sampler"]["step_size"] == 0.001
    assert (first["problem"]["points"], first["problem"]["prior_share"]) == (30, "omitted")
    last = runs[-1].document
    assert last["topology"] == {"kind": "complete"} and last["sampler"]["step_size"] == 0.01
    assert last["reading"] == "corrected" and last["problem"]["prior_share"] == "split"


def test_overrides_change_the_cells_they_match_and_no_others(tmp_path):
    change = {
        "sweep": {"topology": ["ring", "complete", "star"], "agents": [4, 5]},
        "overrides": [
            {"when": {"topology": ["ring", "star"], "agents": 4}, "set": {"chains": 7}},
            {"when": {"topology": "star"}, "set": {"sampler": {"step_size": 0.5}}},
        ],
    }
    runs = {run.name: run.document for run in load(tmp_path, one=change).runs.values()}
    chains = {name: run["chains"] for name, run in runs.items()}
    assert {name for name, n in chains.items() if n == 7} == {
        "topology=ring+agents=4",
        "topology=star+agents=4",
    }
    steps = {name: run["sampler"]["step_size"] for name, run in runs.items()}
    assert {name for name, step in steps.items() if step == 0.5} == {
        "topology=star+agents=4",
        "topology=star+agents=5",
    }


def test_smoke_scale_shrinks_and_applies_its_own_keys(tmp_path):
    (run,) = load(tmp_path, "smoke", one={"smoke": {"agents": 3}}).runs.values()
    assert (run.chains, run.iterations, run.agents) == (8, 12, 3)
    assert run.document["scale"] == "smoke"
    (small,) = load(tmp_path, "smoke", one={"chains": 2, "iterations": 3}).runs.values()
    assert (small.document["chains"], small.document["iterations"]) == (2, 3)
    (full,) = load(tmp_path, one={"smoke": {"agents": 3}}).runs.values()
    assert full.document["agents"] == 6
    late = {"iterations": 60, "record": {"burn_in": 30}}
    assert [
        next(iter(load(tmp_path, scale, one=late).runs.values())).document["record"]["burn_in"]
        for scale in ("smoke", "paper")
    ] == [6, 30]


def test_selections_choose_by_label_in_the_order_of_the_file(tmp_path):
    sweep = {"topology": ["ring", "complete"], "agents": [4, 5, 6]}
    paper = load(tmp_path, one={"sweep": sweep})
    assert [run.name for run in paper.select("one", "here")] == names(paper)
    chosen = paper.select({"experiment": "one", "agents": [6, 4], "topology": "ring"}, "here")
    assert [run.name for run in chosen] == ["topology=ring+agents=4", "topology=ring+agents=6"]
    assert paper.run("one", "topology=ring+agents=5").agents == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "does not fit; give mapping of paper"),
        ("a: 1\nb: c: d", "line 2 column 5: mapping values are not allowed"),
        ("paper: {title: T, authors: A, year: 2021}", "the key 'experiments' is missing"),
        ("paper: {title: T}\nexperiments: {a: {}}", "paper: the key 'authors' is missing; add it"),
        ("papr: 1", "papr"),
    ],
)
def test_a_file_that_is_no_paper_is_refused(text, message, tmp_path):
    folder = written(tmp_path, study=text)
    with pytest.raises(ConcordError) as caught:
        Study(folder, CONFIG)
    assert str(caught.value).startswith(f"{folder}") and message in str(caught.value)


def test_sections_may_be_in_several_files_each_in_one(tmp_path):
    """Messages name the file that has the section."""
    figure = {"figures": {"f": {"kind": "networks", "title": "F", "runs": ["oen"]}}}
    folder = written(tmp_path, study=PAPER, figures=figure)
    with pytest.raises(ConcordError) as caught:
        check_study(Study(folder, CONFIG))
    start = f"{folder / 'figures.yaml'}: figures.f.runs[0]: there is no experiment 'oen'"
    assert str(caught.value).startswith(start)
    written(tmp_path, figures={**figure, "problems": {}})
    with pytest.raises(ConcordError, match=r"study\.yaml: problems: it is in figures\.yaml, too"):
        Study(folder, CONFIG)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": "larger"}, r"scale: 'larger' is not allowed; choose one of full, paper, smoke"),
        ({"sead": 1}, r"sead: unknown key; did you mean 'seed'\?"),
        ({"seed": -1}, r"seed: -1 does not fit; give"),
        ({"seed": 2**63}, r"seed: 9223372036854775808 cannot be computed with"),
        ({"results": "a/../../b"}, r"results: 'a/\.\./\.\./b' does not fit; give"),
        ({"results": "config/papers"}, r"results: 'config/papers' is in the project's own folder"),
        ({"results": "src"}, r"results: 'src' is in .* own folder src; name another, such as"),
    ],
)
def test_wrong_settings_are_refused(changes, message):
    with pytest.raises(ConcordError, match=message):
        load_config(ROOT / "config" / "config.yaml", changes)


def test_an_experiment_that_is_not_varied_has_to_exist(tmp_path):
    (tmp_path / "papers").mkdir()
    written(tmp_path / "papers", study=PAPER)
    (tmp_path / "config.yaml").write_text("not_varied: [x/oen]")
    message = r"not_varied: there is no experiment 'x/oen'; did you mean 'x/one'"
    with pytest.raises(ConcordError, match=message):
        load_studies(tmp_path)


@pytest.mark.parametrize("scale", ["paper", "smoke"])
def test_every_paper_of_the_project_loads(scale):
    config, papers = load_studies(ROOT / "config", {"scale": scale})
    assert config["scale"] == scale and "gurbuzbalaban2021" in papers
    folders = [run.folder for paper in papers.values() for run in paper.runs.values()]
    assert len(folders) == len(set(folders))


def test_runs_that_name_the_same_problem_share_its_data():
    """Data depend on a problem's name: two problems of one name must be one problem."""
    own = {"prior_share", "prior_gradient_at", "prior_sign"}  # not of the data
    for paper in everything.studies().values():
        seen: dict[str, dict] = {}
        for run in paper.runs.values():
            problem = {k: v for k, v in run.document["problem"].items() if k not in own}
            assert seen.setdefault(problem["name"], problem)["kind"] == problem["kind"]


# Assumptions -------------------------------------------------------------------------------------


def test_an_assumption_holds_for_the_runs_that_it_rests_on(tmp_path):
    sweep = {
        "topology": ["ring", "complete"],
        "agents": [4, 5],
        "method": {
            "plain": {},
            "gossip": {"sampler": {"kind": "gossip_ula", "step_size": 0.005, "fusion": 0.1}},
        },
    }
    every = {"value": "1"}
    found = {
        "every": {},
        "gossip": {"sampler": "gossip_ula"},
        "both": {"sampler": ["gossip_ula", "de_sgld"], "topology": "ring", "problem": "linear"},
        "nested": {"sampler.step_size": 0.005, "agents": 4, "experiment": "one"},
    }
    assumptions = {name: {**every, **({"rests": r} if r else {})} for name, r in found.items()}
    paper = load(tmp_path, assumptions=assumptions, one={"sweep": sweep})
    check_study(paper)
    for run in paper.runs.values():
        topology, agents, method = run.document["labels"].values()
        holds = {
            "every": True,
            "gossip": method == "gossip",
            "both": topology == "ring",
            "nested": agents == "4",
        }
        assert run.document["assumptions"] == [name for name in found if holds[name]]
    assert paper.assumptions["every"].reason == "not stated"


# Readings ----------------------------------------------------------------------------------------


def test_a_reading_may_have_a_meaning_for_each_problem(tmp_path):
    draft = {"linear": "the prior split", "spam": "labels drawn", "mail": "labels drawn"}
    paper = load(tmp_path, readings={"draft": draft}, one={"reading": "draft"})
    documents = [run.document for run in paper.runs.values()]
    assert paper.meanings(documents) == {"draft": "the prior split"}
    said = "the prior split (linear regression); labels drawn (spam, mail)"
    assert paper.readings["draft"] == said


def test_a_claim_reads_the_experiment_that_its_reading_has(tmp_path):
    one = {**PAPER["experiments"]["one"], "metrics": ["w2"]}
    quantity = {"experiment": ["one", "code"], "metric": "w2", "agents": [0]}
    claim = {
        **{"where": "Fig 1", "says": "It is small.", "reason": "by eye"},
        "check": {"kind": "value", "quantity": quantity, "printed": 0.1, "tolerance": 0.1},
    }
    experiments = {"one": one, "code": {**one, "reading": "released"}}
    paper = load(tmp_path, experiments=experiments, claims={"small": claim})
    check_study(paper)
    assert [run.experiment for run in paper.claim_runs()] == ["one", "code"]
    read = {reading: case.runs for (_, _, reading), case in paper.cases.items()}
    assert [run.experiment for run in read["published"]] == ["one"]
    assert [run.experiment for run in read["released"]] == ["code"]


# Schedules that start at a value ------------------------------------------------------------------


def step_size(tmp_path, one=None, **schedule):
    sampler = {"kind": "d_ula", "step_size": 0.1, "fusion": schedule}
    (run,) = load(tmp_path, one={"sampler": sampler, **(one or {})}).runs.values()
    return run.document["sampler"]["fusion"]


def test_a_schedule_may_start_at_a_value(tmp_path):
    power = step_size(tmp_path, kind="power", start=0.36, b=230, exponent=0.05)
    assert set(power) == {"kind", "a", "b", "exponent"}
    assert power["a"] / 230**0.05 == pytest.approx(0.36, rel=1e-11)
    assert step_size(tmp_path, kind="power", start=0.36, a=None, b=230, exponent=0.05) == power


@pytest.mark.parametrize(
    ("topology", "agents", "largest"), [("ring", 6, 4.0), ("complete", 5, 5.0), ("star", 7, 7.0)]
)
def test_a_start_knows_the_spectrum_of_the_runs_network(topology, agents, largest, tmp_path):
    """What would be worked out by hand for one ring is right for every network."""
    power = step_size(
        *(tmp_path, {"topology": topology, "agents": agents}),
        **{"kind": "power", "start": "1.01 / laplacian_max", "b": 230, "exponent": 0.04},
    )
    assert power["a"] / 230**0.04 == pytest.approx(1.01 / largest, rel=1e-11)


def test_a_start_is_the_same_number_where_eigenvalues_are_not(tmp_path, monkeypatch):
    """The last digits of an eigenvalue depend on the processor; a run's identity must not."""
    options = {"kind": "power", "start": "1.01 / laplacian_max", "b": 7, "exponent": 0.1}
    one = {"topology": "ring", "agents": 25}
    found = step_size(tmp_path, one, **options)
    spectrum = expansion.spectrum_of
    monkeypatch.setattr(
        expansion,
        "spectrum_of",
        lambda graph: {k: v * (1 + 1e-15) for k, v in spectrum(graph).items()},
    )
    assert step_size(tmp_path, one, **options) == found
