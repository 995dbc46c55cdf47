import numpy as np
import pytest
from matplotlib.figure import Figure

from concord.networks.topology import build_graph
from concord.options import build
from concord.pictures.graphs import place_agents
from concord_studies.figures import networks
from concord_studies.results import Measured
from made_up_runs import run


def draw(runs: list[Measured], **options: object) -> Figure:
    return networks.draw(build(networks.Params, options, "x.yaml: figures.f"), runs)


def graph(kind: str, agents: int = 6, **options: object) -> Measured:
    resolved = run(agents=agents, topology=kind)
    resolved["topology"] = {"kind": kind, **options}
    return Measured(resolved, None)


def test_each_graph_is_drawn_once():
    kinds = ["complete", "ring", "complete", "no_edges", "ring"]
    figure = draw([graph(kind) for kind in kinds])
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "(a) Complete",
        "(b) Ring",
        "(c) No edges",
    ]
    edges = [len(axes.collections[0].get_segments()) for axes in figure.axes]
    assert edges == [15, 6, 0]
    for axes in figure.axes:
        assert [text.get_text() for text in axes.texts] == ["1", "2", "3", "4", "5", "6"]
        assert len(axes.collections[1].get_offsets()) == 6


def test_sizes_are_named_when_they_differ():
    figure = draw([graph("ring", 5), graph("ring", 20)])
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "(a) Ring\n$N$ = 5",
        "(b) Ring\n$N$ = 20",
    ]


@pytest.mark.parametrize(
    ("kind", "agents", "options"),
    [
        ("complete", 1, {}),
        ("no_edges", 2, {}),
        ("ring", 6, {}),
        ("star", 6, {}),
        ("star", 1, {}),
        ("path", 7, {}),
        ("path", 1, {}),
        ("grid", 1, {}),
        ("grid", 6, {}),
        ("grid", 5, {"rows": 1}),
        ("grid", 5, {"rows": 5}),
        ("grid", 6, {"rows": 3}),
        ("erdos_renyi", 9, {"probability": 0.3}),
        ("edge_list", 4, {"edges": [[0, 1], [2, 3]]}),
        ("edge_list", 4, {"edges": []}),
    ],
)
def test_agents_stand_apart_and_within_the_panel(kind, agents, options):
    at = place_agents(build_graph(kind, agents, **options))
    assert at.shape == (agents, 2)
    assert np.abs(at).max() <= 1 + 1e-12
    distance = np.linalg.norm(at[:, None] - at, axis=2) + 2 * np.eye(agents)
    assert distance.min() > 0.02
    assert len(draw([graph(kind, agents, **options)]).axes) == 1


def test_edges_with_a_direction_are_arrows_to_who_hears():
    (axes,) = draw([graph("directed_ring", 6, every=2)]).axes
    at = place_agents(build_graph("directed_ring", 6, every=2))
    arrows = [patch for patch in axes.patches if patch.get_arrowstyle().arrow == "-|>"]
    ends = {tuple(tuple(np.round(p, 9)) for p in arrow._posA_posB) for arrow in arrows}
    wanted = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3), (2, 5), (4, 1)]
    assert ends == {(tuple(np.round(at[i], 9)), tuple(np.round(at[j], 9))) for i, j in wanted}
