"""The map of stationary bias against equations by hand, and its page."""

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from page_blocks import ROOT, run_blocks


def data(points=30, dim=1):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((points, dim))
    return X, X @ np.arange(1.0, dim + 1) + rng.standard_normal(points)


@pytest.mark.parametrize("size", [None, 1, 7])
def test_central_sgld_has_the_bias_of_its_equation(size):
    """x' = x - eta (g + error) + sqrt(2 eta) w in one dimension: the variance solves a line."""
    (X, y), eta = data(), 0.01
    problem = concord.problems.linear_regression(X, y, agents=1, noise_sd=1.0)
    h, mean = (X**2).sum() + 1, (X[:, 0] * y).sum() / ((X**2).sum() + 1)
    # An error is n / b times a sum of b independent points, whose slopes are a x - c.
    a, c, n = X[:, 0] ** 2, X[:, 0] * y, len(y)
    factor = 0 if size is None else n**2 / size
    at_mean, by_width = (a * mean - c).var() * factor, a.var() * factor
    variance = (2 * eta + eta**2 * at_mean) / (1 - (1 - eta * h) ** 2 - eta**2 * by_width)
    expected = (variance - 1 / h) ** 2 / (2 / h**2 + 4 * mean**2 / h)
    w2 = abs(np.sqrt(variance * h) - 1)
    table = concord.bias_map(problem, "no_edges", [eta], [size], sampler="c_ula").table
    assert table["b2"][0] == pytest.approx(expected, rel=1e-8)
    assert table["w2"][0] == table["w2_average"][0] == pytest.approx(w2, rel=1e-8)
    assert table["covariance_error"][0] == pytest.approx(variance * h - 1, rel=1e-8)


def test_de_sgld_has_the_bias_of_a_long_law():
    X, y = data(40, 2)
    problem = concord.problems.linear_regression(X, y, agents=4, noise_sd=1.0)
    table = concord.bias_map(problem, ["ring", "path"], [0.004, 0.01], [None, 3]).table
    assert list(table["network"].unique()) == ["ring", "path"] and len(table) == 8
    for row in table.itertuples():
        given = {"step_size": row.step_size, "iterations": 2000, "record": {"at": [2000]}}
        law = concord.law(
            "de_sgld", problem, row.network, batch_size=row.batch_size or None, **given
        )
        b2 = concord.bias2(law, problem.posterior).value[-1]
        assert row.b2 == pytest.approx(b2[:-1].max().item(), rel=1e-6)
        assert row.b2_average == pytest.approx(b2[-1].item(), rel=1e-6)
        w2 = concord.w2(law, problem.posterior).value[-1] / np.sqrt(problem.posterior.cov.trace())
        assert row.w2 == pytest.approx(w2[:-1].max().item(), rel=1e-6)


def _check_names(problem):
    """Panels are named as the networks are, and say what is solid, dashed and the unit."""
    import networkx

    graph, other = networkx.cycle_graph(3), networkx.path_graph(3)
    graph.name = "three wards"
    found = concord.bias_map(problem, [graph, other, "ring"], [0.001, 0.01])
    picture = found.plot()
    titles = [axes.get_title(loc="left") for axes in picture.axes]
    assert titles == ["(a) three wards", "(b) your network 2", "(c) Ring"]
    assert "posterior widths" in picture.axes[0].get_ylabel()
    named = [text.get_text() for text in picture.legends[0].get_texts()]
    assert named == ["full gradients", "worst agent", "network average"]


def test_steps_without_a_stationary_law_are_infinite_and_others_are_refused():
    X, y = data()
    problem = concord.problems.linear_regression(X, y, agents=3, noise_sd=1.0)
    found = concord.bias_map(problem, {"a ring": "ring"}, [0.001, 10.0])
    assert np.isinf(found.table["b2"]).tolist() == [False, True]
    assert found.table["network"].tolist() == ["a ring"] * 2
    assert found.plot().axes[0].get_xscale() == "log"
    _check_names(problem)
    gaussian = concord.problems.gaussian(agents=3, dim=2)
    with pytest.raises(ConcordError, match="no covariance of mini-batches; use"):
        concord.bias_map(gaussian, "ring", [0.01], [5])
    with pytest.raises(ConcordError, match="batch_size: 99 is more points than any agent has"):
        concord.bias_map(problem, "ring", [0.01], [99])
    with pytest.raises(ConcordError, match="batch_size: 99 is more points than any agent has"):
        concord.recommend(problem, "ring", budget={"gradients": 9}, batch_size=99)
    with pytest.raises(ConcordError, match="give at least one of each"):
        concord.bias_map(gaussian, "ring", [])
    blind = concord.Problem(lambda x: x, agents=3, dim=1)
    with pytest.raises(ConcordError, match="is not quadratic"):
        concord.bias_map(blind, "ring", [0.01])


def test_the_page_is_right():
    printed = run_blocks("docs/bias.md")["table"].to_string().splitlines()
    shown = (ROOT / "docs/bias.md").read_text().splitlines()
    assert all(f"    {line}" in shown for line in printed)
