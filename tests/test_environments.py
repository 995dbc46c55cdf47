"""The lock, the conda environments, pyproject.toml and the running interpreter agree."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
# conda-forge's name where it is not the package index's
INDEX_NAMES = {"matplotlib-base": "matplotlib", "pytorch": "torch"}
# run-time dependencies that a job does not import: they belong to the process that starts jobs
OUTSIDE_JOBS = {"snakemake", "pygments"}


def read_lock() -> dict[str, str]:
    """Return {canonical name: version}; fail on a line that pins no exact version."""
    versions: dict[str, str] = {}
    for line in (ROOT / "envs/requirements.lock").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][0-9A-Za-z.]*)", line)
        assert match, f"envs/requirements.lock: {line!r} is not of the form name==version"
        name = canonicalize_name(match[1])
        assert name not in versions, f"envs/requirements.lock: {name} is pinned twice"
        versions[name] = match[2]
    return versions


def read_conda(name: str) -> dict[str, list[str]]:
    """Return {package index name: [version, build string if there is one]}."""
    dependencies = yaml.safe_load((ROOT / "envs" / name).read_text())["dependencies"]
    pins = (dependency.split("=") for dependency in dependencies)
    return {INDEX_NAMES.get(package, package): rest for package, *rest in pins}


LOCK = read_lock()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
RUN_TIME = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
DIRECT = RUN_TIME + [
    Requirement(line) for line in EXTRAS["dev"] + PYPROJECT["build-system"]["requires"]
]


@pytest.mark.parametrize("requirement", DIRECT, ids=lambda requirement: requirement.name)
def test_lock_meets_pyproject(requirement: Requirement) -> None:
    assert LOCK[canonicalize_name(requirement.name)] in requirement.specifier


@pytest.mark.parametrize("extra", ["lenet", "bench", "cluster"])
def test_optional_packages_are_exact_and_outside_the_lock(extra: str) -> None:
    for requirement in map(Requirement, EXTRAS[extra]):
        assert [specifier.operator for specifier in requirement.specifier] == ["=="]
        assert canonicalize_name(requirement.name) not in LOCK


def test_conda_pins_are_those_of_the_lock() -> None:
    pins = read_conda("concord.yaml")
    assert pins.pop("python")[0] in SpecifierSet(PYPROJECT["project"]["requires-python"])
    assert pins == {
        name: [LOCK[name]]
        for name in (canonicalize_name(requirement.name) for requirement in RUN_TIME)
        if name not in OUTSIDE_JOBS
    }


def test_conda_lenet_is_concord_plus_pytorch() -> None:
    pins = read_conda("lenet.yaml")
    version, build = pins.pop("torch")
    assert pins == read_conda("concord.yaml")
    assert EXTRAS["lenet"] == [f"torch=={version}"]
    assert build.startswith("cpu")


def test_environment_holds_the_locked_versions() -> None:
    if Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        pytest.skip("this is not the .venv that `make setup` fills from envs/requirements.lock")
    installed = {
        canonicalize_name(distribution.name): distribution.version
        for distribution in importlib.metadata.distributions()
    }
    assert {name: installed.get(name) for name in LOCK} == LOCK
