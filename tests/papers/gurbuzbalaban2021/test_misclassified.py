"""Statistics of box plots."""

from types import SimpleNamespace

import numpy as np

import everything
import measurements
from concord.laws.gaussian import Gaussian
from concord.networks.construction import network
from concord.sampling import initial
from concord.sampling.trace import Trace

misclassified = everything.kind("metrics", "misclassified")


def measurement(variables, draw=(0, 5), agent=(0, 2), **more):
    """A measurement of arrays that were recorded at these iterations, of these agents."""
    diverged = ("chain",), np.full(more.pop("chains", 40), -1)
    trace = Trace({"diverged_at": diverged, **variables}, np.array(draw), np.array(agent))
    normal = SimpleNamespace(dim=2, agents=4, posterior=Gaussian(np.zeros(2), np.eye(2)))
    run = {"problem": normal, "network": network("ring", 4), "sampler": SimpleNamespace()}
    return measurements.measurement(trace, **run | {"initial": initial.Law("normal")} | more)


def test_misclassified_has_the_statistics_of_a_box_plot():
    counts = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 40]).reshape(10, 1, 1)
    m = measurement(
        {"misclassified": (("chain", "draw", "agent"), counts)}, draw=(5,), agent=(2,), chains=10
    )
    found = {row[2]: row for row in misclassified.rows(m)}
    value = {name.removeprefix("misclassified_"): row[3] for name, row in found.items()}
    assert value["min"] == 1 and value["max"] == 40
    assert (value["q25"], value["median"], value["q75"]) == (3.25, 5.5, 7.75)
    assert (value["whisker_lo"], value["whisker_hi"]) == (1, 9)  # 40 is beyond 7.75 + 1.5 * 4.5
    assert value["mean"] == 8.5
    for name in ("misclassified_median", "misclassified_mean"):
        assert found[name][4] < found[name][3] < found[name][5]
    assert {row[:2] for row in found.values()} == {(5, "2")}
