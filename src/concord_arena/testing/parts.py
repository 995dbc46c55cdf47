"""Checks of topologies, partitions, schedules, initial laws, compressions and metrics."""

from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from concord import streams
from concord.chains import Labels, sample_chains
from concord.errors import ConcordError
from concord.minibatches import Batches
from concord.networks.construction import network_under
from concord.networks.graph import Graph
from concord.networks.topology import ChosenTopology, build_graph
from concord.options import plain
from concord.record import Record
from concord.samplers.de_sgld import DESGLD
from concord.sampling import initial, partition
from concord.sampling.schedules import Schedule
from concord_arena.testing._outcome import expect, taken
from concord_arena.testing.variants import Bare, problem, variants
from concord_studies.contracts import Label, declared
from concord_studies.metrics import NETWORKS, Measurement, Row, alike, check_network

AGENTS = (1, 2, 3, 5, 6, 12)


def _kind(module: Any) -> str:
    """Return the name of a kind, taken from its module's file."""
    return Path(module.__file__).stem


def graphs_are_undirected_and_the_same_again(module: Any) -> None:
    """Check that a graph has no loops, agents 0 to N - 1, and the same edges at each call."""

    def again(case: tuple[Any, int]) -> list[Graph]:
        """Build the graph of options and a number of agents twice."""
        params, agents = case
        kind = ChosenTopology(_kind(module), **plain(params))
        try:
            return [kind.graph(agents) for _ in range(2)]
        except ConcordError as error:
            expect(";" in str(error), f"it refuses {agents} agents without a remedy: {error}")
            expect(": kind " not in str(error), str(error))
            raise

    for (_, agents), graphs in taken(again, product(variants(module), AGENTS)):
        one, other = (graph.edges.tolist() for graph in graphs)
        expect(one == other, f"{agents} agents have another graph again; use a seed")


def every_row_has_one_agent(module: Any) -> None:
    """Check that each row goes to one agent, none is left empty, and the generator decides."""

    def split(case: tuple[Any, Any]) -> list[list[np.ndarray]]:
        """Split rows over five agents twice, with the same generator."""
        params, rows = case
        way = partition.Partition(partition.PartitionChoice(_kind(module), **plain(params)))
        return [way.split(rows, 5, streams.generator(1, "p")) for _ in range(2)]

    for _, (parts, again) in taken(split, product(variants(module), (40, np.arange(40) % 3))):
        expect(len(parts) == 5, f"it gives {len(parts)} parts to 5 agents")
        expect(min(map(len, parts)) > 0, "it leaves an agent without rows")
        every = sorted(int(row) for part in parts for row in part)
        expect(every == list(range(40)), "its parts do not hold every row once")
        equal = all(map(np.array_equal, parts, again))
        expect(equal, "the same generator gives other parts")


def values_are_positive_numbers(module: Any) -> None:
    """Check that steps 0 to 1000 are positive, and that the YAML form gives them again."""
    for params in variants(module):
        form = {"kind": _kind(module), **plain(params)}
        schedule = Schedule.parse(form, "schedule")
        values = np.array([schedule(k) for k in range(1001)])
        expect(bool((np.isfinite(values) & (values > 0)).all()), f"{form} has values not above 0")
        again = Schedule.parse(schedule.plain(), "schedule")
        expect([again(k) for k in range(20)] == values[:20].tolist(), f"{form} is another again")


def draws_have_the_stated_moments(module: Any) -> None:
    """Check that mean and covariance of 10^5 draws are within five standard errors."""

    def drawn(params: Any) -> tuple[np.ndarray, Any]:
        """Return draws of an initial law, and its moments."""
        law = initial.Law(_kind(module), **plain(params))
        x = initial.positions(law, Bare(200), (500, 200, 2), streams.generator(1, "x0"))
        return x, law.moments(2)

    for _, (x, moments) in taken(drawn, variants(module)):
        if moments is None:
            continue
        mean, cov = moments
        draws = x.reshape(-1, 2) - mean
        chance = np.sqrt(np.diag(cov) / len(draws))
        expect(bool((np.abs(draws.mean(axis=0)) <= 5 * chance).all()), "draws have another mean")
        products = draws[:, :, None] * draws[:, None, :]
        chance = products.std(axis=0) / np.sqrt(len(draws))
        off = np.abs(products.mean(axis=0) - cov)
        expect(bool((off <= 5 * chance + 1e-12).all()), "draws have another covariance")


def what_stands_for_a_vector_is_finite_and_the_same_again(module: Any) -> None:
    """Check that a compression of x, and of zeros, is finite, repeatable and leaves x unchanged."""
    for params in variants(module):
        bits = module.bits(params, 7, 8)
        expect(
            isinstance(bits, int) and bits > 0, f"bits of a vector are {bits!r}, no number above 0"
        )
        for x in (streams.generator(1, "x").standard_normal((3, 4, 7)), np.zeros((3, 4, 7))):
            x.setflags(write=False)
            one, other = (module.compress(params, x, streams.generator(1, "c")) for _ in range(2))
            expect(one.shape == x.shape, f"what stands for x has the shape {one.shape}")
            expect(bool(np.isfinite(one).all()), "what stands for x is not finite everywhere")
            expect(np.array_equal(one, other), "the same generator gives something else")


def a_run_is_measured_or_refused(module: Any) -> None:
    """Check that a short run of DE-SGLD gives rows of the family's metrics, or a ConcordError."""
    for prob in (problem(5, 2), Bare(5)):
        network = network_under(build_graph("ring", 5), None)
        sampler, start = DESGLD(step_size=Schedule(0.01)), initial.Law("normal")
        about: Any = {"record": Record(), "seed": 1, "labels": Labels()}
        trace = sample_chains(sampler, prob, network, law=start, chains=4, iterations=6, **about)
        streamed = partial(streams.generator, 1)
        m = Measurement(trace, prob, network, sampler, Batches(), start, 6, streamed)
        try:
            check_network(module, None)
            rows = list(module.rows(m))
        except ConcordError as error:
            expect(";" in str(error), f"it refuses a run without a remedy: {error}")
            continue
        for row in rows:
            expect(isinstance(row, Row), "rows yields something else than metrics.Row")
            named = any(fnmatchcase(row.metric, name) for name in module.METRICS)
            expect(named, f"it yields {row.metric!r}, which METRICS does not name")
            exact = any(fnmatchcase(row.metric, name) for name in declared(module, "EXACT"))
            expect(not (exact and row.chance), f"{row.metric!r} is in EXACT, and random")


# What names metrics of a family, or patterns or beginnings of some.
NAMING = ("LABELS", "CONDITIONS", "EXACT", "OF_LAW")


def what_is_declared_is_of_its_metrics(module: Any) -> None:
    """Check that a family labels and marks its own metrics only, and names a known network."""
    metrics = module.METRICS
    for what in NAMING:
        names = declared(module, what)
        expect(isinstance(names, (tuple, dict)), f"{what} is neither a tuple nor a mapping")
        for name in names:
            own = (alike(n, metric) for n in (name, f"{name}_*") for metric in metrics)
            known = name in metrics or any(own)
            expect(known, f"{what} names {name!r}, which METRICS does not have")
    labels = declared(module, "LABELS").values()
    expect(all(isinstance(one, Label) for one in labels), "LABELS has no Label")
    about = declared(module, "NETWORK")
    expect(about is None or about in NETWORKS, f"NETWORK is none of {', '.join(NETWORKS)}")


CHECKS: dict[str, tuple[Any, ...]] = {
    "topologies": (graphs_are_undirected_and_the_same_again,),
    "partitions": (every_row_has_one_agent,),
    "schedules": (values_are_positive_numbers,),
    "initial": (draws_have_the_stated_moments,),
    "compressions": (what_stands_for_a_vector_is_finite_and_the_same_again,),
    "metrics": (what_is_declared_is_of_its_metrics, a_run_is_measured_or_refused),
}
