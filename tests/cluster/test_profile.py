"""What profiles/slurm and the rules ask of SLURM, as far as no SLURM is needed to see it."""

import re

import pytest
import yaml
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args

from workflow.smoke_project import FIGURES, PAPER, ROOT, Project

pytestmark = [pytest.mark.cluster, pytest.mark.workflow, pytest.mark.thorough]

# Names that mean something else in Python and in YAML.
PARTITION, ACCOUNT = "all", "2024"
FLAGS = re.DOTALL | re.MULTILINE


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which nothing is made."""
    return Project(tmp_path_factory.mktemp("profile") / "project")


@pytest.fixture(scope="module")
def plugin() -> None:
    """Snakemake's plugin for SLURM, which a profile cannot be read without."""
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs '.[cluster]'")


@pytest.fixture(scope="module")
def submitted(project: Project, plugin: None) -> dict[str, list[tuple[str, dict[str, str]]]]:
    """By attempt: (rule, resources) of each job that the profile would have SLURM run."""
    of_a_job = r"^ *rule (\w+):$.*?^ *resources: (.*?)$"
    jobs = {}
    for attempt in ("1", "2"):
        profile = ("--workflow-profile", "profiles/slurm", "--attempt", attempt)
        output = dry_run(project, *FIGURES, *profile)
        jobs[attempt] = [
            (rule, dict(pair.split("=", 1) for pair in resources.split(", ")))
            for rule, resources in re.findall(of_a_job, output, FLAGS)
        ]
    return jobs


def dry_run(project: Project, *arguments: str) -> str:
    """Return what a dry run prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SBATCH_PARTITION", PARTITION)
        patch.setenv("SBATCH_ACCOUNT", ACCOUNT)
        return project.make("--dry-run", *arguments)


def test_the_profile_stands_alone() -> None:
    """Read in place of profiles/default, it has the keys of that which suit a cluster, too."""
    default, slurm = (
        yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text())
        for name in ("default", "slurm")
    )
    laptop = {"cores": "all", "max-jobs-per-timespan": "1000/2s"}
    shared = {key: value for key, value in default.items() if laptop.get(key) != value}
    assert shared == {key: slurm.get(key) for key in shared}
    assert slurm["cores"] == 1  # so that the jobs of a group run one after the other


def test_every_job_says_what_it_takes_and_takes_more_after_a_failure(submitted):
    first, second = (
        sorted((rule, int(r["mem_mb"]), int(r["runtime"])) for rule, r in submitted[attempt])
        for attempt in ("1", "2")
    )
    assert {rule for rule, *_ in first} == {"measure", "figure"}
    assert second == [(rule, 2 * memory, 2 * time) for rule, memory, time in first]


def test_partition_and_account_come_from_the_environment(submitted):
    named = {(r["slurm_partition"], r["slurm_account"]) for _, r in submitted["1"]}
    assert named == {(PARTITION, ACCOUNT)}


def test_a_node_knows_its_experiment(project):
    """As Snakemake hands a job's wildcards to it, after planning wrote what the job reads."""
    table = f"results/smoke/{PAPER}/linear_sghmc/metrics.csv"
    dry_run(project, table)
    wildcards = {"study": PAPER, "experiment": "linear_sghmc"}
    (job,) = encode_target_jobs_cli_args([TargetSpec("measure", wildcards)])
    assert '"' not in job
    assert f"output: {table}" in dry_run(project, "--mode", "remote", "--target-jobs", job)


def test_what_a_rule_takes_can_be_set_for_every_attempt(project, plugin):
    """As docs/environments.md advises where three attempts do not do."""
    more = ("--set-resources", "measure:mem_mb=4000*attempt", "measure:runtime=60*attempt")
    profile = ("--workflow-profile", "profiles/slurm", "--attempt", "2")
    output = dry_run(project, FIGURES[0], *profile, *more)
    taken = re.findall(r"^ *rule measure:$.*?^ *resources: (.*?)$", output, FLAGS)
    assert taken
    for resources in taken:
        assert {"mem_mb=8000", "runtime=120"} <= {*resources.split(", ")}
