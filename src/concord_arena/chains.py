"""Scores of what has no exact law: many chains of the whole network, compared with the posterior.

E f is estimated by the mean over C chains, whose own error adds Var f / C to the bias squared;
that much is subtracted. What is left is never less than the floor, the mean of what C exact draws
show in its place: a run is not flattered by its noise. The largest of several estimates is too
large, and so is that of the worst agent, whose floor is that of as many agents with draws of their
own: 3 / C to 10 / C among eight. Scores that choose a setting are never less than 1 / C, so that
fewer of them tie. If one chain diverges the score is infinite. Where no posterior is known the
score is the log loss instead, the mean over held-out data of -log of the predictive density, of all
chains' draws.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from concord import streams
from concord.chains import Labels, sample_chains
from concord.fast import compile_steps
from concord.networks.network import Network
from concord.problem import Problem
from concord.record import Diverged, Record
from concord.reference import Reference, WithReference, reference_of
from concord.sampler import Sampler
from concord.sampling.initial import Law
from concord.sampling.trace import Trace
from concord_arena import scores
from concord_studies import metrics
from concord_studies.contracts import Predictive, WithTests
from concord_studies.metrics import Measurement
from concord_studies.runs.run import Run

POOLED = 1000  # draws of which distances are
LATE = 50  # draws of a chain that are compared, from its second half
FLOORS = 20  # times that the floor of a score is drawn


def known(problem: Problem) -> bool:
    """Return whether a problem has a posterior with which results can be compared."""
    return isinstance(problem, WithReference) or problem.posterior is not None


class Chains:
    """Versions, each a sampler on a problem, whose chains are sampled on demand.

    named: the problems by the names that their streams have: noise is apart for each, starts and
    masks are those that all samplers meet.
    mix: what makes the answers of the positions, (agents, agents); none: they are the positions.
    kept: floors of these problems, which all samplers share; they are added.
    """

    def __init__(
        self,
        samplers: Sequence[Sampler],
        named: Sequence[tuple[str, Problem]],
        network: Network,
        run: Run,
        law: Law,
        mix: np.ndarray | None = None,
        kept: dict[Any, Any] | None = None,
    ) -> None:
        """Pair samplers with named problems on a network; ``kept`` shares draws among entries."""
        self._kept = {} if kept is None else kept
        self._versions = list(zip(named, samplers, strict=True))
        self._network, self._run, self._law = network, run, law
        self._mix = mix
        self._found: dict[tuple[int, ...], dict[str, np.ndarray]] = {}

    def bias(self, iterations: Sequence[int]) -> dict[str, np.ndarray]:
        """Return b² or log loss by level at increasing iterations, each (iterations, versions)."""
        if (known_as := tuple(iterations)) not in self._found:
            found = [self._one(*version, iterations) for version in self._versions]
            self._found[known_as] = {
                level: np.stack([one[level] for one in found], axis=1) for level in found[0]
            }
        return self._found[known_as]

    def told(
        self, iterations: Sequence[int], families: Sequence[str]
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, np.ndarray]]]:
        """Return the score by level, as ``bias`` does, and further metrics by level at the end.

        Of the second half of the last iterations: the ergodic b², distances and coverage of its
        draws, and what these families of metrics say. ``floor.b2``: what the score is never less
        than.
        """
        end = iterations[-1]
        late = range(end // 2 + 1, end + 1)
        both = sorted({*iterations, *late})
        biases, more = [], []
        for (name, problem), sampler in self._versions:
            trace = self._sampled(name, problem, sampler, both)
            score, own = self._bias(_at(trace, iterations), problem), {}
            if known(problem):
                own["floor.b2"] = self._floor(name, problem, trace.chains)
                score = {level: np.maximum(b2, own["floor.b2"][level])
                         for level, b2 in score.items()}  # fmt: skip
            biases.append(score)
            if known(problem):
                own |= self._late(_at(trace, late), name, problem)
            own |= self._families(_at(trace, late), problem, sampler, name, families)
            more.append(own)
        score = {level: np.stack([b[level] for b in biases], axis=1) for level in biases[0]}
        return score, {
            metric: {level: np.array([one[metric][level] for one in more]) for level in levels}
            for metric, levels in more[0].items()
        }

    def _floor(self, name: str, problem: Problem, chains: int) -> dict[str, np.ndarray]:
        """Return b² of exact draws by level, as many as there are chains."""
        found: dict[str, np.ndarray] = self._of_all(_floors, chains, problem, "floors", name)
        return found

    def _of_all(self, make: Callable[..., Any], count: int, problem: Problem, *of: str) -> Any:
        """Return the result of ``make`` for a problem, drawn once and shared by all samplers."""
        if (count, *of) not in self._kept:
            what, name = of
            rng = streams.generator(self._run.seed, what, self._run.paper, name)
            self._kept[count, *of] = make(count, problem, rng)
        return self._kept[count, *of]

    def _late(self, trace: Trace, name: str, problem: Problem) -> dict[str, dict[str, np.ndarray]]:
        """Return metrics of a trace's second half by level; infinite or nan if it diverged."""
        marked = trace.mask_diverged()
        with np.errstate(all="ignore"):
            found = {"ergodic_b2": _ergodic(marked, reference_of(problem))}
            each = max(min(POOLED // trace.chains, LATE), 1)
            rows = np.unique(np.linspace(0, len(trace.draw) - 1, each).round().astype(int))
            x = np.concatenate([marked["x"], marked["x_average"][:, :, None]], axis=2)[:, rows]
            draws = x.reshape(-1, *x.shape[2:])
            by = self._of_all(_yardstick, len(draws), problem, "scores", name)
            return found | dict(scores.of_draws(draws, by))

    def _one(
        self, named: tuple[str, Problem], sampler: Sampler, iterations: Sequence[int]
    ) -> dict[str, np.ndarray]:
        """Return the score of one version by level, (iterations,); infinite if a chain diverges."""
        try:
            trace = self._sampled(*named, sampler, iterations, strict=True)
        except Diverged:  # the score is infinite, whatever comes
            return {level: np.full(len(iterations), np.inf) for level in scores.LEVELS}
        return self._bias(trace, named[1])

    def _sampled(
        self,
        name: str,
        problem: Problem,
        sampler: Sampler,
        iterations: Sequence[int],
        strict: bool = False,
    ) -> Trace:
        """Return the trace of a sampler on a problem; ``strict`` raises ``Diverged``."""
        run = self._run
        options = f"{sampler}" if len(self._versions) > 1 else ""
        shape = run.chains, self._network.agents, problem.dim
        trace = sample_chains(
            compile_steps(sampler, iterations[-1], shape),
            problem,
            self._network,
            batches=run.sampler.batches,
            law=self._law,
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

    def _bias(self, trace: Trace, problem: Problem) -> dict[str, np.ndarray]:
        """Return b², or the log loss, of a trace by level; infinite if a chain diverged."""
        lost = (trace["diverged_at"] >= 0).any()
        with np.errstate(all="ignore"):
            found = _squared(trace, problem) if known(problem) else _loss(trace, problem)
            return {n: np.where(np.isfinite(v) & ~lost, v, np.inf) for n, v in found.items()}

    def _families(
        self, trace: Trace, problem: Problem, sampler: Sampler, name: str, families: Sequence[str]
    ) -> dict[str, dict[str, np.ndarray]]:
        """Return the values of metric families for a trace, by metric and level."""
        run = self._run

        def stream(what: str) -> np.random.Generator:
            """Return a generator of random numbers for resampling, by label."""
            return streams.generator(run.seed, what, run.paper, run.experiment, name)

        if not families:
            return {}
        made = Measurement(
            trace, problem, self._network, sampler, run.sampler.batches, self._law,
            int(trace.draw[-1]), stream,
        )  # fmt: skip
        table: dict[str, dict[str, float]] = {}
        for row in metrics.measure(families, made):
            if row.iteration == trace.draw[-1]:
                table.setdefault(row.metric, {})[row.agent] = row.value
        found = {}
        for metric, of in table.items():
            each = np.array([value for agent, value in of.items() if agent.isdigit()])
            right = table.get(f"{metric}_exact", {}).get("network")
            levels: dict[str, np.ndarray] = {}
            levels |= {name: np.array(of[name]) for name in ("average", "network") if name in of}
            if len(each):
                levels["worst"] = scores.worst(metric, each, right)
            found[metric] = levels
        return found


def _at(trace: Trace, iterations: Sequence[int]) -> Trace:
    """Return a trace reduced to some of its recorded iterations."""
    rows = np.searchsorted(trace.draw, iterations)
    variables = {}
    for name, (names, values) in trace.variables.items():
        if "draw" in names:
            values = np.take(values, rows, axis=names.index("draw"))
        variables[name] = names, values
    return replace(trace, variables=variables, draw=trace.draw[rows])


def _squared(trace: Trace, problem: Problem) -> dict[str, np.ndarray]:
    """Return b² by level, (iterations,), bounded below by one over the number of chains."""
    exact, each = reference_of(problem), _both(trace["x"])
    found = {
        "worst": _b2(each, exact).max(axis=-1),
        "average": _b2(_both(trace["x_average"]), exact),
        "pooled": _b2(each.mean(axis=2), exact),  # of a chain's agents together
    }
    return {level: np.maximum(b2, 1 / trace.chains) for level, b2 in found.items()}


def _both(x: np.ndarray) -> np.ndarray:
    """Return coordinates and their squares side by side, (..., 2 dim)."""
    return np.concatenate([x, x**2], axis=-1)


def _b2(f: np.ndarray, exact: Reference) -> np.ndarray:
    """Return b² of f, values (chains, ..., 2 dim) of x and x², for the worst coordinate."""
    wanted, variance = exact.monomials()
    square = (f.mean(axis=0) - wanted) ** 2 - f.var(axis=0, ddof=1) / len(f)
    b2: np.ndarray = (square / variance).max(axis=-1)
    return b2


def _yardstick(count: int, problem: Problem, rng: np.random.Generator) -> scores.Yardstick:
    """Return the exact draws and floors with which ``count`` draws are compared."""
    return scores.yardstick(count, reference_of(problem), rng)


def _floors(chains: int, problem: Problem, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return, by level, the mean b² of as many exact draws as chains; at least 1 / chains.

    Of agents with draws of their own, of which the worst counts, and of one alone, for the average
    and for agents that are pooled.
    """
    exact, agents = reference_of(problem), problem.agents
    drawn = [
        _b2(_both(exact.sample(chains * agents, rng).reshape(chains, agents, -1)), exact)
        for _ in range(FLOORS)
    ]
    one = np.maximum(np.mean(drawn), 1 / chains)
    worst = np.maximum(np.max(drawn, axis=1).mean(), 1 / chains)
    return {"worst": worst, "average": one, "pooled": one}


def _loss(trace: Trace, problem: Problem) -> dict[str, np.ndarray]:
    """Return the log loss on the first test set by level, (iterations,)."""
    assert isinstance(problem, Predictive) and isinstance(problem, WithTests)
    labels = next(iter(problem.tests.values())).labels
    images = np.arange(len(labels))

    def of(x: np.ndarray) -> np.ndarray:
        """Return each agent's log loss at positions (chains, agents, dim)."""
        chance = problem.predictive(x)[..., images, labels].mean(axis=0)
        return -np.log(chance).mean(axis=-1)

    each = np.array([of(x) for x in trace["x"].swapaxes(0, 1)])
    average = np.array([of(x[:, None])[0] for x in trace["x_average"].swapaxes(0, 1)])
    return {"worst": each.max(axis=1), "average": average, "pooled": each.mean(axis=1)}


def _ergodic(trace: Trace, exact: Reference) -> dict[str, np.ndarray]:
    """Return the ergodic b² by level: the mean square error of time averages over chains."""
    dim = trace["x"].shape[-1]
    wanted, variance = (part[:dim] for part in exact.monomials())

    def of(x: np.ndarray) -> np.ndarray:
        """Return the worst coordinate's ergodic b² from positions (chains, draws, ..., dim)."""
        square = ((x.mean(axis=1) - wanted) ** 2).mean(axis=0) / variance
        return np.nan_to_num(square.max(axis=-1), nan=np.inf, posinf=np.inf)

    average = of(trace["x_average"])
    return {"worst": of(trace["x"]).max(), "average": average, "pooled": average}
