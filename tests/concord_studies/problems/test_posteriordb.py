"""Models of posteriordb: transcribed right, or refused."""

import subprocess
import sys
from pathlib import Path

import pytest

import everything
from concord.errors import ConcordError
from concord_studies.datasets.fetch import fetch
from concord_studies.datasets.registry import load_registry

pytestmark = pytest.mark.thorough
for library in ("jax", "pymc", "numpyro"):
    pytest.importorskip(library)


def posteriors():
    return everything.kind("problems", "posterior")


@pytest.fixture(scope="module")
def resources(tmp_path_factory) -> Path:
    """Data as `snakemake posteriordb` has them; where they are not, of the mirror or the host."""

    folder = tmp_path_factory.mktemp("resources")
    for name, found in load_registry().items():
        for file in found.files if name.startswith("posteriordb_") else ():
            (folder / name).mkdir(exist_ok=True)
            if (here := Path("resources", name, file).absolute()).exists():
                (folder / name / file).symlink_to(here)
                continue
            try:
                fetch(f"{name}/{file}", folder / name / file)
            except ConcordError as error:
                pytest.skip(f"no {name}: make resources/, or set CONCORD_DATA_MIRROR ({error})")
    return folder


@pytest.mark.parametrize("name", list(posteriors().ROWS))
def test_posteriordb_is_transcribed_right(resources, name) -> None:
    """A wrong transcription is refused: the mean score over reference draws is zero."""
    module = posteriors()
    params = module.Params(posterior=name)
    made = module.split(params, 8, resources, coordinates="unconstrained")
    assert made.reference.draws == 10_000


def test_a_gaussian_process_has_proximal_steps(resources) -> None:
    """In jobs: where JAX has several threads, on few cores, they wait for each other for ever."""
    code = f"""
import sys
from pathlib import Path
import numpy as np
import concord_studies
from concord import kinds
kinds.use(Path("config/studies/posteriordb"))
posterior = kinds.find("problems", "posterior")
given = posterior.Params(posterior="gp_pois_regr"), 8, Path({str(resources)!r})
made = posterior.split(*given, coordinates=(np.zeros(13), 0.3 * np.eye(13)))
x = np.random.default_rng(0).standard_normal((50, 8, 13))
made.minimize(1.7 * x, np.full(8, 1.7), x)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_a_wrong_transcription_is_refused(resources, monkeypatch) -> None:
    module, models = posteriors(), everything.shared("posteriordb", "models")
    right = models.POSTERIORS["kidiq"]
    wrong = right._replace(model=models.flat_regression)  # flat on sigma, and not half-Cauchy
    monkeypatch.setitem(models.POSTERIORS, "kidiq", wrong)
    with pytest.raises(ConcordError, match="not draws of the model's posterior"):
        module.split(module.Params(posterior="kidiq"), 8, resources, coordinates="unconstrained")
