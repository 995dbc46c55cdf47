"""What the check accepts can be run: resolve, sample, measure, draw end well or in one sentence."""

import copy
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from harness import call, limit_memory
from mutations import dumped, encoded, mutated
from options import configured
from pieces import CONFIG, of_whole_experiments, small_papers

import by_hand
from concord.errors import ConcordError
from concord_cli.__main__ import main
from concord_studies import provenance
from concord_studies.configuration.checks import check_study
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

pytestmark = pytest.mark.thorough

SETTINGS = {"scale": "smoke", "smoke": {"chains": 4, "iterations": 5}}
DOWNLOADS = ("lenet", "sparse_logistic", "magic")
MUTATED = ("problems", "defaults", "experiments", "figures", "tables")
MOST_RUNS = 3  # of a paper: figures of more are left out


@cache
def tiny_papers() -> dict[str, Any]:
    """Return the small papers whose problems need no file, made as cheap as they can be."""
    found = {}
    for name, piece in small_papers().items():
        piece = of_whole_experiments(copy.deepcopy(piece))
        for problem in piece["problems"].values():
            if problem["kind"] == "tied_mixture":
                problem.update(grid=12, modes="any")
            if "points" in problem:
                problem["points"] = 30
        (experiment,) = piece["experiments"].values()
        for axis, values in experiment.get("sweep", {}).items():
            experiment["sweep"][axis] = shorter(values)
        piece["claims"] = {}
        kinds = {p.get("dataset", p["kind"]) for p in piece["problems"].values()}
        if not kinds & set(DOWNLOADS):
            found[name] = piece
    return found


def shorter(axis: Any) -> Any:
    """Return an axis with its first two values at most."""
    if isinstance(axis, list):
        return axis[:2]
    if "values" in axis:
        return {**axis, "values": axis["values"][:2]}
    return dict(list(axis.items())[:2])


SHOWN = (("figures", "draw", "svg"), ("tables", "tabulate", "csv"))


def follower(folder: Path) -> tuple[Callable[[Any], None], Counter[str]]:
    """Return a check that takes a paper through all stages, and what came of the papers so far."""
    seen: Counter[str] = Counter()
    config = folder / "config.yaml"
    config.write_text(dumped(load_config(CONFIG / "config.yaml", SETTINGS)))
    path = folder / "x"
    path.mkdir()

    def check(document: Any) -> None:
        (path / "study.yaml").write_bytes(encoded(document))
        try:
            paper = Study(path, load_config(config))
            runs = list(paper.runs.values())
            check_study(paper)
        except ConcordError:
            seen["refused when checked"] += 1
            return
        made = [make(run.experiment, run.name) for run in runs[:MOST_RUNS]]
        if len(runs) <= MOST_RUNS and all(made):
            for name, experiment in by_hand.experiments(paper).items():
                stated = by_hand.write(experiment, folder / "r" / "x" / name)
                assert not call("measure", stated, "-o", stated.with_name("metrics.csv"))
            for section, command, suffix in SHOWN:
                for name in paper.outputs(section):
                    entry = by_hand.plan_entry(paper, folder / "r", section, name)
                    code = call(command, entry, "-o", folder / f"out.{suffix}")
                    seen["not drawn" if code else "drawn"] += 1

    def make(experiment: str, name: str) -> bool:
        place = folder / "alone" / experiment / name
        code = call("run", path, experiment, name, "--config", config, "-o", place)
        seen["refused when run" if code else "run"] += 1
        return not code

    return check, seen


@pytest.mark.filterwarnings("ignore")  # of numpy, about numbers no one would run
def test_what_is_accepted_runs(tmp_path, tries, monkeypatch):
    monkeypatch.setattr(provenance, "commit", lambda: None)
    check, seen = follower(tmp_path)
    what = "small papers taken through all stages"
    rule = "what the check accepts runs, or stops with one sentence"
    documents = mutated(tiny_papers, 1, MUTATED) | configured(tiny_papers)
    tried = tries(what, rule, 80, check, documents)
    # What runs will lack is refused when checked, so few figures are left to draw.
    assert seen["run"] > tried / 10 and seen["drawn"], seen


def test_what_does_not_fit_into_memory_is_told(tmp_path, capsys):
    """As what is accepted may be: how much memory there is depends on the machine."""
    check, seen = follower(tmp_path)
    document = copy.deepcopy(tiny_papers()["gurbuzbalaban2021.linear_network"])
    document["problems"]["linear"]["points"] = 2**40
    limit_memory(2**29)  # it is filled three times
    check(document)
    assert seen["refused when run"] == 2 and not seen["run"]
    runs = tmp_path / "alone" / "linear_network" / "topology=ring" / "runs.yaml"
    assert main(["sample", str(runs), "-o", str(tmp_path / "draws.nc")]) == 1
    told = capsys.readouterr().err
    assert re.fullmatch("concord: there is not enough memory .*; lower chains or .*\n", told)
