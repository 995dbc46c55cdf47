"""A crate of what was made, by the validator of its profile."""

import hashlib
import json
import os
import subprocess
from pathlib import Path
from urllib.parse import quote
from zipfile import ZipFile

import pytest

import by_hand
from concord_cli.__main__ import main
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

ROOT = Path(__file__).resolve().parents[3]
SMOKE = {"scale": "smoke"}
EXPERIMENT = "gurbuzbalaban2021/linear_step"


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """An experiment at smoke scale."""
    results, before = tmp_path_factory.mktemp("results"), os.getcwd()
    os.chdir(ROOT)
    try:
        study = Study(Path("config/papers/gurbuzbalaban2021"), load_config(changes=SMOKE))
        runs = by_hand.write(by_hand.experiments(study)["linear_step"], results / EXPERIMENT)
        assert main(["measure", str(runs), "-o", str(runs.with_name("metrics.csv"))]) == 0
    finally:
        os.chdir(before)
    return results


@pytest.mark.thorough
def test_the_crate_is_valid(results, tmp_path, monkeypatch):
    """By the validator of the profile, whose own needs are at odds with the lock's."""
    rocrate = pytest.importorskip("rocrate", reason="pip install -e '.[crate]'")
    validator = ROOT / ".venv-validator" / "bin" / "python"
    if not validator.exists():
        pytest.skip(f"{validator}: a venv with roc-validator==0.13.0, which .ci/run extras makes")
    monkeypatch.chdir(ROOT)
    crate = tmp_path / "crate.zip"
    where = ("--scale", "smoke", "--results", str(results), "-o", str(crate))
    assert main(["crate", *where]) == 0
    context = Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld"
    command = [validator, Path(__file__).with_name("valid_crate.py"), context, crate]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    required, _, recommended = done.stdout.partition("RECOMMENDED\n")
    assert required.split() == ["REQUIRED", "valid"], done.stdout + done.stderr
    # A file of the crate has no absolute address, and the developers have no page.
    issues = recommended.splitlines()[1:]
    assert all("url" in i.lower() or "URI" in i for i in issues), issues
    with ZipFile(crate) as archive:
        metadata = json.loads(archive.read("ro-crate-metadata.json"))
        listed = {e["@id"]: e["sha256"] for e in metadata["@graph"] if "sha256" in e}
        table = f"results/{EXPERIMENT}/metrics.csv"
        assert hashlib.sha256(archive.read(table)).hexdigest() == listed[quote(table)]
