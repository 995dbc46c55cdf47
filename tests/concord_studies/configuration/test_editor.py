"""The schema that editors read: it accepts the papers and refuses what Concord refuses."""

import json
from pathlib import Path

import jsonschema
import pytest

from concord import kinds
from concord.errors import ConcordError
from concord_cli.__main__ import main
from concord_studies.configuration.config import load_config
from concord_studies.configuration.editor import config_schema, study_schema
from concord_studies.io import load_yaml

ROOT = Path(__file__).parents[3]
PAPERS = sorted((ROOT / "config" / "papers").iterdir())


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
