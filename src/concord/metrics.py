"""Metrics: long-format tables computed from a trace, with an interval wherever chance enters.

A run lists the families it wants, each a function of a ``Measurement``; rows have the columns
iteration, agent, metric, value, lo, hi. Agents are numbers, ``average`` (the network average) or
``network``. Numbers that involve no chance have no interval.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concord import exact
from concord.chain import Trace
from concord.errors import ConcordError, nearest
from concord.gaussian import bootstrap_w2, w2, w2_floor

COLUMNS = ("iteration", "agent", "metric", "value", "lo", "hi")
REPLICATES = 200
LEVEL = 0.95

Row = tuple[int, str, str, float, float | None, float | None]


@dataclass(frozen=True)
class Measurement:
    """What a metric may read: the trace, and the run it came from.

    sampler, sampler_params
        The sampler's module and parameters.
    initial
        Law of x^(0).
    stream
        Stream of random numbers for resampling, by label.
    """

    trace: Trace
    problem: Any
    topology: Any
    sampler: Any
    sampler_params: Any
    initial: Any
    iterations: int
    stream: Callable[[str], np.random.Generator]

    @property
    def agents(self) -> list[str]:
        """Return the recorded agents, as they stand in tables."""
        return [str(agent) for agent in self.trace.agent]


def check(families: Sequence[str], where: str) -> None:
    """Refuse a family that does not exist."""
    for number, family in enumerate(families):
        if family not in FAMILIES:
            raise ConcordError(
                f"{where}[{number}]: there is no metric {family!r}; {nearest(family, FAMILIES)}"
            )


def measure(families: Sequence[str], measurement: Measurement) -> list[Row]:
    """Return the rows of all families, and of divergence, which every run reports."""
    rows = list(_diverged(measurement))
    for family in families:
        rows += FAMILIES[family](measurement)
    return rows


def to_csv(rows: Sequence[Row]) -> str:
    """Return the table as text; numbers in their shortest form that reads back exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for iteration, agent, metric, *numbers in rows:
        writer.writerow(
            [int(iteration), agent, metric, *("" if n is None else repr(float(n)) for n in numbers)]
        )
    return text.getvalue()


def _diverged(m: Measurement) -> Iterator[Row]:
    """Fraction of chains that left the finite range, and the first iteration at which one did."""
    at = m.trace["diverged_at"]
    gone = at[at >= 0]
    yield m.iterations, "network", "diverged", gone.size / at.size, None, None
    if gone.size:
        yield int(gone.min()), "network", "diverged_first", gone.min(), None, None


def _positions(m: Measurement) -> tuple[list[str], np.ndarray]:
    """Return names and draws (chain, draw, name, dim) of recorded agents and average."""
    names, draws = [], []
    if "x" in m.trace:
        names += m.agents
        draws.append(m.trace["x"])
    if "x_average" in m.trace:
        names.append("average")
        draws.append(m.trace["x_average"][:, :, None])
    return names, np.concatenate(draws, axis=2)


def w2_rows(m: Measurement) -> Iterator[Row]:
    """2-Wasserstein distance to the exact posterior of a Gaussian problem.

    w2: of the Gaussian fitted to the chains, with a bootstrap interval over chains. w2_exact: of
    the exact law, where the sampler states it. w2_floor: what as many exact posterior draws show.
    """
    target = m.problem.posterior
    if target is None:
        raise ConcordError("metric w2 needs a problem with an exact Gaussian posterior; remove it")
    names, draws = _positions(m)
    value, lo, hi = bootstrap_w2(draws, target, REPLICATES, m.stream("bootstrap"), LEVEL)
    for column, name in enumerate(names):
        for row, k in enumerate(m.trace.draw):
            yield k, name, "w2", value[row, column], lo[row, column], hi[row, column]
    law = exact_law(m)
    if law is not None:
        distances = {
            str(agent): w2(law.mean[:, agent], law.cov[:, agent], target)
            for agent in m.trace.agent
            if "x" in m.trace
        }
        distances["average"] = w2(law.average_mean, law.average_cov, target)
        for name in names:
            for row, k in enumerate(law.iterations):
                yield k, name, "w2_exact", distances[name][row], None, None
    yield m.iterations, "network", "w2_floor", *w2_floor(target, draws.shape[0], m.stream("floor"))


def exact_law(m: Measurement) -> exact.Law | None:
    """Return the exact law at the recorded iterations, None where the sampler states none."""
    if not hasattr(m.sampler, "affine") or not hasattr(m.problem, "gram"):
        return None
    update = m.sampler.affine(m.problem, m.topology, m.sampler_params)
    agents, dim = m.problem.agents, m.problem.dim
    mean, cov = exact.initial(agents, dim, m.initial.moments(dim), *update.auxiliary)
    noise = None
    batch_size = getattr(m.sampler_params, "batch_size", None)
    if batch_size is not None:

        def noise(mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
            return m.problem.batch_noise_covariance(mean, cov, batch_size)

    return exact.propagate(
        update.at, mean, cov, m.iterations, m.trace.draw.tolist(), agents, dim, noise
    )


def consensus_error_rows(m: Measurement) -> Iterator[Row]:
    """Mean over chains of sum_i |x_i - average|^2 / N, with a normal interval."""
    values = m.trace["consensus_error"]
    mean = values.mean(axis=0)
    half = _Z * values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0 * mean
    for row, k in enumerate(m.trace.draw):
        yield (
            k,
            "network",
            "consensus_error",
            mean[row],
            mean[row] - half[row],
            mean[row] + half[row],
        )


def misclassified_rows(m: Measurement) -> Iterator[Row]:
    """Box-plot statistics over chains of the number of misclassified points, and their mean.

    Whiskers reach the outermost chain within 1.5 interquartile ranges of the box. Median and mean
    carry bootstrap intervals over chains.
    """
    counts = m.trace["misclassified"]
    chains = counts.shape[0]
    chosen = m.stream("misclassified").integers(0, chains, size=(REPLICATES, chains))
    for column, agent in enumerate(m.agents):
        for row, k in enumerate(m.trace.draw):
            values = np.sort(counts[:, row, column])
            q25, median, q75 = np.percentile(values, [25, 50, 75])
            reach = 1.5 * (q75 - q25)
            inside = values[(values >= q25 - reach) & (values <= q75 + reach)]
            resampled = values[chosen]
            plain = {
                "min": values[0],
                "whisker_lo": min(inside[0], q25),
                "q25": q25,
                "q75": q75,
                "whisker_hi": max(inside[-1], q75),
                "max": values[-1],
            }
            for name, value in plain.items():
                yield k, agent, f"misclassified_{name}", value, None, None
            interval = _interval(np.median(resampled, axis=1))
            yield k, agent, "misclassified_median", median, *interval
            yield k, agent, "misclassified_mean", values.mean(), *_interval(resampled.mean(axis=1))


def accuracy_rows(m: Measurement) -> Iterator[Row]:
    """Mean over chains of each agent's accuracy with a normal interval, and the spread."""
    values = m.trace["accuracy"]
    mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1 if len(values) > 1 else 0)
    half = _Z * sd / np.sqrt(len(values))
    for column, agent in enumerate(m.agents):
        for row, k in enumerate(m.trace.draw):
            center, width = mean[row, column], half[row, column]
            yield k, agent, "accuracy_mean", center, center - width, center + width
            yield k, agent, "accuracy_sd", sd[row, column], None, None


def messages_rows(m: Measurement) -> Iterator[Row]:
    """Vectors and bytes each agent has sent so far (mean over chains)."""
    sent = m.trace["vectors_sent"]
    if sent.ndim == 3:
        sent = sent.mean(axis=0)
    width = m.problem.dim * np.dtype(getattr(m.problem, "dtype", np.float64)).itemsize
    for column, agent in enumerate(m.agents):
        for row, k in enumerate(m.trace.draw):
            yield k, agent, "vectors_sent", sent[row, column], None, None
            yield k, agent, "bytes_sent", width * sent[row, column], None, None


_Z = 1.959963984540054


def _interval(resampled: np.ndarray) -> tuple[float, float]:
    lo, hi = np.percentile(resampled, [100 * (1 - LEVEL) / 2, 100 * (1 + LEVEL) / 2])
    return float(lo), float(hi)


FAMILIES: dict[str, Callable[[Measurement], Iterator[Row]]] = {
    "w2": w2_rows,
    "consensus_error": consensus_error_rows,
    "misclassified": misclassified_rows,
    "accuracy": accuracy_rows,
    "messages": messages_rows,
}
