"""What Snakemake makes again after a change, and that nothing stale is shown: docs/snakemake.md."""

import json
import os
import re
import textwrap
from pathlib import Path

import pytest
from smoke_project import PAPER, RESULTS, STUDY, Project

import shared_folders

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

EXPERIMENT = "linear_step"
TABLE = f"{RESULTS}/{EXPERIMENT}/metrics.csv"
FIGURE, OTHER = f"{RESULTS}/figures/fig4.pdf", f"{RESULTS}/figures/again.pdf"
ALL = (FIGURE, f"{RESULTS}/claims.csv")
RULES = ("measure", "figure", "claims")
WHOLE = set(RULES)
OWN = f"""

rule rows:
    input:
        "{TABLE}",
    output:
        "results/rows.txt",
    shell:
        "wc -l {{input}} > {{output}}"
"""


def reduce(project: Project) -> None:
    """Keep one experiment of the paper, a figure twice, and a claim."""
    sections = project.sections()
    texts = {"caption": "{agents} agents end at {end}.", "ours": ""}
    numbers = {"end": {"metric": "w2_exact", "agents": [0]}}
    figure = {**sections["figures"]["fig4"], "runs": [EXPERIMENT], **texts, "numbers": numbers}
    panels = figure["options"]["panels"]
    figure["options"]["panels"] = [panel for panel in panels if EXPERIMENT in str(panel)]
    quantity = {"experiment": EXPERIMENT, "metric": "w2", "agents": [0], "runs": {}}
    claim = {
        **{"where": "Figure 4", "says": "w2 is small", "reason": "of this test"},
        "check": {"kind": "measurement", "quantity": {**quantity, "runs": {"step_size": "0.001"}}},
    }
    kept = {key: sections[key] for key in ("paper", "problems", "defaults") if key in sections}
    experiment = {EXPERIMENT: sections["experiments"][EXPERIMENT]}
    project.rewrite(
        {
            **kept,
            "experiments": experiment,
            "figures": {"fig4": figure, "again": figure},
            "claims": {"small": claim},
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of one experiment that was made; every test leaves it as it is."""

    def make(folder: Path) -> None:
        project = Project(folder)
        reduce(project)
        project.make(*ALL)

    folder = shared_folders.made(tmp_path_factory, "one_experiment", make)
    project = Project(tmp_path_factory.mktemp("one_experiment") / "project", folder)
    project.original = folder
    return project


@pytest.fixture
def copy(made: Project, tmp_path: Path) -> Project:
    """A project that was made, to be changed."""
    return Project(tmp_path / "project", made.original)


def remade(project: Project, *targets: str) -> set[str]:
    """Return the rules that Snakemake would run again."""
    return {*project.jobs(*(targets or ALL))} & WHOLE


# What is edited in a file, and the rules that then run again.
SOURCE, STUDIES = "src/concord", "src/concord_studies"
CLASS, DEF, YIELDS = (("\n" + word, "\nX = 1\n\n" + word) for word in ("class ", "def ", "@yields"))
EDITS = {
    "a parameter of one run": (STUDY, "- 0.009", "- 0.007", WHOLE),
    "a run more": (STUDY, "- 0.001", "- 0.001\n        - 0.002", WHOLE),
    "a default": (STUDY, "agents: 6", "agents: 5", WHOLE),
    "the master seed": ("config/config.yaml", "seed: 1", "seed: 2", WHOLE),
    "an option of a figure": (STUDY, "scale: log", "scale: linear", {"figure"}),
    "a claim": (STUDY, "says: w2 is small", "says: w2 is tiny", {"claims"}),
    "the code of a sampler": (f"{SOURCE}/samplers/de_sgld.py", *CLASS, WHOLE),
    "the code of another sampler": (f"{SOURCE}/samplers/d_ula.py", *CLASS, set()),
    "the code of a metric": (f"{STUDIES}/metrics/w2.py", *YIELDS, WHOLE),
    "the code of a kind of figure": (f"{STUDIES}/figures/curves.py", *DEF, {"figure"}),
    "the code of verdicts": (f"{STUDIES}/stages/judge.py", *DEF, {"claims"}),
    "the version alone": (f"{SOURCE}/__init__.py", '__version__ = "', '__version__ = "9.', set()),
}  # fmt: skip


@pytest.mark.parametrize("what", EDITS)
def test_what_is_edited_is_made_again_and_nothing_else(what, made):
    path, old, new, rules = EDITS[what]
    with made.edited(path, old, new):
        assert remade(made) == rules


def test_a_library_of_another_version_makes_again_what_uses_it(made):
    """Its version is part of what an experiment is made from."""
    stated = json.loads((made.folder / RESULTS / EXPERIMENT / "runs.yaml").read_text())
    assert stated["libraries"]["numpy"] and "matplotlib" not in stated["libraries"]
    change = ("src/concord_studies/digests.py", "metadata.version(distribution)", '"0"')
    with made.edited(*change):
        assert remade(made) == WHOLE


def test_a_table_that_was_deleted_is_not_missed_until_it_is_needed(copy):
    (copy.folder / TABLE).unlink()
    assert remade(copy, FIGURE) == set()
    assert remade(copy, OTHER) == {"measure", "figure"}


def test_a_stale_figure_and_one_that_was_never_made_are_both_made(copy):
    with copy.edited(STUDY, "scale: log", "scale: linear"):
        assert copy.jobs(FIGURE, OTHER) == {"figure": 2}
        copy.make(FIGURE, OTHER)
        assert remade(copy, FIGURE, OTHER) == set()


def test_a_rule_of_ones_own_on_a_table_is_up_to_date_after_one_call(copy):
    snakefile = copy.folder / "Snakefile"
    snakefile.write_text(snakefile.read_text() + OWN)
    with copy.edited(STUDY, "- 0.009", "- 0.007"):
        copy.make("results/rows.txt")
        assert copy.jobs("results/rows.txt") == {}


PAGE = Path(__file__).parents[2] / "docs" / "snakemake.md"
TYPED = re.findall(r"^    snakemake (.*?)(?: +#.*)?$", PAGE.read_text(), re.M)


def test_the_commands_of_the_page_work(copy):
    typed = [command.replace("results/", "results/smoke/") for command in TYPED]
    assert len(typed) > 10
    for command in typed:
        if "parayil2020" not in command:  # of which the project has nothing
            done = copy.snakemake(*command.split())
            assert done.returncode == 0, (command, done.stdout)
    assert (copy.folder / RESULTS / EXPERIMENT / "draws.nc").exists()


def test_the_rules_are_a_module_of_another_workflow(copy):
    snakefile = copy.folder / "Snakefile"
    blocks = re.findall(r"(?:^    .*\n|^\n)+", PAGE.read_text(), re.M)
    module = next(textwrap.dedent(block) for block in blocks if "module concord" in block)
    snakefile.write_text(module.replace("../concord/", "") + OWN)
    copy.make("results/rows.txt")
    assert copy.jobs("results/rows.txt") == {}


def test_a_table_that_was_edited_is_refused_whatever_its_time(copy):
    table = copy.folder / TABLE
    time = os.stat(table).st_mtime_ns
    table.write_bytes(table.read_bytes().replace(b"0", b"1", 1))
    os.utime(table, ns=(time, time))
    done = copy.snakemake(OTHER)
    assert done.returncode != 0
    assert f"concord: {TABLE}: it is not as it was written; delete the file" in done.stdout
    table.unlink()
    copy.make(OTHER)


def test_a_run_that_fails_is_named_and_what_else_stands_is_kept(copy):
    before = (copy.folder / FIGURE).read_bytes()
    change = f"{STUDIES}/metrics/w2.py", "def rows(", "def rows(wrong, "
    with copy.edited(*change):
        done = copy.snakemake(FIGURE)
    assert done.returncode != 0
    assert f"This was in the run {PAPER}/{EXPERIMENT}/step_size=0.001." in done.stdout
    assert (copy.folder / FIGURE).read_bytes() == before
    assert not (copy.folder / TABLE).exists()
    assert remade(copy) == WHOLE
