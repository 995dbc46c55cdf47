"""A mistake in a study is one sentence with its file, its place, and the remedy or nearest name."""

import copy
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from concord import kinds
from concord.errors import ConcordError
from concord_studies.configuration.checks import check_study
from concord_studies.configuration.config import load_config
from concord_studies.configuration.editor import study_schema
from concord_studies.configuration.study import Study

FILE = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())


def change(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the study with values set at places such as ``figures.curves.runs[0].sampler``."""
    study = copy.deepcopy(FILE["study"])
    for place, value in changes.items():
        *outer, last = [int(k) if k.isdigit() else k for k in re.findall(r"[^.\[\]]+", place)]
        entry: Any = study
        for key in outer:
            entry = entry.setdefault(key, {}) if isinstance(entry, dict) else entry[key]
        entry[last] = copy.deepcopy(value)
    return study


@pytest.mark.parametrize(
    ("changes", "remedy"), [({}, None), *FILE["named"], *FILE["typed"]], ids=str
)
def test_a_mistake_is_refused_with_its_place_and_remedy(changes, remedy, tmp_path):
    path = tmp_path / "x"
    path.mkdir()
    (path / "study.yaml").write_text(yaml.safe_dump(change(changes), sort_keys=False))
    if remedy is None:
        return check_study(Study(path, load_config()))
    with pytest.raises(ConcordError) as error:
        check_study(Study(path, load_config()))
    text = str(error.value)
    sections = "|".join(["experiments", *(re.match(r"\w+", place)[0] for place in changes)])
    assert re.match(rf"{re.escape(str(path / 'study.yaml'))}: ({sections})\b", text), text
    assert re.search(".*".join(map(re.escape, remedy.split("*"))), text), text


@pytest.mark.parametrize("changes", [changes for changes, _ in FILE["typed"]], ids=str)
def test_editors_refuse_what_concord_refuses(changes, validator):
    assert validator.is_valid(FILE["study"]) and not validator.is_valid(change(changes))


@pytest.fixture(scope="module")
def validator():
    kinds.use()
    return jsonschema.Draft202012Validator(study_schema())
