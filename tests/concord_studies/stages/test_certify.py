"""Certified runs: the sampler against a grid and against importance sampling; refusals."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from concord import streams
from concord.errors import ConcordError
from concord.problems.from_options import from_options
from concord.problems.kinds import logistic_regression
from concord.sampling.partition import Partition
from concord_studies.datasets.folder import DataFolder
from concord_studies.problems import breast_cancer
from concord_studies.stages.certify import Recipe, certify, check_draws, sample

EQUAL = Partition.parse({"kind": "equal"}, "partition")
RECIPE = Recipe(problem={}, draws=4000, chains=40, thin=15, warm_up=200)


def test_draws_are_those_of_the_posterior():
    """Two parameters, few points, so that it is skewed: moments of the grid, to 5 errors."""
    target = from_options(logistic_regression)(1, points=12, feature_variance=4.0, prior_scale=9.0)
    draws = sample(target, RECIPE, np.random.default_rng(0))
    found = check_draws(draws)
    assert found["effective sample size"] > 2500
    values = draws.reshape(-1, 2)
    means, variances = target.reference.monomials()
    both = np.concatenate([values, values**2], axis=1)
    errors = (both.mean(axis=0) - means) / np.sqrt(variances / found["effective sample size"])
    assert np.abs(errors).max() < 5
    skewness = ((values - values.mean(axis=0)) ** 3).mean(axis=0) / values.std(axis=0) ** 3
    assert np.abs(skewness).max() > 0.3  # a Gaussian would not do


def test_chains_that_depend_on_each_other_or_disagree_are_refused():
    rng = np.random.default_rng(1)
    sound = rng.standard_normal((8, 500, 3))
    check_draws(sound)
    slow = sound.copy()
    slow[:, 1:] += 0.3 * sound[:, :-1]
    with pytest.raises(ConcordError, match=r"autocorrelation 0\.27.* raise thin or warm_up"):
        check_draws(slow)
    apart = sound + 0.3 * np.arange(8)[:, None, None]
    with pytest.raises(ConcordError, match="R-hat"):
        check_draws(apart)
    with pytest.raises(ConcordError, match="R-hat nan"):
        check_draws(np.full((8, 500, 3), np.nan))


def registered(folder: Path, sha256: str, size: int, thin: int) -> Path:
    registry = folder / "datasets.yaml"
    registry.write_text(
        f"""
made:
  description: draws
  license: MIT
  citation: none
  files:
    draws.npy:
      bytes: {size}
      sha256: {sha256}
      recipe:
        problem: {{ kind: logistic_regression, points: 20 }}
        draws: 4000
        chains: 40
        thin: {thin}
        warm_up: 200
"""
    )
    return registry


def test_a_file_is_made_if_it_is_the_registered_one(tmp_path):
    other = registered(tmp_path, "0" * 64, 64128, 20)
    with pytest.raises(ConcordError, match=r"are not those of .*use the versions of envs"):
        certify("made/draws.npy", tmp_path / "draws.npy", other)
    assert not (tmp_path / "draws.npy").exists()
    # The same draws, made apart.
    stream = lambda what: streams.generator(1, what, "reference")  # noqa: E731
    points = logistic_regression.Params(points=20)
    target = logistic_regression.build(points, 1, EQUAL, stream, Path("unused"))
    recipe = Recipe(problem={}, draws=4000, chains=40, thin=20, warm_up=200)
    np.save(tmp_path / "apart.npy", sample(target, recipe, stream("noise")).reshape(-1, 2))
    whole = (tmp_path / "apart.npy").read_bytes()
    right = registered(tmp_path, hashlib.sha256(whole).hexdigest(), len(whole), 20)
    certify("made/draws.npy", tmp_path / "draws.npy", right)
    assert (tmp_path / "draws.npy").read_bytes() == whole
    with pytest.raises(ConcordError, match="recipe: R-hat"):
        certify("made/draws.npy", tmp_path / "no.npy", registered(tmp_path, "0" * 64, 64128, 1))


def test_breast_cancer_names_its_draws_and_misses_them(tmp_path):
    assert breast_cancer.DECLARES.needs(breast_cancer.Params()) == ("breast_cancer_posterior",)
    stream = lambda what: streams.generator(1, what)  # noqa: E731
    made = breast_cancer.build(breast_cancer.Params(), 7, EQUAL, stream, DataFolder(tmp_path))
    assert made.dim == 31 and made.counts.sum() == 569
    with pytest.raises(ConcordError, match="are not made yet; make them with `concord fetch"):
        _ = made.reference
    (tmp_path / "breast_cancer_posterior").mkdir()
    (tmp_path / breast_cancer.DRAWS).write_bytes(b"other")
    with pytest.raises(ConcordError, match="make it with `concord fetch"):
        _ = made.reference
