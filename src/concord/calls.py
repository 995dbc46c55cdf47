"""``sample``: runs from Python, with the pipeline's numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial

import numpy as np

from concord import __version__, streams
from concord.arguments import RunArguments, prepare, write_names
from concord.chains import Labels, sample_chains
from concord.contracts import WithNames, WithUnits
from concord.errors import ConcordError, suggest_names, warn_of_divergence
from concord.memory import estimate_trace_bytes, require_memory
from concord.options import plain
from concord.problem import Problem, Quadratic, local_of
from concord.problems.gaussian_fit import find_mode, fit, gradient_field
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampler import Algorithm
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace

# Entries of positions up to which the largest stable step is found in a fraction of a second.
SOON = 100

StepFinder = Callable[[], tuple[float, str]]


@suggest_names
def sample(
    sampler: str | Algorithm | type[Algorithm],
    problem: Problem,
    network: object = None,
    *,
    iterations: int,
    chains: int = 100,
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
    initial: Mapping[str, object] | None = None,
    record: Mapping[str, object] | None = None,
    labels: tuple[str, str, str, str] | None = None,
    progress: bool | None = None,
    memory: float | None = None,
    compiled: bool = True,
    **options: object,
) -> Trace:
    r"""Run a sampler on independent chains of a network of agents, and return their trace.

    The target of every agent's positions x_i^(k) is

    .. math:: \pi(x) \propto \exp\Bigl(-\sum_i f_i(x)\Bigr),

    where agent i knows the gradient of f_i and the vectors that its neighbors send. The pipeline
    calls the same function: the same arguments give the same numbers. There are 100 chains, unless
    ``chains`` says otherwise, since distances such as ``concord.w2`` are of the law of a draw,
    which needs many chains; 4 are enough where draws over time stand for the posterior. What is
    recorded of them is held in memory, and a call that takes more than 1 GB says so first. An
    interrupt (Ctrl-C)
    ends the run; the trace then has the chains that are complete, or the first chains' iterations
    so far, and a line says so. Chains that diverge are not stopped: a
    ``concord.DivergenceWarning`` says how many diverged, and when.

    Parameters
    ----------
    sampler
        Its name (``concord list samplers``), a class of one's own that derives from
        ``concord.Sampler``, or an object of such a class.
    problem
        From ``concord.problems``, or a ``concord.Problem``.
    network
        What ``concord.network`` takes; none: one agent alone.
    iterations, chains
        Steps of every chain, and independent chains.
    seed
        Of all random numbers; None draws a fresh one, which ``trace.attributes["seed"]`` records.
        All samplers of a seed start from the same positions; the noise is each sampler's own.
    rng
        In place of ``seed``: an integer, which is the seed, or a ``numpy.random.Generator``, from
        which one is drawn, so that the next call gets another; none: ``seed`` counts.
    initial
        Distribution of x^(0): ``{"kind": "normal", "mean": 0.0, "sd": 1.0}``, and the others of
        config/README.md; none: the problem's own, as a network's initialization, or else normal.
    record
        What to keep, and when: ``{"every": 10}`` (or ``thin``), ``{"at": [100, 200], "agents":
        [0]}``, ...; ``{"warm_up": 500}`` (``burn_in`` in a study's files) keeps all draws, and has
        ``to_arviz`` and metrics leave out those until then.
    labels
        What the random streams are called by: paper, problem, experiment and run of a run of a
        study (``load_run``).
    progress
        Show a progress bar; none: on a terminal.
    memory
        GB that the call may take; none: what the machine has available. A run whose trace would
        take more is refused before it starts.
    compiled
        Whether a long run may take several steps at once in code that numba compiles, if that is
        installed: the same chains but for rounding. ``trace.attributes["steps"]`` says whether any
        were, "compiled", or none, "plain".
    **options
        Of the sampler, such as ``step_size``: a number, or a schedule as in a study's files.

    Returns
    -------
    Trace
        ``trace["x"]`` has shape (chains, draws, agents, dim), the first draw the start; see
        ``to_xarray`` and ``to_arviz``, which leaves out the warm-up. ``diverged_at`` (chains,) is
        the iteration at which a chain diverged, -1 where it did not.

    Raises
    ------
    ConcordError
        If an argument does not fit, the trace would not fit into memory, or the sampler refuses
        problem or network.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.01, iterations=200)
    >>> trace["x"].shape
    (100, 201, 3, 1)
    """
    run = prepare("sample", sampler, problem, network, iterations, chains, initial, record, options)
    length = run.options
    needed = estimate_trace_bytes(
        length.record, length.chains, problem.agents, problem.dim, length.iterations
    )
    require_memory(needed, memory, "take fewer chains, or record less (record={'every': 10})")
    find_limit = cache(partial(find_largest_step, run, problem))
    is_warned = warn_of_large_step(run, problem, find_limit)
    seed = streams.seed_of(seed, rng)
    trace = sample_chains(
        run.sampler.params,
        problem,
        run.network,
        law=run.options.initial,
        record=run.options.record,
        chains=run.options.chains,
        iterations=run.options.iterations,
        seed=seed,
        labels=Labels(run=run.sampler.kind) if labels is None else Labels(*labels),
        progress=progress,
        keep=True,
        compiled=compiled,
    )
    trace.attributes |= {
        "concord": __version__,
        "sampler": run.sampler.kind,
        "options": json.dumps({k: v for k, v in run.sampler.plain().items() if k != "kind"}),
        "network": run.network.title,
        "iterations": str(run.options.iterations),
        "seed": str(seed),
        "record": json.dumps(plain(run.options.record)),
        **write_names(problem, run.network),
    }
    if isinstance(problem, WithNames):
        trace.named = problem.constrain
        trace.axes = getattr(problem, "parameter_axes", {})
        trace.labels = getattr(problem, "axis_labels", {})
    if (message := trace.divergence()) and not is_warned:
        advice = trace.cause or step_advice(run, problem, find_limit)
        warn_of_divergence(run.sampler.kind, message, advice)
    return trace


def warn_of_large_step(run: RunArguments, problem: Problem, find_limit: StepFinder) -> bool:
    """Warn of a step beyond the largest stable one, and return whether there is need to.

    Only where coordinates have units of data. Chains need not diverge there, as the gradients of
    logistic regression are bounded; but their draws say nothing of the posterior. find_limit:
    returns what ``find_largest_step`` does.
    """
    step = getattr(run.sampler.params, "step_size", None)
    if not (isinstance(problem, WithUnits) and isinstance(step, Schedule)):
        return False
    if is_large := step(0) > find_limit()[0]:
        what = f"step_size {step(0):g} is so large that its chains do not settle"
        warn_of_divergence(run.sampler.kind, what, step_advice(run, problem, find_limit))
    return is_large


def step_advice(run: RunArguments, problem: Problem, find_limit: StepFinder) -> str:
    """Return the advice after divergence, with the largest stable step if it is quick to find.

    find_limit: returns what ``find_largest_step`` does.
    """
    if not hasattr(run.sampler.params, "step_size"):
        return "change its options"
    limit, whose = find_limit()
    below = f", below {limit:.3g} {whose}" if math.isfinite(limit) else ""
    steps = f"take a smaller step_size{below}" if limit else "no step_size suits all coordinates"
    units = f"{problem.units_advice}; " if isinstance(problem, WithUnits) else ""
    return f"{steps}; {units}concord.recommend(problem, network, ...) chooses one"


def find_largest_step(run: RunArguments, problem: Problem) -> tuple[float, str]:
    """Return a sampler's largest stable step, and what it is of.

    nan if it is not quick to find, 0 if coordinates' scales are so unlike that there is none. Of a
    problem that is not quadratic it is that of the Hessians at the posterior's mode.
    """
    if problem.agents * problem.dim > SOON or not run.network.is_lossless:
        return math.nan, ""
    from concord.stability import largest_stable_step  # of few runs

    whose = "with these options"
    # It is no affine sampler, or there is no mode.
    with suppress(ConcordError, np.linalg.LinAlgError), np.errstate(all="ignore"):
        if not isinstance(problem, Quadratic):
            whose = "by the posterior's curvature at its mode"
            if local_of(problem) is None:
                start = np.zeros(problem.dim)
                mode, hessians = find_mode(gradient_field(problem), problem.agents, start)
                problem = QuadraticProblem(hessians, hessians @ mode)
            else:
                curved = fit(problem)
                problem = QuadraticProblem(curved.hessians, curved.shift, curved.local)
        last = run.options.iterations - 1
        limit = largest_stable_step(run.sampler.params, problem, run.network, last)
        return 0.0 if math.isnan(limit) else limit, whose
    return math.nan, ""
