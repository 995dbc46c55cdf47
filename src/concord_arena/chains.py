"""Scores of what has no exact law: many chains of the whole network, compared with the posterior.

E f is estimated by the mean over C chains, whose own error adds Var f / C to the bias squared;
that much is subtracted. What is left is never less than the floor, the mean of what C exact draws
show in its place: a run is not flattered by its noise. The largest of several estimates is too
large, and so is that of the worst agent, whose floor is that of as many agents with draws of their
own: 3 / C to 10 / C among eight. Scores that choose a setting are never less than 1 / C, so that
fewer of them tie. If one chain diverges the score is infinite.

Where no posterior is known, as of a network's weights, predictions are scored: the negative log
likelihood (nll) of labels of rows kept apart, by the mixture over ``PREDICTED`` draws of the second
half of each chain (``concord.predictive``), on average over chains. Settings are chosen by the
problem's rows for validation and judged by its rows for testing.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from concord import streams
from concord.chains import Labels, sample_chains
from concord.errors import ConcordError, DivergenceWarning
from concord.networks.network import Network
from concord.predictions import predictive
from concord.problem import Problem
from concord.record import ChainDivergence, Record
from concord.reference import Reference, reference_of
from concord.sampler import Algorithm, own_options
from concord.sampling.trace import Trace
from concord_arena import scores
from concord_arena.scores import Levels
from concord_arena.tuning import has_posterior
from concord_studies import metrics
from concord_studies.metrics import Measurement
from concord_studies.runs.run import Run

POOLED = 1000  # draws of which distances are
LATE = 50  # draws of a chain that are compared, from its second half
PREDICTED = 5  # of these, evenly spaced, whose predictions are mixed
FLOORS = 20  # times that the floor of a score is drawn


class Chains:
    """Versions, each a sampler on a problem, scored by chains that are sampled on demand.

    named: a problem for each sampler, with the name of its random streams. Noise differs between
    samplers; starts and events on the network are the same for all of them.
    run: the run whose number of chains, seed and law of starts hold.
    mix: the read-out, a matrix (agents, agents) applied to the positions; None: the positions.
    cache: reference draws and floors of the problems, shared by all samplers; new ones are added.
    """

    exact = False

    def __init__(
        self,
        samplers: Sequence[Algorithm],
        named: Sequence[tuple[str, Problem]],
        network: Network,
        run: Run,
        mix: np.ndarray | None,
        cache: dict[Any, Any],
    ) -> None:
        """Pair samplers with named problems on a network."""
        self._versions = list(zip(named, samplers, strict=True))
        self._network, self._run, self._mix, self._cache = network, run, mix, cache

    def bias(self, iterations: Sequence[int]) -> Levels:
        """Return b² by level at increasing iterations, each (iterations, versions).

        Of predictions the nll of rows for validation, at the last iteration alone. It is infinite
        for a version of which a chain diverges.
        """
        by_version = []
        for (name, problem), sampler in self._versions:
            try:
                if not has_posterior(problem):
                    trace = self._sample(name, problem, sampler, _spread_late(iterations[-1]))
                    nll = score_predictions(trace, problem, "validation")["nll"]
                    by_version.append({level: nll[level] for level in scores.LEVELS})
                    continue
                trace = self._sample(name, problem, sampler, iterations, strict=True)
                by_version.append(_score_bias(trace, problem))
            except ChainDivergence:
                by_version.append(dict.fromkeys(scores.LEVELS, np.full(len(iterations), np.inf)))
        return scores.stack_versions(by_version)

    def measure(
        self, iterations: Sequence[int], families: Sequence[str]
    ) -> tuple[Levels, Iterable[tuple[str, Levels]]]:
        """Return the score by level, as ``bias`` does, and further metrics by level at the end.

        The further metrics are of the draws in the second half of the run: ergodic b², distances,
        coverage, and the metrics of ``families``. ``floor.b2`` is the least value of the score.
        Of predictions the score is the nll of rows for testing, and further are ece and accuracy.
        """
        end = iterations[-1]
        late = range(end // 2 + 1, end + 1)
        by_version, further = [], []
        for (name, problem), sampler in self._versions:
            if not has_posterior(problem):
                trace = self._sample(name, problem, sampler, _spread_late(end))
                extra = score_predictions(trace, problem, "test")
                by_version.append(extra.pop("nll"))
                further.append({m: scores.take_last(levels) for m, levels in extra.items()})
                continue
            trace = self._sample(name, problem, sampler, sorted({*iterations, *late}))
            score, extra = _score_bias(_select(trace, iterations), problem), {}
            extra["floor.b2"] = floor = self._draw_shared("floors", trace.chains, name, problem)
            score = {level: np.maximum(b2, floor[level]) for level, b2 in score.items()}
            extra |= self._compare(_select(trace, late), name, problem)
            extra |= self._measure_families(_select(trace, late), name, problem, sampler, families)
            by_version.append(score)
            further.append(extra)
        by_metric = {
            metric: {level: np.array([one[metric][level] for one in further]) for level in levels}
            for metric, levels in further[0].items()
        }
        return scores.stack_versions(by_version), by_metric.items()

    def _sample(
        self,
        name: str,
        problem: Problem,
        sampler: Algorithm,
        iterations: Sequence[int],
        strict: bool = False,
    ) -> Trace:
        """Sample chains and return their trace after the read-out.

        name: of the problem's random streams. strict: raise ``ChainDivergence`` if a chain
        diverges.
        """
        run = self._run
        options = _label_options(sampler) if len(self._versions) > 1 else ""
        trace = sample_chains(
            sampler,
            problem,
            self._network,
            law=run.initial,
            record=Record(at=tuple(iterations)),
            chains=run.chains,
            iterations=iterations[-1],
            seed=run.seed,
            labels=Labels(run.paper, name, run.experiment, f"{run.name}{options}"),
            strict=strict,
        )
        if self._mix is not None:
            names, x = trace.variables["x"]
            with np.errstate(all="ignore"):
                trace.variables["x"] = names, self._mix @ x
        return trace

    def _draw_shared(self, what: str, count: int, name: str, problem: Problem) -> Any:
        """Return a problem's floors ("floors") or reference draws ("scores") for ``count`` draws.

        They are drawn once for all samplers on the problem. name: of its random streams.
        """
        if (count, what, name) not in self._cache:
            make = {"floors": _draw_floors, "scores": scores.draw_references}[what]
            rng = streams.generator(self._run.seed, what, self._run.paper, name)
            self._cache[count, what, name] = make(count, problem, rng)
        return self._cache[count, what, name]

    def _compare(self, trace: Trace, name: str, problem: Problem) -> dict[str, Levels]:
        """Compare draws with the posterior, by metric and level; infinite or nan if diverged."""
        marked = trace.mask_diverged()
        with np.errstate(all="ignore"):
            by_metric = {"ergodic_b2": _ergodic_bias(marked, reference_of(problem))}
            each = max(min(POOLED // trace.chains, LATE), 1)
            rows = np.unique(np.linspace(0, len(trace.draw) - 1, each).round().astype(int))
            x = np.concatenate([marked["x"], marked["x_average"][:, :, None]], axis=2)[:, rows]
            draws = x.reshape(-1, *x.shape[2:])
            references = self._draw_shared("scores", len(draws), name, problem)
            return by_metric | dict(scores.compare_draws(draws, references))

    def _measure_families(
        self, trace: Trace, name: str, problem: Problem, sampler: Algorithm, families: Sequence[str]
    ) -> dict[str, Levels]:
        """Return the values of metric families for a trace, by metric and level."""
        if not families:
            return {}
        run = self._run

        def stream(what: str) -> np.random.Generator:
            """Return the generator of the random numbers with a label."""
            return streams.generator(run.seed, what, run.paper, run.experiment, name)

        measurement = Measurement(
            trace, problem, self._network, sampler, run.initial, int(trace.draw[-1]), stream,
        )  # fmt: skip
        table: dict[str, dict[str, float]] = {}
        for row in metrics.measure(families, measurement):
            if row.iteration == trace.draw[-1]:
                table.setdefault(row.metric, {})[row.agent] = row.value
        by_metric = {}
        for metric, of in table.items():
            each = np.array([value for agent, value in of.items() if agent.isdigit()])
            ideal = table.get(f"{metric}_exact", {}).get("network")
            levels: Levels = {}
            levels |= {
                level: np.array(of[level]) for level in ("average", "network") if level in of
            }
            if len(each):
                levels["worst"] = scores.pick_worst(metric, each, ideal)
            by_metric[metric] = levels
        return by_metric


def _label_options(sampler: Algorithm) -> str:
    """Return the label of a sampler in the names of random streams: its class and own options."""
    kind = type(sampler)
    values = (f"{each.name}={getattr(sampler, each.name)!r}" for each in own_options(kind))
    return f"{kind.__name__}({', '.join(values)})"


def _select(trace: Trace, iterations: Sequence[int]) -> Trace:
    """Return a trace reduced to some of its recorded iterations."""
    rows = np.searchsorted(trace.draw, iterations)
    variables = {
        name: (names, values.take(rows, names.index("draw")) if "draw" in names else values)
        for name, (names, values) in trace.variables.items()
    }
    return replace(trace, variables=variables, draw=trace.draw[rows])


def _spread_late(end: int) -> list[int]:
    """Return the iterations of a chain of so many whose predictions are mixed, evenly spaced."""
    return np.unique(np.linspace(end // 2 + 1, end, PREDICTED).round().astype(int)).tolist()


def score_predictions(trace: Trace, problem: Problem, part: str) -> dict[str, Levels]:
    """Return nll, ece and accuracy by level, arrays (1,), of the mixture over a trace's draws.

    part: the problem's rows by which they are scored, "validation" or "test". Levels are the worst
    agent, all agents' mean (``each``), the predictions of the average of the weights (``average``),
    and the mean of all agents' predictions (``pooled``). What diverged has an infinite nll.
    """
    rows = getattr(problem, part, None)
    if rows is None:
        raise ConcordError(
            f"arena: {type(problem).__name__} has no posterior and no rows for {part}; settings "
            "are chosen by predictions of rows for validation, and judged on rows for testing, so "
            "give it both"
        )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DivergenceWarning)  # it is in the score
        found = predictive(trace, problem, test=rows, warm_up=0)
    by_metric = {}
    for metric, worst in (("nll", np.max), ("ece", np.max), ("accuracy", np.min)):
        values = found[metric].to_numpy()
        values = np.where(np.isnan(values), np.inf, values) if metric == "nll" else values
        of_agents, (pooled, average) = values[:-2], values[-2:]
        levels = worst(of_agents), np.mean(of_agents), average, pooled
        by_metric[metric] = {
            level: np.array([value])
            for level, value in zip(("worst", "each", "average", "pooled"), levels, strict=True)
        }
    return by_metric


def _score_bias(trace: Trace, problem: Problem) -> Levels:
    """Return a trace's b² by level, arrays (iterations,), infinite if a chain diverged.

    A level is whose error it is: the worst agent's, the average's, and so on.
    """
    lost = (trace["diverged_at"] >= 0).any()
    with np.errstate(all="ignore"):
        by_level = _squared_bias(trace, problem)
        return {n: np.where(np.isfinite(v) & ~lost, v, np.inf) for n, v in by_level.items()}


def _squared_bias(trace: Trace, problem: Problem) -> Levels:
    """Return b² of a trace by level, (iterations,), at least one over the number of chains."""
    exact, each = reference_of(problem), _append_squares(trace["x"])
    by_level = {
        "worst": _b2(each, exact).max(axis=-1),
        "average": _b2(_append_squares(trace["x_average"]), exact),
        "pooled": _b2(each.mean(axis=2), exact),  # of a chain's agents together
    }
    return {level: np.maximum(b2, 1 / trace.chains) for level, b2 in by_level.items()}


def _append_squares(x: np.ndarray) -> np.ndarray:
    """Return x and its squares along the last axis, (..., 2 dim)."""
    return np.concatenate([x, x**2], axis=-1)


def _b2(f: np.ndarray, exact: Reference) -> np.ndarray:
    """Return the worst coordinate's b² from x and x² of chains, f of shape (chains, ..., 2 dim)."""
    target, variance = exact.monomials()
    square = (f.mean(axis=0) - target) ** 2 - f.var(axis=0, ddof=1) / len(f)
    b2: np.ndarray = (square / variance).max(axis=-1)
    return b2


def _draw_floors(chains: int, problem: Problem, rng: np.random.Generator) -> Levels:
    """Return, by level, the mean b² that as many exact draws as chains have; at least 1 / chains.

    worst: of the worst of all agents, each with draws of its own. average, pooled: of one agent.
    """
    exact, agents = reference_of(problem), problem.agents
    drawn = [
        _b2(_append_squares(exact.sample(chains * agents, rng).reshape(chains, agents, -1)), exact)
        for _ in range(FLOORS)
    ]
    one = np.maximum(np.mean(drawn), 1 / chains)
    worst = np.maximum(np.max(drawn, axis=1).mean(), 1 / chains)
    return {"worst": worst, "average": one, "pooled": one}


def _ergodic_bias(trace: Trace, exact: Reference) -> Levels:
    """Return the ergodic b² by level: the mean square error of time averages over chains."""
    dim = trace["x"].shape[-1]
    target, variance = (part[:dim] for part in exact.monomials())

    def worst_b2(x: np.ndarray) -> np.ndarray:
        """Return the worst coordinate's ergodic b² from positions (chains, draws, ..., dim)."""
        square = ((x.mean(axis=1) - target) ** 2).mean(axis=0) / variance
        return np.nan_to_num(square.max(axis=-1), nan=np.inf, posinf=np.inf)

    average = worst_b2(trace["x_average"])
    return {"worst": worst_b2(trace["x"]).max(), "average": average, "pooled": average}
