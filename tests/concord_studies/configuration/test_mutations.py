"""A study that is changed at random is accepted, or refused in one sentence with file and key."""

import copy
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concord.errors import ConcordError
from concord_studies.configuration.checks import check_study
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.pages import captions

STUDY = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())["study"]
TEXTS = (
    *("", " ", "..", "../../up", "/etc/up", "a/b", "a b", "-o", "line\nbreak", "nul\0", "naïve"),
    *("$(touch x)", "'", '"', "\\", "{who}", "%s", "*", "x" * 300),
    *("last", "average", "all", "kind"),
)
NUMBERS = (
    *(0, 1, -1, 7, 10**6, 10**9, 2**63, 10**30),
    *(0.0, 0.5, -0.5, 1e-300, 1e300, math.nan, math.inf),
)
NESTS = (
    *([], {}, [[]], [{}], {"": ""}, {"kind": []}),
    *([None], [1, "a"], {"a b": 1}, {"key": 1, "values": 2}),
)
VALUES = (None, True, *TEXTS, *NUMBERS, *NESTS)


def places(value: Any, outer: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where every value below a document's root stands."""
    inner = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        inner.append((*outer, key))
        inner += places(item, (*outer, key)) if isinstance(item, (dict, list)) else []
    return inner


def part(document: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        document = document[key]
    return document


@st.composite
def mutated(draw: Any) -> Any:
    """Return the study with one or two values removed, replaced, copied elsewhere, or renamed."""
    document = copy.deepcopy(STUDY)
    for _ in range(draw(st.integers(1, 2))):
        (*outer, key), other = (draw(st.sampled_from(places(document))) for _ in range(2))
        parent, theirs = part(document, outer), copy.deepcopy(part(document, other))
        match draw(st.sampled_from(["remove", "replace", "copy", "rename", "wrap"])):
            case "remove":
                del parent[key]
            case "replace":
                parent[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))
            case "copy":
                parent[key] = theirs
            case "rename" if isinstance(parent, dict):
                parent[draw(st.sampled_from(TEXTS) | st.just(other[-1]).map(str))] = parent.pop(key)
            case _:
                parent[key] = draw(st.sampled_from([[parent[key]], {"kind": parent[key]}]))
    return document


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(document=mutated(), scale=st.sampled_from(["paper", "smoke"]))
def test_a_study_is_accepted_or_refused_in_one_sentence(document, scale, tmp_path):
    path = tmp_path / "x" / "study.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    try:
        study = Study(path.parent, load_config(changes={"scale": scale}))
        check_study(study)
        for section in ("figures", "tables"):
            for name in study.outputs(section):
                captions.describe_output(study, section, name)
    except ConcordError as error:
        text = str(error)
        assert text.isprintable() and len(text) < 1500, text
        assert re.match(rf"{re.escape(str(path.parent))}(/study\.yaml)?: ", text), text
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]
