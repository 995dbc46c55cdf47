"""A fresh clone where there is Snakemake and nothing else: one sentence says what to type.

Planning needs the package and its libraries in Snakemake's own environment, conda or not.
"""

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from smoke_project import PARTS, ROOT

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]

# What `snakedeploy deploy-workflow` (0.17.1) writes into workflow/Snakefile; of a repository on
# GitHub `github("owner/name", path="workflow/Snakefile", tag="v1")` stands in the place of the URL.
DEPLOYED = """from snakemake.utils import min_version


min_version("6.10.0")


configfile: "config/config.yaml"


# declare {folder} as a module
module concord:
    snakefile:
        {snakefile}
    config:
        config


# use all rules from {folder}
use rule * from concord
"""
PLANS = [("-n",), ("--lint",), ("--sdm", "conda", "-n"), ("--workflow-profile", "none", "-n")]


@dataclass
class Clone:
    """A clone, and an environment that was made by `pip install snakemake`."""

    folder: Path
    python: Path

    def run(self, *command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
        dropped = ("PYTHONPATH", "CONCORD_DATA_MIRROR")
        environment = {k: v for k, v in os.environ.items() if k not in dropped}
        words = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
        return subprocess.run(command, timeout=600, **words)

    def refusal(self, *arguments: str | Path, folder: Path) -> str:
        """Return the only sentence that Snakemake says when it cannot plan."""
        done = self.run(self.python.with_name("snakemake"), *arguments, folder=folder)
        lines = [line for line in done.stderr.splitlines() if "specific profile" not in line]
        assert (done.returncode, done.stdout, len(lines)) == (1, "", 1), done.stderr
        return lines[0]

    def to_install(self, source: str) -> str:
        """Return the sentence that asks for the package in Snakemake's environment."""
        command = shlex.join([str(self.python), "-m", "pip", "install", source])
        return f"concord: {self.lacking('msgspec')}; type: {command}"

    def lacking(self, module: str) -> str:
        return f"Snakemake cannot plan without the module {module!r}, which {self.python} lacks"


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Clone:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "snakemake"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"Snakemake cannot be installed here: {done.stderr.strip()[-200:]}")
    original = folder / "original"
    original.mkdir()
    others = (".gitignore", "README.md", "LICENSE", "CONTRIBUTING.md", "docs", "pyproject.toml")
    for part in (*PARTS, *others):
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, original / part, ignore=ignored)
        else:
            shutil.copy2(ROOT / part, original)
    identity = ("-c", "user.name=Concord", "-c", "user.email=concord@example.org")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "1"), ("tag", "v1")):
        subprocess.run(["git", *command], cwd=original, check=True)
    subprocess.run(["git", "clone", "-q", original, folder / "clone"], check=True)
    return Clone(folder / "clone", python)


def module(folder: Path, snakefile: str) -> Path:
    """Write what snakedeploy writes, with configuration and profiles of the clone."""
    (folder / "workflow").mkdir()
    text = DEPLOYED.format(folder=folder, snakefile=snakefile)
    (folder / "workflow/Snakefile").write_text(text)
    for part in ("config", "profiles"):
        shutil.copytree(ROOT / part, folder / part)
    return folder


@pytest.mark.parametrize("arguments", PLANS, ids=" ".join)
def test_a_clone_says_make_setup(clone, arguments):
    said = clone.refusal(*arguments, folder=clone.folder)
    remedy = "type: make setup; then .venv/bin/snakemake in the place of snakemake"
    assert said == f"concord: {clone.lacking('msgspec')}; {remedy}"


@pytest.mark.parametrize("snakefile", ["Snakefile", "workflow/Snakefile"])
def test_a_clone_that_is_used_elsewhere_says_what_to_install(clone, snakefile, tmp_path):
    where = ("-s", clone.folder / snakefile, "-d", tmp_path, "-n")
    assert clone.refusal(*where, folder=tmp_path) == clone.to_install(str(clone.folder))


def test_a_study_says_what_to_install(clone, tmp_path):
    """What `concord init` makes, in an environment that it was not made with."""
    shutil.copytree(ROOT / "src/concord_studies/configuration/template", tmp_path / "study")
    said = clone.refusal("-n", folder=tmp_path / "study")
    assert said.startswith(f"concord: {clone.lacking('concord')}; type: ")
    assert f"{clone.python} -m pip install '/path/to/concord'" in said


def test_a_deployed_workflow_plans_once_it_is_typed(clone, tmp_path):
    """Last, since the environment is complete then."""
    source = f"git+file://{clone.folder}@v1"
    url = f"git+file://{clone.folder}/workflow/Snakefile@v1"
    folder = module(tmp_path, f'"{url}"')
    said = clone.refusal("-n", folder=folder).replace("'concord_studies'", "'msgspec'")
    assert said == clone.to_install(source)
    install = shlex.split(said.partition("; type: ")[2])
    done = clone.run(*install, "-q", folder=folder)
    assert done.returncode == 0, done.stderr
    plan = ("-n", "results/gurbuzbalaban2021/figures/fig2.pdf")
    for where in (folder, clone.folder):
        done = clone.run(clone.python.with_name("snakemake"), *plan, folder=where)
        assert done.returncode == 0, done.stderr
        assert "rule figure:" in done.stdout + done.stderr
