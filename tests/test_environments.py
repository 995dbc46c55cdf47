"""The lock, the conda environments, the container, pyproject.toml and the interpreter agree."""

import ast
import importlib.metadata
import importlib.util
import platform
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


def read_lock(python: str) -> dict[str, Requirement]:
    """Return {canonical name: exact requirement} of all that this Python, or any system, needs.

    Fail where one is not exact or has no hash.
    """
    pins: dict[str, Requirement] = {}
    text = (ROOT / "envs/requirements.lock").read_text().replace("\\\n", "")
    for line in text.splitlines():
        if not line or line.lstrip().startswith("#"):
            continue
        pin, *hashes = re.split(r"\s+--hash=", line)
        requirement = Requirement(pin)
        name = canonicalize_name(requirement.name)
        (specifier,) = requirement.specifier
        assert specifier.operator == "==" and "*" not in specifier.version, line
        assert hashes and all(re.fullmatch("sha256:[0-9a-f]{64}", hash) for hash in hashes), line
        of_pythons = "python_full_version" in str(requirement.marker)
        if of_pythons and not requirement.marker.evaluate({"python_full_version": python}):
            continue
        assert name not in pins, f"envs/requirements.lock: {name} is pinned twice"
        pins[name] = requirement
    return pins


def read_conda(name: str) -> dict[str, list[str]]:
    """Return {package index name: [version, build string if there is one]}."""
    dependencies = yaml.safe_load((ROOT / "envs" / name).read_text())["dependencies"]
    pins = (dependency.split("=") for dependency in dependencies)
    return {INDEX_NAMES.get(package, package): rest for package, *rest in pins}


def versions(python: str) -> dict[str, str]:
    return {name: next(iter(pin.specifier)).version for name, pin in read_lock(python).items()}


PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOCK = versions("3.12.0")  # conda's Python
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
RUN_TIME = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
GROUPS = PYPROJECT["dependency-groups"]
EXACT = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "envs/extras.txt").read_text(), re.M))
DEV = [*GROUPS["test"], *GROUPS["lint"], *(x for x in GROUPS["dev"] if isinstance(x, str))]
LINES = (*EXTRAS["workflow"], *EXTRAS["fast"], *DEV, *PYPROJECT["build-system"]["requires"])
DIRECT = RUN_TIME + [Requirement(line) for line in LINES]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("requirement", DIRECT, ids=lambda requirement: requirement.name)
def test_lock_meets_pyproject(requirement: Requirement, python: str) -> None:
    assert versions(f"{python}.0")[canonicalize_name(requirement.name)] in requirement.specifier


OTHERS = [
    Requirement(line) for e in sorted(EXTRAS.keys() - {"workflow", "fast"}) for line in EXTRAS[e]
]


@pytest.mark.parametrize("requirement", OTHERS, ids=str)
def test_extras_take_later_versions_of_what_is_exact_in_a_clone(requirement: Requirement) -> None:
    (specifier,) = requirement.specifier
    if specifier.operator == ">=":
        assert EXACT[requirement.name] == specifier.version
    assert specifier.operator in (">=", "==")
    assert canonicalize_name(requirement.name) not in LOCK


def test_hooks_of_pre_commit_have_the_versions_of_the_lock() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    revisions = {Path(repo["repo"]).name: repo.get("rev") for repo in hooks}
    assert revisions["ruff-pre-commit"] == f"v{LOCK['ruff']}"
    assert revisions["codespell"] == f"v{LOCK['codespell']}"


def test_conda_pins_are_those_of_the_lock() -> None:
    pins = read_conda("concord.yaml")
    assert pins.pop("python")[0] in SpecifierSet(PYPROJECT["project"]["requires-python"])
    assert pins == {
        name: [LOCK[name]]
        # h5netcdf's extra is called like the package that it brings
        for requirement in [*RUN_TIME, *map(Requirement, EXTRAS["fast"])]
        for name in map(canonicalize_name, (requirement.name, *requirement.extras))
    }


def test_conda_torch_is_concord_plus_pytorch() -> None:
    pins = read_conda("torch.yaml")
    version, build = pins.pop("torch")
    assert pins == read_conda("concord.yaml")
    assert EXTRAS["torch"] == [f"torch>={version}"]
    assert EXACT["torch"] == version
    assert build.startswith("cpu")


def test_conda_models_is_concord_plus_its_libraries() -> None:
    pins, own = read_conda("models.yaml"), [*EXTRAS["pymc"], *EXTRAS["numpyro"]]
    for name in ("jax", "numpyro", "pymc"):
        assert f"{name}>={EXACT[name]}" in own and pins.pop(name) == [EXACT[name]]
    assert pins == read_conda("concord.yaml")


def test_conda_site_is_concord_plus_what_makes_pages() -> None:
    pins = {r.name: [next(iter(r.specifier)).version] for r in map(Requirement, EXTRAS["docs"])}
    for name in ("docutils", "pillow"):  # which Sphinx and matplotlib bring, and the site imports
        pins[name] = [LOCK[name]]
    assert read_conda("site.yaml") == read_conda("concord.yaml") | pins


def rules() -> dict[str, str]:
    """Return the text of every rule of the workflow by its name."""
    texts = {}
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        begin = r"^(?:rule|use rule \w+ as) (\w+)(?: with)?:$"
        _, *blocks = re.split(begin, path.read_text(), flags=re.MULTILINE)
        texts.update(zip(blocks[::2], blocks[1::2], strict=True))
    return texts


def test_every_rule_that_runs_a_command_names_its_conda_environment() -> None:
    commands = {name: text for name, text in rules().items() if "\n    shell:" in text}
    # What is used `with` changes keeps the environment of the rule that it is made of.
    assert {"fetch", "measure", "figure"} <= set(commands)
    named = {
        name: match[1] if (match := re.search(r"\n    conda:\n +(.*)\n", text)) else None
        for name, text in commands.items()
    }
    environments = {
        *("ENVIRONMENT", '"../../envs/site.yaml"'),
        "lambda w: f\"../../envs/{plan.experiment(w).job['environment']}.yaml\"",
    }
    assert {name: text for name, text in named.items() if text not in environments} == {}


OURS = {"concord", "concord_studies", "concord_arena", "concord_cli"}


def imported(path: Path) -> set[str]:
    """Return the top-level modules that a file imports, wherever in it, but not our own."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module))
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - OURS


def test_what_the_package_never_imports_is_no_run_time_dependency() -> None:
    distributions = importlib.metadata.packages_distributions()
    files = sorted((ROOT / "src").rglob("*.py"))
    modules = set().union(*map(imported, files))
    modules |= {
        name
        for file in files
        for name in re.findall(r'(?:optional|find_spec)\("(\w+)', file.read_text())
    }
    used = {canonicalize_name(name) for m in modules for name in distributions.get(m, [m])}
    names = {canonicalize_name(requirement.name) for requirement in RUN_TIME}
    assert names <= used


def test_the_lock_names_no_index_and_is_what_its_first_lines_make() -> None:
    text = (ROOT / "envs/requirements.lock").read_text()
    assert "://" not in text
    first, command = text.splitlines()[:2]
    assert first.endswith("autogenerated by uv via the following command:")
    assert command == (
        "#    uv pip compile --no-strip-extras --universal --generate-hashes --python-version 3.11 "
        "--group dev --extra fast --extra workflow pyproject.toml -o envs/requirements.lock"
    )


PLUG_INS = sorted((ROOT / "config").glob("*/*/plugins/**/*.py"))


def environment_of(path: Path) -> str:
    """Return the conda environment of the jobs that execute a file, by its name."""
    if path.name in ("_network_files.py", "torch_weights.py", "lenet.py"):
        return "torch"
    if '"environment": "models"' in path.read_text() or "models" in (path.stem, *path.parts):
        return "models"
    return "site" if path.parent.name == "site" else "concord"


def test_conda_environments_hold_what_jobs_import() -> None:
    distributions = importlib.metadata.packages_distributions()
    network = ROOT / "config/papers/parayil2020/lenet.py"
    sources = [*(ROOT / "src").rglob("*.py"), *PLUG_INS, network]
    assert len(sources) > 50
    for path in sources:
        if path.name == "crate.py":  # not a job, and of an extra
            continue
        name = environment_of(path)
        held = set(read_conda(f"{name}.yaml"))
        brought = {"pytensor"} if name == "models" else set()  # which comes with PyMC
        for module in imported(path) - brought:
            names = {canonicalize_name(name) for name in distributions.get(module, [module])}
            assert names & held, f"{path} imports {module}, which {sorted(held)} lacks"
    assert "torch" in imported(network)


def test_problems_name_conda_environments_that_exist() -> None:
    sources = *(ROOT / "src").rglob("*.py"), *PLUG_INS
    text = "".join(path.read_text() for path in sources)
    named = {"concord", *re.findall(r'"environment": "(\w+)"', text)}
    named |= set(re.findall(r'declare\("\w+", "(\w+)"\)', text))
    assert named == {path.stem for path in (ROOT / "envs").glob("*.yaml")} - {"site"}


DOCKERFILE = (ROOT / "envs/Dockerfile").read_text()


def test_container_has_a_python_and_the_versions_of_the_lock() -> None:
    (version,) = re.findall(r"^ARG BASE=python:(\d+\.\d+\.\d+)-slim-\w+$", DOCKERFILE, re.M)
    assert version in SpecifierSet(PYPROJECT["project"]["requires-python"])
    assert re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE) == ["requirements.lock /tmp/"]
    assert "-r /tmp/requirements.lock" in DOCKERFILE
    installs = re.findall(r"pip install (.*)$", DOCKERFILE, re.MULTILINE)
    assert installs and all("--require-hashes" in options for options in installs)
    (user,) = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert user.partition(":")[0] not in {"root", "0"}
    # Of a user without a name Snakemake ends in a KeyError.
    assert re.search(r"^ENV .*\bUSER=\w+", DOCKERFILE, re.MULTILINE)


def test_environment_holds_the_locked_versions() -> None:
    if Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        pytest.skip("this is not the .venv that `make setup` fills from envs/requirements.lock")
    installed = {
        canonicalize_name(distribution.name): distribution.version
        for distribution in importlib.metadata.distributions()
    }
    pins = read_lock(platform.python_version()).items()
    locked = {
        name: next(iter(pin.specifier)).version
        for name, pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }
    assert {name: installed.get(name) for name in locked} == locked
