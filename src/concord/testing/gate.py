"""What lets no cheat through, whether a sampler states a law or not.

Networks, dimensions and iterations are drawn, from seven agents and dimensions on and beyond a
hundred steps: what is right for small ones only is seen. Where a test is one of chance it fails a
right sampler with a probability below ``LEVEL`` (see ``least_p``).
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
from msgspec.structs import fields as fields_of
from scipy import stats

from concord.contracts import AffineSampler, ReadOut, declared
from concord.errors import ConcordError
from concord.laws import exact
from concord.networks.topology import Topology
from concord.problems._quadratic import QuadraticProblem
from concord.sampling.schedules import Schedule
from concord.testing import variants
from concord.testing._outcome import ROUNDING, Inapplicable, expect
from concord.testing.variants import (
    GRAPHS,
    Case,
    Quiet,
    Wrapped,
    constant,
    copied,
    drawn,
    drawn_dim,
    stream,
    walk,
)

# The chance that a right sampler fails by a statistic, over all statistics of a test: a run of all
# tests has a few dozen networks and options, so that it is accused with less than 1e-8.
LEVEL = 1e-10
# Chains of the blocks whose noise is compared: the loop's fifty, again, and what is left over.
BLOCKS = (50, 50, 23)
STEPS = 160  # and so beyond a hundred
# By how much a law may miss the posterior. Exact: this part of what it misses it by at a step four
# times as large; or this little, in units of the posterior's standard deviation and variance.
SHRINKS, CLOSE = 0.6, 1e-3
# Simulated: how far a mean and a variance may be off besides chance, in standard deviations and
# parts, for the bias of a finite step; and standard errors, which LEVEL allows.
ROUGH, SURE = 0.1, 6.5


# The members of a problem that a sampler of gradients asks for.
ASKED = (
    *("agents", "dim", "counts", "dtype", "prior_gradient", "potential", "gradient"),
    *("batch_gradient", "hessian_product", "gradient_at", "prox"),
)


def a_step_hears_neighbors_alone(module: Any) -> None:
    """On a tree an agent that is farther than vectors go in a step has no effect."""
    tree, params = variants.drawn_networks()[0], constant(next(variants.variants(module)))
    case = Case(module, tree, variants.problem(tree.agents, 2), params)
    if not case.allowed:
        raise Inapplicable("it takes no tree with its first options")
    x0 = case.start(3, 0)
    state, step = case.begin(x0.copy(), stream("heard"))
    state, info = step(state, 0, stream("heard", "step"))
    reach = int(np.max(info.broadcasts, initial=1)) * declared(module, "TURNS")
    first = np.array(state.x)
    for agent in range(tree.agents):
        other = x0.copy()
        other[:, agent] += 1.0
        state, step = case.begin(other, stream("heard"))
        state, _ = step(state, 0, stream("heard", "step"))
        far = _farther(tree, agent, reach)
        why = f"agent {agent} has an effect on others, to whom {reach} vectors of a step do not get"
        expect(_alike(first[:, far], state.x[:, far]), why, case)


def _farther(graph: Topology, agent: int, reach: int) -> list[int]:
    """Return the agents to which more than so many edges lead from an agent."""
    near = {agent}
    for _ in range(reach):
        near |= {int(other) for one in near for other in graph.neighbors[one]}
    return sorted(set(range(graph.agents)) - near)


def asks_for_gradients_alone(module: Any) -> None:
    """A sampler that runs on gradients alone ends there too where more is known of a problem."""
    for number, case in enumerate(drawn(module)):
        plain = {name: getattr(case.prob, name) for name in ASKED if name in dir(case.prob)}
        prob: Any = SimpleNamespace(**plain, posterior=None)
        prob.from_chain = lambda first, prob=prob: prob
        alone = case._replace(prob=prob)
        x0 = case.start(3, number)
        try:
            if not alone.allowed:
                continue
            end = alone.after(3, x0, stream("alone", number)).x
        except (ConcordError, AttributeError):
            continue  # it reads the problem's matrices
        whole = case.after(3, x0, stream("alone", number)).x
        why = "it reads more of the problem than gradients: with these alone it ends elsewhere"
        expect(_alike(end, whole), why, case)


class Watched(Wrapped):
    """A generator that says whether it was asked for numbers."""

    asked = False

    def __getattr__(self, name: str) -> Any:
        """Return what the generator has, and note it."""
        self.asked = True
        return super().__getattr__(name)


def a_step_is_a_function_of_its_state(module: Any) -> None:
    """The same state, iteration and numbers give the same step, whatever was before.

    And whatever the iteration, where no schedule changes and k is not 0.
    """
    for number, case in enumerate(drawn(module)):
        rng = stream("history", number)
        early, late = int(rng.integers(2, 8)), int(rng.integers(21, 60))
        late = STEPS if number == 0 else late
        x0 = rng.standard_normal((3, case.prob.agents, case.prob.dim))
        label = int(rng.integers(1 << 30))
        for quiet in (True, False):
            state, step = case.begin(x0.copy(), stream("history", "init"))
            whole: Any = stream("history", "whole", number)
            state = copied(walk(state, step, Quiet(whole) if quiet else whole, range(late)))
            if not np.isfinite(state.x).all():
                continue
            far, near = (
                case.begin(start, stream("history", "init"))[1] for start in (-2 * x0, x0.copy())
            )
            ends, ahead = {}, False
            for name, again, k in (
                ("", step, late),
                (f"of step {late} by itself", far, late),
                (f"of step {early}", near, early),
            ):
                numbers: Any = stream("history", "numbers", label)
                watched: Any = Watched(Quiet(numbers) if quiet else numbers)
                with np.errstate(all="ignore"):
                    ends[name] = copied(again(copied(state), k, watched)[0])
                ahead |= not watched.asked
            first = f"of step {late} in a chain"
            if ahead and not quiet:  # numbers that are prepared for many steps at once
                del ends[""]
                first = f"of step {late} by itself"
            one, *others = ends.values()
            for name, other in zip(list(ends)[1:], others, strict=True):
                expect(
                    all(map(_alike, one, other)),
                    f"from the same state with the same numbers the end {first} is another than "
                    f"{name}: keep in State what a step needs",
                    case,
                )


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays are the same up to rounding, wherever they are finite."""
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    sound = np.isfinite(one)
    scale = max(1.0, float(np.abs(one[sound]).max(initial=0.0)))
    close = np.abs(one[sound] - other[sound]).max(initial=0.0) <= 100 * ROUNDING * scale
    return np.array_equal(sound, np.isfinite(other)) and bool(close)


def noise_is_fresh(module: Any) -> None:
    """Noise is independent between chains, blocks of chains and steps, and always as large.

    Every step starts from one state, so that what differs is noise.
    """
    tried = 0
    for number, case in enumerate(drawn(module, dim=2)):
        values = [_kicks(case, number, block) for block in range(len(BLOCKS))]
        if not all(np.isfinite(one).all() for one in values):
            continue
        tried += 1
        p, what = least_p(values)
        expect(p > LEVEL, f"{what} (p = {p:.0e})", case)
    if not tried:
        raise Inapplicable("its steps from one place are not finite")


def _kicks(case: Case, number: int, block: int) -> np.ndarray:
    """Return where STEPS steps from one state lead, (steps, chains, agents * dim), one block."""
    rng, shape = stream("fresh", number, block), (1, case.prob.agents, case.prob.dim)
    x0 = stream("fresh", "start", number).standard_normal(shape).repeat(BLOCKS[block], axis=0)
    state, step = case._replace(prob=case.prob.from_chain(50 * block)).begin(x0, rng)
    kept = copied(state)
    for part in kept:
        if part.ndim > 1:  # all chains from the first one's state
            part[:] = part[:1]
    found = np.empty((STEPS, len(x0), case.size))
    for k in range(STEPS):
        state, _ = step(copied(kept), k + 1, rng)
        found[k] = state.x.reshape(len(x0), -1)
    return found


def least_p(values: list[np.ndarray]) -> tuple[float, str]:
    """Return the least p-value of all statistics times their number (Bonferroni), and what it is.

    Of every coordinate: the sum of squares of chains' means (chi-squared where chains are
    independent); correlations between blocks and between steps one to four apart, and the logarithm
    of the ratio of variances of blocks and of the first steps and the last (both normal, with a
    standard deviation from the fourth moment).
    """
    found: list[tuple[float, str]] = []
    deviations = []
    for one in values:
        centered = one - one.mean(axis=(0, 1))
        sd = centered.std(axis=(0, 1))
        deviations.append(np.divide(centered, sd, out=np.zeros_like(one), where=sd > 1e-12))
    moving = np.all([np.abs(one).max(axis=(0, 1)) > 0 for one in deviations], axis=0)
    deviations = [one[:, :, moving] for one in deviations]
    if not moving.any():
        return 1.0, "there is no noise"
    for one in deviations:
        steps, chains, _ = one.shape
        sums = chains * (one.mean(axis=1) ** 2).sum(axis=0)
        # A coordinate's own kurtosis makes the sum vary more than that of normal numbers.
        wide = 1 + (one**4).mean(axis=(0, 1)) / (2 * chains)
        found.append((float(stats.chi2.sf(sums / wide, steps).min()), "chains share noise"))
        for lag in (1, 2, 3, 4):
            z = (one[lag:] * one[:-lag]).mean(axis=(0, 1)) * np.sqrt((steps - lag) * chains)
            found.append((_two_sided(z), f"noise comes again after {lag} steps"))
        half = steps // 2
        early = 20 if steps > 40 else half
        late = one[half:].var(axis=(0, 1)) / one[:early].var(axis=(0, 1))
        found.append((_ratio(late, one, chains * early), "noise changes with time"))
    first = deviations[0]
    for other, block in zip(deviations[1:], values[1:], strict=True):
        chains = min(first.shape[1], other.shape[1])
        z = (first[:, :chains] * other[:, :chains]).mean(axis=(0, 1))
        found.append(
            (_two_sided(z * np.sqrt(len(first) * chains)), "noise comes again in another block")
        )
        ratio = (block.var(axis=(0, 1)) / values[0].var(axis=(0, 1)))[moving]
        less = len(first) * other.shape[1]
        found.append((_ratio(ratio, first, less), "noise depends on how many chains there are"))
    p, what = min(found)
    return min(1.0, p * len(found) * int(moving.sum())), what


def _two_sided(z: np.ndarray) -> float:
    return float(2 * stats.norm.sf(np.abs(z)).min())


def _ratio(ratio: np.ndarray, deviations: np.ndarray, count: int) -> float:
    """Return the least p-value of ratios of variances, the smaller of ``count`` numbers."""
    kurtosis = (deviations**4).mean(axis=(0, 1))
    return _two_sided(np.log(ratio) / np.sqrt(2 * np.maximum(kurtosis - 1, 2) / count))


def tends_to_the_posterior(module: Any) -> None:
    """With some of its options, and small steps, the network average has the posterior's law.

    With ``affine`` exactly, and every agent: as the step falls fourfold, what is missing falls too.
    Otherwise by chains that start from the posterior and stay close to it. A sampler that samples
    something else by design says so, and what, in ``BIASED``.
    """
    if law := declared(module, "BIASED"):
        raise Inapplicable(f"it says that it samples another law: {law}")
    graphs = [variants.drawn_networks()[1], *(GRAPHS[n] for n in (3, 8, 7))]
    problems = [Near(graph.agents, drawn_dim("posterior")) for graph in graphs]
    reasons, tried = [], []
    for params in map(constant, variants.variants(module)):
        cases = [Case(module, *pair, params) for pair in zip(graphs, problems, strict=True)]
        cases = [case for case in cases if case.allowed and not case.batched]
        if params in tried or not cases:
            continue
        tried.append(params)
        for case in cases:
            if why := (_by_law(case) if _states_law(case) else _by_chains(case)):
                reasons.append(f"{why}, {case}")
                break
        else:
            return
    if not tried:
        raise Inapplicable("it takes no full gradients on the networks tried")
    expect(False, f"with none of {len(tried)} options it tends to the posterior; {reasons[0]}")


def _states_law(case: Case) -> bool:
    module = case.module
    return (
        isinstance(module, AffineSampler)
        and module.affine(case.prob, case.graph, case.params) is not None
    )


def _with_step(params: Any, step: float) -> Any:
    """Return the options with this step: ``step_size``, or the first schedule if there is one."""
    names = [f.name for f in fields_of(type(params))]
    names = [name for name in names if isinstance(getattr(params, name), Schedule)]
    names.sort(key=lambda name: name != "step_size")
    others = {name: Schedule(0.1) for name in names[1:]}
    return constant(params, **others, **{name: Schedule(step) for name in names[:1]})


class Near(QuadraticProblem):
    """Agents of about the same curvature, 1, and different modes; .3 of it is the prior's."""

    def __init__(self, agents: int, dim: int, mode: np.ndarray | None = None) -> None:
        """Draw them; all have the mode if there is one."""
        rng = stream("near", agents, dim)
        skew = 0.1 * rng.standard_normal((agents, dim, dim))
        gram = np.eye(dim) + (skew + skew.swapaxes(1, 2)) / 2
        shift = rng.standard_normal((agents, dim))
        super().__init__(gram, shift if mode is None else gram @ mode)

    def prior_gradient(self, x: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the prior's part of the gradients at x; out may be x."""
        return np.multiply(x, 0.3, out=out)


def stays_at_the_mode_without_noise(module: Any) -> None:
    """Agents that agree, where no gradient pulls any of them, stay there but for noise."""
    if law := declared(module, "BIASED"):
        raise Inapplicable(f"it says that it samples another law: {law}")
    for case in drawn(module):
        mode = stream("mode").standard_normal(case.prob.dim)
        there = case._replace(prob=Near(case.prob.agents, case.prob.dim, mode))
        x0 = np.tile(mode, (3, case.prob.agents, 1))
        off = np.abs(there.after(30, x0, Quiet(stream("quiet"))).x - mode).max()
        expect(bool(off < 1e-9), f"agents leave the mode by {off:.2g}", case)


def _missing(mean: np.ndarray, cov: np.ndarray, prob: Any) -> float:
    """Return by how much moments miss the posterior's, in its units."""
    target = prob.posterior
    root = np.linalg.inv(np.linalg.cholesky(target.cov))
    off = np.linalg.norm(root @ (mean - target.mean))
    return float(off + np.linalg.norm(root @ cov @ root.T - np.eye(prob.dim), 2))


def _by_law(case: Case) -> str:
    """Say how the exact law misses the posterior for small steps; nothing if it does not."""
    prob, size, found = case.prob, case.size, []
    for step in (4.0**-8, 4.0**-9):
        update = case.module.affine(prob, case.graph, _with_step(case.params, step))
        start = exact.initial(prob.agents, prob.dim, (0.0, 1.0), *update.auxiliary)
        law = exact.limit(update.at(1000), *start)
        if law is None:
            return "the law does not settle"
        places = [np.kron(np.full((1, prob.agents), 1 / prob.agents), np.eye(prob.dim))]
        places += list(np.eye(size).reshape(prob.agents, prob.dim, size))
        mean, cov = law[0][:size], law[1][:size, :size]
        found.append(max(_missing(p @ mean, p @ cov @ p.T, prob) for p in places))
    if found[1] < CLOSE or found[1] < SHRINKS * found[0]:
        return ""
    return f"the law of its update misses the posterior by {found[1]:.2g} for a step near 0"


def _by_chains(case: Case) -> str:
    """Say how the average of chains misses the posterior; nothing if it does not."""
    prob, module = case.prob, case.module
    chains, step = max(300, 2400 // prob.agents), 0.02 / prob.agents
    rng = stream("posterior", "chains", prob.agents)
    theta = prob.posterior.sample(chains, rng)[:, None]
    own = case._replace(params=_with_step(case.params, step))
    with np.errstate(all="ignore"):
        state = own.after(int(3 / step), np.repeat(theta, prob.agents, axis=1), rng)
        x = module.read(state, own.params) if isinstance(module, ReadOut) else state.x
    root = np.linalg.inv(np.linalg.cholesky(prob.posterior.cov))
    z = (x.mean(axis=1) - prob.posterior.mean) @ root.T
    if not np.isfinite(z).all():
        return "chains leave the posterior"
    off, ratio = np.abs(z.mean(axis=0)).max(), float((z**2).mean())
    if off > ROUGH + SURE / np.sqrt(chains):
        return f"the mean of chains is {off:.2g} standard deviations from the posterior's"
    if abs(ratio - 1) > ROUGH + SURE * np.sqrt(2 / z.size):
        return f"the variance of chains is {ratio:.2g} times the posterior's"
    return ""


CHECKS = (
    stays_at_the_mode_without_noise,
    a_step_hears_neighbors_alone,
    asks_for_gradients_alone,
    a_step_is_a_function_of_its_state,
    noise_is_fresh,
    tends_to_the_posterior,
)
