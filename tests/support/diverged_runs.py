"""Runs of chains that diverged, and of chains that did not, to which every metric applies.

The chains are exact posterior draws. What diverged ones leave looks perfect here: no error, every
point classified right, draws where the posterior is; only the iteration at which they diverged
tells.
"""

import itertools
import tempfile
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import ot  # noqa: F401  before warnings are errors

from concord import kinds, streams
from concord.errors import ConcordError
from concord.laws.quadrature import from_log_density
from concord.networks.compressions import Compression
from concord.networks.conditions import Conditions
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.problems.from_options import from_options
from concord.problems.kinds import linear_regression
from concord.samplers.d_ula import DULA
from concord.samplers.de_psgld import DEPSGLD, Ball
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.samplers.gossip_ula import GossipULA
from concord.samplers.qlsd import QLSD
from concord.sampling import initial
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from concord_studies import metrics
from concord_studies.datasets.fetch import fetch
from concord_studies.datasets.tables import Recorded
from concord_studies.metrics import Measurement, Row

CHAINS, LAST, AGENTS, IMAGES = 6, 40, 4, 12
DIVERGED = 20
STEPS = np.arange(LAST + 1)[None, :, None].repeat(CHAINS, 0).repeat(AGENTS, 2)
RING = build_graph("ring", AGENTS)
HIDDEN = Conditions(privacy={"clip": 1.0, "sigma": 9.0}, compute={"seconds": 0.5})
NETWORKS = Network(RING, None), Network(RING, HIDDEN)
# Those that read no chain, or problems and samplers that no run here has.
APART = {"admm_law", "answers", "coded_bits", "complexity", "recorded", "rounds", "two_modes"}
APART |= {"effects", "predictive_scores", "visits", "constants", "estimators", "shard_draws"}
FAMILIES = sorted({*kinds.names("metrics")} - APART)
DIMENSIONS = {
    "x": ("chain", "draw", "agent", "dim"),
    "x_average": ("chain", "draw", "dim"),
    "consensus_error": ("chain", "draw"),
    "predictive_mean": ("chain", "agent", "predictive_dim_0", "predictive_dim_1"),
    "predictive_sd": ("chain", "agent", "predictive_dim_0", "predictive_dim_1"),
}
SAMPLERS = (
    DESGLD(Schedule(0.05)),
    DESGHMC(Schedule(0.01), friction=1.0),
    GossipULA(Schedule(0.001), Schedule(0.1), communication="triggered", threshold=2.0, decay=0.6),
    QLSD(Schedule(0.01), compression=Compression("qsgd", levels=4)),
    DEPSGLD(Schedule(0.01), Ball(radius=1.0), 0.01),
    DULA(Schedule(0.1, 1, 1, 0.6), Schedule(0.2, 1, 1, 0.1)),
)

RECORD = Recorded(
    "extra2024_accuracy_synthetic", "accuracy_mean", {"network": "complete", "sampler": "de_sgld"}
)


@cache
def kept(table: str) -> Path:
    """Return a folder of data files that has a kept table."""
    folder = Path(tempfile.mkdtemp())
    (folder / table).mkdir()
    fetch(f"{table}/{table}.csv.gz", folder / table / f"{table}.csv.gz")
    return folder


@cache
def problem(dim: int) -> Any:
    """Return a linear regression that is everything else besides."""
    made: Any = from_options(linear_regression)(AGENTS, points=10 * AGENTS, dim=dim)
    law = made.posterior
    precision = np.linalg.inv(law.cov)

    def log_posterior(a: Any, b: Any) -> Any:
        deviation = np.stack(np.broadcast_arrays(a, b), axis=-1) - law.mean
        return -0.5 * np.einsum("...d,de,...e", deviation, precision, deviation)

    if dim == 2:
        made.log_posterior = log_posterior
        made.reference = from_log_density(log_posterior, ((-12, 12), (-12, 12)), 60)
    made.tests = {"digits": SimpleNamespace(labels=np.arange(IMAGES) % 3)}
    made.accuracy = lambda x: (x > 0).mean(axis=-1)
    made.test = np.eye(dim), np.ones(dim)
    made.constrain = lambda x: {"theta": x}
    made.examples = {"digits": {"0": 0}}
    return made


def sound(dim: int, seed: int, chains: int = CHAINS) -> Trace:
    """Return a trace of chains of the posterior's draws, with everything else recorded."""
    rng = np.random.default_rng(seed)
    counts = chains, LAST + 1, AGENTS
    chances = rng.dirichlet(np.ones(3), (chains, AGENTS, IMAGES))
    arrays = {
        "x": rng.multivariate_normal(*vars(problem(dim).posterior).values(), counts),
        "x_average": rng.multivariate_normal(*vars(problem(dim).posterior).values(), counts[:2]),
        "consensus_error": rng.uniform(1, 2, counts[:2]),
        "accuracy": rng.uniform(0.5, 0.9, counts),
        "misclassified": rng.integers(20, 900, counts),
        "predictive_mean": chances.astype(np.float32),
        "predictive_sd": (0.1 * chances).astype(np.float32),
        **dict.fromkeys(("unicasts", "unicast_bytes", "broadcasts", "gradients"), STEPS[:chains]),
        **{"seconds": 0.5 * STEPS[:chains], "waited": 0.1 * STEPS[:chains]},
        "diverged_at": np.full(chains, -1),
    }
    named = {
        name: (DIMENSIONS.get(name, ("chain", "draw", "agent")[: array.ndim]), array)
        for name, array in arrays.items()
    }
    return Trace(named, np.arange(LAST + 1), np.arange(AGENTS))


def diverged(trace: Trace, chains: int) -> Trace:
    """Return the trace after its first chains diverged at iteration 20."""
    variables = {name: (dims, array.copy()) for name, (dims, array) in trace.variables.items()}
    changed = Trace(variables, trace.draw, trace.agent)
    lost = slice(0, chains), slice(DIVERGED, None)
    perfect = {"consensus_error": 0, "accuracy": 1, "misclassified": 0}
    for name, value in perfect.items():
        changed[name][lost] = value
    changed["predictive_mean"][:chains] = np.eye(3)[np.arange(IMAGES) % 3]
    changed["diverged_at"][:chains] = DIVERGED
    return changed


def equal(trace: Trace) -> Trace:
    """Return the trace with every chain the same as its first."""
    return replace(
        trace,
        variables={
            name: (names, np.repeat(values[:1], len(values), axis=0))
            for name, (names, values) in trace.variables.items()
        },
    )


@cache
def measured(
    family: str, seed: int = 0, lost: int = 0, chains: int = CHAINS, alike: bool = False
) -> list[Row]:
    """Return a family's rows, of the first of the made-up runs that it applies to.

    ``lost``: the number of its chains that diverged. ``alike``: all chains are the same.
    """
    refused = []
    for network, dim in itertools.product(NETWORKS, (2, 1)):
        trace = sound(dim, seed, chains)
        for sampler in SAMPLERS:
            m = Measurement(
                trace=diverged(equal(trace) if alike else trace, lost),
                problem=problem(dim),
                network=network,
                sampler=sampler,
                initial=initial.Law("normal"),
                iterations=LAST,
                stream=lambda label: streams.generator(1, label),
                recorded=RECORD,
                resources=kept(RECORD.table),
            )
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    rows = metrics.measure([family], m)
            except ConcordError as error:
                refused.append(str(error))
            else:
                return [row for row in rows if not row.metric.startswith("diverged")]
    raise AssertionError(f"{family} applies to none of the runs here; add one: {refused}")
