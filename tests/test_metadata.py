"""What archives and catalogs read of the project."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

import concord
from concord_studies.pages.site import build

ROOT = Path(__file__).resolve().parents[1]


def test_the_citation_zenodo_and_codecheck_are_made(monkeypatch):
    monkeypatch.chdir(ROOT)
    for name, text in runpy.run_path(str(ROOT / ".ci" / "metadata.py"))["texts"]().items():
        assert (ROOT / name).read_text() == text, f"{name}: run `make metadata`"


def test_the_site_and_the_documents_are_of_this_version():
    assert build.SETTINGS["version"] == concord.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]  # one place states it
    texts = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    stated = re.findall(r"(?:of |\()version (\d+\.\d+\.\d+)", texts)
    assert max(map(Version, stated), default=Version("0")) <= Version(concord.__version__)


def test_type_checkers_read_the_types_of_every_package():
    assert all((path / "py.typed").exists() for path in (ROOT / "src").glob("concord*"))


def test_authors_are_written_as_zenodo_has_them():
    author = runpy.run_path(str(ROOT / ".ci" / "metadata.py"))["author"]
    orcid = "https://orcid.org/0000-0002-1825-0097"
    person = {"family-names": "Doe", "given-names": "Jane", "orcid": orcid}
    assert author(person) == {"name": "Doe, Jane", "orcid": "0000-0002-1825-0097"}


CATALOG = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())


@pytest.mark.parametrize("path", ["workflow/Snakefile", "config/README.md", "README.md", "LICENSE"])
def test_the_catalog_of_workflows_finds_what_it_asks_for(path):
    assert (ROOT / path).stat().st_size > 100


def test_the_catalog_of_workflows_knows_how_to_run_it():
    """Its criteria of standardized usage, of November 2026."""
    usage = CATALOG["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    stack = usage["software-stack-deployment"]
    assert set(stack) == {"conda", "apptainer", "report"}
    assert set(map(type, stack.values())) == {bool}
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert stack["conda"] == ("conda:" in rules) and stack["apptainer"] == ("container" in rules)
    assert stack["report"] == ("report(" in rules)
    assert "must be installed" in usage["mandatory-flags"]["desc"]
    assert 'min_version("' in (ROOT / "workflow/Snakefile").read_text()
