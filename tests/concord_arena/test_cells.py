"""Cells of the arena: how an entry is tuned, judged and told; a sampler of one's own too."""

import csv
from copy import copy
from pathlib import Path

import numpy as np
import pytest

import by_hand
import everything
import wrong_samplers as wrong
from concord.errors import ConcordError
from concord.laws.intervals import mean_interval
from concord.laws.law import laws_of_versions
from concord.options import build
from concord_arena import cells, compete, pairs, tuning
from concord_cli import __main__
from concord_studies import provenance, results
from concord_studies.configuration.config import load_config
from concord_studies.configuration.init import TEMPLATE
from concord_studies.configuration.study import Study
from concord_studies.experiment import Experiment, measure

head_to_head = everything.kind("tables", "head_to_head")
leaderboard = everything.kind("tables", "leaderboard")

STUDY = """
paper: { title: Tiny, authors: us, year: 2026 }
problems:
  apart: { kind: gaussian, condition: 4.0, dim: 1, heterogeneity: 1.0 }
defaults: { problem: apart, agents: 4, chains: 10, iterations: 400 }
experiments:
  tasks:
    arena: { budget: { gradients: 300, bytes: 3000 }, sets: 3, curve: true }
    sweep:
      topology: [ring, directed_ring]
      entry:
        de_sgld: { sampler: { kind: de_sgld, step_size: 0.01 }, arena: { tune: step_size } }
        paper: { sampler: { kind: de_sgld, step_size: 5.0 } }
        sghmc: { sampler: { kind: de_sghmc, step_size: 0.1, friction: 1.0 },
                 arena: { tune: step_size, second: { friction: [0.5, 1.0, 2.0] } } }
        mine: { sampler: { kind: mine, step_size: 0.01 }, arena: { tune: step_size } }
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "studies" / "arena"
    (folder / "plugins" / "samplers").mkdir(parents=True)
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    mine = TEMPLATE / "config" / "papers" / "KEY" / "plugins" / "samplers" / "mine.py"
    text = mine.read_text(encoding="utf-8").replace("NAME", "it")
    (folder / "plugins" / "samplers" / "mine.py").write_text(text, encoding="utf-8")
    return Study(folder, load_config())


def scored(study, entry, topology="ring"):
    run = study.run("tasks", f"topology={topology}+entry={entry}")
    return run, cells.score(run, cells.build_task(run, Path()))


def made(study, *entries):
    """Make the cells of entries; return them by name."""
    runs = study.select({"experiment": "tasks", "entry": [*entries]}, "experiments")
    folder = Path("results", study.key, "tasks")
    stated = by_hand.write(Experiment(study.path, {run.name: run for run in runs}), folder)
    measure(stated, folder / "metrics.csv", Path())
    return results.read(folder)


def board(study):
    folder = Path("results", study.key)
    outputs = [folder / "scores.csv", folder / "cost.csv"]
    compete.write_board(study, [folder / "tasks" / "metrics.csv"], outputs, folder / "cards")


def values(found, metric, agent="worst"):
    return [row.value for row in found.rows if (row.metric, row.agent) == (metric, agent)]


def test_entries_of_a_task_share_its_problems(study):
    runs = [study.run("tasks", f"topology={t}+entry={e}") for t, e in SHARED]
    one, other, elsewhere = (cells.build_task(run, Path()) for run in runs)
    assert one.problems is other.problems is elsewhere.problems
    assert one.cache is other.cache
    assert (one.network.name, elsewhere.network.name) == ("ring", "directed_ring")
    other = copy(runs[0].problem)
    other.name = "other"
    for changes in ({"seed": 7}, {"agents": 5}, {"paper": "other"}, {"problem": other}):
        one = cells.build_task(runs[0], Path())
        found = cells.build_task(runs[0].vary(**changes), Path())
        assert not np.array_equal(found.problems[0].shift, one.problems[0].shift), changes
        assert found.cache is not one.cache


SHARED = [("ring", "de_sgld"), ("ring", "sghmc"), ("directed_ring", "de_sgld")]


def test_thirty_six_settings_from_the_largest_stable_step_downwards(study):
    _, found = scored(study, "de_sgld")
    assert found.choice["gradients"]["settings"] == tuning.SETTINGS == 36
    (limit,) = values(found, "stable.step_size", "network")
    (step,) = values(found, "chosen.step_size_by_gradients", "network")
    halvings = 2 * np.log2(limit / step)
    assert halvings == pytest.approx(round(halvings), abs=1e-6) and round(halvings) >= 1
    _, second = scored(study, "sghmc")
    assert second.choice["gradients"]["settings"] == 36
    assert second.choice["gradients"]["chosen"]["friction"] in (0.5, 1.0, 2.0)
    assert not second.choice["gradients"]["least value tried"]
    run = study.run("tasks", "topology=ring+entry=sghmc")
    task = cells.build_task(run, Path())
    groups, limits = tuning.group_settings(
        run.sampler.params, run.arena, task.problems[0], task.network, ""
    )
    for group, top in zip(groups, limits, strict=True):
        steps = [setting.values["step_size"] for setting in group]
        np.testing.assert_allclose(steps, top * 2.0 ** -np.arange(1, 13))


AIMED = STUDY.replace("sets: 3, curve: true", "sets: 3, aim: 0.001").replace("300,", "30000,")


def test_what_aims_at_a_target_is_sought_coarsely_then_finely(study):
    """36 settings: 24 octaves down by 24 or eight, then twelve between the best one's neighbors."""
    (study.path / "study.yaml").write_text(AIMED, encoding="utf-8")
    own = Study(study.path, load_config())
    for entry, coarse in (("de_sgld", 2.0), ("sghmc", 8.0)):
        _, found = scored(own, entry)
        about = found.choice["gradients"]
        assert about["settings"] == tuning.SETTINGS
        assert "until b2 of worst stays below 0.001" in about["reason"]
        (limit,) = values(found, "stable.step_size", "network")
        octaves = np.log2(limit / about["chosen"]["step_size"]) / np.log2(coarse)
        places = [i + part for i in range(1, 25) for part in (*np.linspace(-1, 1, 14)[1:-1], 0)]
        # Of the second option's values each has a limit of its own; the largest is told.
        assert entry == "sghmc" or min(abs(octaves - np.array(places))) < 1e-9
        assert about["price"] <= 30000
        for target in ("0.01", "0.001"):
            paid = values(found, f"gradients_to_{target}_set_1")[0]
            assert target == "0.001" or paid <= 30000


def test_where_no_setting_reaches_the_target_the_least_score_is_chosen(study):
    (study.path / "study.yaml").write_text(
        AIMED.replace("aim: 0.001", "aim: 1.0e-12"), encoding="utf-8"
    )
    _, found = scored(Study(study.path, load_config()), "de_sgld")
    about = found.choice["gradients"]
    assert "since none stays below 1e-12" in about["reason"] and 0 < about["b2"] < 0.01


def test_prices_are_paid(study):
    _, found = scored(study, "de_sgld")
    price = found.choice["bytes"]["price of an iteration"]
    assert price == {"gradients": 1.0, "bytes": 16.0, "seconds": 0.0}
    assert found.choice["bytes"]["iterations"] == 3000 // 16
    spent = values(found, "spent.bytes", "network")
    assert max(spent) == 16 * (3000 // 16) and min(spent) == 16.0
    _, first = scored(study, "sghmc")
    for target in ("1", "0.1"):
        paid = values(first, f"gradients_to_{target}_set_1")
        assert paid[0] == np.inf or 1 <= paid[0] <= 300


def test_an_entry_that_diverges_is_infinite_and_stays(study):
    _, found = scored(study, "paper")
    assert values(found, "b2_by_gradients") == [np.inf]
    assert values(found, "gradients_to_1") == [np.inf]
    assert values(found, "stationary_b2") == [np.inf]


def test_a_sampler_of_ones_own_finds_its_row(study, capsys):
    made(study, "de_sgld", "mine")
    board(study)
    with open("results/arena/scores.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    mine = [row for row in rows if row["entry"] == "mine" and row["score"] == "b2"]
    assert {row["price"] for row in mine} == {"gradients", "bytes"}
    assert all(row["state"] == "scored" and float(row["value"]) < 1 for row in mine)
    card = Path("results/arena/cards/mine.md").read_text(encoding="utf-8")
    assert "adapt then combine" in card and "Worst tasks" in card
    about = provenance.read_provenance(Path("results/arena/tasks/metrics.csv"))
    assert about["choice"]["topology=ring+entry=mine"]["gradients"]["settings"] == 36
    assert __main__.main(["compare", "mine", "de_sgld", "--tasks", "ring"]) == 0
    said = capsys.readouterr().out
    assert "DE-SGLD, average last against DE-SGLD" in said
    assert "\nring " in said and "de_sgld" not in said
    assert "(median over all data sets)" in said and "interval" not in said  # of one task


def test_a_sampler_that_averages_now_and_then_wins_where_bytes_are_paid(study):
    """The law of its whole cycle is scored, in the place of that of a step without averaging."""
    mine = study.path / "plugins" / "samplers" / "mine.py"
    text = wrong.RIGHT["averages after every 4th step"]
    mine.write_text(text.replace("class Plain", "class Mine"), encoding="utf-8")
    found = compete.compare_samplers(
        "mine", "de_sgld", tasks=["ring"], experiment="tasks", study=study
    )
    b2 = found.table.set_index(["price", "sampler"]).b2
    assert b2["bytes", "mine"] < 0.5 * b2["bytes", "de_sgld"]


def test_a_median_ratio_has_an_interval_over_tasks_where_there_are_several():
    one, other = np.log([2.0, 3.0, 4.0]), np.log([5.0, 6.0, 7.0])
    assert pairs.describe_ratio([one], 3) == "3"
    assert pairs.describe_ratio([one, other], 3) == "4.47 [3, 6]"


def test_tasks_are_printed_as_they_are_typed(capsys):
    """Of the arena itself, whose tasks have two labels."""
    names = ["de_sgld", "extra_sgld"]
    assert __main__.main(["compare", *names, "--tasks", "apart, ring"]) == 0
    printed = capsys.readouterr().out
    assert "on apart, ring: " in printed and "\napart, ring  " in printed
    assert "even" not in printed


def test_every_cell_has_its_state_and_its_cost(study):
    """Scored, diverged, not applicable and not run are all cells: nothing is dropped."""
    text = STUDY.replace(
        "        mine: { sampler: { kind: mine, step_size: 0.01 },",
        """\
        choco: { sampler: { kind: choco_sgld, step_size: 0.01,
                            compression: { kind: qsgd, bits: 8 } } }
        mine: { sampler: { kind: mine, step_size: 0.01 },""",
    )
    (study.path / "study.yaml").write_text(text, encoding="utf-8")
    own = Study(study.path, load_config())
    made(own, "de_sgld", "paper", "sghmc", "choco", "mine")
    board(own)
    states: dict[str, set[tuple[str, str]]] = {}
    with open("results/arena/scores.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            states.setdefault(row["state"], set()).add((row["task"], row["entry"]))
    ring, directed = "ring", "directed_ring"
    assert states["scored"] == {(ring, "de_sgld"), (ring, "sghmc"), (ring, "mine")}
    assert states["diverged"] == {(ring, "paper")}
    assert states["not run"] == {(ring, "choco")}
    assert {task for task, _ in states["not applicable"]} == {directed}
    assert sum(map(len, states.values())) == len(own.runs) == 10
    with open("results/arena/cost.csv", encoding="utf-8") as file:
        costs = {(row["task"], row["entry"]): float(row["cpu_seconds"])
                 for row in csv.DictReader(file)}  # fmt: skip
    assert costs.keys() == set().union(*states.values())
    assert all(0 <= seconds < 60 for seconds in costs.values())


def test_counts_of_the_leaderboard_add_up(study):

    measured = list(made(study, "de_sgld", "paper", "sghmc", "mine").values())
    options = {"prices": ["gradients"], "targets": [1, 0.1]}
    table = leaderboard.tabulate(build(leaderboard.Params, options, ""), measured)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    for row in rows:
        assert sum(row[state] for state in leaderboard.STATES) == row["pairs"] == 2 * 3 * 2
        assert row["not applicable"] == 6
    by = {row["entry"]: row for row in rows}
    assert by["paper"]["diverged"] == 6 and by["paper"]["solved"] == 0
    assert rows[-1]["entry"] == "paper" and by["sghmc"]["place"] == "not sure"
    duel = head_to_head.tabulate(
        build(head_to_head.Params, {"metric": "b2_by_gradients"}, ""), measured
    )
    pairs = {tuple(row[:2]): row[2:5] for row in duel.rows}
    assert pairs["de_sgld", "paper"] == [3, 0, 0] and pairs["paper", "de_sgld"] == [0, 0, 3]
    shown = {row[0].partition(" ")[2]: row[1:] for row in duel.layout.rows}
    assert shown["DE-SGLD"][-1] == "100" and duel.layout.rows[-1][1:] == ["0"] * 3 + [""]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "de_sgl", "mine"], "did you mean 'de_sgld'"),
        (["compare", "mine", "--tasks", "rung"], "did you mean 'ring'"),
        (["compare", "mine", "--experiment", "task"], "did you mean 'tasks'"),
    ],
)
def test_mistakes_end_in_a_sentence(study, capsys, arguments, said):
    assert __main__.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_what_cannot_be_tuned_is_told(study):
    text = STUDY.replace("arena: { tune: step_size } }", "arena: { tune: step } }")
    (study.path / "study.yaml").write_text(text, encoding="utf-8")
    other = Study(study.path, load_config())
    with pytest.raises(ConcordError, match="did you mean 'step_size'"):
        scored(other, "de_sgld")


def leaderboard_of(ranks, score="b2", targets=(1,), **options):
    """Return a leaderboard whose entries have these scores, task by task."""
    from test_displays import cell

    runs = [
        cell(
            {f"{score}_by_gradients": float(value), "ece_by_gradients": value / 10},
            entry=f"e{place}",
            task=task,
        )
        for task, row in enumerate(ranks)
        for place, value in enumerate(row)
    ]
    stated = {"prices": ["gradients"], "score": score, "targets": [*targets], **options}
    return leaderboard.tabulate(build(leaderboard.Params, stated, ""), runs)


def test_predictions_are_ranked_without_targets_and_with_calibration_beside():
    """Ranks by hand: e1 is better on three tasks of eight, by more than the tie of 5 %."""
    ranks = [[2.0, 1.0]] * 3 + [[1.0, 4.0]] * 4 + [[1.0, 1.04]]
    table = leaderboard_of(ranks, "nll", (), beside="ece")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["entry"] for row in rows] == ["e0", "e1"]
    assert [row["mean rank"] for row in rows] == [(3 * 2 + 4 + 1.5) / 8, (3 + 4 * 2 + 1.5) / 8]
    assert [row["median ece"] for row in rows] == pytest.approx([0.1, 0.252])
    columns = ["sampler", "place", "mean rank", "median score", "median ece"]
    assert table.layout.columns == columns


def board_of(ranks):
    """Return the rows of such a leaderboard, by entry."""
    table = leaderboard_of(ranks)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return {row["entry"]: row for row in rows}


def test_below_eight_tasks_no_rank_is_sure():
    always = [[1.0, 2.0]]
    assert [row["place"] for row in board_of(always * 7).values()] == ["not sure"] * 2
    assert [row["to"] for row in board_of(always * 8).values()] == [1, 2]
    (one, _) = board_of(always).values()
    assert one["mean rank"] == 1 and one["lo"] is None and one["hi"] is None
    mixed = board_of([[1.0, 2.0]] * 6 + [[2.0, 1.0]] * 4)
    assert [(row["place"], row["to"]) for row in mixed.values()] == [(1, 2), (1, 2)]


def test_a_range_of_places_is_a_tie_and_few_tasks_have_no_places():
    def first(ranks, columns):
        layout = leaderboard_of(ranks).layout
        assert layout.labels == len(columns) and layout.columns[: len(columns)] == columns
        return [tuple(row[: len(columns)]) for row in layout.rows]

    assert first([[1.0, 2.0]], ["sampler"]) == [("E0",), ("E1",)]
    places = ["sampler", "place"]
    assert first([[1.0, 2.0]] * 8, places) == [("E0", "1"), ("E1", "2")]
    mixed = [[1.0, 2.0, 9.0]] * 6 + [[2.0, 1.0, 9.0]] * 4
    assert first(mixed, places) == [("E0", "1–2"), ("E1", "1–2"), ("E2", "3")]


def test_tasks_of_one_problem_count_once_and_what_does_not_apply_stands_apart():
    """Student's interval over two problems, by hand; "b" applies to the tasks of one."""
    from test_displays import cell

    scores = {"x": {"a": [1.0, 2.0], "b": [2.0, 1.0], "c": [3.0, 3.0]},
              "y": {"a": [2.0, 2.0], "c": [1.0, 1.0]}}  # fmt: skip
    runs = [
        cell({"b2_by_gradients": value}, entry=entry, problem=problem, topology=network)
        for problem, entries in scores.items()
        for entry, values in entries.items()
        for network, value in zip(("ring", "star"), values, strict=True)
    ]
    stated = {"prices": ["gradients"], "targets": [1], "clusters": "problem"}
    table = leaderboard.tabulate(build(leaderboard.Params, stated, ""), runs)
    rows = {row[3]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    # By problem a has the mean ranks 1.5 and 2, b 1.5 and 3, c 3 and 1.
    assert [rows[e]["mean rank"] for e in "abc"] == [1.75, 2.25, 2.0]
    half = 12.7062 * np.std([1.5, 2.0], ddof=1) / np.sqrt(2)
    assert rows["a"]["lo"] == 1 > 1.75 - half and rows["a"]["hi"] == 3 < 1.75 + half
    shown = [(rows[e]["rank where it applies"], rows[e]["applies"]) for e in "abc"]
    assert shown == [(1.75, 4), (1.5, 2), (2.0, 4)]
    assert "2 of 4" in next(row for row in table.layout.rows if row[0] == "B")


@pytest.mark.parametrize(("tasks", "share"), [(2, 0.79), (3, 0.92), (8, 0.92), (15, 0.92)])
def test_intervals_of_ranks_contain_the_mean_over_all_tasks(tasks, share):
    """Of six entries whose scores vary by task; four standard errors below the share.

    With two tasks an entry often has the same rank twice.
    """
    rng = np.random.default_rng(tasks)
    scores = rng.normal(0, 1.5, (4000, 6)) + np.linspace(0, 2, 6)
    ranks = 1.0 + (scores[:, None, :] < scores[:, :, None]).sum(axis=2)
    intervals = (mean_interval(ranks[rng.integers(0, 4000, tasks)]) for _ in range(1500))
    truth = ranks.mean(axis=0)
    hits = [(lo <= truth) & (truth <= hi) for _, lo, hi in intervals]
    assert np.mean(hits) > share - 4 * np.sqrt(share * (1 - share) / 1500)


def test_held_out_data_are_predicted_by_the_law(study):
    text = STUDY.replace("kind: gaussian, condition: 4.0, dim: 1, heterogeneity: 1.0",
                         "kind: diabetes, test_fraction: 0.2")  # fmt: skip
    (study.path / "study.yaml").write_text(text, encoding="utf-8")
    own = Study(study.path, load_config())
    run, found = scored(own, "de_sgld")
    task = cells.build_task(run, Path())
    step = found.choice["gradients"]["chosen"]["step_size"]
    params = build(type(run.sampler.params), {"step_size": step}, "")
    wanted = []
    rng = np.random.default_rng(1)
    for problem in task.problems[1:]:
        path = laws_of_versions([params], [problem], task.network, run.initial.moments(problem.dim))
        seen = path.marginals_at([300])
        each = []
        for mean, cov in zip(seen.mean[0, 0], seen.cov[0, 0], strict=True):
            log = problem.held_out_log_density(
                rng.multivariate_normal(mean, cov, 20_000), np.zeros_like(cov)
            )
            each.append(np.log(np.exp(log).mean(axis=0)).mean())
        wanted.append(min(each))
    (value,) = values(found, "log_predictive_by_gradients")
    assert value == pytest.approx(np.mean(wanted), abs=3e-3)  # of 20 000 draws
    (right,) = values(found, "log_predictive_by_gradients_exact", "network")
    assert value < right < 0


def other(study, entry, options, arena="", **changes):
    """Return what ``scored`` does of an entry of one's own, in place of the paper's."""
    text = STUDY.replace(
        "paper: { sampler: { kind: de_sgld, step_size: 5.0 } }",
        f"own: {{ sampler: {{ kind: {entry}, {options} }}, arena: {{ {arena} }} }}",
    )
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    (study.path / "study.yaml").write_text(text, encoding="utf-8")
    return scored(Study(study.path, load_config()), "own")


@pytest.mark.parametrize("stated", [1e4, 1e-7])
def test_a_search_goes_on_where_its_best_is_the_last_tried(study, stated):
    """All tolerances are stable, so that nothing but the stated value says where to look."""
    _, found = other(study, "graph_gibbs", f"tolerance: {stated}", "tune: tolerance")
    about = found.choice["gradients"]
    assert tuning.SETTINGS < about["settings"] <= 36 + tuning.WIDER * 12
    assert not about["least value tried"] and not about["largest value tried"]
    assert values(found, "end_by_gradients", "network") == [0.0]
    near = other(study, "graph_gibbs", "tolerance: 0.01", "tune: tolerance")[1]
    assert near.choice["gradients"]["settings"] == 36
    assert about["b2"] == pytest.approx(near.choice["gradients"]["b2"], rel=0.1)


def test_where_the_search_ends_all_the_same_it_is_told(study):
    _, far = other(study, "graph_gibbs", "tolerance: 1.0e+12", "tune: tolerance")
    assert far.choice["gradients"]["settings"] == 36 + tuning.WIDER * 12
    assert values(far, "end_by_gradients", "network") == [1.0]
    _, paid = other(study, "graph_gibbs", "tolerance: 1.0e+6", "tune: tolerance, paid: true")
    assert paid.choice["gradients"]["settings"] == 36  # who pays for its tuning has no more
    assert values(paid, "end_by_gradients", "network") == [1.0]
    _, top = other(study, "de_sgld", "step_size: 0.01", "tune: step_size")
    assert top.choice["gradients"]["settings"] == 36  # above the first nothing is stable
    from test_displays import cell

    options = build(leaderboard.Params, {"prices": ["gradients"], "targets": [1]}, "")
    cells_ = [
        cell({"b2_by_gradients": 1.0}, entry=e, topology=t) for e in "ab" for t in ("ring", "star")
    ]
    for one, end in zip(cells_, (1.0, 1.0, 0.0, 1.0), strict=True):
        one.metrics.loc[len(one.metrics)] = [9, "network", "end_by_gradients", end, 0, 0, 0]
    table = leaderboard.tabulate(options, cells_)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert {row["entry"]: row["tuned to the end"] for row in rows} == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("entry", "options", "tune", "releases"),
    [
        ("de_sgld", "step_size: 0.01", "tune: step_size", 30),
        ("diging_sgld", "step_size: 0.01", "tune: step_size", 60),
        ("local_sgld", "step_size: 0.01, period: 4", "tune: step_size", 7),
    ],
)
def test_all_hide_for_the_same_epsilon_what_they_send(study, entry, options, tune, releases):
    from concord_studies.metrics.epsilon import epsilon

    hidden = "network: { privacy: { clip: 3.0, sigma: 1.0 } }"
    _, found = other(
        study, entry, options, tune,
        budget=("budget: { gradients: 300, bytes: 3000 }", "budget: { gradients: 30 }"),
        epsilon=("sets: 3, curve: true", "sets: 1, sampled: true, epsilon: 4.0"),
        hide=("iterations: 400 }", f"iterations: 400, {hidden} }}"),
    )  # fmt: skip
    noise = found.choice["gradients"]["sigma"]
    assert epsilon(2 * 3.0 * np.sqrt(releases) / noise, 1e-5) == pytest.approx(4.0)
