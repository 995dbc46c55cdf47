"""A paper with its multiverse and an arena, all of whose results say where they come from."""

import os
from pathlib import Path

import pytest
from smoke_project import PAPER, Project
from test_universes import SECTIONS

import everything
from concord_studies import provenance

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]

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
ARENA = Path(__file__).with_name("small_arena.yaml").read_text()
ALL = ("reproduce", "arena", f"multiverse_{PAPER}", "ledger", "made")
STATED = {"sha256", "concord", "commit", "lock", "python", "time"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """A small paper and a small arena, of which all has been made."""
    project = Project(tmp_path_factory.mktemp("published") / "project")
    project.rewrite(STUDIED)
    study = project.folder / "config/studies/arena/study.yaml"
    study.parent.mkdir(parents=True)
    study.write_text(ARENA)
    everything.copy("arena", study.parent)
    for _ in range(2):  # verdicts take in the multiverse once it is there
        project.make(*ALL)
    return project


def test_everything_is_made_by_two_calls(finished):
    assert finished.jobs(*ALL) == {}


def test_every_result_has_its_provenance_beside_it(finished):
    """But for what is planned, and what says how verdicts have changed."""
    folder = finished.folder / "results/smoke"
    files = {p for p in folder.rglob("[!.]*") if p.is_file()}
    known = {p for p in files if p.relative_to(folder).parts[0] in ("logs", "benchmarks")}
    known |= {p for p in files if p.suffix == ".yaml" or p.name == "changed_verdicts.txt"}
    for path in (p for p in files - known if p.suffix == ".json"):
        stated = provenance.read_provenance(path.with_suffix(".csv"))
        assert stated.keys() >= STATED
        known |= {path, *(Path(os.path.normpath(path.parent / n)) for n in stated["sha256"])}
    assert files - known == set()
