"""Curves of a metric, layer by layer."""

import numpy as np
import pandas
import pytest
from matplotlib.figure import Figure

import made_up_runs
from concord.errors import ConcordError
from concord.options import build
from concord_studies.figures import curves, style
from concord_studies.results import Measured, series
from made_up_runs import run, w2

TOPOLOGIES = ["complete", "ring", "no_edges"]
AGENTS = [0, 1, "average"]


def draw(runs: list[Measured], **options: object) -> Figure:
    options = {"metric": "w2", **options}
    return curves.draw(build(curves.Params, options, "x.yaml: figures.f"), runs)


def shown(axes) -> dict:
    """Lines that are not exact curves, floors or crosses, by label."""
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.fixture
def by_topology() -> list[Measured]:
    return [w2(run(topology=t), AGENTS, seed=i) for i, t in enumerate(TOPOLOGIES)]


def test_a_panel_per_topology_shows_the_table(by_topology):
    figure = draw(by_topology, columns="topology", agents=AGENTS)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["(a) Complete", "(b) Ring", "(c) No edges"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["$W_2$ to the posterior", "", ""]
    assert {axes.get_xlabel() for axes in figure.axes} == {"iteration $k$"}
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    for axes, measured in zip(figure.axes, by_topology, strict=True):
        assert list(shown(axes)) == ["agent 1", "agent 2", "average"]
        for agent, line in zip(AGENTS, shown(axes).values(), strict=True):
            table = series(measured, "w2", agent)
            np.testing.assert_array_equal(line.get_xdata(), table.iteration)
            exact = series(measured, "w2_exact", agent)  # the law is the line, its estimate beneath
            np.testing.assert_array_equal(line.get_ydata(), exact.value)
            (below,) = [b for b in axes.lines if b.get_label() == f"_estimate {line.get_label()}"]
            np.testing.assert_array_equal(below.get_ydata(), table.value)
            assert below.get_zorder() < line.get_zorder()
            assert below.get_linewidth() < line.get_linewidth()
            assert below.get_color() == style.lighten(line.get_color())
    assert legend(figure) == [
        "agent 1",
        "agent 2",
        "average",
        "estimate, 95 % interval",
        "exact law (with a pale estimate)",
        "floor of 1000 exact draws",
    ]


def test_on_a_log_axis_intervals_are_bars_and_one_that_reaches_zero_an_arrow():
    measured = w2(run(topology="ring"), [0], exact=False, floor=False)
    table = measured.metrics
    table.loc[(table["metric"] == "w2") & (table["iteration"] > 100), "lo"] = 0.0
    (axes,) = draw([measured], agents=[0], y={"scale": "log"}).axes
    (bars,) = axes.collections
    ends = np.array(bars.get_segments())  # (bars, end, xy)
    marked = shown(axes)["agent 1"]
    np.testing.assert_array_equal(
        ends[:, 0, 0], marked.get_xdata()[:: len(marked.get_xdata()) // 8]
    )
    w = series(measured, "w2", 0)
    at = ends[:, 0, 0].astype(int)
    np.testing.assert_allclose(ends[:, 1, 1], w.hi[at])
    reached = at > 100
    np.testing.assert_allclose(ends[~reached, 0, 1], w.lo[at][~reached])
    (arrows,) = [line for line in axes.lines if line.get_label() == "_to_zero"]
    np.testing.assert_array_equal(arrows.get_xdata(), at[reached])
    assert (ends[reached, 0, 1] > 0).all() and (ends[reached, 0, 1] < w.value[at][reached]).all()


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_no_interval_is_drawn_where_it_reaches_from_zero_to_infinity(scale):
    measured = w2(run(topology="ring"), [0], exact=False, floor=False)
    table = measured.metrics
    heavy = (table["metric"] == "w2") & (table["iteration"] > 75)
    limits = draw([measured], agents=[0], y={"scale": scale}).axes[0].get_ylim()
    table.loc[heavy, ["lo", "hi"]] = 0.0, np.inf
    (axes,) = draw([measured], agents=[0], y={"scale": scale}).axes
    np.testing.assert_allclose(axes.get_ylim(), limits)
    (ends,) = axes.collections
    points = np.concatenate([path.vertices for path in ends.get_paths()])
    points = points[np.isfinite(points).all(axis=1)]
    assert 60 <= points[:, 0].max() <= 75 and points[:, 1].max() < limits[1]


def test_muted_lines_share_one_gray_entry():
    runs = [w2(run(start=q), [0], seed=q) for q in range(4)]
    figure = draw(
        runs, lines="start", agents=[0], layers=[{"gray": {"$q$ = 1 to 3": ["1", "2", "3"]}}]
    )
    (axes,) = figure.axes
    colors = [line.get_color() for line in axes.lines if line.get_label()[0] != "_"]
    assert len(colors) == 4 and len(set(colors)) == 2
    assert legend(figure)[:2] == ["start = 0", "$q$ = 1 to 3"]


def test_a_panel_may_show_the_end_over_a_number():
    """A run that diverged has no point; a note on top names it."""
    runs = [
        w2(run(penalty=p, reading=r), [0], end=0.01 * p, diverged_at=37 if p == 20 else None)
        for r in ("published", "released")
        for p in (10, 1, 5, 20)
    ]
    panels = [
        {"select": {"reading": "published"}, "lines": "penalty"},
        {"title": "End", "x": {"over": "penalty"}, "lines": "reading"},
    ]
    figure = draw(runs, agents=[0], y={"scale": "log", "share": "all"}, panels=panels)
    lines = shown(figure.axes[1])
    assert list(lines) == ["equations", "released code"]
    assert list(lines["released code"].get_xdata()) == [1, 5, 10, 20]
    ends = [series(runs[i], "w2_exact", 0).value[-1] for i in (5, 6, 4)]
    np.testing.assert_array_equal(lines["released code"].get_ydata(), [*ends, np.nan])
    assert figure.axes[1].get_xscale() == "log"
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["(a)", "(b) End"]
    assert {*lines} < {*legend(figure)}
    figure = draw(runs, agents=[0], x={"over": "penalty"}, lines="reading", y={"scale": "log"})
    assert "penalty 20, released (1000 of 1000 chains" in figure.get_suptitle()


@pytest.mark.parametrize(
    ("metric", "layer", "levels", "entry"),
    [
        ("w2_floor", "floor", [0.026, 0.05], "floor of 1000 exact draws"),  # 5 % apart are one
        ("w2_point", "point", [0.026, 0.0262, 0.05], "a point at the posterior's mean"),
        ("other", {"floor": "other"}, [0.026], "floor of exact draws"),  # the first run's
    ],
)
def test_floors_and_points_are_level_lines(metric, layer, levels, entry):
    runs = [w2(run(sampler=s), [0]) for s in ("d_ula", "de_sgld", "admm")]
    for measured, value in zip(runs, (0.026, 0.0262, 0.05), strict=True):
        rows = measured.metrics["metric"] == "w2_floor"
        measured.metrics.loc[rows, ["metric", "value"]] = metric, value
    figure = draw(runs, lines="sampler", agents=[0], layers=[layer])
    shown = [line for line in figure.axes[0].lines if line.get_label() in ("_floor", "_point")]
    assert [line.get_ydata()[0] for line in shown] == levels
    assert entry in legend(figure)
    figure = draw(runs, lines="sampler", agents=[0], layers=[layer], y={"limits": [0.1, 1e3]})
    assert len(figure.axes[0].texts) == 0 and entry not in legend(figure)  # a linear axis
    log = {"scale": "log", "limits": [0.1, 1e3]}
    figure = draw(runs, lines="sampler", agents=[0], layers=[layer], y=log)
    apart = [v for v in levels if v != 0.0262]  # of one posterior
    name = "point" if layer == "point" else "floor"
    values = ", ".join(f"{value:#.2g}" for value in apart)
    assert f"{name}, off the axis: {values}" in legend(figure)
    assert len(figure.axes[0].texts) == 0  # the ends of the lines are off it, too


def test_levels_off_the_axes_have_the_letters_of_their_panels():
    runs = [w2(run(topology=t), [0]) for t in TOPOLOGIES]
    for measured, value in zip(runs, (0.026, 0.0262, 0.05), strict=True):
        measured.metrics.loc[measured.metrics["metric"] == "w2_floor", "value"] = value
    log = {"scale": "log", "limits": [0.1, 1e3]}
    figure = draw(runs, columns="topology", agents=[0], layers=["floor"], y=log)
    assert legend(figure) == ["floor, off the axis: 0.026 (a, b), 0.050 (c)"]


def test_a_log_axis_has_the_values_at_the_ends_of_its_lines():
    runs = [w2(run(sampler=s), [0]) for s in ("d_ula", "de_sgld")]
    log = {"scale": "log"}
    (axes,) = draw(runs, lines="sampler", agents=[0], layers=[], y=log).axes
    end = shown(axes)["D-ULA, agent 1"].get_ydata()[-1]
    assert [text.get_text() for text in axes.texts] == [f"{end:#.2g}"]  # of both, in gray
    assert axes.texts[0].get_color() == style.NOTE
    (axes,) = draw(runs, lines="sampler", agents=[0], layers=[]).axes
    assert len(axes.texts) == 0  # a linear axis
    (axes,) = draw(runs, lines="sampler", agents=[0], layers=[], y=log, legend="ends").axes
    names = ("D-ULA", "DE-SGLD")
    assert [text.get_text() for text in axes.texts] == [f"{n}, {end:#.2g}" for n in names]


def grid_runs() -> list[Measured]:
    return [
        w2(run(agents=n, topology=t, sampler=s), [0, "average"], iterations=20)
        for n in (5, 20, 100)
        for t in TOPOLOGIES
        for s in ("de_sgld", "d_ula")
        if (n, t) != (100, "complete")
    ]


def test_grid_of_rows_and_columns():
    figure = draw(
        grid_runs(),
        rows="agents",
        columns="topology",
        lines="sampler",
        agents=[0, "average"],
        names={"de_sgld": "D-SGLD"},
    )
    assert len(figure.axes) == 9
    assert [axes.get_visible() for axes in figure.axes] == [True] * 6 + [False, True, True]
    assert figure.axes[4].get_title(loc="left") == "(e) Ring, $N$ = 20"
    lines = shown(figure.axes[0])
    assert list(lines) == ["D-SGLD, agent 1", "D-SGLD, average", "D-ULA, agent 1", "D-ULA, average"]
    agent, average, other, _ = lines.values()
    assert agent.get_color() == average.get_color() != other.get_color()
    assert agent.get_linestyle() == "-"
    assert average.get_linestyle() == "--"
    assert legend(figure)[:4] == ["D-SGLD", "D-ULA", "agent 1", "average"]
    # Below the panel that has no runs stands nothing: the one above carries the label.
    assert [bool(axes.get_xlabel()) for axes in figure.axes[3:6]] == [True, False, False]
    assert figure.axes[7].get_ylabel()


def test_one_value_has_one_color_in_all_panels():
    runs = [
        w2(run(topology=t, sampler=s), [0])
        for t, samplers in (("ring", ["new_one", "d_ula"]), ("complete", ["newer", "new_one"]))
        for s in samplers
    ]
    ring, complete = draw(runs, columns="topology", lines="sampler", agents=[0]).axes
    color = shown(ring)["NEW-ONE, agent 1"].get_color()
    assert shown(complete)["NEW-ONE, agent 1"].get_color() == color
    assert shown(complete)["NEWER, agent 1"].get_color() != color


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_diverged_run_stops_at_a_cross(scale):
    runs = [
        w2(run(topology="ring", sampler="de_sgld"), [0]),
        w2(run(topology="ring", sampler="d_ula"), [0], diverged_at=37, fraction=0.25),
    ]
    figure = draw(runs, lines="sampler", agents=[0], y={"scale": scale})
    (axes,) = figure.axes
    assert shown(axes)["D-ULA, agent 1"].get_xdata()[-1] == 36
    (cross,) = [line for line in axes.lines if line.get_label().startswith("_diverged")]
    assert cross.get_marker() == "x"
    assert list(cross.get_xdata()) == [37]
    # It grew to a million: the cross stays in the panel, and the other curve is not pressed flat.
    place = cross.get_transform().transform((37, cross.get_ydata()[0]))
    assert axes.bbox.contains(*place)
    assert axes.get_ylim()[1] < 100
    assert [text.get_text() for text in axes.texts if "diverged" in text.get_text()] == [
        "D-ULA: 25 % of the\nchains diverged,\nthe first at $k$ = 37"
    ]
    assert "diverged: beyond $10^{8}$" in legend(figure)
    # A curve that ends early does not shorten the axis.
    assert axes.get_xlim()[1] > 150


def sending(measured: Measured, each: float, price: str = "unicast_bytes") -> Measured:
    """The run, whose network pays so much per iteration, bytes or else."""
    k = np.arange(151)
    sent = pandas.DataFrame({"iteration": k, "agent": "network", "value": each * k})
    sent["metric"] = price
    return Measured(measured.run, pandas.concat([measured.metrics, sent]))


@pytest.mark.parametrize("xscale", ["linear", "log"])
def test_x_may_count_what_is_sent(xscale):
    """All of it moves: curve, band, exact curve and cross."""
    cheap = sending(w2(run(sampler="d_ula"), [0]), 100)
    dear = sending(w2(run(sampler="de_sgld"), [0], diverged_at=100), 400)
    options = {"lines": "sampler", "agents": [0], "x": {"counts": "unicast_bytes", "scale": xscale}}
    figure = draw([cheap, dear], **options)
    (axes,) = figure.axes
    lines = {line.get_label().removesuffix(", agent 1"): line for line in axes.lines}
    free = xscale == "linear"
    np.testing.assert_array_equal(lines["D-ULA"].get_xdata(), 100 * np.arange(not free, 151))
    beneath = lines["_estimate D-ULA"]
    np.testing.assert_array_equal(beneath.get_xdata(), 100 * np.arange(not free, 151))
    assert lines["_diverged DE-SGLD"].get_xdata()[0] == 40_000
    assert axes.get_xlim()[1] > 60_000 and axes.get_xscale() == xscale
    label = axes.get_xlabel().replace("\n", " ")  # wrapped to the panel's width
    assert label == "bytes sent by the whole network (a copy per neighbor)"
    figure.canvas.draw()
    ticks = [text.get_text() for text in axes.get_xticklabels() if text.get_text()]
    assert all(text.endswith("B") for text in ticks) and len(set(ticks)) == len(ticks)
    band = min((c.get_paths()[0].vertices[:, 0] for c in axes.collections), key=min)
    assert band.min() == 100 * (not free)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metric": "other", "columns": "topology"},
            "has no metric 'other'; add 'other' to the metrics of experiment",
        ),
        ({"agents": [0], "lines": "sampler"}, "would both be line sampler = de_sgld"),
        ({"agents": ["mean"], "columns": "topology"}, "agents 0, 1, average, not for 'mean'"),
        ({"columns": "topology", "panels": [{"title": "a"}]}, "keep one of them"),
        (
            {
                "agents": [0],
                "panels": [
                    {"select": {"topology": "ring"}, "y": {"scale": "log"}},
                    {"select": {"topology": "complete"}},
                ],
            },
            r"y.share: row\); set it to none",
        ),
    ],
)
def test_mistakes_are_told(by_topology, options, message):
    with pytest.raises(ConcordError, match=message) as caught:
        draw(by_topology, **options)
    assert str(caught.value).startswith("figure curves: ")


def trained(training: str, scale: float, agents=("0", "network")) -> Measured:
    rows = []
    for k in range(0, 101, 10):
        rows.append((k, "network", "unicast_bytes", scale * k, np.nan, np.nan))
        for agent in agents:
            rows.append((k, agent, "distance", 1 / (1 + k), 0.9 / (1 + k), 1.2 / (1 + k)))
            rows.append((k, agent, "spread", 0.1, np.nan, np.nan))
    rows.append((100, "network", "floor", 0.005, 0.004, 0.006))
    table = pandas.DataFrame(rows, columns=made_up_runs.COLUMNS)
    return Measured(made_up_runs.run(training=training), table)


def drawn(runs, **options):
    return draw(runs, **{"metric": "distance", "agents": ["network"], **options})


def by_label(figure):
    lines = figure.axes[0].get_lines()
    return {line.get_label().removesuffix(", network"): line.get_xydata() for line in lines}


@pytest.mark.parametrize(
    ("layer", "low", "high"), [("intervals", 0.9, 1.2), ({"sd": "spread"}, 1 - 0.1, 1 + 0.1)]
)
def test_a_band_is_the_interval_or_a_standard_deviation(layer, low, high) -> None:
    figure = drawn([trained("a", 2.0)], lines="agent", agents=[0], layers=[layer])
    (area,) = figure.axes[0].collections
    at_start = area.get_paths()[0].vertices
    at_start = at_start[at_start[:, 0] == 0][:, 1]
    assert at_start.min() == pytest.approx(low)
    assert at_start.max() == pytest.approx(high)


def test_a_slope_stands_beside_what_falls() -> None:
    flat = trained("b", 1.0)
    flat.metrics["value"] = 1.0
    options = {"lines": "training", "x": {"scale": "log"}, "y": {"scale": "log"}}
    figure = drawn([trained("a", 1.0), flat], layers=[{"slopes": [-0.5, -0.5]}], **options)
    (slope,) = [line for line in figure.axes[0].lines if line.get_label() == "_slope"]
    (x0, y0), (x1, y1) = slope.get_xydata()
    assert (x0, x1) == (10, 100) and y1 / y0 == pytest.approx(10**-0.5)
    assert "$k^{-0.5}$" in [text.get_text() for text in figure.axes[0].texts]
    places = [text.xy for text in figure.axes[0].texts]  # names and values do not overlap
    assert len(places) == 3 and len(set(places)) == 3
    options["x"] = {"scale": "log", "limits": [20, None]}
    figure = drawn([trained("a", 1.0)], layers=[{"slopes": [-0.5]}], **options)
    (slope,) = [line for line in figure.axes[0].lines if line.get_label() == "_slope"]
    assert slope.get_xdata()[0] == 20  # where the axis begins
    options["layers"] = [{"slopes": [{"sampler.step_size.exponent": -1}]}]
    falling = trained("a", 1.0)
    with pytest.raises(ConcordError, match="is no number of the run"):
        drawn([falling], **options)
    falling.run["sampler"]["step_size"] = {"kind": "power", "a": 1.0, "b": 1, "exponent": 0.75}
    figure = drawn([falling], **options)
    assert "$k^{-0.75}$" in [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_lines_of_one_iteration_are_points_with_bars_at_a_tick(scale):
    """Not even the average, which has no marker else, is invisible."""
    measured = w2(run(), [0, "average"])
    table = measured.metrics[measured.metrics["iteration"].isin([100])]
    one = Measured(measured.run, table)
    figure = draw([one], agents=[0, "average"], x={"scale": scale})
    (axes,) = figure.axes
    assert [line.get_marker() for line in shown(axes).values()] == ["o", "o"]
    pale = [line for line in axes.lines if line.get_label().startswith("_estimate")]
    assert [line.get_marker() for line in pale] == [".", "."]
    assert len([bars for bars in axes.collections if len(bars.get_segments())]) == 2
    figure.draw_without_rendering()
    ticks = [text.get_text() for text in axes.get_xticklabels()]
    assert ticks == ["100"] and not axes.xaxis.get_offset_text().get_text()
    assert not [text for text in axes.get_xticklabels(minor=True) if text.get_text()]


def accuracy(sampler: str, agents: int = 3) -> Measured:
    rows = []
    for agent in range(agents):
        for k in range(10):
            rows.append((k, str(agent), "accuracy_mean", 0.5 + 0.04 * k + 0.01 * agent))
            rows.append((k, str(agent), "accuracy_sd", 0.1))
    full = [(*row, np.nan, np.nan) for row in rows]
    table = pandas.DataFrame(full, columns=made_up_runs.COLUMNS)
    return Measured(run(agents=agents, sampler=sampler), table)


def accuracies(runs, **options):
    shown = {"metric": "accuracy_mean", "layers": [{"sd": "accuracy_sd"}]}
    return draw(runs, lines="sampler", **shown, **options)


def test_accuracies_may_be_shown_as_errors_or_in_percent():
    measured = accuracy("d_ula")
    mean, sd = (series(measured, f"accuracy_{of}", 0).value for of in ("mean", "sd"))
    (axes,) = accuracies([measured], y={"shows": "error", "scale": "log"}).axes
    assert shown(axes)["D-ULA, agent 1"].get_ydata() == pytest.approx(1 - mean)
    (bars,) = axes.collections
    assert bars.get_segments()[0][:, 1] == pytest.approx(1 - mean[0] + [-sd[0], sd[0]])
    (axes,) = accuracies([measured], y={"shows": "percent"}).axes
    assert shown(axes)["D-ULA, agent 1"].get_ydata() == pytest.approx(100 * mean)


def test_printed_numbers_are_lines_that_leave_the_right_edge():
    figure = draw([w2(run(), [0])], printed=[0.25, 99])
    (axes,) = figure.axes
    (tick,) = [line for line in axes.lines if line.get_label() == "_printed"]
    assert list(tick.get_ydata()) == [0.25, 0.25] and max(tick.get_xdata()) > 1
    assert [text.get_text() for text in axes.texts] == ["0.25"]
    assert "print" in legend(figure)


def test_what_authors_recorded_is_open_circles_or_a_deviation_in_the_band_of_another_run():
    measured = w2(run(), [0], exact=False, floor=False)
    table = measured.metrics
    record = table[table["metric"] == "w2"].assign(metric="w2_recorded", lo=np.nan, hi=np.nan)
    record["value"] *= 1.1
    both = Measured({**measured.run, "recorded": {"chains": 250}}, pandas.concat([table, record]))
    (axes,) = draw([both]).axes
    (circles,) = [line for line in axes.lines if line.get_label().startswith("_recorded")]
    assert circles.get_linestyle() == "None" and circles.get_markerfacecolor() == "white"
    (axes,) = draw([both], layers=["deviation"]).axes
    (apart,) = shown(axes).values()
    assert apart.get_ydata() == pytest.approx(0.1)
    (band,) = axes.collections  # of a difference of 1000 chains and 250: sqrt(1 + 4) wider
    corners = band.get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(-0.08 * 5**0.5)
    assert corners.max() == pytest.approx(0.09 * 5**0.5)


def test_names_may_stand_at_the_ends_of_lines():
    runs = [w2(run(sampler=s), [0], end=0.03, seed=i) for i, s in enumerate(("d_ula", "admm"))]
    figure = draw(runs, lines="sampler", legend="ends", layers=[])
    texts = [text for text in figure.axes[0].texts if text.get_text() in ("D-ULA", "ADMM")]
    heights = sorted(text.get_position()[1] for text in texts)
    assert len(heights) == 2 and heights[1] - heights[0] > 0.05 and not figure.legends


def test_what_is_read_is_what_is_drawn():
    panels = [{"agents": [1]}, {"x": {"over": "penalty"}, "lines": "reading"}]
    layers = [{"sd": "sd"}, {"floor": "f"}]
    options = {"metric": "m", "layers": layers, "x": {"counts": "seconds"}, "panels": panels}
    found = curves.reads(build(curves.Params, options, "x"))
    names = [(read, ()) if isinstance(read, str) else (read.metric, read.agents) for read in found]
    network = ("network",)
    assert names == [("m", (1,)), ("seconds", network), ("sd", (1,)), ("f", ()), ("m", ())]


def test_a_distribution_is_the_values_in_order_over_shares(by_topology):
    figure = draw(by_topology[:1], lines="agent", agents=[0], x={"counts": "share"}, layers=[])
    table = series(by_topology[0], "w2", 0)
    (line,) = shown(figure.axes[0]).values()
    np.testing.assert_array_equal(line.get_ydata(), np.sort(table.value))
    assert line.get_xdata()[[0, -1]] == pytest.approx([1 / len(table.value), 1])
    assert figure.axes[0].get_xlim()[1] < 1.2
    assert figure.axes[0].get_xlabel() == "share of iterations"
    diverged = [w2(run(topology="ring"), [0], diverged_at=30)]
    figure = draw(diverged, lines="agent", agents=[0], x={"counts": "share"}, layers=[])
    (line,) = figure.axes[0].lines  # no cross, which has no place
    assert line.get_xdata()[-1] == pytest.approx(30 / 151)  # those that diverged count
    assert figure.get_suptitle().startswith("Diverged: ")
