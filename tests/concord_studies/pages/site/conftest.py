"""A project at smoke scale, of a few runs, whose pages are looked at."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "workflow"))

from hostile import HOSTILE, SECRET
from smoke_project import PAPER, Project, of_all_runs


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One experiment of the paper in hostile words, made beside other figures in Jupyter."""
    project = Project(tmp_path_factory.mktemp("report") / "project")
    paper = project.sections()
    kept = "linear_sghmc"
    for section in ("figures", "tables", "claims"):
        paper[section] = {
            name: entry
            for name, entry in paper[section].items()
            if kept in str(entry) and "linear_sgld" not in str(entry)
        }
    paper["experiments"] = {kept: paper["experiments"][kept]}
    paper["assumptions"] = of_all_runs(paper["assumptions"])
    for text in ("title", "authors", "reference"):
        paper["paper"][text] = HOSTILE
    paper["discrepancies"] = {"hostile": {"text": HOSTILE, "code": HOSTILE}}
    for section, texts in {
        "assumptions": ("value", "reason"),
        "errata": ("where", "text"),
        "figures": ("title", "caption"),
        "tables": ("title", "caption"),
        "claims": ("where", "says", "reason"),
    }.items():
        for entry in paper[section].values():
            entry.update(dict.fromkeys(texts, HOSTILE))
    project.rewrite(paper)
    (project.folder / "secret.txt").write_text(SECRET)
    (project.folder / "matplotlibrc").write_text("text.usetex: true\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "module://of_another_python")  # as Jupyter sets it
        project.make(PAPER, "ledger")
    project.make("made")
    return project
