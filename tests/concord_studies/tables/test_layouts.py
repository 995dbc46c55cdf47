"""Tables as they are read: the papers' own rows and columns, in Markdown and LaTeX."""

import shutil
import subprocess
from pathlib import Path

import pandas
import pytest
import yaml

import everything
from concord.errors import ConcordError
from concord.options import build
from concord_studies import markup, words
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.results import Measured
from concord_studies.tables import Layout, Table, final_values, printed_values

CONFIG = Path(__file__).parents[3] / "config"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((33814.2, 33748.4, 33879.9), "33814 [33748, 33880]"),
        ((33.23, 33.104, 33.36), "33.23 [33.10, 33.36]"),
        ((0.0703, 0.0, 0.147), "0.070 [0.000, 0.147]"),
        ((-0.0004, -0.02, 0.02), "0.000 [-0.020, 0.020]"),
        ((199481.0,), "199481"),
        ((33735.4,), "33735"),
        ((84.5637,), "84.56"),
        ((4.0, 4.0, 4.0), "4"),  # an interval that says nothing more
        ((1.1, 1.0999999, 1.1000001), "1.100"),
        ((0.379713, 0.379634, 0.379796), "0.3797 [0.3796, 0.3798]"),
        ((3.6e-15,), "0"),
        ((1e-17, -2e-16, 2e-16), "0"),
        ((1.5e12,), "1.5e+12"),
        ((0.7453, 0.0, float("inf")), "0.7453 [0, ∞]"),  # as of heavy-tailed chains
        ((-31.0, float("-inf"), 12.0), "-31 [-∞, 12]"),
        ((2.87e-7, -5.14e-7, 1.09e-6), "2.9e-07 [-5.1e-07, 1.1e-06]"),
        ((3.14159e10, 3.1e10, 3.2e10), "3.142e+10 [3.1e+10, 3.2e+10]"),
        ((float("inf"),), "∞"),
        ((float("nan"),), "–"),
        ((None,), "–"),
    ],
)
def test_numbers_end_where_their_interval_does(numbers, text):
    assert words.format_number(*numbers) == text


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([(0.05042,), (0.0504,), (1.0,), (0.0,)], ["0.05042", "0.05040", "1.000", "0"]),
        ([(0.5,), (1.0,)], ["0.5", "1"]),
        ([(24.4,), (1824.3,), (22022.1,)], ["24.40", "1824", "22022"]),
        ([(17752803.2,), (3.9e-7,)], ["1.775e7", "3.900e-07"]),
        ([(199481,), (7,)], ["199481", "7"]),
        ([(13000.0, 3167.0, 20633.0)], ["13000 [3200, 20600]"]),
        ([(7.34e8, 3.1e8, 1.2e9)], ["7.3e8 [3.1e8, 1.2e9]"]),
        ([(float("nan"),), (None,)], ["–", "–"]),
    ],
)
def test_cells_of_one_kind_have_the_same_digits(column, texts):
    exact = [numbers[0] for numbers in column if numbers[0] is not None and len(numbers) == 1]
    digits = words.count_digits(exact)
    cells = [words.format_cell(*(*numbers, None, None)[:3], digits) for numbers in column]
    assert cells == texts


def run(sampler, metrics, reading="published", **labels):
    """Return a run with {(metric, agent): value or (value, lo, hi)}."""
    rows = []
    for (metric, agent), value in metrics.items():
        numbers = value if isinstance(value, tuple) else (value, None, None)
        rows.append((10, str(agent), metric, *numbers))
    columns = ["iteration", "agent", "metric", "value", "lo", "hi"]
    table = pandas.DataFrame(rows, columns=columns).astype({"lo": float, "hi": float})
    labels = {"sampler": sampler, "reading": reading, **labels}
    return Measured({"experiment": "e", "run": sampler, "labels": labels}, table)


METHODS = [
    {"name": "SGD", "select": {"sampler": "sgd"}},
    {"name": "Agent 2", "select": {"sampler": "d_ula"}, "agent": 1},
]


def printed(rows, runs, **options):
    params = build(printed_values.Params, {"columns": METHODS, "rows": rows, **options}, "x")
    return printed_values.tabulate(params, runs)


@pytest.fixture
def methods() -> list[Measured]:
    return [
        run("sgd", {("mean", 0): (0.9728, 0.9677, 0.978), ("count", 1): 3.3}, "released"),
        run("d_ula", {("mean", 1): 0.25, ("count", 1): 7.0}, "published"),
        run("d_ula", {("mean", 1): (0.9717, 0.9706, 0.9729), ("count", 1): 8.0}, "released"),
    ]


def test_rows_and_columns_are_those_of_print(methods):
    rows = [
        {"group": ["MNIST"], "name": "Mean", "metric": "mean", "printed": [0.974, "0.970"]},
        {"group": ["MNIST"], "name": "Number", "metric": "count", "printed": [332, None],
         "scale": 100, "agent": 1},
        {"group": ["SVHN"], "name": "Mean", "metric": "far", "printed": [0.849, 0.6588],
         "missing": "not run"},
    ]  # fmt: skip
    made = printed(rows, methods, by="reading", heads=["data"], names={"released": "as released"})
    assert made.layout.columns == ["data", "quantity", "reading", "SGD", "Agent 2"]
    assert made.layout.labels == 3
    assert made.layout.rows == [
        ["MNIST", "Mean", "print", "0.974", "0.970"],
        ["MNIST", "Mean", "as released", "0.9728 [0.9677, 0.9780]", "0.9717 [0.9706, 0.9729]"],
        ["MNIST", "Mean", "Published", "", "0.25"],
        ["MNIST", "Number", "print", "332", ""],
        ["MNIST", "Number", "as released", "330", "800"],
        ["MNIST", "Number", "Published", "", "700"],
        ["SVHN", "Mean", "print", "0.849", "0.6588"],
    ]
    assert made.note == "SVHN: not run."
    made = printed([{**row, "printed": row["printed"][:1]} for row in rows[:2]], methods[:1],
                   columns=METHODS[:1])  # fmt: skip
    assert made.layout.columns == ["", "quantity", "print", "ours"] and made.layout.labels == 2
    assert made.layout.rows[1] == ["MNIST", "Number", "332", "330"]
    made = printed(rows, methods, by="reading", heads=["data"], names={"released": "as released"})
    long = ["MNIST; Mean", "SGD", "released", 0.974, 0.9728, 0.9677, 0.978]
    assert made.rows[0] == [*long, pytest.approx(0.9728 - 0.974), None] and len(made.rows) == 9
    assert made.rows[-1][3:] == [0.6588, None, None, None, None, "not run"]
    for row, message in (
        (rows[0], "both be column 'Agent 2'"),
        ({**rows[2], "missing": None}, "far"),
    ):
        with pytest.raises(ConcordError, match=message):
            printed([row], methods)


@pytest.mark.parametrize(
    ("row", "message"),
    [({"printed": ["1e", 2]}, "printed"), ({"printed": [1]}, "1 printed numbers for 2 columns")],
)
def test_rows_that_do_not_fit_are_told(row, message):
    options = {"columns": METHODS, "rows": [{"name": "a", "metric": "mean", **row}]}
    with pytest.raises(ConcordError, match=message):
        printed_values.reads(build(printed_values.Params, options, "x"))


def final(runs, **options):
    return final_values.tabulate(build(final_values.Params, options, "x"), runs)


@pytest.fixture
def ends() -> list[Measured]:
    def one(sampler, points, shift):
        metrics = {
            ("w2", 0): (0.1 + shift, 0.09 + shift, 0.11 + shift),
            ("w2", "average"): (0.2, 0.19, 0.21),
            ("w2_exact", 0): 0.1 + shift,
            ("w2_exact", "average"): 0.2,
            ("w2_floor", "network"): (0.05, 0.04, 0.06),
            ("lemma12.beta", "network"): 1.0,
            ("lemma12.beta.value", "network"): -0.2,
            ("lemma12.(4.9)", "network"): 0.0,
            ("lemma12.(4.9).value", "network"): 0.5,
            ("lemma12.(4.9).limit", "network"): 0.25,
        }
        return run(sampler, metrics, points=points)

    return [one("d_ula", "50", 0), one("admm", "50", 1), one("d_ula", "200", 2)]


def test_what_differs_names_rows_and_what_belongs_together_is_one_cell(ends):
    made = final(ends, metrics=["w2", "w2_exact", "w2_floor"], across=["sampler"],
                 names={"d_ula": "ours"})  # fmt: skip
    assert made.layout.columns == ["points", "agent", "ours", "ADMM"]
    assert made.layout.labels == 2
    cell = "0.100 [0.090, 0.110]; exact 0.10; floor 0.05"
    average = "0.200 [0.190, 0.210]; exact 0.20; floor 0.05"
    assert made.layout.rows == [
        ["50", "agent 1", cell, "1.100 [1.090, 1.110]; exact 1.1; floor 0.05"],
        ["50", "average", average, average],
        ["200", "agent 1", "2.100 [2.090, 2.110]; exact 2.1; floor 0.05", ""],
        ["200", "average", average, ""],
    ]
    assert len(made.rows) == 15  # the long form has every number
    assert made.columns[-4:] == ["metric", "value", "lo", "hi"]


def test_a_run_without_a_label_has_a_dash_or_the_name_that_a_study_gives_it(ends):
    del ends[2].run["labels"]["points"]
    for names, text in ((None, "\N{EN DASH}"), ({"points=None": "all points"}, "all points")):
        made = final(ends, metrics=["w2_exact"], agents=[0], across=["sampler"], names=names)
        assert [row[0] for row in made.layout.rows] == ["50", text]


def test_two_numbers_of_one_name_are_refused(ends):
    names = {"w2_exact": "distance", "w2_floor": "distance"}
    with pytest.raises(ConcordError, match=r"names: two numbers are called .*distance; name them"):
        final(ends[:1], metrics=["w2_exact", "w2_floor"], agents=[0, "network"], names=names)


def test_agents_may_be_columns_and_conditions_say_whether_they_are_met(ends):
    everything.kind("metrics", "theorems")  # a study's own: its labels and conditions
    made = final(ends[:1], metrics=["w2", "lemma12.*"], across=["metric", "agent"])
    heads = ["beta = 1 - gamma eta in [0, 1)", "(4.9), eta^2 at most"]
    agents = ["W2 [95 % interval], agent 1", "W2 [95 % interval], average"]
    assert made.layout.columns == [*agents, *heads]
    sides = ["-0.2, met", "0.5 against 0.25, not met"]
    assert made.layout.rows == [["0.100 [0.090, 0.110]", "0.200 [0.190, 0.210]", *sides]]


def test_exact_numbers_and_floors_have_columns_where_metrics_have(ends):
    made = final(ends[:1], metrics=["w2", "w2_exact", "w2_floor"], agents=[0, "network"])
    assert made.layout.rows == [["0.100 [0.090, 0.110]", "0.1", "0.050 [0.040, 0.060]"]]


def test_agents_may_be_a_range(ends):
    two = [run("d_ula", {("w2", 0): (0.1, 0.0, 0.2), ("w2", 1): 0.3, ("w2", "average"): 0.2,
                         ("w2_exact", 0): 0.5, ("w2_exact", 1): 0.5})]  # fmt: skip
    made = final(two, metrics=["w2", "w2_exact"], agent_ranges=True)
    assert made.layout.rows == [
        ["agents, least", "0.1", "0.5"],
        ["agents, largest", "0.3", "0.5"],
        ["average", "0.2", ""],
    ]
    assert len(made.rows) == 5  # the long form has every agent
    many = {(m, 0): 0.1 for m in "abcdef"} | {(f"{m}_floor", "network"): 0.1 for m in "fedcba"}
    made = final([run("d_ula", many)], metrics=["?", "*_floor"], agent_ranges=True)
    assert made.layout.columns[-6:] == [f"{m} floor" for m in "abcdef"]
    diverged = [run("d_ula", {("w2", 0): 0.1, ("w2", 1): float("nan")})]  # which is no range of one
    assert final(diverged, metrics=["w2"], agent_ranges=True).layout.rows == [
        ["agents, least", "\N{EN DASH}"],
        ["agents, largest", "\N{EN DASH}"],
    ]


def test_labels_that_an_experiment_does_not_sweep_over_are_filled_in():
    swept = run("d_ula", {("w2", 0): 0.1}, gradients="full", step_size="0.5")
    other = Measured({**swept.run, "experiment": "f", "labels": {}, "sampler": {"step_size": 0.1}},
                     swept.metrics)  # fmt: skip
    made = final([swept, other], metrics=["w2"], held={"f": {"gradients": "batches"}})
    assert made.columns[:5] == ["experiment", "sampler", "reading", "gradients", "step_size"]
    assert [row[3:5] for row in made.rows] == [["full", "0.5"], ["batches", "0.1"]]


def test_rows_that_readers_do_not_see_are_in_the_csv_file(ends):
    made = final(ends, metrics=["w2"], across=["agent"], shows={"points": "50"})
    assert [row[0] for row in made.layout.rows] == ["D-ULA", "ADMM"]
    assert made.layout.columns[:2] == ["sampler", "agent 1"]  # of what is shown, one has 50 points
    assert "The CSV file of this table has 1 more such rows." in made.markdown()
    assert len(made.rows) == 6
    cells = [[f"{n}", "0.5"] for n in range(50)]
    long = Table(["n", "x"], cells, Layout(["n", "x"], cells, 1))
    for text in (long.markdown(), long.latex("many")):
        assert "has 10 more such rows" in text and text.count("0.5") == 40
    assert len(long.csv().splitlines()) == 51


def test_numbers_at_the_heads_of_columns_say_what_they_count(ends):
    made = final(ends, metrics=["w2"], agents=[0], across=["points"])
    assert made.layout.columns == ["sampler", "50 points", "200 points"]


def test_iterations_of_the_network_keep_their_rows():
    table = pandas.DataFrame(
        [
            (k, a, m, 0.5 * k, None, None)
            for k in (1, 2)
            for a, m in (("0", "w2"), ("network", "n"))
        ],
        columns=["iteration", "agent", "metric", "value", "lo", "hi"],
    ).astype({"lo": float, "hi": float})
    one = Measured({"experiment": "e", "run": "r", "labels": {}}, table)
    made = final([one], metrics=["w2", "n"], iterations=[1, 2])
    assert made.layout.rows == [["1", "0.5", "0.5"], ["2", "1", "1"]]
    made = final([one], metrics=["w2"], iterations=[10])  # beyond the end, as at smoke scale
    assert made.layout.rows == [["1"]]


TABLE = Table(
    ["of", "value"],
    [],
    Layout(
        ["data", "of_1", "ours"],
        [["MNIST", "a", "0.5 / 0.4 [0.3, 0.5]"], ["MNIST", "b", "–"], ["SVHN", "b", "∞ < 10^3"]],
        2,
    ),
    "50 % & more",
)


def test_agents_that_nobody_measured_are_refused():
    options = {"metrics": ["w2"], "agents": [1]}
    with pytest.raises(ConcordError, match="the runs have agents 0"):
        final_values.tabulate(build(final_values.Params, options, "x"), [run("a", {("w2", 0): 1})])


def test_markdown_names_what_rows_share_once():
    assert TABLE.markdown().splitlines()[:5] == [
        "| data | of_1 | ours |",
        "| --- | --- | ---: |",
        r"| MNIST | a | 0.5 / 0.4 \[0.3, 0.5\] |",
        "|  | b | – |",
        r"| SVHN | b | ∞ \< $10^{3}$ |",
    ]


@pytest.mark.parametrize("text", ["a_b^c~{}\\", "<|>", '"', "$x$ # 1", "Gürbüz -- x"])
def test_latex_shows_what_is_typed(text):
    written = markup.latex(text)
    for mark in "_^~{}#$%&":
        for place, letter in enumerate(written):
            if letter == mark and mark in text and mark not in "{}^~":
                assert written[place - 1] == "\\"
    assert markup.latex("D-ULA -1.5 [-2, 3]") == "D-ULA $-$1.5 [$-$2, 3]"
    assert markup.latex("a--b") == "a-{}-b"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX is installed")
def test_latex_compiles(tmp_path):
    text = TABLE.latex('All of it: a_b^c~{}\\ <|> " $ # % & -- ü')
    document = r"\documentclass{article}\usepackage{booktabs,longtable}\begin{document}"
    (tmp_path / "t.tex").write_text(f"{document}\n{text}\n\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "t.pdf").stat().st_size > 1000


PRINTED = yaml.safe_load(Path(__file__).with_name("printed.yaml").read_text())


@pytest.mark.parametrize("table", PRINTED)
def test_printed_tables_are_the_papers(table):
    """Row by row and digit by digit, in the order of print."""
    key, name = table.split("/")
    paper = Study(CONFIG / "papers" / key, load_config(CONFIG / "config.yaml"))
    entry = paper.output("tables", name)
    params = build(printed_values.Params, entry.options, name)
    shown = []
    for row in params.rows:
        if row.printed is not None:
            numbers = [n if isinstance(n, str) else format(n, ".10g") for n in row.printed]
            shown.append(" ".join([*row.group, row.name, *numbers]))
    assert shown == PRINTED[table]


def test_no_digits_are_told_of_what_grew_without_end():
    lost = {("w2", 0): 3.6e56, ("w2", 1): 0.1, ("diverged_first", "network"): 44.0}
    made = final([run("d_ula", lost)], metrics=["w2"], across=["agent"])
    assert made.layout.rows == [["\N{EN DASH}", "0.1"]]
    assert [row[-3] for row in made.rows] == [3.6e56, 0.1]  # the long form has them
    assert "iteration 44" in made.note
