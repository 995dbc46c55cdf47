"""Chains against the exact law, for every linear run of gurbuzbalaban2021, mini-batches included.

Left out: runs of one chain, which are there for exact numbers, and of a hundred agents; both are of
the same samplers. And mini-batches of five in place, whose tails leave no moment a standard error
(test_de_released.py enumerates such mini-batches).

Differences of mean and covariance are measured in standard errors, estimated from the chains
themselves; the seed is fixed, so five of them are never exceeded by bad luck on another day.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from concord.laws import exact, paths
from concord.sampling import initial, streams
from concord.sampling.loop import simulate
from concord.sampling.recorder import Record, Recorder
from concord.studies.config import load_config
from concord.studies.study import Study
from variants import Scaled

ROOT = Path(__file__).parents[2]
PAPER = Study(
    ROOT / "config" / "papers" / "gurbuzbalaban2021",
    load_config(ROOT / "config" / "config.yaml", {"scale": "paper", "seed": 1}),
)
RUNS = {
    run.folder.partition("/")[2]: run
    for run in PAPER.runs.values()
    if run.problem.kind == "linear_regression"
    and run.chains > 1
    and run.agents == 6
    and run.folder != "gurbuzbalaban2021/linear_batch_released/reading=released+batch_size=5"
}
ITERATIONS = [0, 1, 2, 5, 12, 40]
CHAINS = 12_000
LIMIT = 5.0


def deviation(run, factor=1.0):
    """Return the largest difference of a moment from its exact value, in standard errors."""
    problem = run.build_problem(ROOT / "resources")
    batch_size = getattr(run.sampler.params, "batch_size", None)
    # The gathered rows of large batches are what takes time: fewer chains and steps for them.
    chains, steps = (CHAINS, 40) if batch_size is None else (CHAINS // (1 + batch_size // 10), 12)
    due = [k for k in ITERATIONS if k <= steps]
    shape = (chains, problem.agents, problem.dim)
    rng = Scaled(streams.generator(1, "law", run.experiment, run.name), factor)
    x0 = initial.positions(run.initial, problem, shape, streams.generator(1, "law", "start"))
    state, step = run.sampler.module.init(problem, run.graph, run.sampler.params, x0, rng)
    recorder = Recorder(Record(at=tuple(due)), problem, shape, steps)
    trace = simulate(state, step, steps, recorder, rng)

    update = run.sampler.module.affine(problem, run.graph, run.sampler.params)
    start = exact.initial(
        problem.agents, problem.dim, run.initial.moments(problem.dim), *update.auxiliary
    )
    noise = None
    if batch_size is not None:

        def noise(mean, cov):
            how = run.sampler.params.batch_scale, run.sampler.params.batch_pool
            return problem.batch_noise_covariance(mean, cov, batch_size, *how)

    law = paths.single(update, start, problem.agents, problem.dim, noise).law(due)
    mean = np.concatenate([law.mean, law.average_mean[:, None]], axis=1)
    cov = np.concatenate([law.cov, law.average_cov[:, None]], axis=1)
    draws = np.concatenate([trace["x"], trace["x_average"][:, :, None]], axis=2)
    centered = draws - mean
    products = centered[..., :, None] * centered[..., None, :] - cov
    # Small batches multiply the state by random matrices, and tails grow until a covariance rests
    # on a few chains out of thousands: there it has no standard error, and is not compared.
    kurtosis = (centered**4).mean(axis=0) / (centered**2).mean(axis=0) ** 2
    usual = kurtosis.max(axis=(1, 2)) < 30
    assert usual[: due.index(2) + 1].all() and (batch_size is not None or usual.all())
    return max(
        np.abs(values.mean(axis=0) / (values.std(axis=0) / np.sqrt(chains)))[chosen].max()
        for values, chosen in ((centered, slice(None)), (products, usual))
    )


@pytest.mark.parametrize("name", RUNS)
def test_chains_have_the_exact_moments(name):
    assert deviation(RUNS[name]) < LIMIT


@pytest.mark.parametrize("name", [n for n in RUNS if "topology=ring" in n and "released" not in n])
@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_noise_that_is_five_percent_off_is_noticed(name, factor):
    assert deviation(RUNS[name], factor) > LIMIT


def test_the_linear_runs_are_those_of_the_paper():
    experiments = {name.partition("/")[0] for name in RUNS}
    assert experiments >= {
        "linear_sgld",
        "linear_sghmc",
        "linear_batch",
        "linear_step",
        "linear_network",
    }
    assert {run.document["sampler"].get("batch_size") for run in RUNS.values()} >= {None, 5, 100}
