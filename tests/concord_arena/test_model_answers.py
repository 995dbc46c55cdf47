"""The answer for a model of PyMC, and the page that shows one."""

import numpy as np
import pytest

import concord
from page_blocks import ROOT, run_blocks

pytestmark = pytest.mark.thorough
jax = pytest.importorskip("jax")
pm = pytest.importorskip("pymc")
pytest.importorskip("numpyro")
jax.config.update("jax_enable_x64", True)

N = 12
Y = np.random.default_rng(7).standard_normal(N)
SHARDS = [[0, 5], [1, 2, 3, 6, 7, 11], [8], [4, 9, 10]]


def test_the_page_runs() -> None:
    """From eight hospitals and what is recommended to them, to NumPyro."""
    text = (ROOT / "docs/your-model.md").read_text()
    names = run_blocks("docs/your-model.md")
    effect, sent = names["effect_at_home"].values, names["vector_bytes"]
    assert (sent == 2 * 8).all() and (names["problem"].counts == 1).all()
    assert abs(effect - [6.2, 4.9, 3.9, 4.8, 3.6, 4.1, 6.3, 4.9]).max() < 2.0  # Stan's draws'
    assert str(names["answer"]).split(":")[0] in " ".join(text.split())
    assert names["linear"].counts.sum() == 120 and names["same"].agents == 6


def test_the_answer_for_a_model_is_that_for_its_potentials():
    """y ~ N(mu, 1): the model is only a gradient, and what is predicted of it the exact law."""
    with pm.Model(coords={"row": range(N)}) as model:
        pm.Normal("y", pm.Normal("mu", 0, 10), 1, observed=Y, dims="row")
    model = concord.from_pymc(model, over="row", shards=SHARDS)
    rows = [Y[shard] for shard in SHARDS]
    own = concord.problems.quadratic(
        H=[[[len(y) + 1 / 100]] for y in rows], b=[[y.sum()] for y in rows]
    )
    answer = concord.recommend(model, "ring", budget={"gradients": 60}, samplers=["de_sgld"])
    row = answer.table[answer.table["read"] == "agents"].iloc[0]
    step = answer._rows[int(row.name)].sampler.step_size
    law = concord.law("de_sgld", own, "ring", step_size=step, iterations=60, record={"at": [60]})
    b2 = concord.bias2(law, own.posterior).value[-1, :-1].max().item()
    assert row["law"] == "approximate" and row["b2"] == pytest.approx(b2, rel=1e-3)
    batches = concord.recommend(
        model, "ring", budget={"gradients": 60}, samplers=["de_sgld"], batch_size=1
    )
    assert batches.table["b2"][0] > 0
