"""From metrics to verdicts: what is judged, what is not run, and what the pages say."""

import csv
import re
from copy import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import asdict

import by_hand
import concord
import everything
from concord.errors import ConcordError
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.samplers.de_sgld import DESGLD
from concord_cli.__main__ import main
from concord_studies.claims import ledger, robustness
from concord_studies.claims import verdicts as judgements
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.markup import format_csv
from concord_studies.provenance import write_provenance
from concord_studies.runs.run import Run
from concord_studies.stages import judge
from concord_studies.stages.expect import expect, page_parts, replace_parts

ROOT = Path(__file__).parents[3]
DEFINITION = yaml.safe_load(Path(__file__).with_name("judged.yaml").read_text())


def load(folder: Path, seed: int = 1, scale: str = "paper", **changes: Any) -> Study:
    path = folder / "paper2021"
    path.mkdir(parents=True, exist_ok=True)
    (path / "study.yaml").write_text(yaml.safe_dump({**DEFINITION, **changes}, sort_keys=False))
    return Study(path, load_config(ROOT / "config" / "config.yaml", {"seed": seed, "scale": scale}))


def mutated(run: Run, mutant: Any) -> Run:
    """Return a run whose chains are made by a changed sampler; its exact law stays."""
    chosen = copy(run.sampler)
    chosen.params = mutant(**asdict(run.sampler.params))
    return run.vary(sampler=chosen)


def make(paper: Study, results: Path, mutant: Any = None) -> list[Path]:
    """Make the metrics of all experiments of a paper; return their tables."""
    return by_hand.make(paper, results, mutant and (lambda run: mutated(run, mutant)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, list[Path]]:
    folder = tmp_path_factory.mktemp("judge")
    paper = load(folder)
    return paper, make(paper, folder)


def verdicts(paper: Study, tables: list[Path], column: str = "verdict") -> dict[str, str]:
    rows = judge.verdicts(paper, tables)
    return {row["claim"]: row[column] for row in rows}


def ours(paper: Study, tables: list[Path]) -> dict[str, str]:
    return verdicts(paper, tables, "ours")


# A wrong sampler changes the verdicts that rest on its chains.


class Loud(DESGLD):
    """Twice the noise."""

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        class Twice:
            def standard_normal(self, *args: Any, **options: Any) -> Any:
                return 2 * rng.standard_normal(*args, **options)

        return super().step(state, k, problem, network, Twice())


class Deaf(DESGLD):
    """No neighbors."""

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        graph = build_graph("edge_list", network.agents, edges=[])
        other = Network(graph).start(state.x)
        return super().step(state, k, problem, other, rng)


def test_the_right_sampler(made):
    assert verdicts(*made) == {"ring_nearer": "holds", "law": "holds"}


@pytest.mark.parametrize(
    ("mutant", "expected"),
    [
        (Loud, {"ring_nearer": "holds", "law": "does not hold"}),
        # Each agent is as far on the ring as alone, which more chains do not decide.
        (Deaf, {"ring_nearer": "inconclusive: too few chains", "law": "does not hold"}),
    ],
)
def test_a_wrong_sampler(mutant, expected, tmp_path):
    paper = load(tmp_path)
    assert verdicts(paper, make(paper, tmp_path, mutant)) == expected


def test_what_other_seeds_say_makes_it_inconclusive():
    here = judgements.Judgement(judgements.TIE, "5 [4, 6]")
    found = robustness.weigh_seeds(here, "holds with seed 3; does not hold with seed 4")
    assert found.verdict == judgements.SEED
    assert found.ours == (
        "5 [4, 6] (alone: inconclusive: a tie; holds with seed 3; does not hold with seed 4)"
    )
    assert robustness.weigh_seeds(here, None) == here
    missing = judgements.Judgement("not run", "no file")
    assert robustness.weigh_seeds(missing, "holds with seed 3") == missing


# What cannot be judged


def test_without_runs_every_claim_says_what_was_not_run(tmp_path):
    found = ours(load(tmp_path), [])
    assert found["ring_nearer"] == "paper2021/walk/topology=ring was not run"


def test_runs_of_other_parameters_are_not_taken_for_these(made, tmp_path):
    _, results = made
    with pytest.raises(ConcordError, match=r"metrics.csv: it was made from another configuration"):
        verdicts(load(tmp_path, seed=2), results)


def test_verdicts_that_were_edited_are_not_joined(tmp_path):
    path = ledger_of(tmp_path, a="does not hold")
    path.write_text(path.read_text().replace("does not hold", "holds"))
    with pytest.raises(ConcordError, match=r"claims.csv: it is not as it was written; delete"):
        judge.ledger([path], [tmp_path / "ledger.csv"], tmp_path / "none.yaml")


# Pages


def test_no_text_is_a_formula_and_all_read_back(tmp_path):
    row = {**dict.fromkeys(ledger.COLUMNS, "x"), "verdict": "holds", "scale": "paper"}
    row |= {"says": "=1+1", "reason": "@SUM(1)", "where": "'quoted'", "ours": "-1 [-2, 0]"}
    table, joined = tmp_path / "claims.csv", tmp_path / "ledger.csv"
    table.write_text(format_csv(ledger.COLUMNS, [row]))
    write_provenance([table])
    judge.ledger([table], [joined], tmp_path / "none.yaml")
    for path in (table, joined):
        (cells,) = csv.DictReader(path.open())
        assert cells["says"] == "'=1+1" and cells["reason"] == "'@SUM(1)"
        assert cells["where"] == "''quoted'" and cells["ours"] == row["ours"]
        assert ledger.read_rows(path) == [row]


# The ledger and the committed verdicts


def ledger_of(folder: Path, cases: dict[str, str] | None = None, **verdict: str) -> Path:
    """Write a ledger of claims with these verdicts, or of one, ``a``, with cases."""
    said = [(claim, "", one) for claim, one in verdict.items()]
    said += [("a", case, one) for case, one in (cases or {}).items()]
    rows = [
        {**dict.fromkeys(ledger.COLUMNS, ""), "paper": "p", "claim": claim, "case": case}
        | {"reading": "published", "verdict": one, "alone": one, "seed": "1", "scale": "paper"}
        for claim, case, one in said
    ]
    path = folder / "claims.csv"
    path.write_text(format_csv(ledger.COLUMNS, rows))
    write_provenance([path])
    return path


@pytest.fixture
def committed(tmp_path) -> tuple[Path, Path]:
    page = tmp_path / "ledger.md"
    page.write_text("before\n<!-- scoreboard -->\nstale\n<!-- end of scoreboard -->\nafter\n")
    expected = tmp_path / "expected.yaml"
    expect(ledger_of(tmp_path, a="holds", b="does not hold"), expected, tmp_path)
    return expected, page


def test_expect_writes_the_verdicts_and_the_scoreboard(committed):
    expected, page = committed
    assert yaml.safe_load(expected.read_text()) == {
        "p": {"a": {"published": "holds"}, "b": {"published": "does not hold"}}
    }
    text = page.read_text()
    assert "stale" not in text and text.startswith("before") and text.endswith("after\n")
    assert "| `p` | 1 | 0 | 0 | 1 | 0 |" in text


def test_expect_keeps_what_is_committed_of_other_studies(committed, tmp_path):
    expected, page = committed
    other = {"q": {"a": {"published": {"n=5": "holds", "n=20": "does not hold"}}}}
    expected.write_text(yaml.safe_dump({**yaml.safe_load(expected.read_text()), **other}))
    expect(ledger_of(tmp_path, a="does not hold"), expected, tmp_path)
    after = {"p": {"a": {"published": "does not hold"}}, **other}
    assert yaml.safe_load(expected.read_text()) == after
    assert "| `q` | 0 | 1 | 0 | 0 | 0 |" in page.read_text()


def test_expect_keeps_what_was_not_run(committed, tmp_path):
    expected, page = committed
    expect(ledger_of(tmp_path, a="not run", b="holds"), expected, tmp_path)
    after = {"p": {"a": {"published": "holds"}, "b": {"published": "holds"}}}
    assert yaml.safe_load(expected.read_text()) == after
    page.write_text("<!-- scoreboard -->")
    with pytest.raises(ConcordError, match="no end of the scoreboard"):
        expect(ledger_of(tmp_path, a="holds"), expected, tmp_path)


def test_cases_are_committed_one_by_one_and_counted_as_one_sentence(tmp_path):
    page = tmp_path / "ledger.md"
    page.write_text("<!-- scoreboard -->\n<!-- end of scoreboard -->\n")
    cases = {"n=5": "holds", "n=20": "does not hold", "n=50": "holds"}
    path, expected = ledger_of(tmp_path, cases), tmp_path / "expected.yaml"
    expect(path, expected, tmp_path)
    assert yaml.safe_load(expected.read_text()) == {"p": {"a": {"published": cases}}}
    assert "| `p` | 0 | 1 | 0 | 0 | 0 |" in page.read_text()
    assert ledger.changes(path, expected, strict=True).lines == ()
    judge.ledger([path], [tmp_path / "l.md"], tmp_path / "none.yaml")
    page = (tmp_path / "l.md").read_text()
    assert "Fails in 1 of 3 cases: n 20." in page


def test_the_number_that_decides_is_committed_and_shown_where_nothing_was_judged(tmp_path):
    path, expected = ledger_of(tmp_path, a="does not hold", b="holds"), tmp_path / "expected.yaml"
    rows = [{**row, "number": "ratio: 2 (rule: at most 1)"} for row in ledger.read_rows(path)]
    path.write_text(format_csv(ledger.COLUMNS, rows))
    write_provenance([path])
    expect(path, expected, tmp_path)
    assert "published: [does not hold, 'ratio: 2 (rule: at most 1)']" in expected.read_text()
    assert ledger.changes(path, expected, strict=True).lines == ()
    # Where it was not run, the committed number stays, and pages show it.
    lost = ledger_of(tmp_path, a="not run", b="holds")
    expect(lost, expected, tmp_path)
    assert yaml.safe_load(expected.read_text())["p"]["a"]["published"][1].startswith("ratio: 2")
    judge.ledger([lost], [tmp_path / "l.csv", tmp_path / "l.md"], expected)
    assert "**does not hold, committed (published).** Ratio: 2" in (tmp_path / "l.md").read_text()
    assert ledger.read_rows(tmp_path / "l.csv")[0]["verdict"] == "not run"


def test_expect_renews_tables_of_results_with_the_version_that_made_them(committed, tmp_path):
    expected, page = committed
    name = "results/arena/tables/board"
    page.write_text(f"<!-- {name} -->\nstale\n<!-- end of {name} -->\n")
    path = ledger_of(tmp_path, a="holds")
    expect(path, expected, tmp_path)
    assert "stale" in page.read_text()  # which has not been made
    table = tmp_path / "arena/tables/board.md"
    table.parent.mkdir(parents=True)
    table.write_text("| place |\n| --- |\n| 1 |\n")
    write_provenance([table])
    expect(path, expected, tmp_path)
    text = page.read_text()
    assert "stale" not in text and "| 1 |" in text
    assert f"*Concord {concord.__version__}, `snakemake {name}.csv`" in text


def test_blocks_of_documents_are_of_this_version():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    stamps = {
        page.name: re.findall(r"^\*Concord ([\d.]+)", page.read_text(), re.M) for page in pages
    }
    assert {v for found in stamps.values() for v in found} == {concord.__version__}


def test_verdicts_that_differ_are_listed_apart_from_new_ones(committed, tmp_path):
    expected, _ = committed
    same = ledger.changes(ledger_of(tmp_path, a="holds", b="does not hold"), expected, True)
    assert (same.lines, same.text) == ((), "None of 2 committed verdicts differs.")
    path = ledger_of(tmp_path, a="does not hold", c="holds", d="not run")
    found = ledger.changes(path, expected, strict=False)
    assert found.changed == (
        "p a published: holds -> does not hold",
        "p b published: does not hold -> no longer a claim",
    )
    assert found.new == ("p c published: new, holds",)  # d has no verdict, here or committed
    assert found.text == "2 of 2 committed verdicts differ; 1 new."
    with pytest.raises(ConcordError, match=r"2 verdicts differ.*concord expect"):
        ledger.changes(path, expected, strict=True)


def test_what_was_not_judged_or_not_committed_is_no_change(committed, tmp_path, capsys):
    expected, _ = committed
    path = ledger_of(tmp_path, a="not run", b="does not hold")
    found = ledger.changes(path, expected, strict=True)
    assert found.left == ("p a published: holds, not judged here: ",)
    assert (found.changed, found.new, found.compared) == ((), (), 1)
    assert main(["changes", str(path), "--expected", str(expected)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told == ["None of 1 committed verdicts differs; 1 not judged here.", *found.lines]
    # What was committed without a verdict has one now.
    expected.write_text("p: { a: { published: not run }, b: { published: does not hold } }")
    path = ledger_of(tmp_path, a="holds", b="does not hold")
    assert ledger.changes(path, expected, strict=True).new == ("p a published: new, holds",)
    # Nor are studies that were not judged, or of which none was committed.
    rows = ledger.read_rows(path)
    other = [{**row, "paper": "q"} for row in rows]
    assert ledger.compare(other, expected).compared is None
    assert ledger.compare([*rows, *other], expected) == ledger.compare(rows, expected)
    assert ledger.compare([], expected).compared is None
    assert ledger.compare(rows, tmp_path / "none.yaml").compared is None


def test_smoke_scale_commits_and_compares_nothing(committed, tmp_path):
    expected, _ = committed
    path = ledger_of(tmp_path, a="not run")
    path.write_text(path.read_text().replace(",paper\n", ",smoke\n"))
    write_provenance([path])
    found = ledger.changes(path, expected, strict=True)
    assert found.lines == () and found.text.startswith("Verdicts are not compared")
    with pytest.raises(ConcordError, match="smoke scale"):
        expect(path, expected, tmp_path)


def test_pages_show_the_committed_verdicts_with_the_version_that_wrote_them():
    """Written by ``concord expect results/claims.csv``, of every study with committed numbers."""
    path, studies = ROOT / "config" / "expected_verdicts.yaml", everything.studies()
    numbered = {row["paper"] for row in ledger.expected_rows(path) if row["number"]}
    parts = page_parts(path, studies)
    shown = {"version", "scoreboard", *(f"findings of {key}" for key in numbered)}
    parts = {name: lines for name, lines in parts.items() if name in shown}
    pages = {page: page.read_text() for page in (ROOT / "docs").glob("*.md")}
    assert [page.name for page, text in pages.items() if replace_parts(text, parts) != text] == []
    printed = {key for key in numbered if studies[key].printed}
    assert all(f"<!-- findings of {key} -->" in "".join(pages.values()) for key in printed)


def test_committed_verdicts_are_of_the_cases_that_studies_have_and_of_all_of_them():
    path, studies = ROOT / "config" / "expected_verdicts.yaml", everything.studies()
    committed = {ledger.verdict_key(row) for row in ledger.expected_rows(path)}
    cases = {(key, *case) for key, study in studies.items() for case in study.cases}
    of_papers = {case for case in cases if studies[case[0]].printed}
    assert sorted(committed - cases) == sorted(of_papers - committed) == []
    # Universes are made of claims that are judged, and only of some studies.
    claims = {(paper, claim, reading) for paper, claim, _, reading in cases}
    assert sorted(ledger.expected_universes(path).keys() - claims) == []
