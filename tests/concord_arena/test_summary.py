"""What `print` and notebooks show: a summary, whatever the size of the arrays."""

import pickle

import networkx as nx
import numpy as np
import pytest

import concord
from concord.laws.reference_laws import Draws
from concord.summary import Summarized


def shown() -> list[Summarized]:
    X = np.random.default_rng(1).standard_normal((200, 2))
    problem = concord.problems.linear_regression(X, X @ [1, -2], agents=8)
    arguments = {"step_size": 0.002, "iterations": 300}
    network = concord.network("ring", 400, awake=0.5)
    trace = concord.sample("de_sgld", problem, "ring", chains=20, **arguments)
    law = concord.law("de_sgld", problem, "ring", **arguments)
    own = concord.Problem(lambda x: x, agents=4, dim=2)
    logistic = concord.problems.logistic_regression(X, X[:, 0] > 0, agents=4)
    references = [logistic.reference, concord.problems.funnel(4).reference, Draws(X)]
    return [problem, network, trace, law, own, problem.posterior, *references]


def test_what_is_printed_fits_a_few_lines():
    for thing in shown():
        assert isinstance(thing, Summarized)
        assert 20 < len(repr(thing)) < 250 and "\n" not in repr(thing), type(thing)
        html = thing._repr_html_()
        assert html.startswith("<table>") and html.count("<tr>") == html.count("</tr>") >= 2
    problem, network, trace, *_ = map(repr, shown())
    assert problem == "<LinearRegression agents: 8; dim: 2; points: 200; posterior: Gaussian>"
    assert "edges: 400" in network and "awake: 0.5" in network
    assert "chains: 20" in trace and "diverged: 0 chains" in trace


def test_an_answer_shows_its_sentence():
    problem = concord.problems.gaussian(4)
    answers = [
        concord.recommend(
            problem, "ring", budget={"gradients": amount}, samplers=["de_sgld"], seed=seed
        )
        for amount, seed in ((200, 1), (np.int64(200), np.int64(1)), (np.float32(200), 1))
    ]
    assert len({str(answer) for answer in answers}) == 1
    assert len(repr(answers[0])) < 500 and str(answers[0]) in repr(answers[0])
    assert answers[0]._repr_html_().startswith("<table>")


def test_a_graph_of_ones_own_is_shown_by_its_size():
    problem = concord.problems.gaussian(4)
    own = concord.network(nx.wheel_graph(4), 4)
    steps = {"step_size": 0.01, "iterations": 3}
    assert "network: 4 agents, 6 edges;" in repr(concord.sample("de_sgld", problem, own, **steps))
    assert "network: ring of 4;" in repr(concord.sample("de_sgld", problem, "ring", **steps))


def test_a_comparison_shows_what_decides_and_has_all_else():
    problem = concord.problems.gaussian(4)
    steps = {"iterations": 400, "chains": 100}
    results = {
        "coarse": concord.sample("de_sgld", problem, "ring", step_size=0.2, **steps),
        "fine": concord.sample("de_sgld", problem, "ring", step_size=0.05, **steps),
        "law": concord.law("de_sgld", problem, "ring", step_size=0.05, iterations=400),
    }
    table = concord.compare(results, problem)
    shown = repr(table).splitlines()
    assert shown[0].split() == ["w2", "interval", "gradients", "unicasts", "verdict"]
    ends = {line.split()[0]: line.split("  ")[-1].strip() for line in shown[2:5]}
    assert ends == {"coarse": "farther", "fine": "tied with the nearest", "law": "nearest"}
    assert "w2_average_lo" in shown[-1] and len(table.columns) == 19
    assert "tied with the nearest" in table._repr_html_() and repr(
        pickle.loads(pickle.dumps(table))
    ) == repr(table)
    assert repr(concord.compare(results)).split()[0] == "iterations"
    with pytest.warns(concord.DivergenceWarning):
        diverged = concord.sample("de_sgld", problem, "ring", step_size=50, **steps)
    with pytest.warns(concord.DivergenceWarning):
        shown = repr(concord.compare([diverged], problem)).splitlines()
    assert shown[2].split()[-1] == "diverged"


def test_reasons_of_checks_are_shown_whole():
    class Own(concord.Sampler):
        """Draws that are no steps."""

        def step(self, state, k, problem, network, rng):
            return state._replace(x=np.random.default_rng().normal(size=state.x.shape))

    found = concord.test(Own)
    for shown in (found, found[found.ended == "failed"]):
        text = repr(shown)
        assert all(" ".join(why.split()) in " ".join(text.split()) for why in shown.why)
        assert max(map(len, text.splitlines())) <= 96
    assert found.why.iloc[-3] in found._repr_html_()
    assert repr(found[["check"]]).split()[0] == "check"


def test_html_is_escaped():
    class Named(Summarized):
        def summary(self):
            return {"name": "<script>", "left out": None}

    assert "&lt;script&gt;" in Named()._repr_html_() and "left out" not in repr(Named())


def test_numbers_of_numpy_are_numbers():
    number = np.int64(4)
    problem = concord.Problem(lambda x: x, agents=np.array(4), dim=np.uint8(2))
    arguments = {"iterations": number, "chains": number, "record": {"every": number}}
    trace = concord.sample("de_sgld", problem, "ring", step_size=np.float64(0.1), **arguments)
    arguments = {"iterations": 4, "chains": 4, "record": {"every": 4}}
    again = concord.sample("de_sgld", problem, "ring", step_size=0.1, **arguments)
    assert trace["x"].tobytes() == again["x"].tobytes()
    assert trace.attributes == again.attributes
    trace.to_arviz(np.int64(0))


def test_other_numbers_of_numpy_are_refused_as_pythons():
    with pytest.raises(concord.ConcordError, match=r"agents: 1\.5 does not fit; give integer"):
        concord.Problem(lambda x: x, agents=np.float64(1.5), dim=2)
    problem = concord.Problem(lambda x: x, agents=2, dim=2)
    with pytest.raises(concord.ConcordError, match="chains: 0 does not fit; give integer >= 1"):
        concord.sample("de_sgld", problem, "ring", iterations=1, chains=np.int64(0), step_size=0.1)
