"""Where a job looks for a data file: the environment's folder before the configuration's."""

import hashlib

import pytest
import yaml

pytestmark = pytest.mark.workflow

BODY = b"a data file"
FILE = "resources/tiny/f.bin"


def test_the_environment_overrides_the_configuration(project, tmp_path, monkeypatch):
    mirror, empty = tmp_path / "mirror", tmp_path / "empty"
    for folder in (mirror, empty):
        folder.mkdir()
    (mirror / "f.bin").write_bytes(BODY)
    nowhere = "http://127.0.0.1:9/f.bin"
    file = {"bytes": len(BODY), "sha256": hashlib.sha256(BODY).hexdigest(), "urls": [nowhere]}
    entry = {"description": "d", "license": "l", "citation": "c", "files": {"f.bin": file}}
    registry = project.folder / "config" / "datasets.yaml"
    registry.write_text(yaml.safe_dump({**yaml.safe_load(registry.read_text()), "tiny": entry}))
    for variable, setting in ((mirror, empty), (None, mirror)):
        monkeypatch.delenv("CONCORD_DATA_MIRROR", raising=False)
        if variable is not None:
            monkeypatch.setenv("CONCORD_DATA_MIRROR", str(variable))
        done = project.snakemake(FILE, config=(f"data_mirror={setting}",))
        assert done.returncode == 0, done.stdout
        assert (project.folder / FILE).read_bytes() == BODY
        (project.folder / FILE).unlink()
