"""Every file that a page publishes is made again when it is damaged or deleted.

Each target makes again what it shows: figures and verdicts of a paper, the arena with its cards and
costs, the multiverse and its pictures.
"""

from __future__ import annotations

import os
import re
import shutil
from copy import copy
from pathlib import Path

import pytest
import yaml
from smoke_project import PAPER, Project, timeless

from concord import integrity

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]

WALK = {
    "problem": {"kind": "linear_regression", "points": 60, "dim": 2},
    "metrics": ["w2"],
    "sampler": {"kind": "de_sgld", "step_size": 0.015},
    "sweep": {"topology": ["ring", "no_edges"]},
}
READ = {"metric": "w2_exact", "agents": [0]}
STUDIED = {
    "paper": {"title": "A paper", "authors": "A. Author", "year": 2021},
    "assumptions": {
        "weights": {
            "value": "Metropolis weights",
            "alternatives": [
                {
                    **{"says": "another", "reason": "also used", "label": "lazy"},
                    "set": {"sampler.weights": "lazy_metropolis"},
                }
            ],
        }
    },
    "defaults": {"agents": 6, "chains": 8, "iterations": 12, "record": {"agents": [0]}},
    # The runs of one are small, those of the other are not.
    "experiments": {"walk": WALK, "long": {**WALK, "smoke": {"iterations": 3000}}},
    "figures": {
        "curves": {
            **{"kind": "curves", "title": "Curves", "runs": ["walk"]},
            "options": {"metric": "w2", "lines": "topology", "agents": ["average"]},
        }
    },
    "tables": {
        "last": {
            **{"kind": "final_values", "title": "Last", "runs": ["long"]},
            "options": {"metrics": ["w2_exact"], "agents": [0]},
        }
    },
    "claims": {
        "nearer": {
            **{"where": "Fig 1", "says": "on the ring agents end nearer", "reason": "exact"},
            "check": {
                "kind": "order",
                "both": {"experiment": "walk", **READ},
                "lower": {"runs": {"topology": "ring"}},
                "higher": {"runs": {"topology": "no_edges"}},
            },
        }
    },
}
ARENA = {
    "paper": {"title": "The arena", "authors": "us", "year": 2026},
    "problems": {"apart": {"kind": "gaussian", "condition": 10.0, "dim": 2, "heterogeneity": 3.0}},
    "defaults": {"agents": 8, "topology": "ring", "chains": 100, "iterations": 20000},
    "experiments": {
        "tasks": {
            "problem": "apart",
            "arena": {"budget": {"gradients": 100.0}, "sets": 2},
            "sweep": {
                "start": {"near": {}},
                "entry": {
                    kind: {
                        "sampler": {"kind": kind, "step_size": 0.01},
                        "arena": {"tune": "step_size"},
                    }
                    for kind in ("de_sgld", "extra_sgld")
                },
            },
        }
    },
    "tables": {
        "leaderboard": {
            **{"kind": "leaderboard", "title": "Ranks", "runs": ["tasks"]},
            "options": {"prices": ["gradients"], "targets": [1, 0.1]},
        }
    },
}

MULTIVERSE = f"multiverse_{PAPER}"
ALL = ("reproduce", "arena", MULTIVERSE, "ledger", "made")
LAZY = f"{PAPER}/multiverse/weights.lazy"
CELL = "arena/tasks/start=near+entry=de_sgld"


def of(stem: str, *suffixes: str) -> list[str]:
    return [f"{stem}.{suffix}" for suffix in suffixes]


# By what they are: the rule that makes files that a page shows or gives away, the files with their
# seal last, and the targets that show them.
SHOWN = {
    "short run": (
        "measure",
        [
            *(f"{PAPER}/walk/topology=ring/{name}" for name in ("metrics.csv", "run.yaml")),
            *(
                f"{PAPER}/walk/{name}"
                for name in ("batch_0.made.json", "topology=ring/metrics.json")
            ),
        ],
        ("reproduce", PAPER, "ledger", "site"),
    ),
    "long run": (
        "measure",
        [
            *(f"{PAPER}/long/topology=ring/{name}" for name in ("metrics.csv", "run.yaml")),
            *(f"{PAPER}/long/topology=ring{name}" for name in (".made.json", "/metrics.json")),
        ],
        ("reproduce", PAPER, "site"),
    ),
    "figure": (
        "figure",
        of(f"{PAPER}/figures/curves", "pdf", "svg", "png", "caption.md", "json"),
        ("reproduce", "site", PAPER),
    ),
    "table": (
        "table",
        of(f"{PAPER}/tables/last", "csv", "md", "tex", "caption.md", "json"),
        ("reproduce", "site", PAPER),
    ),
    "verdicts": ("judge", of(f"{PAPER}/claims", "csv", "md", "json"), ("ledger", "site")),
    "ledger": ("join", ["claims.csv", "claims.md", "claims.json"], ("ledger",)),
    "cell": (
        "measure",
        [
            *(f"{CELL}/{name}" for name in ("metrics.csv", "choice.yaml", "run.yaml")),
            *("arena/tasks/batch_0.made.json", f"{CELL}/metrics.json"),
        ],
        ("arena", "site"),
    ),
    "scores": (
        "board",
        [
            *("arena/scores.csv", "arena/cost.csv"),
            "arena/cards/de_sgld.md",
            "arena/scores.json",
        ],
        ("arena", "site"),
    ),
    "run of a universe": (
        "measure",
        [
            *(f"{LAZY}/walk/topology=ring/{name}" for name in ("metrics.csv", "run.yaml")),
            *(
                f"{LAZY}/{name}"
                for name in ("small-runs.made.json", "walk/topology=ring/metrics.json")
            ),
        ],
        (MULTIVERSE,),
    ),
    "universes": (
        "survey",
        [
            *of(f"{PAPER}/multiverse", "csv", "md"),
            *of(f"{PAPER}/multiverse/figures/overview", "svg", "pdf"),
            f"{PAPER}/multiverse.json",
        ],
        (MULTIVERSE, "site"),
    ),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """A small paper and a small arena, of which all has been made; leave it as it is."""
    project = Project(tmp_path_factory.mktemp("published") / "project")
    project.rewrite(STUDIED)
    study = project.folder / "config/studies/arena/study.yaml"
    study.parent.mkdir(parents=True)
    study.write_text(yaml.safe_dump(ARENA, sort_keys=False))
    project.make(*ALL)
    assert project.jobs(*ALL) == {}
    return project


def results(project: Project) -> dict[str, Path]:
    """Return all results but what tells of the jobs."""
    folder = project.folder / "results/smoke"
    paths = {p.relative_to(folder).as_posix(): p for p in folder.rglob("[!.]*") if p.is_file()}
    return {n: p for n, p in paths.items() if not n.startswith(("logs/", "benchmarks/"))}


def contents(project: Project) -> dict[str, bytes]:
    """Return all that is the same every time: not seconds, nor what says when files were made."""
    seconds = re.compile(r"arena/(cost\.csv|scores\.json|tasks/.*/metrics\.json)")
    paths = results(project).items()
    return {n: timeless(path.read_bytes()) for n, path in paths if not seconds.fullmatch(n)}


def test_every_result_is_sealed(finished):
    """But what is compared with what it should be, and what says how verdicts have changed."""
    compared = re.compile(r".*\.(made|sampled)\.json|changed_verdicts\.txt")
    folder, sealed = finished.folder / "results/smoke", set()
    for seal in (path for path in folder.rglob("*.json") if not compared.fullmatch(path.name)):
        names = integrity.document(seal)["sha256"]
        sealed |= {seal, *(Path(os.path.normpath(seal.parent / name)) for name in names)}
    left = {name for name, path in results(finished).items() if path not in sealed}
    assert {name for name in left if not compared.fullmatch(name)} == set()


@pytest.mark.parametrize("what", SHOWN)
def test_it_is_made_again(what, finished, tmp_path):
    project = copy(finished)
    project.folder = tmp_path / "project"
    shutil.copytree(finished.folder, project.folder, symlinks=True)
    rule, files, targets = SHOWN[what]
    paths = {name: project.folder / "results/smoke" / name for name in files}
    before = contents(project)

    def edit(path: Path) -> None:
        content = path.read_bytes()
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])

    tries = [(harm, name) for name in (files[0], files[-1]) for harm in (edit, Path.unlink)]
    tries += [(edit if n % 2 else Path.unlink, name) for n, name in enumerate(files[1:-1])]
    for number, (harm, name) in enumerate(tries):
        harm(paths[name])
        target = targets[number % len(targets)]
        assert project.jobs(target).get(rule) == 1, (harm, name, target)
        shutil.copy2(finished.folder / "results/smoke" / name, paths[name])
    for harm in (edit, Path.unlink):
        for path in paths.values():
            harm(path)
        project.make(targets[0])
        assert contents(project) == before
