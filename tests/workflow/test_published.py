"""Every file that a page publishes is made again when it is damaged or deleted.

Each target makes again what it shows: figures and verdicts of a paper, the arena with its cards and
costs, the multiverse and its pictures.
"""

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from copy import copy
from itertools import chain, zip_longest
from pathlib import Path

import pytest
import yaml
from smoke_project import PAPER, Project, timeless
from test_universes import SECTIONS

from concord_studies import integrity

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]

Harm = Callable[[Path], object]
Jobs = Callable[..., dict[str, int]]
WALK, WEIGHTS = SECTIONS["experiments"]["walk"], SECTIONS["assumptions"]["weights"]
STUDIED = {
    **SECTIONS,
    "assumptions": {"weights": {**WEIGHTS, "alternatives": WEIGHTS["alternatives"][:1]}},
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


# None of a group is made of another, so that all of them can be harmed at the same time.
GROUPS = (
    ("short run", "long run", "cell", "run of a universe"),
    ("figure", "table", "ledger", "scores"),
    ("verdicts",),  # they tell of the universes that there are
    ("universes",),
)
PLANNED = ("site", "ledger", MULTIVERSE)


def edit(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])


def harms(what: str) -> list[tuple[Harm, str]]:
    """Return what befalls the files, one after the other: both harms the first and the seal."""
    _, files, _ = SHOWN[what]
    found = [(harm, name) for name in (files[0], files[-1]) for harm in (edit, Path.unlink)]
    return found + [(edit if n % 2 else Path.unlink, name) for n, name in enumerate(files[1:-1])]


def other_harms(what: str) -> list[tuple[Harm, str]]:
    """Return what befalls all files together: not what each of them has suffered alone."""
    return [(edit if n % 2 else Path.unlink, name) for n, name in enumerate(SHOWN[what][1])]


@pytest.fixture
def harmed(finished, tmp_path) -> tuple[Project, Jobs]:
    """A finished project, and the jobs of its rules while files of it are harmed."""
    project = copy(finished)
    project.folder = tmp_path / "project"
    shutil.copytree(finished.folder, project.folder, symlinks=True)

    def jobs(done: list[tuple[Harm, str]], *targets: str) -> dict[str, int]:
        for harm, name in done:
            harm(project.folder / "results/smoke" / name)
        found = project.jobs(*targets)
        for _, name in done:
            part = Path("results/smoke", name)
            shutil.copy2(finished.folder / part, project.folder / part)
        return found

    return project, jobs


def of_rules(found: dict[str, int], group: Iterable[str]) -> tuple[dict[str, int], Counter[str]]:
    """Return how many jobs there are of the rules of a group, and how many there should be."""
    wanted = Counter(SHOWN[what][0] for what in group)
    return {rule: found.get(rule, 0) for rule in wanted}, wanted


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_every_file_is_made_again(group, harmed):
    project, jobs = harmed
    before = contents(project)
    for done in zip_longest(*map(harms, group)):
        those = [what for what, one in zip(group, done, strict=True) if one]
        found, wanted = of_rules(jobs([one for one in done if one], *PLANNED), those)
        assert found == wanted, done
    for harm, name in chain.from_iterable(map(other_harms, group)):
        harm(project.folder / "results/smoke" / name)
    project.make(*dict.fromkeys(SHOWN[what][-1][0] for what in group))
    assert contents(project) == before


@pytest.mark.parametrize("target", dict.fromkeys(t for *_, ts in SHOWN.values() for t in ts))
def test_every_target_has_what_it_shows_made_again(target, harmed):
    _, jobs = harmed
    for group in GROUPS:
        if those := [what for what in group if target in SHOWN[what][2]]:
            found, wanted = of_rules(jobs([harms(what)[0] for what in those], target), those)
            assert found == wanted, those
