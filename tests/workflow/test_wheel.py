"""The wheel in an empty environment: its commands, `concord init`, and the workflow taken from it.

The environment has the wheel alone; what it needs besides is lent by the environment of the tests.
"""

import os
import subprocess
import sys
import venv
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from smoke_project import ROOT

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]

RUN = "topology=ring+sampler=mine"


class Installed:
    """An environment with the wheel in it, and a folder with a study of one's own."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.wheel, self.python = wheel, folder / "env" / "bin" / "python"
        venv.create(folder / "env", with_pip=False, symlinks=True)
        (packages,) = (folder / "env").glob("lib/python*/site-packages")
        with ZipFile(wheel) as archive:
            archive.extractall(packages)
        lent = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "lent.pth").write_text("\n".join(lent) + "\n")
        self.folder = folder
        self.concord("init", "my-study")
        self.folder = folder / "my-study"

    def run(self, *command: str) -> str:
        dropped = ("PYTHONPATH", "CONCORD_DATA_MIRROR")
        environment = {k: v for k, v in os.environ.items() if k not in dropped}
        done = subprocess.run(
            [self.python, *command],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def concord(self, *arguments: str) -> str:
        return self.run("-m", "concord_cli", *arguments)

    def snakemake(self, *arguments: str) -> str:
        cores = ("--cores", "2", *arguments)
        return self.run("-m", "snakemake", *cores, "--config", "scale=smoke")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return Installed(folder, wheel)


def test_the_package_alone_needs_no_snakemake(installed):
    with ZipFile(installed.wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
        needs = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist")
    snakemake = [need for need in needs if need.startswith("snakemake") and "cluster" not in need]
    assert snakemake and all("extra == 'workflow'" in need.replace('"', "'") for need in snakemake)


def test_its_commands_work_in_any_folder(installed):
    import concord

    assert installed.concord("--version").split()[-1] == concord.__version__
    where = installed.run(
        "-c", "import concord_studies.home; print(concord_studies.home.HOME)"
    ).strip()
    assert Path(where).is_relative_to(installed.python.parents[1])
    study = "config/papers/mystudy"
    assert f"mystudy/networks/{RUN}" in installed.concord("check", study).splitlines()
    installed.concord("run", study, "networks", RUN, "--scale", "smoke", "-o", "alone")
    assert "w2_exact" in (installed.folder / "alone" / "metrics.csv").read_text()
    assert installed.concord("orphans") == ""


def test_a_study_of_ones_own_runs_with_its_plugin(installed):
    installed.snakemake("reproduce", "ledger")
    results = installed.folder / "results" / "smoke"
    for name in ("mystudy/figures/distances.pdf", "mystudy/networks/metrics.csv", "claims.md"):
        assert (results / name).is_file()
    assert "Nothing to be done" in installed.snakemake("reproduce", "ledger")
    study = installed.folder / "config" / "papers" / "mystudy" / "study.yaml"
    text = study.read_text()
    study.write_text(text.replace("networks", "graphs"))
    try:
        listed = installed.concord("orphans", "--scale", "smoke").splitlines()
    finally:
        study.write_text(text)
    assert listed == ["results/smoke/mystudy/networks"]


def test_the_workflow_of_a_checkout_runs_in_another_folder(installed):
    there = "--snakefile", str(ROOT / "Snakefile"), "--directory", str(installed.folder)
    assert "distances" in installed.snakemake(*there, "--forceall", "--dry-run")
