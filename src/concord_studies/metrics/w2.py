"""2-Wasserstein distance to the exact posterior of a Gaussian problem."""

from collections.abc import Iterator

import numpy as np

from concord.contracts import Label
from concord.laws.gaussian import FLOORS, bootstrap_w2, w2, w2_floor
from concord.laws.intervals import LEVEL, REPLICATES
from concord.laws.law import exact_law
from concord.laws.transport import thinned
from concord.sampling.trace import Trace
from concord_studies.metrics import Measurement, Row, lacking, series
from concord_studies.metrics._references import gaussian

METRICS = ("w2", "w2_exact", "w2_floor")
OF_LAW = ("w2_exact",)
EXACT = ("w2_exact",)
LABELS = {
    "w2_exact": Label("exact W2"),
    "w2": Label(head="W2 [95 % interval]"),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield W2 between the draws and the posterior, for recorded agents and the average.

    w2: of the Gaussian fitted to the chains, with a bootstrap interval over chains. w2_exact: of
    the exact law, where the sampler states it. w2_floor: what as many exact posterior draws show.
    """
    target = gaussian(m.problem, "w2")
    names, draws = positions(m.trace)
    if m.trace.chains:
        found = bootstrap_w2(draws, target, REPLICATES, m.stream("bootstrap"), LEVEL)
        yield from series(m.trace.draw, names, {"w2": found})
    if (law := exact_law(m)) is not None:
        for name in names:
            exact = {"w2_exact": w2(*law.of(name), target)}
            yield from series(law.iterations, name, exact, chance=False)
    if m.trace.chains:
        floor = w2_floor(target, m.trace.chains, m.stream("floor"))
        yield Row(m.iterations, "network", "w2_floor", *floor, trials=FLOORS)


def positions(trace: Trace) -> tuple[list[str], np.ndarray]:
    """Return the names and draws, (chain, draw, name, dim), of recorded agents and average."""
    if "x" not in trace and "x_average" not in trace:
        raise lacking("w2", "record.draws or record.average")
    names, draws = [], []
    if "x" in trace:
        names += [str(agent) for agent in trace.agent]
        draws.append(trace["x"])
    if "x_average" in trace:
        names.append("average")
        draws.append(trace["x_average"][:, :, None])
    return names, np.concatenate(draws, axis=2)


def pooled(m: Measurement, most: int) -> tuple[list[str], np.ndarray]:
    """Return names, and draws (chain, draw, name, dim) of all chains that make one sample.

    The draws are beyond burn-in, thinned evenly to ``most`` in all, at least one of each chain.
    """
    names, draws = positions(m.trace)
    rows = thinned(m.late, max(most // len(draws), 1))
    return names, draws[:, rows]
