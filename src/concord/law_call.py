"""``law``: the exact distribution of a run, from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from concord import linearized
from concord.arguments import prepare, write_names
from concord.calls import find_largest_step, step_advice
from concord.errors import suggest_names, warn_of_divergence
from concord.laws import exact
from concord.laws.law import LARGEST, LawInputs, law_of_run
from concord.laws.read_off import NoLaw, StepReader
from concord.memory import estimate_law_bytes, require_memory
from concord.problem import Problem, Quadratic
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampler import Algorithm
from concord.sampling.trace import Trace


@suggest_names
def law(
    sampler: str | Algorithm | type[Algorithm],
    problem: Problem,
    network: object = None,
    *,
    iterations: int,
    initial: Mapping[str, object] | None = None,
    record: Mapping[str, object] | None = None,
    approximate: bool = False,
    memory: float | None = None,
    **options: object,
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
    memory
        GB that the call may take, as of ``concord.sample``.

    Returns
    -------
    Law
        ``iterations`` (K,), ``mean`` (K, agents, dim) and ``cov`` (K, agents, dim, dim) of every
        agent, ``average_mean`` and ``average_cov`` of their average.

    Raises
    ------
    ConcordError
        If an argument does not fit, the law would not fit into memory, or no exact law is known.

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
    run = prepare("law", sampler, problem, network, iterations, 1, initial, record, options)
    count, most = run.options.record.count(iterations), np.inf if approximate else LARGEST
    needed = estimate_law_bytes(count, problem.agents, problem.dim, most)
    require_memory(needed, memory, "record less (record={'every': 10}, or {'at': [1000]})")
    inputs = LawInputs(
        run.sampler.params,
        problem,
        run.network,
        run.options.initial,
        iterations,
        Trace({}, run.options.record.iterations(iterations), np.arange(problem.agents)),
    )
    inputs.sampler.check(problem, inputs.network)
    with np.errstate(over="ignore", invalid="ignore"):  # of a law that diverges
        if approximate and not isinstance(problem, Quadratic):
            exact_law = linearized.law_of_run(inputs)
        else:
            try:
                exact_law = law_of_run(inputs, LARGEST)
            except NoLaw as why:
                raise _explain_no_law(inputs, why) from None
    names = {"sampler": run.sampler.kind, **write_names(problem, run.network)}
    exact_law = replace(exact_law, attributes=names)
    if message := exact_law.divergence():
        advice = step_advice(run, problem, partial(find_largest_step, run, problem))
        warn_of_divergence(run.sampler.kind, message, advice)
    return exact_law


def _explain_no_law(inputs: LawInputs, why: NoLaw) -> NoLaw:
    """Return the error that there is no exact law; it says whether an approximate one would do."""
    agents, dim = inputs.problem.agents, inputs.problem.dim
    if not isinstance(inputs.problem, Quadratic):
        any_gram = np.broadcast_to(np.eye(dim), (agents, dim, dim))
        stand_in = QuadraticProblem(any_gram, np.zeros((agents, dim)))
        try:
            StepReader(inputs.sampler, stand_in, inputs.network).update()
        except NoLaw as other:
            why = other
        else:
            return why  # which says to take one
    return NoLaw(f"{why} (approximate=True does not help)")
