"""The Python that README and the pages show runs, and says what they say of it."""

import arviz_stats
import numpy as np
import pytest

import concord
from concord.laws import wasserstein
from concord_studies.metrics.w2 import w2_floor
from page_blocks import ROOT, list_blocks, run_blocks


def test_the_ten_lines_of_the_readme_print_and_draw_what_it_says(tmp_path, monkeypatch, capsys):
    (code,) = list_blocks("README.md")
    assert len([line for line in code.splitlines() if line]) == 10
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    assert (tmp_path / "w2.png").stat().st_size > 5000
    shown = (ROOT / "README.md").read_text().partition("```python")[2].partition("```")[2]
    printed = [line.rstrip() for line in capsys.readouterr().out.rstrip().splitlines()]
    assert [line.removeprefix("    ") for line in shown.strip("\n").splitlines()[:4]] == printed
    trace, law, posterior = names["trace"], names["law"], names["problem"].posterior
    assert trace["x"].shape == (4, 10_001, 8, 2) and law.mean.shape == (10_001, 8, 2)
    assert arviz_stats.rhat(trace.to_arviz()).x.max() < 1.01  # as the README says
    drawn, exact = (concord.w2(found, posterior, warm_up=1000) for found in (trace, law))
    assert ((drawn.lo <= exact.value) & (exact.value <= drawn.hi)).all()
    assert abs(drawn.value - exact.value).max() < 0.005
    width = np.sqrt(np.trace(posterior.cov))
    *agents, average = exact.value / width
    assert min(agents) > 1 / 3 and average < 1 / 50  # as the README says
    assert width == pytest.approx(0.11, abs=0.005)
    assert float(drawn.value[-1] / width) == pytest.approx(1 / 25, abs=0.001)
    assert float(drawn.value[-1]) < float(drawn.floor.max())


def test_the_table_of_floors_is_computed():
    """And its formula holds within a tenth of the width."""
    text = (ROOT / "docs/python.md").read_text().partition("<!-- floors -->")[2]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.split("\n")[2:8]]
    chains = [int(name.split()[0].replace(",", "")) for name in rows[0][1:]]
    for dim, *cells in rows[2:]:
        dim, posterior = int(dim), concord.Gaussian(np.zeros(int(dim)), np.eye(int(dim)))
        for count, cell in zip(chains, cells, strict=True):
            found = w2_floor(posterior, count, np.random.default_rng(1), 400)[0]
            # Rounded to two digits; the fits' spread is at most half of their mean.
            assert float(cell) == pytest.approx(
                found / dim**0.5, abs=0.005 + 0.1 * found / dim**0.5
            )
            formula = np.sqrt((1 + (dim + 1) / 4) / count)
            assert float(cell) == pytest.approx(formula, abs=0.1)


@pytest.mark.thorough
def test_the_table_of_heavy_tails_is_computed(monkeypatch):
    """Within four standard errors of 60 runs, whose draws are taken for five independent ones."""
    text = (ROOT / "docs/python.md").read_text().partition("<!-- heavy tails -->")[2]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.split("\n")[4:15]]
    assert len(rows) == 11 and all(len(row) == 5 for row in rows)
    rng, judge = np.random.default_rng(1), wasserstein.has_heavy_tails
    for fourth, count, *cells in rows:
        # E a^4 = 0.8^4 + 6 0.8^2 s^2 + 3 s^4 of a normal a with mean 0.8 and spread s
        square = np.sqrt(0.64**2 + (float(fourth) - 0.8**4) / 3) - 0.64
        x, variance, draws, exact = np.zeros((int(count.replace(",", "")), 60)), 0.0, [], []
        for k in range(200):
            a = 0.8 + np.sqrt(max(square, 0.0)) * rng.standard_normal(x.shape)
            x, variance = a * x + rng.standard_normal(x.shape), (0.64 + square) * variance + 1
            if k % 5 == 4:
                draws.append(x)
                exact.append(np.sqrt(variance))
        samples, sd = np.stack(draws, axis=1)[..., None], 2 * exact[-1]
        target, truth = concord.Gaussian(np.zeros(1), sd**2 * np.eye(1)), sd - np.array(exact)
        found = []
        for heavy in (lambda values, _: np.zeros(values.shape, bool), judge):
            monkeypatch.setattr(wasserstein, "has_heavy_tails", heavy)
            _, lo, hi = (each[20:] for each in wasserstein.bootstrap_w2(samples, target, 200, rng))
            found.append((hi, (lo <= truth[20:, None]) & (truth[20:, None] <= hi)))
        (_, all_inside), (hi, inside) = found
        none = np.isinf(hi)
        shares = all_inside.mean(), none.mean(), inside[~none].mean() if cells[2] else None
        sizes = inside.size, inside.size, max((~none).sum(), 1)
        for cell, share, size in zip(cells, shares, sizes, strict=True):
            error = 4 * np.sqrt(0.25 / (size / 20 * 5))
            assert not cell or float(cell) == pytest.approx(share, abs=min(error, 0.15)), (
                fourth,
                count,
            )


def test_the_page_runs():
    """All but the recipes, one after the other."""
    names = {}
    for code in list_blocks("docs/python.md"):
        if "gradient =" not in code and "def gradient" not in code:
            exec(code, names)
    for network in names["networks"]:
        options = {"step_size": 0.005, "iterations": 2, "chains": 2}
        for problem in ("linear", "labels", "gaussian", "mine"):
            assert np.isfinite(
                concord.sample("de_sgld", names[problem], network, **options)["x"]
            ).all()


def test_the_page_of_problems_runs():
    names = run_blocks("docs/problems.md")
    assert names["law"].mean.shape == (301, 16, 5) and names["cov"].shape == (2, 2)


@pytest.mark.thorough
@pytest.mark.parametrize("library", ["jax", "torch", "autograd"])
def test_gradients_of_other_libraries(library):
    pytest.importorskip(library)
    (code,) = (code for code in list_blocks("docs/python.md") if f"import {library}\n" in code)
    names = {"concord": concord}
    exec(code, names)
    options = {"step_size": 0.02, "iterations": 20, "chains": 3}
    found = concord.sample("de_sgld", names["problem"], "ring", **options)
    wanted = concord.Problem(np.sinh, agents=6, dim=2)
    expected = concord.sample("de_sgld", wanted, "ring", **options)
    np.testing.assert_allclose(found["x"], expected["x"], rtol=1e-9, atol=1e-12)
