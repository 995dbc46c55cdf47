"""Figures of predictions: densities and maps, from made-up metrics."""

import numpy as np
import pandas
import pytest

import everything
from concord.errors import ConcordError
from concord.options import build
from concord_studies.results import Measured
from made_up_runs import COLUMNS, run

label_maps = everything.kind("figures", "label_maps")
prediction_densities = everything.kind("figures", "prediction_densities")
BINS = 40


def measured(sampler: str, agents: int = 1, sets: tuple[str, ...] = ("mnist", "svhn")) -> Measured:
    rows = []
    rng = np.random.default_rng(len(sampler))
    for agent in range(agents):
        for name in sets:
            shares = rng.dirichlet(np.linspace(0.1, 3, BINS)) * BINS
            rows += [
                (10, str(agent), f"confidence_density_{name}_{b}", shares[b]) for b in range(BINS)
            ]
            for i, j in np.ndindex(10, 10):
                count = 900 + i if i == j else 10 * i + j
                rows.append((10, str(agent), f"confusion_{name}_{i}_{j}", count))
                rows.append(
                    (10, str(agent), f"probability_{name}_{i}_{j}", 0.91 if i == j else 0.01)
                )
    table = pandas.DataFrame([(*row, np.nan, np.nan) for row in rows], columns=COLUMNS)
    return Measured(run("mnist", sampler=sampler), table)


def densities(runs, **options):
    options |= {"ylim": [0.01, 100]}
    return prediction_densities.draw(build(prediction_densities.Params, options, "x"), runs)


def maps(runs, **options):
    return label_maps.draw(build(label_maps.Params, options, "x"), runs)


PANELS = [
    {"title": "SGD", "select": {"sampler": "sgd"}},
    {"title": "agent 2", "select": {"sampler": "d_ula"}, "agent": 1},
]


def test_densities_are_the_metrics():
    runs = [measured("sgd"), measured("d_ula", 2)]
    figure = densities(runs, panels=PANELS, sets={"mnist": "MNIST", "svhn": "SVHN"})
    axes = figure.axes
    assert [ax.get_title(loc="left") for ax in axes] == ["(a) SGD", "(b) agent 2"]
    table = runs[1].metrics
    shown = axes[1].patches[0].get_data()
    wanted = table[
        (table["agent"] == "1") & table["metric"].str.startswith("confidence_density_mnist")
    ]
    np.testing.assert_array_equal(shown.values, wanted["value"])
    np.testing.assert_allclose(shown.edges, np.linspace(0, 1, BINS + 1), rtol=1e-12)
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["MNIST", "SVHN"]


def test_a_set_that_was_not_run_is_said():
    runs = [measured("sgd", sets=("mnist",)), measured("d_ula", 2, ("mnist",))]
    sets = {"mnist": "MNIST", "svhn": "SVHN"}
    with pytest.raises(ConcordError, match="confidence_density_svhn"):
        densities(runs, panels=PANELS, sets=sets)
    figure = densities(runs, panels=PANELS, sets=sets, missing={"svhn": "SVHN was not run"})
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["MNIST", "SVHN was not run"]
    assert all(len(ax.patches) == 1 for ax in figure.axes)


def test_maps_show_true_labels_down_and_predicted_ones_across():
    figure = maps([measured("sgd")], panels=[{"title": "SGD", "metric": "confusion_mnist"}])
    (axes,) = figure.axes
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts[4, 3] == "34" and texts[3, 4] == "43" and texts[3, 3] == "903"
    assert (0, 0) in texts and texts[0, 0] == "900"
    shades = axes.images[0].get_array().mean(axis=-1)
    assert shades[3, 3] < shades[3, 4] < shades[0, 1]
    assert axes.get_xlabel() == "predicted label" and axes.get_ylabel() == "true label"
    assert axes.yaxis_inverted()


def test_probabilities_are_rounded_and_zero_cells_left_empty():
    runs = [measured("sgd")]
    runs[0].metrics.loc[runs[0].metrics["metric"] == "probability_mnist_0_1", "value"] = 0.004
    figure = maps(runs, panels=[{"title": "SGD", "metric": "probability_mnist"}])
    texts = {text.get_position(): text.get_text() for text in figure.axes[0].texts}
    assert (texts[0, 0], texts[2, 0], texts[1, 0]) == (".91", ".01", "")


def test_a_map_that_was_not_run_is_said():
    panels = [
        {"title": "SVHN", "metric": "confusion_svhn"},
        {"title": "M", "metric": "confusion_mnist"},
    ]
    runs = [measured("sgd", sets=("mnist",))]
    figure = maps(runs, panels=panels, missing={"confusion_svhn": "not run"})
    (axes,) = figure.axes
    assert axes.images and axes.get_title(loc="left") == "M"
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["not run"]


def test_a_panel_is_one_run():
    with pytest.raises(ConcordError, match="panel 'all'"):
        maps(
            [measured("sgd"), measured("c_ula")],
            panels=[{"title": "all", "metric": "confusion_mnist"}],
        )
