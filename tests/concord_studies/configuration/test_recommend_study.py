"""The study that validates ``recommend`` runs; at its least size answers are the best."""

from pathlib import Path

import pandas
import pytest

from concord_studies import plugins
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.make import Batch, make

FOLDER = Path(__file__).parents[2] / "config" / "studies" / "recommend"


@pytest.mark.parametrize(("experiment", "network"), [("gaussian", "ring_5"), ("sampled", "ring")])
def test_an_answer_is_compared_with_brute_force(experiment, network, tmp_path):
    study = Study(FOLDER, {**load_config(), "scale": "smoke"})
    runs = study.select({"experiment": experiment, "network": network}, "experiments")
    batch = Batch("one", study.key, tuple(runs))
    try:
        make(batch, tmp_path, Path("resources"), batch.file(tmp_path))
    finally:
        plugins.use()
    (path,) = tmp_path.rglob("metrics.csv")
    table = pandas.read_csv(path, comment="#")
    shares = table[
        table["metric"].str.startswith("share.") & ~table["metric"].str.contains("_cases")
    ]
    assert len(shares) and (shares["value"] == 1).all()
