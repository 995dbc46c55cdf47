"""Statistics of box plots."""

import numpy as np

import everything
from measurements import array_measurement

misclassified = everything.kind("metrics", "misclassified")


def test_misclassified_has_the_statistics_of_a_box_plot():
    counts = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 40]).reshape(10, 1, 1)
    m = array_measurement({"misclassified": counts}, np.array([5]), agents=(2,))
    found = {row[2]: row for row in misclassified.rows(m)}
    value = {name.removeprefix("misclassified_"): row[3] for name, row in found.items()}
    assert value["min"] == 1 and value["max"] == 40
    assert (value["q25"], value["median"], value["q75"]) == (3.25, 5.5, 7.75)
    assert (value["whisker_lo"], value["whisker_hi"]) == (1, 9)  # 40 is beyond 7.75 + 1.5 * 4.5
    assert value["mean"] == 8.5
    for name in ("misclassified_median", "misclassified_mean"):
        assert found[name][4] < found[name][3] < found[name][5]
    assert {row[:2] for row in found.values()} == {(5, "2")}
