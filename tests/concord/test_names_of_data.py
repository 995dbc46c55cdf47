"""Sites, columns and nodes of a caller's data are the names in all results."""

import networkx as nx
import numpy as np
import pandas
import pytest

import concord
from concord.errors import ConcordError

SITES = {"Oslo": 30, "Bergen": 20, "Narvik": 40}
RUN = {"step_size": 0.002, "iterations": 60, "chains": 20}


def rows_of_sites():
    rng = np.random.default_rng(0)
    X = {site: rng.standard_normal((rows, 2)) for site, rows in SITES.items()}
    return X, {site: x @ [1, -2] + rng.standard_normal(len(x)) for site, x in X.items()}


def named(kind="linear_regression"):
    X, y = rows_of_sites()
    if kind == "logistic_regression":
        y = {site: aims > 0 for site, aims in y.items()}
    tables = {site: pandas.DataFrame(x, columns=["age", "height"]) for site, x in X.items()}
    return getattr(concord.problems, kind)(tables, dict(reversed(y.items())))


def numbered():
    X, y = rows_of_sites()
    return concord.problems.linear_regression([*X.values()], [*y.values()])


PATH = nx.Graph([("Narvik", "Oslo"), ("Bergen", "Oslo")])
NUMBERS = nx.Graph([(2, 0), (1, 0)])


@pytest.fixture(scope="module")
def trace():
    return concord.sample("de_sgld", named(), PATH, **RUN)


@pytest.fixture(scope="module")
def law():
    return concord.law("de_sgld", named(), PATH, step_size=0.002, iterations=60)


def test_names_change_no_number(trace, law):
    unnamed = concord.sample("de_sgld", numbered(), NUMBERS, **RUN)
    np.testing.assert_array_equal(trace["x"], unnamed["x"])
    exact = concord.law("de_sgld", numbered(), NUMBERS, step_size=0.002, iterations=60)
    np.testing.assert_array_equal(law.cov, exact.cov)
    assert concord.w2(unnamed, numbered()).agent.values.tolist() == [0, 1, 2, "average"]
    assert "dim" not in unnamed.to_xarray().coords


def test_weights_of_a_table_stay_with_their_sites():
    names = ["Narvik", "Oslo", "Bergen"]
    weights = np.array([[0.7, 0.3, 0.0], [0.3, 0.2, 0.5], [0.0, 0.5, 0.5]])
    table = pandas.DataFrame(weights, names, names)
    run = {"sampler": "de_sgld", "step_size": 0.002, "iterations": 60}
    order = [1, 2, 0]
    mine = concord.law(problem=named(), network=table, **run)
    other = concord.law(problem=numbered(), network=weights[np.ix_(order, order)], **run)
    np.testing.assert_array_equal(mine.cov, other.cov)


def test_results_are_selected_by_name(trace, law):
    x = trace.to_xarray().x.sel(agent="Bergen", dim="height")
    np.testing.assert_array_equal(x, trace["x"][:, :, 1, 1])
    assert trace.to_arviz().posterior.x.sel(agent="Narvik", dim="age").shape == (20, 55)
    for distance in (concord.w2, concord.bias2):
        for result in (trace, law):
            assert distance(result, named()).agent.values.tolist() == [*SITES, "average"]
    few = concord.sample("de_sgld", named(), PATH, record={"agents": [2, 0]}, **RUN)
    assert few.to_xarray().agent.values.tolist() == ["Narvik", "Oslo"]


@pytest.mark.parametrize("local", [None, [False, True]])
def test_a_network_alone_names_the_agents(local):
    H, b = [np.eye(2)] * 3, [[0, 0], [1, 1], [2, 2]]
    problem = concord.problems.quadratic(H, b, local=local)
    trace = concord.sample("de_sgld", problem, PATH, **RUN)
    assert concord.w2(trace, problem).agent.values.tolist() == [*PATH.nodes, "average"]


def test_scores_of_predictions_have_names():
    problem = concord.Problem(
        lambda x: x,
        agents=3,
        dim=2,
        predict=lambda x, X: np.full((*x.shape[:2], len(X), 2), 0.5),
    )
    trace = concord.sample("de_sgld", problem, PATH, **RUN)
    scores = concord.predictive(trace, problem, test=(np.zeros((4, 2)), [0, 1, 0, 1]))
    assert scores.agent.values.tolist() == [*PATH.nodes, "mean", "average"]


def test_summaries_say_names(trace, law):
    for shown in (named("logistic_regression"), trace, law):
        assert "agents: 3 (Oslo, Bergen, Narvik); dim: 2 (age, height)" in repr(shown)
        assert "<td>2 (age, height)</td>" in shown._repr_html_()
    assert "agents: 3 (Narvik, Oslo, Bergen)" in repr(concord.network(PATH))
    many = concord.network(nx.path_graph("abcdefg"))
    assert "7 (a, b, c, d, e, ...)" in repr(many)


def test_files_keep_names(trace, tmp_path):
    pytest.importorskip("h5netcdf")
    trace.save(tmp_path / "trace.nc")
    again = concord.load(tmp_path / "trace.nc")
    assert repr(again) == repr(trace)
    assert again.to_xarray().equals(trace.to_xarray())


def test_pictures_show_names(trace, law):
    pytest.importorskip("matplotlib")
    for result, axis, label in ((trace, "xlabel", "height"), (law, "ylabel", "mean of height")):
        picture = result.plot(["height"])
        assert picture.axes[0].properties()[axis] == label
        legend = [text.get_text() for text in picture.legends[0].get_texts()]
        assert legend[:4] == [*SITES, "average"]
        with pytest.raises(ConcordError, match="no coordinate 'heigt'; did you mean 'height'"):
            result.plot(["heigt"])


def test_messages_say_names(trace):
    pytest.importorskip("arviz_stats")
    with pytest.raises(ConcordError, match="the draws of Oslo after iteration 57 are worth"):
        concord.w2(trace, named(), warm_up=57)


X, y = rows_of_sites()
TURNED = {site: pandas.DataFrame(x, columns=["age", "height"]) for site, x in X.items()}
TURNED["Narvik"] = TURNED["Narvik"][["height", "age"]]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((X, {"Oslo": y["Oslo"]}), "mappings with the same sites as keys"),
        ((X, [*y.values()]), "mappings with the same sites as keys"),
        ((X, y, 3), "with the same sites as keys, and no agents"),
        ((TURNED, y), r"X\['Narvik'\] has the columns \['height', 'age'\]"),
        (({**X, "Oslo": X["Oslo"][:3]}, y), r"X\['Oslo'\] of shape \(3, 2\) and y\['Oslo'\]"),
    ],
)
def test_sites_that_do_not_agree_are_refused(arrays, message):
    with pytest.raises(ConcordError, match=message):
        concord.problems.linear_regression(*arrays)


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (nx.path_graph(["Oslo", "Rome", "Narwik"]), "'Rome' is no site of the data; choose one of"),
        (
            concord.network(PATH, byzantine={"kind": "sign", "agents": [0]}),
            "give its nodes in the order of the sites, Oslo, Bergen, Narvik",
        ),
    ],
)
def test_a_network_of_other_sites_is_refused(network, said):
    """Nor is one put in order whose conditions name agents by number."""
    with pytest.raises(ConcordError, match=said):
        concord.sample("de_sgld", named(), network, **RUN)


def test_a_column_says_the_sites_of_rows():
    X, y = rows_of_sites()
    labels = np.repeat([*SITES], [*SITES.values()])
    order = np.random.default_rng(3).permutation(len(labels))
    order = np.concatenate([[0, 30, 50], order[~np.isin(order, [0, 30, 50])]])
    table = pandas.DataFrame(np.concatenate([*X.values()]), columns=["age", "height"])
    table = table.assign(y=np.concatenate([*y.values()]), site=labels).iloc[order]
    for sites in (table.site, table.site.tolist(), table.site.astype("category")):
        problem = concord.problems.linear_regression(
            table[["age", "height"]], table.y, agents=sites
        )
        assert repr(problem) == repr(named())
        np.testing.assert_allclose(problem.gram, named().gram)
        np.testing.assert_allclose(problem.shift, named().shift)
    numbers = np.unique(table.site, return_inverse=True)[1]
    problem = concord.problems.linear_regression(table[["age", "height"]], table.y, agents=numbers)
    assert problem.agent_names is None
    np.testing.assert_allclose(problem.gram, named().gram[[1, 2, 0]])
    kind = concord.problems.tied_mixture
    assert kind(table.y, agents=table.site).agent_names == (*SITES,)
    with pytest.raises(ConcordError, match=r"^agents: row 1 has no site; drop it"):
        kind([1, 2], agents=["Oslo", None])


def test_a_law_has_names(law):
    moments = law.to_xarray().sel(draw=60, agent="Bergen")
    assert moments["mean"].sel(dim="height") == law.mean[60, 1, 1]
    assert moments["cov"].sel(dim="age", dim_other="height") == law.cov[60, 1, 0, 1]
    assert moments.average_cov.sel(dim="age", dim_other="age") == law.average_cov[60, 0, 0]


def test_a_problem_of_a_gradient_has_names():
    problem = concord.Problem(lambda x: x, agents=[*SITES], dim=["age", "height"], local=["age"])
    assert problem.local.tolist() == [True, False]
    trace = concord.sample("de_sgld", problem, PATH, **RUN)
    assert trace.to_xarray().x.sel(agent="Narvik", dim="age").shape == (20, 61)
    answer = concord.recommend(
        named(), PATH, budget={"gradients": 20}, samplers=["de_sgld"], initial={"kind": "normal"}
    )
    draws = answer.read(concord.sample(**answer.best, chains=2))
    assert draws.sel(agent="Bergen", dim="age").shape == (2, 21)
