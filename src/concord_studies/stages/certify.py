r"""certify: make reference draws of a posterior by a long run of an exact sampler, and check them.

``config/datasets.yaml`` has the recipe and the SHA-256 of the draws, not the draws, which are made
where they are needed and are the same everywhere.

Preconditioned MALA: with C = R R^T the inverse of the Hessian at the mode, to three digits,

.. math::
    y = x - \tfrac{\epsilon^2}{2} C \nabla f(x) + \epsilon R z, \qquad z \sim N(0, I)

is accepted with the probability of Metropolis and Hastings, so that the posterior is kept whatever
the step, which is frozen when the warm-up ends. A tenth of the steps, at random, have a tenth of
its size and lead out of where the gradient is steep. Chains begin spread over twice the mode's
width.

Such draws may stand for the posterior (``Draws``) if R-hat is below 1.01 and the autocorrelation
between one and the next within 0.05, of every coordinate and its square; a run that fails is
refused. The rule is that of reference posteriors in posteriordb. Draws are rounded to seven digits
after the point, far below what they resolve: another machine's rounding errors, which MALA does not
amplify on a log-concave density, leave no trace then, and the bytes are the same.

Source: G. O. Roberts and R. L. Tweedie, Bernoulli 2 (1996) 341-363; the rate 0.574 of accepted
steps: G. O. Roberts and J. S. Rosenthal, J. R. Stat. Soc. B 60 (1998) 255-268.
"""

import logging
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from scipy.optimize import minimize

from concord import streams
from concord.errors import ConcordError
from concord.options import Count, Index, Options, build
from concord.progress import each
from concord.sampling.partition import Partition
from concord_studies.datasets.fetch import fetch
from concord_studies.datasets.folder import DataFolder
from concord_studies.datasets.registry import find, verify
from concord_studies.home import REGISTRY
from concord_studies.io import whole_file
from concord_studies.runs.keys import ChosenProblem

log = logging.getLogger(__name__)

ACCEPTED = 0.574
SMALL = 0.1  # share of the steps that are small, and their size relative to the others
R_HAT, AUTOCORRELATION = 1.01, 0.05
DIGITS = 7


class Recipe(Options):
    """The sampler settings, problem and seed from which certified draws are made."""

    problem: Annotated[dict[str, Any], "the problem's kind and options"]
    draws: Annotated[Count, "number of draws, of all chains together"] = 10_000
    chains: Annotated[Count, "chains, which divide the draws"] = 20
    thin: Annotated[Count, "steps from one draw to the next"] = 30
    warm_up: Annotated[int, Meta(ge=100), "steps before the first draw"] = 1000
    seed: Annotated[Index, "of the random numbers"] = 1


def sample(problem: Any, recipe: Recipe, rng: np.random.Generator) -> np.ndarray:
    """Sample a problem of one agent by preconditioned MALA; return draws (chains, draws, dim).

    recipe: chains, steps and seed.
    """
    chains, dim = recipe.chains, problem.dim

    def gradient(x: np.ndarray) -> np.ndarray:
        """Return the gradient of the potential at a point (dim,)."""
        slope: np.ndarray = problem.gradient(x[None, None])
        return slope[0, 0]

    def hessian(x: np.ndarray) -> np.ndarray:
        """Return the symmetric Hessian of the potential at a point, by central differences."""
        columns = [gradient(x + h) - gradient(x - h) for h in 1e-4 * np.eye(dim)]
        return (np.array(columns) + np.array(columns).T) / 4e-4

    energy = problem.potential
    mode = minimize(lambda x: energy(x[None, None])[0, 0], np.zeros(dim), jac=gradient).x
    for _ in range(3):  # to rounding
        mode = mode - np.linalg.solve(hessian(mode), gradient(mode))
    root = _round_coarsely(np.linalg.cholesky(np.linalg.inv(hessian(mode))))
    x = mode + 2 * rng.standard_normal((chains, dim)) @ root.T
    step, draws = 1.0, np.empty((chains, recipe.draws // chains, dim))

    def evaluate(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return energy (chains,) and whitened gradient (chains, dim) at points (chains, dim)."""
        return energy(x[:, None])[:, 0], problem.gradient(x[:, None])[:, 0] @ root

    value, downhill = evaluate(x)
    for k in each(range(-recipe.warm_up, draws.shape[1] * recipe.thin), "steps"):
        z = rng.standard_normal((chains, dim))
        size = step * np.where(rng.random((chains, 1)) < SMALL, SMALL, 1.0)
        move = size * z - size**2 / 2 * downhill  # of u, where x = root u
        other = x + move @ root.T
        there, back = evaluate(other)
        reverse = (move - size**2 / 2 * back) / size
        log = value - there + ((z**2).sum(axis=1) - (reverse**2).sum(axis=1)) / 2
        accepted = np.log(rng.random(chains)) < log
        for old, new in ((x, other), (value, there), (downhill, back)):
            old[accepted] = new[accepted]
        if k < 0:
            step *= np.exp(0.1 * (accepted.mean() - ACCEPTED))
        elif (k + 1) % recipe.thin == 0:
            draws[:, k // recipe.thin] = x
        if k == -1:
            step = float(_round_coarsely(np.array(step)))
    return np.round(draws, DIGITS)


def _round_coarsely(values: np.ndarray) -> np.ndarray:
    """Return numbers rounded to three digits, so that earlier rounding errors do not show."""
    return values.astype(np.float16).astype(float)


def diagnose(draws: np.ndarray) -> dict[str, float]:
    """Return the worst R-hat, autocorrelation and effective sample size of draws and their squares.

    draws: shape (chains, draws, dim).
    """
    from arviz_stats.base import array_stats  # a second

    values = np.concatenate([draws, draws**2], axis=2)
    centered = values - values.mean(axis=(0, 1))
    lagged = (centered[:, 1:] * centered[:, :-1]).mean(axis=(0, 1)) / centered.var(axis=(0, 1))
    return {
        "R-hat": float(array_stats.rhat(values, chain_axis=0, draw_axis=1).max()),
        "autocorrelation": float(np.abs(lagged).max()),
        "effective sample size": float(array_stats.ess(values, chain_axis=0, draw_axis=1).min()),
    }


def check_draws(draws: np.ndarray) -> dict[str, float]:
    """Return the diagnostics of draws; raise a ConcordError that names one that is too large.

    draws: shape (chains, draws, dim).
    """
    diagnostics = diagnose(draws)
    for name, most in (("R-hat", R_HAT), ("autocorrelation", AUTOCORRELATION)):
        if not diagnostics[name] < most:
            size = f"{name} {diagnostics[name]:.4g}"
            raise ConcordError(f"{size} of the draws is not below {most}; raise thin or warm_up")
    return diagnostics


def provide(name: str, output: Path, mirror: str | None = None) -> None:
    """Put a data file in place: download it, copy it from a mirror, or make its draws.

    name: ``DATASET/FILE`` of the registry. mirror: a folder or address of copies; None: none.
    """
    if find(name).recipe is None:
        fetch(name, output, mirror=mirror)
    else:
        certify(name, output)


def certify(name: str, output: Path, registry: str | Path = REGISTRY) -> None:
    """Sample the reference draws of a registered file, write them, and log their diagnostics.

    name: ``DATASET/FILE``. output: the .npy file, (draws, dim). registry: the YAML file that lists
    data sets. A ConcordError if the diagnostics fail, or the file's SHA-256 is not the registered
    one.
    """
    where = f"{registry}: {name.replace('/', '.files.')}.recipe"
    recipe = build(Recipe, find(name, registry).recipe, where)
    chosen = ChosenProblem.parse(recipe.problem, f"{where}.problem")
    split = Partition.parse({"kind": "equal"}, where)

    def stream(what: str) -> np.random.Generator:
        """Return the generator of random numbers with this label for the recipe."""
        return streams.generator(recipe.seed, what, "reference")

    problem = chosen.module.build(chosen.params, 1, split, stream, DataFolder(Path("resources")))
    draws = sample(problem, recipe, stream("noise"))
    try:
        diagnostics = check_draws(draws)
    except ConcordError as error:
        raise ConcordError(f"{where}: {error}") from None
    text = ", ".join(f"{key} {value:.5g}" for key, value in diagnostics.items())
    log.warning("%s: %s", name, text)
    with whole_file(output) as path:
        with path.open("wb") as file:  # np.save would add a suffix to a name
            np.save(file, draws.reshape(-1, draws.shape[2]), allow_pickle=False)
        try:
            verify(name, path, registry)
        except ConcordError:
            raise ConcordError(
                f"{output}: the draws made here are not those of {registry}, by their SHA-256; "
                "use the versions of envs/requirements.lock"
            ) from None
