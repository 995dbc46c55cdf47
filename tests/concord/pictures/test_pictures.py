"""Pictures of traces, laws and networks: what their lines show, and that notebooks show them."""

from dataclasses import replace

import numpy as np
import pytest

import concord
from concord.errors import ConcordError

pytest.importorskip("matplotlib")
import matplotlib

PROBLEM = concord.problems.quadratic(
    H=[[[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.5], [0.5, 1.0]], [[3.0, 0.0], [0.0, 1.0]]],
    b=[[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]],
)
OPTIONS = {"step_size": 0.05, "iterations": 60}


@pytest.fixture(scope="module")
def law():
    return concord.law("de_sgld", PROBLEM, "ring", **OPTIONS)


def few_chains(**options):
    return concord.sample("de_sgld", PROBLEM, "ring", **{"chains": 4, **OPTIONS, **options})


def lines(axes):
    """Return the y values of an axes' lines by their labels; those without are left out."""
    return {line.get_label(): line.get_ydata() for line in axes.lines}


def test_notebooks_show_a_picture_and_settings_stay(law):
    before = dict(matplotlib.rcParams)
    picture = law.plot(posterior=PROBLEM)
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_a_picture_is_saved_by_one_call(suffix, tmp_path):
    concord.network("ring", 5).plot().savefig(tmp_path / f"ring{suffix}")
    assert (tmp_path / f"ring{suffix}").stat().st_size > 1000


def test_a_law_shows_its_means_and_the_posterior(law):
    picture = law.plot([1], posterior=PROBLEM)
    (axes,) = picture.axes
    shown = lines(axes)
    for agent in range(3):
        np.testing.assert_array_equal(shown[f"agent {agent}"], law.mean[:, agent, 1])
    np.testing.assert_array_equal(shown["average"], law.average_mean[:, 1])
    assert shown["posterior"] == pytest.approx([PROBLEM.posterior.mean[1]] * 2)
    named = [text.get_text() for text in picture.legends[0].get_texts()]
    assert named[3:] == ["average", "posterior", "mean ± 2 sd of each"]
    assert axes.get_ylabel() == "mean of x[1]"
    order = {line.get_label(): line.get_zorder() for line in axes.lines}
    assert order["posterior"] > order["average"] > order["agent 0"]


def test_a_long_law_shows_its_start():
    """The axis is logarithmic, and limits hold the means from iteration 1 on."""
    law = concord.law("de_sgld", PROBLEM, "ring", step_size=0.01, iterations=1000)
    (axes,) = law.plot([0]).axes
    assert axes.get_xscale() == "log"
    assert axes.get_xlim() == (1, 1000)
    low, high = axes.get_ylim()
    assert low < law.mean[1:, :, 0].min() < law.mean[1:, :, 0].max() < high


def test_a_law_far_from_the_posterior_shows_both(law):
    """The limits hold all of the posterior's lines, or one of them would be taken for its mean."""
    far = concord.Gaussian([5.0, -3.0], np.diag([0.1, 4.0]))
    panels = law.plot(posterior=far).axes
    assert [axes.get_title(loc="left") for axes in panels] == ["(a) x[0]", "(b) x[1]"]
    for number, axes in enumerate(panels):
        sd = np.sqrt(far.cov[number, number])
        low, high = axes.get_ylim()
        assert low < min(far.mean[number] - 2 * sd, law.mean[-1, :, number].min())
        assert high > max(far.mean[number] + 2 * sd, law.mean[-1, :, number].max())


def test_a_trace_shows_one_chain_and_the_density_of_all():
    trace = few_chains(iterations=400)
    picture = trace.plot([0])
    density, path = picture.axes
    np.testing.assert_array_equal(path.lines[1].get_ydata(), trace["x"][0, :, 1, 0])
    late = trace["x"][:, trace.rows_after_warm_up(), 1, 0]
    heights, edges, _ = density.patches[1].get_data()
    assert heights @ np.diff(edges) == pytest.approx(1.0)
    assert (edges[0], edges[-1]) == (late.min(), late.max())


LOCAL = concord.problems.quadratic(
    [[[1.0, 1.0], [1.0, 2.0]]] * 4, [[0, 0], [1, 1], [2, 2], [9, 9]], local=[False, True]
)


def test_the_posterior_of_what_agents_hold_is_drawn_by_agent():
    trace = concord.sample("de_sgld", LOCAL, "ring", **OPTIONS)
    shared, _, own, _ = trace.plot(posterior=LOCAL).axes
    means, _ = LOCAL.posterior.moments()

    def drawn_means(axes, label):
        curves = [line.get_data() for line in axes.lines if line.get_label().startswith(label)]
        return [np.trapezoid(x * density, x) / np.trapezoid(density, x) for x, density in curves]

    assert drawn_means(shared, "posterior") == pytest.approx([means[-1, 0]])
    assert drawn_means(own, "posterior of") == pytest.approx(means[:4, 1])


def test_a_posterior_known_by_draws_is_drawn_by_these():
    draws = np.random.default_rng(1).standard_normal((500, 2)) ** 2
    density = few_chains().plot([1], posterior=draws).axes[0]
    heights, edges, _ = density.patches[-1].get_data()
    assert heights @ np.diff(edges**2) / 2 == pytest.approx(draws[:, 1].mean(), abs=0.1)
    assert density.patches[-1].get_label() == "posterior"


def test_a_start_far_away_leaves_the_panel_and_the_warm_up_is_marked():
    """A chain that starts a thousand away is shown as it is later."""
    trace = few_chains(iterations=1000, initial={"kind": "normal", "mean": 1000.0, "sd": 1.0})
    path = trace.plot([0]).axes[1]
    late = trace["x"][0, trace.rows_after_warm_up(), :, 0]
    low, high = path.get_ylim()
    assert low < late.min() < late.max() < high < 20
    (left_out,) = path.patches
    assert left_out.get_label() == "left out of densities"
    assert left_out.get_x() + left_out.get_width() == 100


def test_a_law_shows_the_posterior_of_what_agents_hold():
    law = concord.law("de_sgld", LOCAL, "ring", **OPTIONS)
    shared, own = law.plot(posterior=LOCAL).axes
    means, _ = LOCAL.posterior.moments()
    assert lines(shared)["posterior"][0] == pytest.approx(means[-1, 0])
    levels = [at.get_ydata()[0] for at in own.lines if at.get_label() == "posterior of that agent"]
    assert levels == pytest.approx(means[:4, 1])


def test_a_trace_tells_its_agents_apart_and_says_how_many_there_are():
    problem = concord.problems.quadratic([[[1.0]]] * 8, [[1.0]] * 8)
    picture = concord.sample("de_sgld", problem, "ring", **OPTIONS).plot()
    drawn = picture.axes[1].lines
    assert len(drawn) == 9
    assert len({line.get_color() for line in drawn}) == 6
    named = [text.get_text() for text in picture.legends[0].get_texts()]
    assert named[3:6] == ["agent 3", "the other 4 agents", "average"]


def test_a_trace_shows_the_first_chain_that_did_not_diverge():
    trace = few_chains()
    kind, _ = trace.variables["diverged_at"]
    lost = {"diverged_at": (kind, np.array([30, -1, 40, -1]))}
    density, path = replace(trace, variables={**trace.variables, **lost}).plot([0]).axes
    assert density.get_title(loc="left") == "(a) densities, x[0] (2 chains)"
    assert path.get_title(loc="left") == "(b) chain 1, x[0] (the first that did not diverge)"
    np.testing.assert_array_equal(path.lines[0].get_ydata(), trace["x"][1, :, 0, 0])


def test_distances_have_a_legend_and_a_short_run_a_remedy(law):
    picture = concord.plot_w2({"law": law, "run": few_chains(iterations=2000)}, PROBLEM)
    named = {text.get_text() for text in picture.legends[0].get_texts()}
    assert {"worst agent", "average of agents", "95 % intervals (paler below the floor)"} <= named
    count = concord.w2(few_chains(iterations=2000), PROBLEM, warm_up=1000).draws.min()
    assert f"floor: {float(count):,.0f} exact draws" in named
    (axes,) = picture.axes
    (widths,) = axes.child_axes
    picture.draw_without_rendering()
    width = np.sqrt(np.trace(PROBLEM.posterior.cov))
    assert widths.get_ylabel() == "in posterior widths"
    assert widths.get_ylim() == pytest.approx(np.array(axes.get_ylim()) / width)
    with pytest.raises(ConcordError, match="smaller warm_up"):
        concord.plot_w2(few_chains(iterations=20, chains=1), PROBLEM)


def test_a_picture_is_a_figure_of_its_own(law):
    calls = [law.plot, few_chains().plot, concord.network("ring", 3).plot]
    for call in (*calls, lambda **more: concord.plot_w2(law, PROBLEM, **more)):
        for key in ("ax", "figsize"):
            with pytest.raises(ConcordError, match=rf"'{key}' is no argument.*set_size_inches"):
                call(**{key: (5, 3)})


def test_distances_are_those_of_w2(law):
    exact = concord.w2(law, PROBLEM).value
    few, many = few_chains(iterations=2000), few_chains(chains=40)
    picture = concord.plot_w2({"law": law, "few": few, "many": many}, PROBLEM)
    shown = lines(picture.axes[0])
    worst = exact.isel(agent=slice(0, 3)).max("agent")
    np.testing.assert_array_equal(shown["law"], worst)
    pooled = concord.w2(few, PROBLEM, warm_up=1000).value[:3].max()
    np.testing.assert_array_equal(shown["few"], [pooled, pooled])
    each = concord.w2(many, PROBLEM)
    worst = each.value.isel(agent=slice(0, 3)).max("agent")
    assert shown["many"][-1] == pytest.approx(float(worst[-1]))
    named = [text.get_text() for text in picture.legends[0].get_texts()]
    assert "floor: 40 or " in named[-1]
    drawn = [shown[name] for name in ("law", "few", "many")]
    assert picture.axes[0].get_ylim()[0] > 1e-2 * min(map(np.min, drawn))  # 0 is not in sight


def test_results_without_names_are_called_by_their_samplers(law):
    trace = few_chains(chains=20)
    picture = concord.plot_w2([trace, trace, law], PROBLEM)
    assert {"de_sgld", "de_sgld (2)", "law of de_sgld"} <= set(lines(picture.axes[0]))
    assert "law of de_sgld" in lines(concord.plot_w2(law, PROBLEM).axes[0])
    assert concord.compare([trace, law], PROBLEM).index.tolist() == ["de_sgld", "law of de_sgld"]
    with pytest.raises(ConcordError, match="3 is no result; give a trace or a law"):
        concord.plot_w2([3], PROBLEM)


def test_a_network_shows_the_names_of_its_agents():
    import networkx

    graph = networkx.Graph([("Oslo", "Bergen"), ("Bergen", "Tromsø")])
    texts = [text.get_text() for text in concord.network(graph).plot().axes[0].texts]
    assert texts == ["Oslo", "Bergen", "Tromsø"]


@pytest.mark.parametrize(("names", "outside"), [(["Oslo", "Bergen"], True), (["A", "B"], False)])
def test_names_that_do_not_fit_a_node_are_beside_it(names, outside):
    import networkx

    axes = concord.network(networkx.Graph([names])).plot().axes[0]
    assert [hasattr(text, "xyann") for text in axes.texts] == [outside] * 2
    assert min(text.get_fontsize() for text in axes.texts) >= 6.5


def test_a_picture_says_what_diverged():
    wild = {"step_size": 5.0, "iterations": 300}
    with pytest.warns(concord.DivergenceWarning):
        trace = few_chains(**wild)
    with pytest.warns(concord.DivergenceWarning):
        law = concord.law("de_sgld", PROBLEM, "ring", **wild)
    for result in (trace, law):
        picture = result.plot()
        assert "diverge" in result.divergence()
        assert picture.get_suptitle() == result.divergence()
        assert picture._repr_png_()
    assert few_chains().plot().get_suptitle() == ""
    with pytest.raises(ConcordError, match=r"no distance to draw: \d of \d chains diverged"):
        concord.plot_w2(trace, PROBLEM)
    steady = concord.law("de_sgld", PROBLEM, "ring", step_size=0.01, iterations=60)
    both = concord.plot_w2([trace, steady], PROBLEM)
    assert both.get_suptitle() == trace.divergence() and both._repr_png_()


@pytest.mark.parametrize("agents", [20, 30])
def test_no_edge_runs_through_an_agent_of_a_larger_network(agents):
    """An edge keeps off the circle of every agent that is not at its ends."""
    import networkx

    graph = networkx.erdos_renyi_graph(agents, 4 / agents, seed=3)
    graph = graph.subgraph(max(networkx.connected_components(graph), key=len))
    axes = concord.network(graph).plot().axes[0]
    axes.figure.draw_without_rendering()
    lines, circles = axes.collections
    at, points = np.asarray(circles.get_offsets()), axes.bbox.width / (2 * axes.get_xlim()[1])
    radius = np.sqrt(circles.get_sizes()[0]) / 2 * axes.figure.dpi / 72 / points
    for start, end in lines.get_segments():
        part = ((at - start) @ (end - start) / ((end - start) @ (end - start))).clip(0, 1)
        away = np.linalg.norm(start + part[:, None] * (end - start) - at, axis=1)
        assert (np.sort(away)[2:] > radius).all()


def test_a_network_says_what_is_lost_and_who_sleeps():
    loss = {"kind": "bernoulli", "rate": 0.1, "direction": "link"}
    picture = concord.network("ring", 5, loss=loss, awake=0.7).plot()
    assert [text.get_text() for text in picture.legends[0].get_texts()] == [
        "each message lost with probability 0.1",
        "each agent asleep with probability 0.3",
    ]
    lossy, sound = picture.axes[0], concord.network("ring", 5).plot()
    assert lossy.collections[0].get_linestyle() != sound.axes[0].collections[0].get_linestyle()
    assert not sound.legends


def test_a_ring_of_three_is_in_the_middle():
    agents = concord.network("ring", 3).plot().axes[0].collections[-1].get_offsets()
    agents = np.asarray(agents)
    assert agents.max(axis=0) == pytest.approx(-agents.min(axis=0), abs=1e-9)


def test_names_are_where_no_edge_is():
    """In a star they point away from the middle."""
    import networkx

    graph = networkx.relabel_nodes(networkx.star_graph(8), lambda node: f"site {node}")
    axes = concord.network(graph).plot().axes[0]
    middle, *leaves = axes.texts
    for name in leaves:
        away = np.array(name.xy) - middle.xy
        assert np.dot(away / np.linalg.norm(away), name.xyann) == pytest.approx(8.0)
