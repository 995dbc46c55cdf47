"""The schema that editors read: it accepts the papers and refuses what Concord refuses."""

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from concord import kinds
from concord.errors import ConcordError
from concord.rooms import options_of
from concord_cli.__main__ import main
from concord_studies.configuration.checks import check_outputs
from concord_studies.configuration.config import load_config
from concord_studies.configuration.editor import config_schema, study_schema
from concord_studies.configuration.study import Study
from concord_studies.io import load_yaml

ROOT = Path(__file__).parents[3]
PAPERS = sorted((ROOT / "config" / "papers").iterdir())
CHECK = {
    "kind": "value",
    "quantity": {"experiment": "one", "metric": "w2"},
    "printed": 1.0,
    "tolerance": 0.1,
}
STUDY = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "problems": {"linear": {"kind": "linear_regression", "points": 30}},
    "defaults": {"agents": 6, "chains": 10, "iterations": 50, "problem": "linear"},
    "experiments": {
        "one": {
            "topology": {"kind": "grid", "rows": 2},
            "sampler": {"kind": "de_sgld", "step_size": {"kind": "harmonic", "a": 0.1, "c": 1}},
            "metrics": ["w2"],
            "sweep": {"reading": {"published": {}, "other": {"sampler": {"batch_size": 2}}}},
        }
    },
    "figures": {
        "f": {"kind": "curves", "title": "F", "runs": ["one"], "options": {"metric": "w2"}}
    },
    "tables": {
        "t": {"kind": "final_values", "title": "T", "runs": ["one"], "options": {"metrics": ["w2"]}}
    },
    "claims": {
        "c": {
            **{"where": "Fig 1", "says": "It is one.", "check": CHECK},
            **{"readings": ["published"], "reason": "none"},
        }
    },
}
ONE, SAMPLER = ("experiments", "one"), ("experiments", "one", "sampler")


@pytest.fixture(scope="module")
def validator():
    kinds.use(*PAPERS)
    schema = study_schema()
    kinds.use()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_the_papers_are_accepted(path, validator):
    for file in path.glob("*.yaml"):
        assert not list(validator.iter_errors(load_yaml(file)))


def concord_accepts(study, folder):
    path = folder / "x"
    path.mkdir(exist_ok=True)
    (path / "study.yaml").write_text(json.dumps(study))  # which is YAML
    try:
        paper = Study(path, load_config(ROOT / "config" / "config.yaml"))
        paper.runs  # noqa: B018 (expands and so checks every run)
        check_outputs(paper)
    except ConcordError:
        return False
    return True


def test_the_study_that_is_spoiled_here_is_accepted(validator, tmp_path):
    assert validator.is_valid(STUDY) and concord_accepts(STUDY, tmp_path)


def test_a_rule_may_set_the_kind_of_a_check(validator, tmp_path):
    study = copy.deepcopy(STUDY)
    claim = study["claims"]["c"] = {**STUDY["claims"]["c"], "rule": "about"}
    claim["check"] = {k: v for k, v in CHECK.items() if k not in ("kind", "tolerance")}
    assert validator.is_valid(study) and concord_accepts(study, tmp_path)
    claim["check"]["printd"] = 1.0
    assert not validator.is_valid(study) and not concord_accepts(study, tmp_path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("problems", "linear", "pionts"), 3),
        (("problems", "linear", "kind"), "linear"),
        (("problems", "linear", "noise_sd"), 0),
        (("defaults", "agnts"), 3),
        (("defaults", "agents"), 0),
        (("defaults", "chains"), "many"),
        ((*ONE, "iterations"), 1.5),
        ((*ONE, "titel"), "T"),
        ((*ONE, "topology"), "rnig"),
        ((*ONE, "topology", "rows"), 0),
        ((*ONE, "topology", "colums"), 2),
        ((*ONE, "partition"), {"kind": "halves"}),
        ((*ONE, "initial"), {"kind": "normal", "sd": -1}),
        ((*ONE, "record"), {"probes": ["everything"]}),
        ((*ONE, "record"), {"evry": 2}),
        ((*ONE, "reading"), "a reading"),
        ((*SAMPLER, "kind"), "de_sgdl"),
        ((*SAMPLER, "stepsize"), 0.1),
        ((*SAMPLER, "step_size"), -0.1),
        ((*SAMPLER, "step_size"), "fast"),
        ((*SAMPLER, "step_size", "kind"), "harmonics"),
        ((*SAMPLER, "step_size", "c"), -1),
        ((*SAMPLER, "update_order"), "nonsense"),
        ((*SAMPLER, "batch_size"), True),
        ((*ONE, "sweep", "reading", "other"), {"sampler": {"batchsize": 2}}),
        (("figures", "f", "kind"), "metric_curve"),
        (("figures", "f", "options", "metrc"), "w2"),
        (("figures", "f", "options"), {}),
        (("figures", "f", "options", "x"), {"limits": [1]}),
        (("figures", "f", "options", "y"), {"scale": "cubic"}),
        (("figures", "f", "options", "layers"), ["shadows"]),
        (("tables", "t", "options", "metrics"), []),
        (("claims", "c", "check", "kind"), "values"),
        (("claims", "c", "check"), {**CHECK, "tolerance": -1}),
        (("claims", "c", "check", "quantity", "at"), "lats"),
        (("claims", "c", "check", "quantity", "metrics"), "w2"),
    ],
    ids=lambda part: ".".join(part) if isinstance(part, tuple) else None,
)
def test_what_concord_refuses_is_refused(place, value, validator, tmp_path):
    study = copy.deepcopy(STUDY)
    part = study
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    assert not concord_accepts(study, tmp_path)
    assert not validator.is_valid(study)


def test_it_describes_every_option_of_every_kind():
    """Each kind is there, and an editor can say what each of its options means."""
    definitions = study_schema()["$defs"]
    for package in ("samplers", "problems", "figures", "tables"):
        for kind in kinds.names(package):
            own = options_of(kinds.find(package, kind, "tests"))
            name = own.__name__ if own.__name__ in definitions else f"{own.__module__}.Params"
            found = definitions[name]["properties"]
            options = {n: p for n, p in found.items() if n not in ("kind", "name")}
            assert all(p.get("description") for p in options.values()), (package, kind)


@pytest.mark.parametrize(("file", "schema"), [("study", study_schema), ("config", config_schema)])
def test_the_command_prints_it(capsys, file, schema):
    assert main(["schema", file]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(schema()))


def test_the_schema_of_the_configuration_refuses_what_concord_refuses(tmp_path):
    validator = jsonschema.Draft202012Validator(config_schema())
    config = load_yaml(ROOT / "config" / "config.yaml")
    assert validator.is_valid(config)
    for key, value in {"scale": "large", "seed": -1, "results": "../up", "sead": 2}.items():
        assert not validator.is_valid({**config, key: value})
        (tmp_path / "config.yaml").write_text(json.dumps({**config, key: value}))
        with pytest.raises(ConcordError, match=key):
            load_config(tmp_path / "config.yaml")


def test_the_papers_name_the_schema_that_make_writes():
    for file in ("study", "config"):
        command = f"concord schema {file} > config/{file}.schema.json\n"
        assert command in (ROOT / "Makefile").read_text()
    first = (ROOT / "config" / "config.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=config.schema.json"
    for path in (ROOT / "config" / "papers").glob("*/*.yaml"):
        line = path.read_text().splitlines()[0]
        assert line == "# yaml-language-server: $schema=../../study.schema.json", path
