"""Concord's rules in a workflow of somebody else's, and a study of one's own, whose jobs fail."""

import pytest
from smoke_project import RESULTS, Project

from concord_studies.configuration.init import init

pytestmark = pytest.mark.workflow

MODULE = """
module concord:
    snakefile: "workflow/Snakefile"
    config: config

use rule * from concord as concord_*
"""
# Files that are called like targets of Concord's, or lie where its results do.
MINE = f"""
rule mine:
    input: "data", "summary", "{RESULTS}/figures/of_mine.pdf", "results/smoke/mine/claims.csv"
    output: "{RESULTS}/mine/metrics.csv"
    shell: "cat {{input}} > {{output}}"

rule others:
    output: "summary", "{RESULTS}/figures/of_mine.pdf", "results/smoke/mine/claims.csv"
    shell: "for file in {{output}}; do echo made > $file; done"
"""


FAILING = """
    def step(self, *arguments):
        import sys
        if "measure" in sys.argv:
            raise ArithmeticError("of the job")
        return self.own_step(*arguments)

    def own_step("""


def lead(project: Project, snakefile: str) -> None:
    (project.folder / "Snakefile").write_text(snakefile)
    (project.folder / "data").write_text("mine\n")


def test_what_other_rules_make_is_theirs(project):
    """So is the default target of whoever has a rule before them."""
    lead(project, MINE + MODULE)
    project.make()
    made = project.folder / RESULTS / "mine" / "metrics.csv"
    assert made.read_text() == "mine\n" + 3 * "made\n"
    (project.folder / "summary").unlink()
    lead(project, MODULE + MINE)
    assert project.jobs("summary") == {"others": 1}


def test_a_job_of_a_study_of_ones_own_ends_in_its_own_error(tmp_path):
    study = Project.__new__(Project)
    study.folder = tmp_path / "my-study"
    (sampler,) = (path for path in init(study.folder) if path.match("samplers/mine.py"))
    text = sampler.read_text()
    assert "\n    def step(" in text
    sampler.write_text(text.replace("\n    def step(", FAILING))
    failed = study.snakemake("results/smoke/mystudy/networks/metrics.csv")
    assert failed.returncode == 1
    assert "ArithmeticError: of the job" in failed.stdout
    assert "Error in rule measure" in failed.stdout
    assert "AttributeError" not in failed.stdout
    refused = study.snakemake("mystdy")
    assert "concord: there is no target 'mystdy'; did you mean 'mystudy'?" in refused.stdout
