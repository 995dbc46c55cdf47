"""The answer: against laws found one by one, and its refusals."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import concord
from concord.__main__ import main
from concord.errors import ConcordError

ROOT = Path(__file__).parents[2]
FEW = ["de_sgld", "extra_sgld"]


@pytest.fixture(scope="module")
def problem():
    return concord.problems.quadratic(
        H=[[[1.0]], [[2.0]], [[0.5]], [[1.5]]], b=[[1.0], [0.0], [1.0], [-2.0]]
    )


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / path).read_text(), re.S | re.M)


def b2_of(sampler, problem, network, iterations, agents=slice(None, -1), **options):
    record = {"at": [iterations]}
    law = concord.law(sampler, problem, network, iterations=iterations, record=record, **options)
    return concord.bias2(law, problem.posterior).value[-1, agents].max().item()


def test_no_setting_between_the_limits_is_better_than_the_answer(problem):
    answer = concord.recommend(problem, "ring", budget={"gradients": 60}, samplers=FEW)
    agents = answer.table[answer.table["read"] == "agents"]
    for sampler, row in zip(("DE-SGLD", "EXTRA-SGLD"), FEW, strict=True):
        found = agents[agents["sampler"] == sampler].iloc[0]
        steps = found["stable"] * 2 ** -np.arange(0.5, 18, 0.5)
        scores = [b2_of(row, problem, "ring", 60, step_size=float(step)) for step in steps]
        assert found["b2"] <= 1.05 * min(scores)
        assert found["law"] == "exact"
    assert answer.trust == []
    assert answer.table["b2"][0] == answer.table["b2"].min()


def test_what_is_recommended_has_the_law_that_is_predicted(problem):
    """Read by agents: the score is that of ``concord.law`` with these very options."""
    answer = concord.recommend(problem, "path", budget={"bytes": 900}, level="worst", samplers=FEW)
    best = dict(answer.best)
    for name in ("chains", "seed"):
        best.pop(name, None)
    law = concord.law(**best, record={"at": [best["iterations"]]})
    weights = concord.network("path", 4).metropolis().dense()
    read = answer.table["read"][0]
    assert answer.table["bytes"][0] <= 900
    if read == "agents":
        b2 = concord.bias2(law, problem.posterior).value[-1, :-1].max().item()
    elif read == "average":
        b2 = concord.bias2(law, problem.posterior).value[-1, -1].item()
    else:  # the mean alone is known of mixed draws by the agents' laws
        mixed = np.linalg.matrix_power(weights, int(read)) @ law.mean[-1]
        assert mixed.shape == (4, 1)
        return
    assert answer.table["b2"][0] == pytest.approx(b2, rel=1e-9)


def test_a_target_is_reached_at_the_price_that_is_said(problem):
    answer = concord.recommend(
        problem, "ring", target={"b2": 0.01}, price="gradients", samplers=["de_sgld"]
    )
    row = answer.table[answer.table["read"] == "average"].iloc[0]
    step = float(row["options"].split()[-1])
    b2 = b2_of("de_sgld", problem, "ring", int(row["iterations"]), slice(-1, None), step_size=step)
    assert b2 <= 0.0101
    assert row["b2"] == pytest.approx(b2, rel=0.05)


def test_any_gradient_is_enough_and_chains_agree():
    """e^x - a x: skewed, so that no fixed linearization knows agents' means."""
    counts = np.array([3.0, 5.0, 4.0])[:, None]
    blind = concord.Problem(lambda x: np.exp(x) * 2 - counts, agents=3, dim=1)
    answer = concord.recommend(
        blind, "path", budget={"gradients": 80}, initial={"kind": "normal", "sd": 0.5},
        samplers=["de_sgld"], verify=True,
    )  # fmt: skip
    assert answer.trust == []
    assert (answer.table["law"] == "approximate").all()
    assert ((answer.verified["lo"] / 2 <= answer.verified["predicted"])
            & (answer.verified["predicted"] <= 2 * answer.verified["hi"])).all()  # fmt: skip
    assert "DE-SGLD with step size" in str(answer)
    assert answer.read(concord.sample(**answer.best, chains=4)).shape[0] == 4
    figure = answer.plot()
    assert figure.axes[0].get_xscale() == "log"


def test_an_approximate_law_is_that_of_chains():
    counts = np.array([3.0, 5.0, 4.0])[:, None]
    problem = concord.Problem(lambda x: np.exp(x) * 2 - counts, agents=3, dim=1)
    given = {"step_size": 0.05, "iterations": 40, "record": {"at": [40]}}
    law = concord.law("diging_sgld", problem, "path", approximate=True, **given)
    x = concord.sample("diging_sgld", problem, "path", chains=4000, **given)["x"][:, -1]
    assert law.approximate
    error = x.std(axis=0) / np.sqrt(len(x))
    assert (np.abs(law.mean[-1] - x.mean(axis=0)) < 5 * error + 0.02 * x.std(axis=0)).all()
    np.testing.assert_allclose(law.cov[-1, :, 0, 0], x.var(axis=0)[:, 0], rtol=0.15)
    with pytest.raises(ConcordError, match="is not quadratic"):
        concord.law("diging_sgld", problem, "path", **given)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "give what an agent may pay"),
        ({"budget": {"bytes": 1}}, "pays for no iteration"),
        ({"budget": {"bites": 100}}, "there is no price 'bites'"),
        ({"budget": {"bytes": -3}}, "no positive number"),
        ({"budget": {"bytes": 100}, "level": "best"}, "level"),
        ({"budget": {"seconds": 5}}, "costs no seconds"),
        ({"budget": {"bytes": 900}, "samplers": ["fsgld"]}, "no sampler works"),
        ({"budget": {"bytes": 900}, "samplers": ["de_sgl"]}, "there is no entry 'de_sgl'"),
        ({"target": 0.1}, "with its price"),
    ],
)
def test_what_allows_no_answer_is_refused_in_one_sentence(problem, options, says):
    given = {"samplers": FEW, **options}
    with pytest.raises(ConcordError, match=says) as error:
        concord.recommend(problem, "ring", **given)
    assert "\n" not in str(error.value)


def test_a_problem_without_a_posterior_is_refused():
    flat = concord.Problem(lambda x: np.ones_like(x), agents=4, dim=1)
    with pytest.raises(ConcordError, match="no mode was found"):
        concord.recommend(flat, "ring", budget={"bytes": 900})
    with pytest.raises(ConcordError, match="no problem"):
        concord.recommend("gaussian", "ring", budget={"bytes": 900})


def test_the_page_is_right():
    names = {}
    for code in blocks("docs/recommend.md"):
        exec(code, names)
    page = (ROOT / "docs/recommend.md").read_text()
    said = " ".join(line.strip() for line in page.splitlines())
    assert str(names["answer"]) in said
    answer = names["answer"].table.iloc[0]["b2"]
    worst = names["measured"].isel(agent=slice(0, 5))
    assert (worst.lo <= answer).all()
    assert worst.hi.max() >= answer
    rows = names["answer"].table.set_index("sampler")["b2"]
    for name in ("EXTRA-SGLD", "DE-SGLD, adapt first", "DE-SGLD"):
        assert f"| {name} |" in page
        assert f"{rows[name]:.4f}" in page


def test_the_command_writes_a_table(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    study = str(ROOT / "config/studies/samplers")
    command = ["recommend", study, "losses", "--tasks", "both", "--budget", "gradients=20"]
    table = tmp_path / "answer.csv"
    assert main([*command, "-o", str(table)]) == 0
    assert "posterior variances" in capsys.readouterr().out
    assert table.read_text().startswith("sampler,options,read,b2,")
    assert main([*command[:3], "--budget", "gradients=20", "-o", str(tmp_path / "a.png")]) == 2
    assert main(["recommend", study, "lost", "--budget", "gradients=20"]) == 2


def test_by_chains_only_what_is_ranked_is_stated():
    """Gossip has a law up to 40 numbers; chains measure one level, and the other is no number."""
    problem = concord.problems.quadratic(H=[[[1.0]]] * 42, b=[[1.0]] * 42)
    given = {"budget": {"gradients": 20}, "samplers": ["gossip_ula"], "chains": 30}
    table = concord.recommend(problem, "ring", **given).table
    assert table.law[0] == "chains"
    assert table.b2[0] >= 0 and np.isnan(table.b2_average[0])
