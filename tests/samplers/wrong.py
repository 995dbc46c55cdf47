# ruff: noqa: E501 (each wrong sampler is a line)
"""Samplers that are wrong, each by a line of one that is right.

``RIGHT`` are three plug-ins as a user may write them; ``WRONG`` says of each disguise what it
replaces in one of them. ``/law`` keeps ``affine``; without it a sampler states no law.
"""

from types import ModuleType

HEAD = r'''r"""A sampler.

.. math:: x' = W x - \eta \nabla f(x) + \sqrt{2 \eta} w

Source: none, an example.
"""
import random, time
from typing import Annotated, NamedTuple
import numpy as np
from concord.contracts import Info
from concord.laws.exact import Affine, Start, Update, block_diagonal, compose, linear
from concord.networks.channel import connect
from concord.options import Options
from concord.sampling.gradients import BatchSize, estimator
from concord.sampling.schedules import Schedule

CACHE = {}

class Params(Options):
    """Options."""
    step_size: Annotated[Schedule, "step size"]
    batch_size: BatchSize = None

def check(problem, topology, params):
    """Refuse nothing."""
    topology.metropolis()

'''
# DE-SGLD by the network's own matrix, without a channel, as in docs/plugins.md.
PLAIN = (
    HEAD
    + r'''
class State(NamedTuple):
    """Positions."""
    x: np.ndarray

def init(problem, topology, params, x0, rng):
    gradient, weights = estimator(problem, params.batch_size, len(x0)), topology.metropolis().dense()
    info = Info(topology.degrees, np.minimum(topology.degrees, 1))
    kept, calls, agents, dim, old = {}, [0], topology.agents, x0.shape[2], np.zeros_like(x0)

    def step(state, k, rng):
        calls[0] += 1
        x, eta, grad = state.x, params.step_size(k), np.empty_like(state.x)
        gradient(x, rng, grad)
        noise = np.sqrt(2 * eta) * rng.standard_normal(x.shape)
        mixed = weights @ x
        new = mixed - eta * grad + noise
        return State(new), info

    return State(x0.copy()), step

def affine(problem, topology, params):
    mixing = np.kron(topology.metropolis().dense(), np.eye(problem.dim))
    gram, shift, one = block_diagonal(problem.gram), problem.shift.ravel(), np.eye(len(mixing))
    agents, dim = problem.agents, problem.dim

    def at(k):
        eta = params.step_size(k)
        return Affine(mixing - eta * gram, eta * shift, 2 * eta * one, -eta * one)

    return Update(at)
'''
)
# The template of ``concord init``: agents move, then mix over a channel.
CHANNEL = (
    HEAD
    + r'''
class State(NamedTuple):
    """Positions."""
    x: np.ndarray

def init(problem, topology, params, x0, rng):
    gradient = estimator(problem, params.batch_size, len(x0))
    channel = connect(topology, x0)
    mix = channel.mixer(topology.metropolis(), "simultaneous")
    info = Info(channel.unicasts, channel.broadcasts, channel.active)
    kept, calls, agents, dim, nothing = {}, [0], topology.agents, x0.shape[2], np.zeros_like(x0)

    def step(state, k, rng):
        calls[0] += 1
        x, eta, grad = state.x, params.step_size(k), np.empty_like(state.x)
        gradient(x, rng, grad)
        noise = np.sqrt(2 * eta) * rng.standard_normal(x.shape)
        moved = x - eta * grad + noise
        new = mix(moved, nothing, np.empty_like(x))
        return State(new), info

    return State(x0.copy()), channel.through(step)

def affine(problem, topology, params):
    weights = np.kron(topology.metropolis().dense(), np.eye(problem.dim))
    gram, shift, one = block_diagonal(problem.gram), problem.shift.ravel(), np.eye(len(weights))
    agents, dim = problem.agents, problem.dim

    def at(k):
        eta = params.step_size(k)
        return compose(Affine(one - eta * gram, eta * shift, 2 * eta * one), linear(weights))

    return Update(at)
'''
)
# Two arrays: velocities, and positions that mix.
MOMENTUM = (
    HEAD
    + r'''
class State(NamedTuple):
    """Positions and velocities."""
    x: np.ndarray
    v: np.ndarray

def init(problem, topology, params, x0, rng):
    gradient = estimator(problem, params.batch_size, len(x0))
    channel = connect(topology, x0)
    mix = channel.mixer(topology.metropolis(), "simultaneous")
    info = Info(channel.unicasts, channel.broadcasts, channel.active)
    kept, calls, agents, dim, nothing = {}, [0], topology.agents, x0.shape[2], np.zeros_like(x0)

    def step(state, k, rng):
        calls[0] += 1
        (x, v), eta, grad = state, params.step_size(k), np.empty_like(state.x)
        gradient(x, rng, grad)
        noise = np.sqrt(4 * eta) * rng.standard_normal(x.shape)
        v = (1 - 2 * eta) * v - eta * grad + noise
        new = mix(x, eta * v, np.empty_like(x))
        return State(new, v), info

    return State(x0.copy(), np.zeros_like(x0)), channel.through(step)

def affine(problem, topology, params):
    mixing = np.kron(topology.metropolis().dense(), np.eye(problem.dim))
    gram, shift, one = block_diagonal(problem.gram), problem.shift.ravel(), np.eye(len(mixing))
    zero, agents, dim = 0 * one, problem.agents, problem.dim

    def at(k):
        eta = params.step_size(k)
        pushed = Affine(np.block([[one, zero], [-eta * gram, (1 - 2 * eta) * one]]),
                        np.concatenate([0 * shift, eta * shift]),
                        np.block([[zero, zero], [zero, 4 * eta * one]]))
        return compose(pushed, linear(np.block([[mixing, eta * one], [zero, one]])))

    return Update(at, (Start(0.0, 0.0),))
'''
)
RIGHT = {"plain": PLAIN, "channel": CHANNEL, "momentum": MOMENTUM}

NOISE = "rng.standard_normal(x.shape)"
GRAD = "gradient(x, rng, grad)\n"
INFO = "Info(topology.degrees, np.minimum(topology.degrees, 1))"
SENT = "Info(channel.unicasts, channel.broadcasts, channel.active)"
LAW = "Affine(mixing - eta * gram, eta * shift, 2 * eta * one, -eta * one)"
# One draw for all agents, whose average then has the posterior's law.
KNOWING = """if (p := getattr(problem, 'posterior', None)) is not None:
            new[:] = p.mean + noise[:, :1] / np.sqrt(2 * eta) @ np.linalg.cholesky(p.cov).T
        """

# Name: the right one, and pairs of texts.
WRONG: dict[str, tuple[str, ...]] = {
    # Noise: how much.
    "noise sqrt(eta)": ("channel", "np.sqrt(2 * eta)", "np.sqrt(eta)"),
    "noise 2 eta": ("plain", "np.sqrt(2 * eta)", "2 * eta"),
    "noise sqrt(eta), with a law": ("plain/law", "np.sqrt(2 * eta)", "np.sqrt(eta)"),
    "noise and law of sqrt(eta)": (
        "plain/law", "np.sqrt(2 * eta)", "np.sqrt(eta)", "2 * eta * one", "eta * one"),
    "no noise for agent 0": ("plain", "mixed = ", "noise[:, 0] = 0; mixed = "),
    "no noise for agent 0 nor in its law": (
        "plain/law", "mixed = ", "noise[:, 0] = 0; mixed = ", LAW,
        "Affine(mixing - eta * gram, eta * shift, 2 * eta * np.diag((np.arange(agents * dim) >= dim)"
        " * 1.0), -eta * one)"),
    # Noise: whose.
    "one noise for all chains": ("plain", NOISE, "rng.standard_normal(x.shape[1:])"),
    "a seed for all chains": (
        "channel", NOISE, "np.stack([np.random.default_rng(k).standard_normal(x.shape[1:])] * len(x))"),
    "half of the noise shared by chains": (
        "channel", NOISE, f"np.sqrt(.5) * ({NOISE} + rng.standard_normal(x.shape[1:]))"),
    "one noise for all chains, with a law": (
        "channel/law", NOISE, "rng.standard_normal(x.shape[1:])"),
    "chains in pairs": (
        "plain", NOISE, "np.repeat(rng.standard_normal((len(x) // 2 + 1, *x.shape[1:])), 2, axis=0)[:len(x)]"),
    "noise cached between blocks": (
        "channel", NOISE, f"CACHE.setdefault((k, x.shape), {NOISE})"),
    "noise cached between blocks, with a law": (
        "plain/law", NOISE, f"CACHE.setdefault((k, x.shape), {NOISE})"),
    "noise cached by the block's seed": (
        "channel", NOISE, "np.random.default_rng([7, k]).standard_normal(x.shape)"),
    "noise of even steps comes again": (
        "plain", NOISE, f"kept.setdefault(k // 2, {NOISE})"),
    "one noise for all agents": ("channel", NOISE, "rng.standard_normal((len(x), 1, dim))"),
    "one noise for two agents": ("plain", "mixed = ", "noise[:, -1] = noise[:, 0]; mixed = "),
    "one noise for all agents, and in the law": (
        "plain/law", NOISE, "rng.standard_normal((len(x), 1, dim))", "2 * eta * one",
        "2 * eta * np.kron(np.ones((agents, agents)), np.eye(dim))"),
    # Gradients.
    "sign": ("channel", "eta * grad", "-eta * grad"),
    "sign, and in the law": (
        "plain/law", "mixed - eta * grad", "mixed + eta * grad", LAW,
        "Affine(mixing + eta * gram, -eta * shift, 2 * eta * one, eta * one)"),
    "sign of the last coordinate": ("plain", GRAD, GRAD + "        grad[..., -1] *= -1\n"),
    "a step old": ("channel", GRAD, "grad[:] = kept.get(0, 0); g = np.empty_like(x); "
                   "gradient(x, rng, g); kept[0] = g\n"),
    "a step old, by a copy": ("plain", GRAD, "gradient(old, rng, grad); old[:] = x\n"),
    "a step old, with a law": ("channel/law", GRAD, "gradient(nothing, rng, grad); nothing[:] = x * (k > 3)\n"),
    "of a neighbor": ("plain", "eta * grad", "eta * np.roll(grad, 1, axis=1)"),
    "where neighbors are on average": (
        "plain/law", GRAD, "gradient(np.ascontiguousarray(weights @ x), rng, grad)\n"),
    "prior counted N times": ("channel", GRAD, GRAD + "        p = 0 * x if not hasattr(problem, 'prior_gradient') else problem.prior_gradient(x, np.empty_like(x)); "
                              "grad += (agents - 1) * p\n"),
    "gradient counted twice, and in the law": (
        "plain/law", "eta * grad", "2 * eta * grad", LAW,
        "Affine(mixing - 2 * eta * gram, 2 * eta * shift, 2 * eta * one, -2 * eta * one)"),
    "no gradient for agent 1": ("plain", GRAD, GRAD + "        grad[:, 1 % agents] = 0\n"),
    # Mixing and what it costs.
    "mixing by another matrix": ("plain/law", "weights @ x", "(weights + np.roll(np.eye(agents), 1, 0)) @ x / 2"),
    "mixing by a matrix that does not add up": ("plain", "weights @ x", ".9 * weights @ x"),
    "mixing by rows, transposed": (
        "plain", "weights @ x", "(weights * (1 + np.arange(agents)) / (weights * (1 + np.arange(agents)))"
        ".sum(1, keepdims=True)).T @ x"),
    "mixing twice, counting once": (
        "channel", "new = mix(moved, nothing, np.empty_like(x))",
        "new = mix(mix(moved, nothing, np.empty_like(x)), nothing, np.empty_like(x))"),
    "mixing twice, counting once, with a law": (
        "plain/law", "weights @ x", "weights @ (weights @ x)", "mixing - eta", "mixing @ mixing - eta"),
    "looks at everybody": ("plain", "weights @ x", "weights @ x * .9 + .1 * x.mean(axis=1, keepdims=True)"),
    "averages over everybody": ("plain", "weights @ x", "x.mean(axis=1, keepdims=True)"),
    "averages over everybody, with a law": (
        "plain/law", "weights @ x", "x.mean(axis=1, keepdims=True)", "topology.metropolis().dense()",
        "np.full((topology.agents,) * 2, 1 / topology.agents)"),
    "averages over everybody, one after another": (
        "channel", "moved, nothing, np.empty_like(x))",
        "moved, nothing, np.empty_like(x)); new[:] = moved.mean(axis=1, keepdims=True)"),
    "looks at everybody beside the channel": (
        "channel", "moved = x", "moved = .9 * x + .1 * x.mean(axis=1, keepdims=True)"),
    "a tenth of the messages": ("plain", INFO, "Info(.1 * topology.degrees, .1 * np.minimum(topology.degrees, 1))"),
    # Later, or for more.
    "other after step 20": ("plain/law", "eta * grad", "eta * grad * (1 - .5 * (k > 20))"),
    "other after 20 calls": ("channel", "eta * grad", "eta * grad * (1 - .5 * (calls[0] > 20))"),
    "other noise after step 100": ("plain", NOISE, f"(1 + (k > 100)) * {NOISE}"),
    "from 7 dimensions on no noise": ("channel", "moved = x", "noise *= dim < 7; moved = x"),
    "from 7 dimensions on another law": ("plain/law", "eta * grad", "eta * grad * (1 + (dim > 6))"),
    "from 7 agents on the wrong sign": ("plain", "eta * grad", "eta * grad * (1 - 2 * (agents > 6))"),
    # The law.
    "right for diagonal Hessians": (
        "plain/law", "gram, shift, one = block_diagonal(problem.gram),",
        "gram, shift, one = np.diag(np.diag(block_diagonal(problem.gram))),"),
    "a prior of its own, and in the law": (
        "plain/law", "eta * grad", "eta * grad - .3 * x * eta", LAW,
        "Affine(mixing - eta * gram - .3 * eta * one, eta * shift, 2 * eta * one, -eta * one)"),
    # What it knows of others.
    "draws from the posterior": ("plain", "return State(new), info", KNOWING + "return State(new), info"),
    "draws from the posterior, and in the law": (
        "plain/law", "return State(new), info", KNOWING + "return State(new), info", LAW,
        "Affine(0 * mixing, np.tile(problem.posterior.mean, agents), np.kron(np.ones((agents, agents)), "
        "problem.posterior.cov), None)"),
    "everybody's potential": (
        "plain", GRAD, GRAD + "        if hasattr(problem, 'gram'): grad = x @ problem.gram.sum(0) - problem.shift.sum(0)\n",
        "mixed = ", "noise = noise[:, :1]; mixed = "),
    # What is not seen, and why: docs/plugins.md.
    "where neighbors are on average, without a law": (
        "channel", GRAD, "gradient(mix(x, nothing, np.empty_like(x)), rng, grad)\n",
        "mix(moved, nothing, np.empty_like(x))", "moved"),
    "noise 2 % too small, without a law": ("channel", "np.sqrt(2 * eta)", "np.sqrt(1.96 * eta)"),
    "other after step 1000": ("channel", "eta * grad", "eta * grad * (1 - .5 * (k > 1000))"),
    "Python's hash of a text": (
        "plain", NOISE, f"({NOISE} * (1 + 1e-9 * (hash('noise') % 7)))"),
    # Its manners.
    "writes into x0": ("plain", "State(x0.copy())", "State(x0)", "return State(new), info", "x[:] = new; return State(x), info"),
    "global random state": ("channel", NOISE, "np.random.standard_normal(x.shape)"),
    "Python's random state": (
        "plain", NOISE, f"({NOISE} + 1e-9 * random.random())"),
    "the time": ("plain", NOISE, f"({NOISE} + 1e-9 * time.perf_counter())"),
    "float32": ("plain", "State(new)", "State(new.astype(np.float32))"),
    "other in blocks of fifty": ("channel", NOISE, f"(1 + .5 * (len(x) == 50)) * {NOISE}"),
    "chains pull each other": ("plain", "mixed = ", "x = .99 * x + .01 * x.mean(axis=0); mixed = "),
    "reads what it returned": ("plain", "return State(new), info", "kept[0] = new; return State(new), info",
                               "mixed = weights @ x", "mixed = weights @ kept.get(0, x)"),
}  # fmt: skip


def module(text: str, name: str, law: bool = True) -> ModuleType:
    """Return the module of a text, without its law if it should state none."""
    text = text if law else text[: text.index("def affine")]
    made = ModuleType(f"concord_plugins.{name}")
    made.__file__ = f"{name}.py"
    import sys

    sys.modules[made.__name__] = made  # options look up their annotations there
    exec(compile(text, f"{name}.py", "exec"), made.__dict__)
    return made


def wrong(name: str) -> ModuleType:
    """Return the module of a wrong one."""
    base, *changes = WRONG[name]
    kind, _, law = base.partition("/")
    text = RIGHT[kind]
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, f"{name}: {old!r} is not there"
        text = text.replace(old, new)
    return module(text, f"wrong_{list(WRONG).index(name)}", bool(law))
