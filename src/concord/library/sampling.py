"""``sample``, ``law`` and ``load_run``: runs from Python, with the pipeline's numbers."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import concord
from concord import contracts
from concord.chains import Labels, sample_chains
from concord.distances import divergence, warn_of
from concord.errors import ConcordError, nearest, short
from concord.laws import exact, linearized
from concord.laws.law import LARGEST, law_of_run
from concord.networks.conditions import network_under
from concord.networks.network import Network
from concord.networks.own import network as network_of
from concord.options import plain
from concord.problem import Problem, Quadratic
from concord.sampler import Sampler
from concord.sampling import streams
from concord.sampling.trace import Trace, read_trace
from concord_studies.experiment import read_runs
from concord_studies.metrics import Measurement, stable_step
from concord_studies.runs.keys import Keys
from concord_studies.runs.run import ChosenSampler, check_record, keys_of

# Entries of positions up to which the largest stable step is found in a fraction of a second.
SOON = 100


def sample(
    sampler: str | Sampler | type[Sampler],
    problem: Problem,
    network: Any = None,
    *,
    iterations: int,
    chains: int = 100,
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
    initial: Mapping[str, Any] | None = None,
    record: Mapping[str, Any] | None = None,
    labels: tuple[str, str, str, str] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Trace:
    r"""Run a sampler on independent chains of a network of agents, and return their trace.

    The target of every agent's positions x_i^(k) is

    .. math:: \pi(x) \propto \exp\Bigl(-\sum_i f_i(x)\Bigr),

    where agent i knows the gradient of f_i and the vectors that its neighbors send. The pipeline
    calls the same function: the same arguments give the same numbers. An interrupt (Ctrl-C) ends
    the run; the trace then has the chains that are complete, or the first chains' iterations so
    far, and a line says so. Chains that diverge are not stopped: a ``concord.DivergenceWarning``
    says how many diverged, and when.

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
        config/README.md.
    record
        What to keep, and when: ``{"every": 10}``, ``{"at": [100, 200], "agents": [0]}``, ...;
        ``{"burn_in": 500}`` asks for a warm-up, which ``to_arviz`` leaves out.
    labels
        What the random streams are called by: paper, problem, experiment and run of a run of a
        study (``load_run``).
    progress
        Show a progress bar; none: on a terminal.
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
        If an argument does not fit, or the sampler refuses problem or network.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.01, iterations=200)
    >>> trace["x"].shape
    (100, 201, 3, 1)
    """
    own = _prepare(sampler, problem, network, iterations, chains, initial, record, options)
    seed = streams.seed_of(seed, rng)
    trace = sample_chains(
        own.sampler.params,
        problem,
        own.network,
        batches=own.sampler.batches,
        law=own.keys.initial,
        record=own.keys.record,
        chains=own.keys.chains,
        iterations=own.keys.iterations,
        seed=seed,
        labels=Labels(run=own.sampler.kind) if labels is None else Labels(*labels),
        progress=progress,
        keep=True,
    )
    trace.attributes = {
        "concord": concord.__version__,
        "sampler": own.sampler.kind,
        "options": json.dumps({k: v for k, v in own.sampler.plain().items() if k != "kind"}),
        "network": own.network.name,
        "iterations": str(own.keys.iterations),
        "seed": str(seed),
        "record": json.dumps(plain(own.keys.record)),
    }
    if isinstance(problem, contracts.Named):
        trace.named = problem.constrain
    if message := divergence(trace):
        warn_of(own.sampler.kind, message, _step_advice(_measurement(own, problem, trace)))
    return trace


def law(
    sampler: str | Sampler | type[Sampler],
    problem: Problem,
    network: Any = None,
    *,
    iterations: int,
    initial: Mapping[str, Any] | None = None,
    record: Mapping[str, Any] | None = None,
    approximate: bool = False,
    **options: Any,
) -> exact.Law:
    r"""Return the exact mean and covariance of each agent's position over time, without chains.

    .. math:: m_{k+1} = A_k m_k + b_k, \qquad C_{k+1} = A_k C_k A_k^\top + Q_k

    are mean and covariance of all agents' positions together, for samplers whose update is
    :math:`A_k x + b_k` plus noise of covariance Q_k: affine samplers on quadratic problems
    (``concord.problems.quadratic``, ``linear_regression``). With a normal start and full gradients
    the distribution is Gaussian, so the moments determine it. If the law diverges, a
    ``concord.DivergenceWarning`` says so. A step of the recursion takes some 20 microseconds for
    small networks. If few of many iterations are recorded, ``record={"at": [10**6]}``, and the
    update does not change, matrix powers replace the recursion.

    Parameters
    ----------
    sampler, problem, network, iterations, initial, record, **options
        As of ``concord.sample``.
    approximate
        Of a problem of any gradient: every agent is linearized at its own law along the way. The
        law says so (``approximate``); how far off it is, docs/recommend.md tells. It is refused
        where it is not finite, though chains may be.

    Returns
    -------
    Law
        ``iterations`` (K,), ``mean`` (K, agents, dim) and ``cov`` (K, agents, dim, dim) of every
        agent, ``average_mean`` and ``average_cov`` of their average.

    Raises
    ------
    ConcordError
        If an argument does not fit, or no exact law is known.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> law = concord.law("de_sgld", problem, "ring", step_size=0.01, iterations=200)
    >>> law.mean[-1].round(2)
    array([[0.34],
           [0.32],
           [0.33]])
    >>> distance = concord.w2(law, problem.posterior).value
    >>> distance.sel(agent="average", draw=[0, 200]).values.round(2)
    array([0.37, 0.01])
    """
    own = _prepare(sampler, problem, network, iterations, 1, initial, record, options)
    due = own.keys.record.iterations(iterations)
    measurement = _measurement(own, problem, Trace({}, due, np.arange(problem.agents)))
    own.sampler.params.check(problem, own.network)
    with np.errstate(over="ignore", invalid="ignore"):  # of a law that diverges
        if approximate and not isinstance(problem, Quadratic):
            found = linearized.law_of_run(measurement)
        else:
            found = law_of_run(measurement, LARGEST)
    if message := divergence(found):
        warn_of(own.sampler.kind, message, _step_advice(measurement))
    return found


def _measurement(own: _RunArguments, problem: Problem, trace: Trace) -> Measurement:
    """Return a run's trace, problem, network and options as metrics and laws take them."""
    return Measurement(
        trace=trace,
        problem=problem,
        network=own.network,
        sampler=own.sampler.params,
        batches=own.sampler.batches,
        initial=own.keys.initial,
        iterations=own.keys.iterations,
        stream=lambda what: streams.generator(0, what),
    )


def _step_advice(m: Measurement) -> str:
    """Return the advice after divergence, with the largest stable step if it is quick to find."""
    if not hasattr(m.sampler, "step_size"):
        return "change its options"
    limit = math.nan
    if m.problem.agents * m.problem.dim <= SOON and m.network.is_lossless:
        with suppress(ConcordError):  # it is no affine sampler on a quadratic problem
            limit = stable_step.largest(m)
    if not math.isfinite(limit):
        return "take a smaller step_size"
    return f"take a smaller step_size, below {limit:.3g} with these options"


def load(path: str | Path, run: str | None = None) -> Trace:
    """Load the trace of a run from a file.

    Parameters
    ----------
    path
        What ``Trace.save`` or ``concord run`` wrote, or results/<study>/<experiment>/draws.nc.
        (ArviZ opens it, too.)
    run
        The run's name, where the file has several.

    Raises
    ------
    ConcordError
        If there is no such file, or it is no trace.

    Examples
    --------
    >>> import concord
    >>> problem = concord.Problem(gradient=lambda x: x, agents=4, dim=2)
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.1, iterations=10)
    >>> trace.save("trace.nc")
    >>> concord.load("trace.nc").chains
    100
    """
    try:
        return read_trace(Path(path), run)
    except OSError as error:
        raise ConcordError(
            f"{path}: it cannot be read ({error.strerror}); name the draws.nc of a run, or a file "
            "that Trace.save wrote"
        ) from None


def load_run(
    path: str | Path, run: str | None = None, resources: str | Path = "resources"
) -> dict[str, Any]:
    """Return the arguments of ``concord.sample`` that repeat a run of a study.

    Parameters
    ----------
    path
        results/<study>/<experiment>/runs.yaml, or that of ``concord run``.
    run
        The run's name, where the file has several.
    resources
        Folder of downloaded data.

    Returns
    -------
    dict
        sampler, problem, network and all the rest: change any before you sample, as in
        ``concord.sample(**concord.load_run(path) | {"step_size": 0.01})``.

    Raises
    ------
    ConcordError
        If the file is no list of runs, or has no such run.

    Examples
    --------
    >>> import concord
    >>> arguments = concord.load_run("runs.yaml")
    >>> trace = concord.sample(**arguments | {"chains": 50})
    >>> trace.chains
    50
    """
    runs = read_runs(Path(path)).runs
    if run is None and len(runs) == 1:
        run = next(iter(runs))
    if run is None or run not in runs:
        raise ConcordError(f"{path}: run: there is no {short(run)}; {nearest(run, runs)}")
    own = runs[run]
    stated = own.document
    return {
        "sampler": own.sampler.kind,
        "problem": own.build_problem(Path(resources)),
        "network": own.network_of_agents,
        **{key: stated[key] for key in ("iterations", "chains", "seed", "initial", "record")},
        "labels": tuple(own.stream_labels),
        **{key: value for key, value in stated["sampler"].items() if key != "kind"},
    }


class _RunArguments(NamedTuple):
    """The sampler, network and other options of a run, checked."""

    sampler: ChosenSampler
    network: Network
    keys: Keys


def _prepare(
    sampler: Any,
    problem: Any,
    network: Any,
    iterations: Any,
    chains: Any,
    initial: Any,
    record: Any,
    options: Mapping[str, Any],
) -> _RunArguments:
    """Check all arguments as those of a study's files, with the same errors; return them parsed."""
    if not isinstance(problem, Problem):
        raise ConcordError(
            f"problem: {short(problem)} is no problem; make one with concord.Problem or "
            "concord.problems"
        )
    if network is None:
        if problem.agents > 1:
            raise ConcordError(
                f"network: it is missing, and there are {problem.agents} agents; give one, such "
                "as 'ring'"
            )
        network = "no_edges"
    chosen = ChosenSampler.of(sampler, options, [*inspect.signature(sample).parameters][:-1])
    graph = network_of(network, problem.agents)
    found = network_under(graph.graph, graph.conditions, "network", chosen.order)
    if found.graph.weights is not None and not hasattr(chosen.params, "weights"):
        raise ConcordError(
            f"sampler {chosen.kind} does not mix by weights, so those of the network would say "
            "nothing; give the graph or its adjacency matrix"
        )
    run = {
        "problem": "own",
        "agents": problem.agents,
        "topology": "no_edges",  # not looked at: the network is made
        "sampler": {},
        "chains": chains,
        "iterations": iterations,
        "initial": {"kind": "normal"} if initial is None else initial,
        "record": {} if record is None else record,
    }
    keys = keys_of(run, "")
    check_record(keys.record, problem.agents, keys.chains, keys.iterations, "record")
    return _RunArguments(chosen, found, keys)
