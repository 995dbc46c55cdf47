"""Other defensible values and other seeds: what is run, what is judged, and what it says."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import yaml

import by_hand
from concord.options import build
from concord_studies.claims import checks, ledger, robustness
from concord_studies.claims import verdicts as judgements
from concord_studies.claims.robustness import BASE
from concord_studies.configuration import universes as configuration
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.configuration.universes import Multiverse, universes
from concord_studies.experiment import UniverseExperiment, measure
from concord_studies.markup import format_csv
from concord_studies.provenance import write_provenance
from concord_studies.results import Measured
from concord_studies.stages import judge
from concord_studies.stages import survey as stage
from concord_studies.stages.expect import expect

RESOURCES = Path("resources")
ALTERNATIVE = {"says": "another", "reason": "also used"}
DEFINITION = yaml.safe_load(Path(__file__).with_name("surveyed.yaml").read_text())


def load(folder: Path, changes: dict[str, Any] | None = None, **sections: Any) -> Study:
    path = folder / "paper2021"
    path.mkdir(parents=True, exist_ok=True)
    (path / "study.yaml").write_text(yaml.safe_dump({**DEFINITION, **sections}, sort_keys=False))
    return Study(path, load_config(changes=changes))


Made = tuple[Study, list[Path]]


def make(paper: Study, results: Path) -> list[Path]:
    """Make the study's experiments and its universes; return their tables."""
    tables = by_hand.make(paper, results) + by_hand.make_universes(paper, results)
    return tables


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("multiverse")
    paper = load(folder)
    return paper, make(paper, folder / "results")


# What is run


def test_a_universe_has_one_alternative_or_another_seed(tmp_path):
    paper = load(tmp_path, {"seed": 4})
    alone = ["weights.lazy", "weights.lossy", "data.noisy", "data.third"]
    assert list(universes(paper, False)) == [*alone, *(f"seed_{seed}" for seed in (1, 2, 3, 5))]
    pairs = [name for name in universes(paper, True) if "+" in name]
    assert pairs == [f"{one}+{other}" for one in alone[:2] for other in alone[2:]]


def test_only_the_runs_that_rest_on_an_assumption_change(tmp_path):
    paper = load(tmp_path)
    found = Multiverse(paper)
    assert set(found.runs["weights.lazy"]) == {
        ("walk", f"topology={t}") for t in ("ring", "no_edges")
    }
    assert len(found.runs["data.noisy"]) == len(found.runs["seed_2"]) == 3
    run = found.runs["weights.lazy"]["walk", "topology=ring"].document
    base = paper.runs["walk", "topology=ring"].document
    assert run["sampler"] == {**base["sampler"], "weights": "lazy_metropolis"}
    assert {**run, "sampler": base["sampler"]} == base
    assert found.runs["seed_2"]["walk", "topology=ring"].document == {**base, "seed": 2}


def test_a_run_is_computed_once(tmp_path):
    """A universe takes what is as in the study, and a pair what either part has."""
    data = {"value": "1", "rests": {"experiment": "other"}, "alternatives": [
        {**ALTERNATIVE, "label": "noisy", "set": {"problem.noise_sd": 3.0}},
        {**ALTERNATIVE, "label": "again", "set": {"problem.noise_sd": 3.0}}]}  # fmt: skip
    paper = load(tmp_path, {"pairs": True}, assumptions={**DEFINITION["assumptions"], "data": data})
    found = Multiverse(paper)
    computed = {k: len(own.runs) for k, own in found.experiments.items() if "seed" not in k}
    assert computed == {"weights.lazy": 2, "weights.lossy": 2, "data.noisy": 1}
    assert len(found.runs["weights.lazy+data.again"]) == 3


def test_long_runs_of_experiments_that_are_not_varied_are_not_computed(tmp_path, monkeypatch):
    monkeypatch.setattr(configuration, "LONG_RUN", 1e4)
    for listed, names in (([], {"walk", "other"}), (["paper2021/other"], {"walk"})):
        found = Multiverse(load(tmp_path, {"not_varied": listed}))
        runs = [run for own in found.experiments.values() for run in own.runs.values()]
        assert {run.experiment for run in runs} == names and "seed_2" in found.experiments


@pytest.mark.parametrize(
    ("experiment", "metric", "at", "chains", "rows"),
    [
        ("walk", "w2_exact", "last", 0, 7),  # of an agent and of the average, 3 iterations; a point
        ("other", "w2", "last", 50, 0),  # all
        ("classes", "accuracy_mean", [0, 20], 50, 7),  # means, spread, and the part that diverged
        ("classes", "accuracy_mean", "all", 50, 64),
    ],
)
def test_a_universe_computes_what_claims_read_and_no_other_numbers(
    experiment, metric, at, chains, rows, tmp_path
):
    check = {"experiment": experiment, "metric": metric, "agents": [0], "at": at}
    claim = {**DEFINITION["claims"]["reached"], "check": {"kind": "measurement", "quantity": check}}
    problem = {"kind": "logistic_regression", "points_per_agent": 20, "dim": 2}
    classes = {
        **{"metrics": ["accuracy", "consensus_error"], "topology": "ring", "problem": problem},
        "record": {"every": 1, "probes": ["accuracy", "consensus_error"]},
        "sampler": {"kind": "de_sgld", "step_size": 0.01},
    }
    experiments = {**DEFINITION["experiments"], "classes": classes}
    paper = load(tmp_path, experiments=experiments, claims={"one": claim}, assumptions={})
    universe = Multiverse(paper).experiments["seed_3"]
    run = next(iter(universe.runs.values()))
    assert run.experiment == experiment and run.chains == chains
    keys = ["iteration", "agent", "metric"]
    whole = paper.vary_run(paper.runs[experiment, run.name], seed=3)
    tables = []
    for name, runs in (("whole", {run.name: whole}), ("lean", {run.name: run})):
        one = by_hand.write(UniverseExperiment(paper.path, runs), tmp_path / name)
        measure(one, one.with_name("metrics.csv"), RESOURCES)
        tables.append(one.with_name("metrics.csv"))
    own, found = (
        pandas.read_csv(table, dtype={"agent": str}).set_index(keys).sort_index()
        for table in tables
    )
    assert len(found) == (rows or len(own)) and len(found) <= len(own)
    # Sums of arrays that come from a file and of those that do not differ by rounding.
    numbers = ["value", "lo", "hi", "trials"]
    pandas.testing.assert_frame_equal(
        found[numbers], own.loc[found.index, numbers], rtol=1e-13, check_dtype=False
    )


def test_data_of_a_seed_of_their_own_are_the_same_with_another_master_seed(tmp_path):
    """Nothing else is drawn for exact numbers: the universe takes those of the study."""
    split = {"partition": {"kind": "consecutive"}}
    problem = {"kind": "linear_regression", "points_per_agent": 9, "dim": 2, "legacy_seed": 1}
    defaults = {**DEFINITION["defaults"], "problem": problem, **split}
    paper = load(tmp_path, defaults=defaults, assumptions={})
    found = Multiverse(paper)
    assert set(found.experiments) == {f"seed_{seed}" for seed in (2, 3, 4, 5)}
    assert {run.experiment for run in found.experiments["seed_2"].runs.values()} == {"other"}
    run = found.runs["seed_2"]["walk", "topology=ring"]
    assert found.find_universe_of(run) == BASE
    assert found.find_equal_run(run) == paper.runs["walk", "topology=ring"]


# What is judged


def rows(paper: Study, tables: list[Path]) -> dict[tuple[str, str], robustness.Row]:
    found = stage.judge_universes(Multiverse(paper), tables)
    return {(row["claim"], row["universe"]): row for row in found}


def test_verdicts_in_every_universe_that_changes_a_run_of_the_claim(made):
    found = rows(*made)
    assert {u for claim, u in found if claim == "reached"} == {
        *(BASE, "data.noisy", "data.third", "seed_2", "seed_3", "seed_4", "seed_5")
    }
    exact = {u: row["value"] for (claim, u), row in found.items() if claim == "printed"}
    assert exact["weights.lazy"] != exact[BASE] != exact["data.noisy"]


def test_what_cannot_be_run_is_told_and_the_rest_judged(made):
    """Weights that go around a ring have no meaning where there is none."""
    found = rows(*made)
    lost = found["nearer", "weights.lossy"]
    assert lost["verdict"] == judgements.NOT_RUN and lost["value"] is None
    assert "weights.lossy: walk/topology=no_edges cannot be run: " in lost["ours"]
    assert "has no edges" in lost["ours"]
    assert found["printed", "weights.lossy"]["verdict"] != judgements.NOT_RUN


def test_another_metric_is_read_for_what_is_named():
    table = pandas.DataFrame({"metric": ["a", "a_set_0", "b", "b_set_0", "bb"], "agent": "0",
                              "value": range(5)})  # fmt: skip
    found = stage.rename_metrics(Measured({}, table), {"a": "b"}, None).metrics
    assert dict(zip(found["metric"], found["value"], strict=True)) == {
        "a": 2,
        "a_set_0": 3,
        "bb": 4,
    }


def of_verdicts(base: str, **others: str) -> robustness.Robustness:
    return robustness.Robustness(
        {BASE: base, **{k.replace("__", "."): v for k, v in others.items()}}
    )


def test_a_claim_is_robust_or_hangs_on_something():
    assert of_verdicts("holds").text == of_verdicts("measured", seed_2="measured").text == ""
    assert of_verdicts("holds", seed_2="holds", a__b="not run").text == (
        "robust: holds in 2 of 2 universes"
    )
    found = of_verdicts(
        "holds", **{"a__b": "does not hold", "a__c": judgements.TIE, "seed_3": judgements.TOO_FEW,
                    "a__b+d__e": "does not hold", "d__e+f__g": judgements.TIE})  # fmt: skip
    assert found.text == (
        "depends on a, the seed, d, f: holds in 1, fails in 2, open in 3 of 6 universes "
        "(a.b fails, a.c open, seed_3 open, d.e+f.g open)"
    )


def line(claim: str, universe: str, verdict: str, case: str = "") -> robustness.Row:
    return robustness.build_row(
        claim, case, "published", universe, judgements.Judgement(verdict, "")
    )


def test_a_claim_fails_in_a_universe_where_one_of_its_cases_does():
    table = [line("c", BASE, "holds", "n=1"), line("c", BASE, "holds", "n=2"),
             line("c", "seed_2", "does not hold", "n=2")]  # fmt: skip
    (found,) = robustness.find_robustness(table).values()
    assert found.changed_outcomes == {"seed_2": "fails"}


def test_seeds_contradict_each_other_only_if_one_holds_and_one_does_not():
    table = [line("a", BASE, "holds"), line("a", "seed_2", judgements.TIE),
             line("a", "data.b", "does not hold"), line("b", BASE, judgements.TIE),
             line("b", "seed_2", "holds"), line("b", "seed_4", "does not hold")]  # fmt: skip
    assert robustness.seed_disagreements(table, 1) == {
        ("b", "", "published"): "holds with seed 2; does not hold with seed 4"
    }


def printed(paper, tables, multiverse=None):
    """Return the verdict of the claim ``printed``."""
    (row,) = (r for r in judge.verdicts(paper, tables, multiverse) if r["claim"] == "printed")
    return row


def test_verdicts_take_seeds_from_the_universes(made, tmp_path):
    paper, tables = made
    own = [path for path in tables if path.parents[1].name != "multiverse"]
    before = printed(paper, own)
    assert before["multiverse"] == "" and before["verdict"] == before["alone"]
    table = tmp_path / "multiverse.csv"
    stage.survey(paper, tables, [table])
    after = printed(paper, own, table)
    found = {row["universe"]: row["verdict"] for row in robustness.read_rows(table)
             if row["claim"] == "printed"}  # fmt: skip
    assert {"holds", "does not hold"} <= {v for u, v in found.items() if u == BASE or "seed" in u}
    assert (after["verdict"], after["alone"]) == (judgements.SEED, before["verdict"])
    assert after["multiverse"].startswith("depends on ") and "with seed" in after["ours"]


def ledger_of(folder: Path, verdict: str, over: str) -> Path:
    row = {**dict.fromkeys(ledger.COLUMNS, ""), "paper": "p", "claim": "a", "reading": "published"}
    row |= {"verdict": verdict, "alone": "holds", "multiverse": over, "scale": "paper"}
    path = folder / "claims.csv"
    path.write_text(format_csv(ledger.COLUMNS, [row]))
    write_provenance([path])
    return path


def test_what_verdicts_hang_on_is_committed_and_compared(tmp_path):
    expected, page = tmp_path / "expected_verdicts.yaml", tmp_path / "ledger.md"
    page.write_text("<!-- scoreboard -->\n<!-- end of scoreboard -->\n")
    expect(ledger_of(tmp_path, judgements.SEED, "depends on the seed"), expected, tmp_path)
    both = {"p": {"a": {"published": "depends on the seed"}}}
    assert yaml.safe_load((tmp_path / "expected_multiverse.yaml").read_text()) == both
    same = ledger_of(tmp_path, judgements.SEED, "depends on the seed")
    assert ledger.changes(same, expected, True).lines == ()
    found = ledger.changes(ledger_of(tmp_path, "holds", "robust"), expected, False)
    assert found.lines == (
        f"p a published: {judgements.SEED} -> holds",
        "p a published, over the universes: depends on the seed -> robust",
    )
    assert found.text == "2 of 2 committed verdicts differ."
    # Without universes nothing is known of seeds, nor forgotten.
    alone = ledger_of(tmp_path, "holds", "")
    only = f"p a published: {judgements.SEED} -> holds, with one seed"
    assert ledger.changes(alone, expected, True).lines == (only,)
    expect(alone, expected, tmp_path)
    assert yaml.safe_load(expected.read_text()) == {"p": {"a": {"published": judgements.SEED}}}
    universes = tmp_path / "expected_multiverse.yaml"
    assert yaml.safe_load(universes.read_text()) == both
    # What is no longer a claim is forgotten, but for studies that were not judged.
    other = {"q": {"a": {"published": "robust"}}}
    gone = {"p": {**both["p"], "gone": {"published": "robust"}}, **other}
    universes.write_text(yaml.safe_dump(gone))
    expect(alone, expected, tmp_path)
    assert yaml.safe_load(universes.read_text()) == {**both, **other}


# The number on which a verdict turns


NUMBER = {"experiment": "e", "metric": "m"}
KINDS = {
    "value": {"printed": 1.0, "tolerance": 0.3, "quantity": NUMBER},
    "order": {"lower": NUMBER, "higher": {**NUMBER, "metric": "n"}},
    "trend": {"quantity": NUMBER, "axis": "size", "direction": "rising"},
    "rate": {"quantity": NUMBER, "against": "size", "at_least": -1.0, "at_most": 1.0},
    "bound": {"quantity": NUMBER, "bound": {**NUMBER, "metric": "n"}},
    "identity": {"left": NUMBER, "right": {**NUMBER, "metric": "n"}, "tolerance": 0.3},
    "spread": {"quantity": NUMBER, "tolerance": 0.4},
    "sooner": {"first": {**NUMBER, "at": "all"}, "later": {**NUMBER, "metric": "n", "at": "all"},
               "threshold": 1.0},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_margin_lies_within_its_rule_if_and_only_if_the_claim_holds(kind):
    rng = np.random.default_rng(2)
    check = build(checks.KINDS[kind], KINDS[kind], "claims.c")
    said = set()
    for _ in range(60):
        runs = []
        for size in (1, 2):
            value = rng.uniform(0.5, 1.6, 6) + 0.2 * size * (kind == "trend")
            half = rng.uniform(0.0, 0.06)
            table = {"iteration": [0, 1, 2] * 2, "agent": "0", "metric": ["m"] * 3 + ["n"] * 3}
            table |= {"value": value, "lo": value - half, "hi": value + half, "trials": 50.0}
            mapping = {"experiment": "e", "run": f"size={size}", "labels": {"size": str(size)}}
            runs.append(Measured(mapping, pandas.DataFrame(table)))
        reads = [(quantity, runs) for quantity in checks.quantities(check)]
        found = judgements.judge(check, reads, lambda run: run)
        margin = found.margin
        assert margin is not None and margin.lo <= margin.value <= margin.hi, found
        said.add(robustness.outcome(found.verdict))
        if found.verdict == "holds":
            assert margin.lo >= margin.low and margin.hi <= margin.high, found
        elif found.verdict == "does not hold":
            assert margin.hi <= margin.low or margin.lo >= margin.high, found
        else:
            assert margin.lo <= margin.low or margin.hi >= margin.high, found
    assert said >= {"holds", "fails"}, said


# Pictures


def test_pictures_of_every_claim_that_a_universe_changes(made, tmp_path):
    paper, results = made
    stage.survey(paper, results, [tmp_path / "m.csv", tmp_path / "m.md"], tmp_path / "figures")
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    claims = [f"claim_{name}.{s}" for name in sorted(DEFINITION["claims"]) for s in ("pdf", "svg")]
    assert names == sorted([*claims, *(f"overview.{s}" for s in ("pdf", "png", "svg"))])
    page = (tmp_path / "m.md").read_text()
    assert "depends on" in page and "| weights.lossy | another | also used | 2 <details>" in page


def test_infinite_numbers_and_missing_ones_are_drawn(tmp_path):
    from concord_studies.figures import _specifications as figures

    table = [line("a", BASE, "does not hold"), line("a", "x.y", "not run")]
    margin = judgements.Margin(math.inf, 2.0, math.inf, high=1.0)
    judgement = judgements.Judgement("does not hold", "", margin)
    table.append(robustness.build_row("a", "", "published", "seed_2", judgement))
    names = {"x.y": "another", "seed_2": "master seed 2"}
    figures.save(table, names, {"a": "it is so"}, tmp_path, watermark=True)
    assert (tmp_path / "claim_a.pdf").stat().st_size > 1000
