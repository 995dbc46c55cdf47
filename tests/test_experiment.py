"""From a paper's file to its runs: sweeps, overrides, what is shared, and what is refused."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from concord.errors import ConcordError
from concord.studies.config import load_config, load_papers
from concord.studies.paper import Paper

ROOT = Path(__file__).parents[1]
CONFIG = {
    "scale": "paper",
    "seed": 3,
    "results": "results",
    "data_mirror": None,
    "smoke": {"chains": 8, "iterations": 12},
}
PAPER = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "assumptions": {"sigma": {"value": "1", "reason": "not stated"}},
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
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(mapping, sort_keys=False))
    return Paper(path, {**CONFIG, "scale": scale})


def names(paper):
    return [run.name for run in paper.runs.values()]


def test_a_run_states_every_parameter(tmp_path):
    (run,) = load(tmp_path).runs.values()
    assert run.folder == "x/one/run"
    assert run.mapping == {
        "paper": "x",
        "experiment": "one",
        "run": "run",
        "labels": {},
        "reading": "published",
        "scale": "paper",
        "seed": 3,
        "agents": 6,
        "topology": {"kind": "ring"},
        "problem": {
            **{"name": "linear", "kind": "linear_regression", "points": 30, "dim": 2},
            **{"points_per_agent": None, "noise_sd": 1.0, "feature_variance": 1.0},
            **{"prior_variance": 1.0, "prior_share": "split", "legacy_seed": None},
        },
        "partition": {"kind": "equal"},
        "sampler": {
            **{"kind": "de_sgld", "step_size": 0.005},
            **{"batch_size": None, "update_order": "simultaneous"},
        },
        "initial": {"kind": "normal", "mean": 0.0, "sd": 1.0},
        "chains": 100,
        "iterations": 50,
        "record": {
            **{"every": 1, "at": None, "agents": None, "draws": True, "average": True},
            **{"probes": [], "averages": [], "burn_in": -1},
        },
        "metrics": [],
        "assumptions": [],
    }


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
    first = runs[0].mapping
    assert runs[0].name == "topology=ring,step=0.001,reading=published"
    assert first["labels"] == {"topology": "ring", "step": "0.001", "reading": "published"}
    assert first["sampler"]["step_size"] == 0.001
    assert (first["problem"]["points"], first["problem"]["prior_share"]) == (30, "omitted")
    last = runs[-1].mapping
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
    runs = {run.name: run.mapping for run in load(tmp_path, one=change).runs.values()}
    chains = {name: run["chains"] for name, run in runs.items()}
    assert {name for name, n in chains.items() if n == 7} == {
        "topology=ring,agents=4",
        "topology=star,agents=4",
    }
    steps = {name: run["sampler"]["step_size"] for name, run in runs.items()}
    assert {name for name, step in steps.items() if step == 0.5} == {
        "topology=star,agents=4",
        "topology=star,agents=5",
    }


def test_runs_do_not_share_their_mappings(tmp_path):
    """Changing one resolved run must not change another, or the file's contents."""
    paper = load(tmp_path, one={"sweep": {"topology": ["ring", "star"]}})
    one, other = paper.runs.values()
    one.mapping["sampler"]["step_size"] = 9
    one.mapping["problem"]["points"] = 1
    assert other.mapping["sampler"]["step_size"] == 0.005
    assert other.mapping["problem"]["points"] == 30
    assert paper.mapping["problems"]["linear"]["points"] == 30


def test_smoke_scale_shrinks_and_applies_its_own_keys(tmp_path):
    (run,) = load(tmp_path, "smoke", one={"smoke": {"agents": 3}}).runs.values()
    assert (run.mapping["chains"], run.mapping["iterations"], run.mapping["agents"]) == (8, 12, 3)
    assert run.mapping["scale"] == "smoke"
    (small,) = load(tmp_path, "smoke", one={"chains": 2, "iterations": 3}).runs.values()
    assert (small.mapping["chains"], small.mapping["iterations"]) == (2, 3)
    (full,) = load(tmp_path, one={"smoke": {"agents": 3}}).runs.values()
    assert full.mapping["agents"] == 6


def test_selections_choose_by_label_in_the_order_of_the_file(tmp_path):
    sweep = {"topology": ["ring", "complete"], "agents": [4, 5, 6]}
    paper = load(tmp_path, one={"sweep": sweep})
    assert [run.name for run in paper.select("one", "here")] == names(paper)
    chosen = paper.select({"experiment": "one", "agents": [6, 4], "topology": "ring"}, "here")
    assert [run.name for run in chosen] == ["topology=ring,agents=4", "topology=ring,agents=6"]
    assert paper.run("one", "topology=ring,agents=5").mapping["agents"] == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sweep": {"topology": [["ring"]]}}, "sweep.topology[0]: ['ring'] is not a plain value"),
        ({"sweep": {"a": {"../up": {}}}}, "sweep.a.../up: '../up' cannot name a folder"),
        ({"sweep": {"a": {"x" * 61: {}}}}, "cannot name a folder"),
        ({"sweep": {"agents": [6, 0]}}, "sweep.agents[1]: 0 is not a positive integer"),
        (
            {"sweep": {"n": {"key": "agents", "values": [6, 0]}}},
            "sweep.n.values[1]: 0 is not a positive integer",
        ),
        (
            {"sweep": {"r": {"a": {"sampler": {"step_size": -1}}}}},
            "sweep.r.a.sampler.step_size: -1 is not positive",
        ),
        (
            {
                "sweep": {"topology": ["ring"]},
                "overrides": [{"when": {"topology": "ring"}, "set": {"chains": 0}}],
            },
            "overrides[0].set.chains: 0 is not a positive integer",
        ),
        (
            {"sweep": {"topology": ["ring"]}, "overrides": [{"when": {"topo": 1}, "set": {}}]},
            "overrides[0].when: 'topo' is not an axis; did you mean 'topology'?",
        ),
        (
            {
                "sweep": {"topology": ["ring"]},
                "overrides": [{"when": {"topology": "rnig"}, "set": {}}],
            },
            "overrides[0].when.topology: no run has 'rnig'; did you mean 'ring'?",
        ),
        ({"sweep": {"../up": ["ring"]}}, "sweep.../up: '../up' cannot name a folder"),
        ({"sweep": {"a=b": ["ring"]}}, "sweep.a=b: 'a=b' cannot name a folder"),
        (
            {"sweep": {"n": {"key": "agents", "values": [4, 5, 4]}}},
            "sweep.n: two values have the label 4, so that their runs would be one",
        ),
        (
            {"sweep": {"s": {"key": "sampler.step_size", "values": [0.1234567, 0.1234568]}}},
            "sweep.s: two values have the label 0.123457",
        ),
        (
            {"sweep": {f"axis{i}": {"key": "agents", "values": [*range(9)]} for i in range(9)}},
            "sweep: 387420489 runs are more than 10000; shorten an axis",
        ),
        (
            {"sweep": {c * 50: {"d" * 50: {}} for c in "abcde"}},
            "has more than 200 characters, too many for a folder; shorten axes or labels",
        ),
        ({"sweep": {"a": {"x": 3}}}, "sweep.a.x: 3 is not a mapping of keys of the run"),
        ({"sweep": {"a": {"key": 3, "values": [1]}}}, "sweep.a.key: 3 is not a key of a run"),
        ({"sweep": {"a": {"key": "agents", "values": 3}}}, "sweep.a.values: 3 is not a list of"),
        ({"problem": {"name": ["linear"]}}, "problem.name: ['linear'] is not a text"),
        ({"agents": 10**9}, "agents: 1000000000 is above 100000; give 100000 or less"),
        ({"agents": 2001, "topology": "complete"}, "topology: 2001 agents are too many for kind"),
        ({"iterations": 10**18}, "iterations: 1000000000000000000 is above 1000000000"),
        ({"record": {"agents": []}}, "record.agents: it names no agent; leave it out"),
        ({"record": {"at": [99]}}, "record.at: none of these is one of the 50 iterations"),
        (
            {"chains": 10**6, "iterations": 10**6},
            "record: 1000001 iterations of 6 agents and 1000000 chains are more than 100000000000",
        ),
        ({"record": {"probes": ["__init__"]}}, "record.probes[0]: '__init__' is not allowed"),
        ({"initial": {"kind": ["normal"]}}, "initial.kind: there is no kind ['normal']"),
        (
            {"sampler": {"kind": "de_sgld", "step_size": 10**290}},
            "sampler.step_size: ",
        ),
        (
            {
                "sampler": {
                    "kind": "de_sgld",
                    "step_size": {"kind": "power", "a": 1.0, "b": 2.0, "exponent": 99.0},
                }
            },
            "sampler.step_size: its value at step 1000000000 is no number from 1e-100",
        ),
        ({"assumptions": ["sgima"]}, "assumptions: there is no assumption 'sgima'; did you mean"),
        (
            {"metrics": ["w2", "acuracy"]},
            "metrics[1]: there is no metric 'acuracy'; did you mean 'accuracy'?",
        ),
        ({"problem": "linaer"}, "problem: there is no problem 'linaer'; did you mean 'linear'?"),
        ({"record": {"agents": [6]}}, "record.agents[0]: there is no agent 6; name agents 0 to 5"),
        ({"initial": {"kind": "norma"}}, "initial.kind: there is no kind 'norma'; did you mean"),
        ({"partition": {"kind": "eqal"}}, "partition.kind: "),
        ({"topology": {"kind": "ring", "rows": 2}}, "topology"),
        ({"topology": {}}, "topology: the key 'kind' is missing"),
        ({"sampler": "de_sgld"}, "sampler: 'de_sgld' is not a mapping"),
    ],
)
def test_mistakes_name_the_key_that_was_written(change, message, tmp_path):
    with pytest.raises(ConcordError) as caught:
        load(tmp_path, one=change).runs  # noqa: B018 (expands every run)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'x.yaml'}: experiments.one.") and message in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ("two", "there is no experiment 'two'; choose one of one"),
        (
            {"experiment": "one", "topolgy": "ring"},
            "one has no such axis; did you mean 'topology'?",
        ),
        ({"experiment": "one", "topology": "star"}, "topology: no run of one has 'star'; choose"),
        (
            {"experiment": "one", "topology": ["ring", "cmplete"]},
            "'cmplete'; did you mean 'complete'",
        ),
        ({"experiment": ["one"]}, "there is no experiment ['one']; did you mean"),
    ],
)
def test_selections_of_nothing_are_refused(selection, message, tmp_path):
    paper = load(tmp_path, one={"sweep": {"topology": ["ring", "complete"]}})
    with pytest.raises(ConcordError) as caught:
        paper.select(selection, "figures.f.runs[0]")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "it is not a mapping"),
        ("", "it is not a mapping"),
        ("a: 1\nb: c: d", "line 2 column 5: mapping values are not allowed"),
        ("1: 2", "line 1 column 1: the key 1 is not text on one line; put it in quotes"),
        ('"a\\nb": 2', "the key 'a\\nb' is not text on one line"),
        ("paper: {title: T, authors: A, year: 2021}", "the key 'experiments' is missing"),
        ("paper: {title: T}\nexperiments: {a: {}}", "paper: the key 'authors' is missing; add it"),
        ("papr: 1", "papr"),
        (
            "defaults: {sweep: {}}\npaper: {title: T, authors: A, year: 1}\nexperiments: {a: {}}",
            "defaults.sweep: it belongs to one experiment; move it there",
        ),
    ],
)
def test_a_file_that_is_no_paper_is_refused(text, message, tmp_path):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ConcordError) as caught:
        Paper(tmp_path / "x.yaml", CONFIG)
    assert str(caught.value).startswith(f"{tmp_path / 'x.yaml'}") and message in str(caught.value)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ConcordError, match=r"none\.yaml: cannot be read \(No such file"):
        Paper(tmp_path / "none.yaml", CONFIG)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": "larger"}, r"scale: 'larger' is not allowed; choose one of paper, smoke"),
        ({"sead": 1}, r"sead: unknown key; did you mean 'seed'\?"),
        ({"seed": -1}, r"seed: -1 does not fit \(minimum\): .*non-negative"),
        ({"seed": "one"}, r"seed: 'one' is not of type integer"),
        ({"seed": 1.0}, r"seed: 1\.0 is not of type integer"),
        ({"seed": 2**63}, r"seed: 9223372036854775808 does not fit \(maximum\)"),
        ({"results": "a/../../b"}, r"results: 'a/\.\./\.\./b' does not fit"),
        ({"results": "a\n"}, r"results: 'a\\n' does not fit"),
        ({"results": "/elsewhere"}, r"results: '/elsewhere' does not fit"),
    ],
)
def test_wrong_settings_are_refused(changes, message):
    with pytest.raises(ConcordError, match=message):
        load_config(ROOT / "config" / "config.yaml", changes)


@pytest.mark.parametrize("checked", [False, True])
def test_settings_that_are_not_set_have_the_documented_defaults(tmp_path, checked):
    path = tmp_path / "config.yaml"
    path.write_text("")
    defaults = load_config(path, checked=checked)
    assert defaults == load_config(ROOT / "config" / "config.yaml")
    path.write_text("smoke: { chains: 2 }\nseed: 7")
    smoke = {**defaults["smoke"], "chains": 2}
    assert load_config(path, checked=checked) == {**defaults, "seed": 7, "smoke": smoke}


@pytest.mark.parametrize("scale", ["paper", "smoke"])
def test_every_paper_of_the_project_loads(scale):
    config, papers = load_papers(ROOT / "config", {"scale": scale})
    assert config["scale"] == scale and "gurbuzbalaban2021" in papers
    folders = [run.folder for paper in papers.values() for run in paper.runs.values()]
    assert len(folders) == len(set(folders))


def test_assumptions_are_all_used():
    """One that no run rests on is shown in no caption."""
    _, papers = load_papers(ROOT / "config")
    for key, paper in papers.items():
        used = {name for run in paper.runs.values() for name in run.mapping["assumptions"]}
        assert set(paper.assumptions) - used == set(), key


def test_runs_that_name_the_same_problem_share_its_data():
    """Data depend on a problem's name: two problems of one name must be one problem."""
    _, papers = load_papers(ROOT / "config")
    own = {"prior_share", "prior_gradient_at", "prior_sign"}  # not of the data
    for paper in papers.values():
        seen: dict[str, dict] = {}
        for run in paper.runs.values():
            problem = {k: v for k, v in run.mapping["problem"].items() if k not in own}
            assert seen.setdefault(problem["name"], problem)["kind"] == problem["kind"]
