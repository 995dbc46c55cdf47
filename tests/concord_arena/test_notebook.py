"""Cells of a notebook, run one after the other: what each of them shows."""

import ast

import numpy as np
import pytest

import concord

pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

CELLS = {
    "problem": (
        """
import concord, networkx, numpy, pandas
rng = numpy.random.default_rng(0)
sites = {name: rng.standard_normal((30, 2)) for name in ("Oslo", "Bergen", "Narvik")}
X = {name: pandas.DataFrame(x, columns=["age", "height"]) for name, x in sites.items()}
problem = concord.problems.linear_regression(X, {name: x @ [1, -2] for name, x in sites.items()})
problem
""",
        "3 (Oslo, Bergen, Narvik)",
    ),
    "network": (
        """
network = concord.network(networkx.path_graph(["Narvik", "Oslo", "Bergen"]))
network
""",
        "<th>agents</th>",
    ),
    "graph": ("network.plot()", b"PNG"),
    "answer": (
        """
run = {"budget": {"gradients": 60}, "samplers": ["de_sgld", "extra_sgld"]}
answer = concord.recommend(problem, network, **run)
answer
""",
        "SGLD with step size",
    ),
    "curves": ("answer.plot()", b"PNG"),
    "trace": (
        """
trace = concord.sample(**answer.best, chains=20)
trace
""",
        "2 (age, height)",
    ),
    "densities": ('trace.plot(["age"], posterior=problem)', b"PNG"),
    "law": (
        """
law = concord.law("de_sgld", problem, network, step_size=0.002, iterations=60)
law
""",
        "exact",
    ),
    "means": ("law.plot(posterior=problem)", b"PNG"),
    "distances": ("concord.plot_w2([trace, law], problem)", b"PNG"),
    "table": ("concord.compare([trace, law], problem)", "law of de_sgld"),
    "one site": ('concord.w2(law, problem).value.sel(agent="Oslo", draw=60)', "Oslo"),
}


def show(source, names):
    """Run a cell as notebooks do, and return what it shows: a picture's bytes, or HTML."""
    *body, last = ast.parse(source).body
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    shown = getattr(value, "_repr_png_", None) or value._repr_html_
    return shown()


def test_each_cell_shows_a_picture_or_a_table():
    names = {}
    for name, (source, wanted) in CELLS.items():
        shown = show(source, names)
        assert type(shown) is type(wanted) and wanted in shown, name
    assert np.array_equal(names["trace"].agent, range(3))


def test_a_cell_with_a_mistake_shows_a_sentence():
    names, run = {}, "concord.sample('de_sgld', "
    show(CELLS["problem"][0], names)
    with pytest.raises(concord.ConcordError, match="give the same names in the same order"):
        show(f"{run}problem, networkx.path_graph('abc'), step_size=0.1, iterations=1)", names)
