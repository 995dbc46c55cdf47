"""``recommend``: the best sampler for a problem, network and budget, by predicted bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
from threadpoolctl import threadpool_limits

from concord import streams
from concord.arguments import network_for
from concord.distances import MOST_WEIGHTS
from concord.errors import ConcordError, suggest_names
from concord.laws.read_off import NoLaw
from concord.memory import BYTES, require_memory
from concord.options import build
from concord.problem import Problem, require_problem
from concord.problems.gaussian_fit import fit
from concord.progress import each
from concord.sampler import Algorithm
from concord.sampling.initial import Law
from concord.summary import Summarized
from concord_arena import describe
from concord_arena.doubts import list_doubts
from concord_arena.entries import Entry, scale_entries
from concord_arena.lattices import LARGEST_POWERS, Candidate
from concord_arena.predict import UNSOLVED
from concord_arena.question import SMALL, Question, Wish
from concord_arena.refine import CONFIRMED, FINALISTS, confirm_leaders, refine_leaders
from concord_arena.screen import screen
from concord_arena.trials import LATE, TrialRunner

if TYPE_CHECKING:
    import xarray  # half a second
    from matplotlib.figure import Figure

    from concord.sampling.trace import Trace

CHAINS = 1000  # that verify a row
PILOT, DIVERGING = 100, 1  # chains that try a leader whose law is approximate; may diverge
OF_LEADERS = 150  # matrices of the positions' size that the own laws of a leader hold at least


@dataclass(frozen=True, repr=False)
class Answer(Summarized):
    """What ``concord.recommend`` returns; ``print`` shows it as sentences.

    Attributes
    ----------
    table
        A row for each sampler and read-out, best first: ``sampler``, its ``options``, ``read``
        (each agent's own draws, so many more rounds of averaging, or the network average), the
        predicted ``error`` of a time average (where it ranks), the predicted ``b2`` of the worst
        agent's last draw and ``b2_average``, ``iterations`` and what they cost an agent
        (``gradients``, ``bytes``, and ``seconds`` where there is a clock), ``least`` and ``most``,
        the values of the tuned option between which the score at most doubles, ``stable``, its
        largest stable value, and ``law``, how the score was found: exact, approximate (no Gaussian
        problem), screened (by a smaller system; no bound), or by chains.
        Samplers without a score come last, with ``why``.
    best
        Arguments of the recommended run: ``concord.sample(**answer.best)``.
    trust
        Reasons to doubt what is predicted; empty where none is known.
    verified
        With ``verify``: ``predicted`` b2 of the best rows, and ``measured`` with a 95 % interval;
        and the ``error`` of time averages, with ``measured_error``, where it ranks.
    settings_tried
        How many settings were scored.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]]], b=[[1.0], [0.0]])
    >>> budget = {"gradients": 50}
    >>> answer = concord.recommend(problem, "ring", budget=budget, samplers=["de_sgld"])
    >>> answer.best["sampler"], answer.best["iterations"], answer.trust
    ('de_sgld', 50, [])
    """

    table: pandas.DataFrame
    best: dict[str, Any]
    trust: list[str]
    verified: pandas.DataFrame | None
    settings_tried: int
    _rows: list[Candidate]
    _question: Question

    @cached_property
    def _sentence(self) -> str:
        """Return the recommendation in a sentence."""
        with threadpool_limits(1), np.errstate(all="ignore"):
            return describe.describe_best(self._question, self._rows)

    def summary(self) -> dict[str, Any]:
        """Return the recommendation, the reasons to doubt it, and the number of settings tried."""
        doubtful = "; ".join(self.trust) or None
        return {
            "answer": self._sentence,
            "doubtful": doubtful,
            "settings tried": self.settings_tried,
        }

    def __str__(self) -> str:
        """Return the recommendation and the reasons to doubt it as text."""
        return "\n".join([self._sentence, *(f"Doubtful: {reason}." for reason in self.trust)])

    def read(self, trace: Trace) -> xarray.DataArray:
        """Return a trace's draws by the recommended read-out, (chain, draw, agent, dim)."""
        mix = self._question.reads[self._rows[0].read][0]
        draws = trace.to_xarray().x
        return draws if mix is None else draws.copy(data=mix @ trace["x"])

    @suggest_names
    def plot(self) -> Figure:
        """Plot the predicted score against cost, a curve for each sampler at its best setting.

        The score is what ranks: the error of a time average, or b2. The broad curve is of the
        recommended setting. The best four are named at the right, with their score at the budget,
        or with what the target costs; the others are gray. Dotted is the budget, or the target.
        Curves are dashed where the average is judged; the y axis says where laws are approximate.
        """
        return describe.plot(self._question, self._rows)


@suggest_names
def recommend(
    problem: Problem,
    network: Any,
    *,
    budget: Mapping[str, float] | None = None,
    target: float | None = None,
    price: str | None = None,
    level: str = "worst",
    by: str = "error",
    initial: Mapping[str, Any] | None = None,
    samplers: Sequence[str | type[Algorithm]] | None = None,
    batch_size: int | None = None,
    chains: int = 0,
    verify: bool = False,
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
    memory: float | None = None,
) -> Answer:
    r"""Recommend a sampler and its options, and predict how far its results are off.

    .. math::
        b^2 = \max_{f \in \{x_j, x_j^2\}} (E f - E_\pi f)^2 / \mathrm{Var}_\pi f

    is the squared bias of the last draw. What ranks is the error of averages over the second half
    of one chain: the expected squared error of the average of each x_j, which is squared bias and
    variance, and the squared bias of that of each x_j^2 (without its variance), both over the
    variance of f; the largest counts. Both are predicted for every sampler of the arena that the
    network allows, at many settings of its tuned options, with every read-out. On Gaussian problems
    the prediction is exact (the mean of x_j^2 is read at eight iterations). On other problems a
    Gaussian is fitted to the posterior by its gradients, and each agent's gradient is linearized
    over that agent's law; ``answer.trust`` says where this may be wrong.
    docs/recommend.md has an example, and how often predictions were right.

    Parameters
    ----------
    problem
        From ``concord.problems``, or a ``concord.Problem`` of any gradient.
    network
        What ``concord.network`` takes.
    budget
        What an agent may pay: ``{"bytes": 64_000}``, ``gradients``, or ``seconds`` on a network
        with a clock. Of several all hold.
    target, price
        In place of a budget: the b2 to be reached at the least price, such as ``target=0.01,
        price="gradients"``. It is that of the first iteration with at most this b2; how exactly,
        docs/recommend.md tells.
    level
        Whose score that is: the ``worst`` agent's, or that of the network ``average``.
    by
        What ranks at a budget: the ``error`` of a time average, for one long chain; or ``b2`` of
        the last draw, for many short ones.
    initial
        Distribution of x^(0), as of ``concord.sample``.
    samplers
        Names of entries, kinds of samplers, or classes of one's own, to choose from; none: all
        entries and kinds.
    batch_size
        Points of the mini-batches that samplers take, each paid as a gradient; none: full
        gradients.
    chains
        Try entries without a law by so many chains each; 0: they are listed with the reason.
    verify
        Run the best three, and compare with what was predicted (``answer.verified``).
    seed
        Of what chance enters: chains, and what happens on a network whose price is not known; None
        draws a fresh one, ``answer.best["seed"]``.
    rng
        In place of ``seed``, as of ``concord.sample``.
    memory
        GB that the call may take, as of ``concord.sample``.

    Returns
    -------
    Answer
        ``table``, ``best`` (the arguments of ``concord.sample``), ``trust``, ``verified``,
        ``plot()``; ``print(answer)`` says it in words.

    Raises
    ------
    ConcordError
        If an argument does not fit, the call would not fit into memory, no mode is found, or no
        sampler can be had for the budget.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> answer = concord.recommend(problem, "ring", budget={"gradients": 200})
    >>> bool(answer.table.error[0] < 0.05)
    True
    >>> trace = concord.sample(**answer.best)
    """
    problem = require_problem(problem)
    predicts = hasattr(problem, "predict")
    if predicts and problem.dim > MOST_WEIGHTS:
        raise _unknown_laws(problem)
    asked = {
        "budget": {} if budget is None else budget, "price": price, "level": level, "by": by,
        "target": target, "batch_size": batch_size,
    }  # fmt: skip
    wish = build(Wish, asked)
    if (target is None) == (not budget) or (target is None) != (price is None):
        raise ConcordError(
            "budget: give what an agent may pay, such as {'bytes': 64000}, or a target with its "
            "price, such as target=0.01, price='gradients'"
        )
    if chains and target is not None:
        raise ConcordError("chains: they score a budget, and no target; give a budget in its place")
    tried = max(chains, CHAINS if verify else 0)
    remedy = "choose a smaller problem" if not tried else "take fewer chains, and no verify"
    require_memory(_estimate_memory(problem, wish, tried), memory, remedy)
    agents, master = network_for(problem, network), streams.seed_of(seed, rng)
    start = {"kind": "normal"} if initial is None else dict(initial)
    law = build(Law, start, "initial")
    positions = law.moments(problem.dim)
    if positions is None:
        raise ConcordError("initial: only draws of it are known; give a law with known moments")
    # Threads cost more than they bring for matrices of this size.
    with threadpool_limits(1), np.errstate(all="ignore"):
        try:
            posterior_fit = fit(problem, np.asarray(positions[0], dtype=float))
        except ConcordError as error:
            if predicts:
                raise _unknown_laws(problem) from error
            raise
        trust = list_doubts(problem, posterior_fit, positions, agents)
        event_rng = partial(streams.generator, master, "network", "recommend")
        question = Question(problem, agents, positions, posterior_fit, wish, event_rng)
        trials = TrialRunner(question, chains, master, start, memory)
        entries, others = scale_entries(posterior_fit, samplers)
        rows, lacking = _search_entries(question, entries, trials)
        lacking += others
        if not rows:
            name, why = min(lacking, key=lambda one: not one[1].startswith("budget"))
            raise ConcordError(f"no sampler can be recommended here; {name}: {why}")
        rows = confirm_leaders(question, refine_leaders(question, rows))
        if not question.is_exact:
            rows, lost, diverging = _drop_diverging_leaders(rows, trials._replace(chains=PILOT))
            lacking += diverging
            if lost:
                trust.append(f"{lost} of {PILOT} chains diverge; take a smaller step")
        best = rows[0]
        if best.score >= UNSOLVED:
            raise ConcordError(
                f"target: no sampler reaches {wish.target:g} within {best.iterations:,} "
                f"iterations; {best.entry.name} ends at {best.b2[level]:.2g}; give a larger "
                "target, or a budget"
            )
        arguments = {
            "sampler": best.entry.kind, "problem": problem, "network": agents,
            "iterations": best.iterations, "seed": master, "initial": start,
            **best.nondefault_options(wish),
        }  # fmt: skip
        trust += describe.doubt_batch_errors(question, best)
        if best.how == "screened":
            trust.append("what is recommended is screened by smaller systems: its law is too large")
        verified = trials._replace(chains=CHAINS).verify(rows[:FINALISTS]) if verify else None
    table = describe.tabulate(rows, lacking, wish)
    return Answer(table, arguments, trust, verified, question.settings_tried, rows, question)


def _unknown_laws(problem: Problem) -> ConcordError:
    """Return the error for a network, of whose weights no Gaussian fits the posterior."""
    return ConcordError(
        f"problem: no Gaussian fits the posterior of {problem.dim:,} weights of a network, so that "
        "no bias can be predicted; try steps by short runs, trace = concord.sample('de_sgld', "
        "problem, network, step_size=step, batch_size=32, iterations=100, chains=2), and take the "
        "step with the least concord.predictive(trace, problem, test=(X, y), warm_up=50).nll.max() "
        "on rows (X, y) kept for that; docs/your-network.md has the lines"
    )


def _estimate_memory(problem: Problem, wish: Wish, chains: int) -> float:
    """Estimate the bytes that laws of settings take, or trials by a number of chains.

    A trial holds its draws five times: as they are, read out, squared, and joined. wish: of the
    caller.
    """
    agents, dim = problem.agents, problem.dim
    size, draws = agents * dim, 1.0
    if wish.averages:
        draws = min(LATE, 1 + wish.budget.get("gradients", np.inf) / 2)
    settings = LARGEST_POWERS * min(size / SMALL, 1) ** 2
    leaders = OF_LEADERS * min(size, CONFIRMED) ** 2
    hessians = 2 * agents * dim**2  # of the fit
    return BYTES * (hessians + max(settings + leaders, 5 * chains * draws * size))


def _search_entries(
    question: Question, entries: Sequence[Entry], trials: TrialRunner
) -> tuple[list[Candidate], list[tuple[str, str]]]:
    """Search all entries for their best settings.

    Returns the candidates, best first, and the name of each entry without one, with the reason.
    trials: runs the chains that score an entry without a law.
    """
    rows, lacking = [], []
    infinite = "all settings diverge"
    if not question.is_exact:
        infinite = "no setting has a finite approximate law, though chains may be finite"
    for entry in each(entries, "samplers"):
        candidates, why = [], infinite
        try:
            candidates = list(screen(question, entry))
        except NoLaw as error:
            if trials.chains:
                candidates = trials.best_of(entry)
            else:
                why = f"{error} (by chains: chains=200)"
        except (ConcordError, np.linalg.LinAlgError) as error:
            why = str(error)
        rows += candidates
        if not candidates:
            lacking.append((entry.name, why))
    return sorted(rows, key=lambda row: row.score), lacking


def _drop_diverging_leaders(
    candidates: Sequence[Candidate], trials: TrialRunner
) -> tuple[list[Candidate], int, list[tuple[str, str]]]:
    """Drop leading candidates whose trial chains diverge, though their approximate laws are finite.

    candidates: best first. They are tried in turn until at most ``DIVERGING`` chains of one
    diverge; if there is none, that with the fewest leads. Returns the candidates left, best first;
    how many chains of the first diverge; and the name of each entry that is dropped, with the
    reason.
    """
    lost: list[int] = []
    for row in candidates:
        trace = trials.run(row, trials.question.problem, [row.iterations])
        lost.append(int((trace["diverged_at"] >= 0).sum()))
        if lost[-1] <= DIVERGING:
            break
    place = lost.index(min(lost))
    left = [candidates[place], *candidates[len(lost) :]]
    names = {row.entry.name for row in left}
    reasons = {
        row.entry.name: f"{count} of {trials.chains} chains diverge at its best setting"
        for row, count in zip(candidates, lost, strict=False)
    }
    return left, lost[place], [(n, why) for n, why in reasons.items() if n not in names]
