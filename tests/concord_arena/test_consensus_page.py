"""docs/consensus.md: what it prints, and the errors against quadrature of the agents' parts."""

import re

import numpy as np
import pytest

import concord
from page_blocks import ROOT, run_blocks

LINE = np.linspace(-40, 40, 1601)
GRID = np.stack(np.meshgrid(LINE, LINE), axis=-1).reshape(-1, 2)


def test_the_page_prints_what_it_shows(capsys):
    run_blocks("docs/consensus.md")
    printed = capsys.readouterr().out.split()
    text = (ROOT / "docs/consensus.md").read_text()
    shown = re.findall(r"^    (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    assert printed == " ".join(shown).split()


def moments(X, y, share):
    """Mean and precision of exp(-f_i) by a grid: the likelihood and a share of the prior."""
    logits = GRID @ X.T
    log = (y * logits - np.logaddexp(0, logits)).sum(axis=1) - share * (GRID**2).sum(axis=1) / 8
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    mean = weights @ GRID
    return mean, np.linalg.inv((GRID - mean).T @ (weights[:, None] * (GRID - mean)))


def test_consensus_draws_have_the_weighed_mean_of_the_agents_means():
    """theta has mean A^-1 sum Lambda_i m_i and covariance A^-1, A = sum Lambda_i; four errors."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    y = (rng.random(60) < 1 / (1 + np.exp(-X @ [1.5, -1.0]))).astype(int)
    parts = np.split(X, 4), np.split(y, 4)
    each = [moments(*part, 1 / 4) for part in zip(*parts, strict=True)]
    cov = np.linalg.inv(sum(precision for _, precision in each))
    mean = cov @ sum(precision @ m for m, precision in each)
    problem = concord.problems.logistic_regression(*map(list, parts), prior_scale=4.0)
    trace = concord.sample(
        "consensus_mc", problem, "server", step_size=0.02, warm_up=500, iterations=4000,
        chains=400, record={"at": [4000]}, progress=False,
    )  # fmt: skip
    x = trace["x"][:, -1, 0]
    z = (x - mean) / np.sqrt(np.diag(cov))
    assert (abs(z.mean(axis=0)) < 4 / np.sqrt(400)).all()
    assert z.var(axis=0) == pytest.approx(1, abs=4 * np.sqrt(2 / 400))
    whole, precision = moments(X, y, 1)
    off = (mean - whole) * np.sqrt(np.diag(precision))
    assert abs(off).max() > 0.4  # the limit itself is not the posterior
