# ruff: noqa: E501 (each wrong sampler is a line)
"""Samplers that are wrong by mistake, each by a line of one that is right.

``RIGHT`` are three plug-ins as a user may write them; ``WRONG`` says of each mistake what it
replaces in one of them.
"""

import sys
from types import ModuleType
from typing import Any

from concord.rooms import object_of

HEAD = r'''r"""A sampler.

.. math:: x' = W x - \eta \nabla f(x) + \sqrt{2 \eta} w

Source: none, an example.
"""
import random, time
from typing import Annotated, NamedTuple
import numpy as np
from concord.sampler import Positions, Sampler
from concord.sampling.schedules import Schedule

CACHE = {}

'''
# DE-SGLD.
PLAIN = (
    HEAD
    + r'''
class Plain(Sampler):
    """Plain."""
    step_size: Annotated[Schedule, "step size"]

    def step(self, state, k, problem, network, rng):
        """Return W x - eta grad f(x) + sqrt(2 eta) w."""
        x, eta = state.x, self.step_size(k)
        grad = problem.gradient(x)
        noise = np.sqrt(2 * eta) * rng.standard_normal(x.shape)
        new = network.mix("metropolis", x, plus=noise - eta * grad)
        return Positions(new)
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

class Momentum(Sampler):
    """Momentum."""
    step_size: Annotated[Schedule, "step size"]

    def init(self, x0, problem, network, rng):
        """Return the state at rest."""
        return State(x0, np.zeros_like(x0))

    def step(self, state, k, problem, network, rng):
        """Return positions and velocities after a step."""
        (x, v), eta = state, self.step_size(k)
        grad = problem.gradient(x)
        noise = np.sqrt(4 * eta) * rng.standard_normal(x.shape)
        v = (1 - 2 * eta) * v - eta * grad + noise
        return State(network.mix("metropolis", x, plus=eta * v), v)
'''
)
# Moves that are accepted or not, by one agent: no law is read off.
ACCEPTS = (
    HEAD
    + r'''
from concord.samplers.checks import check_single_agent
from concord.errors import ConcordError

class Accepts(Sampler):
    """MALA."""
    takes_batches = False
    step_size: Annotated[Schedule, "step size"]

    def check(self, problem, network):
        """Refuse several agents, and problems without potentials."""
        check_single_agent(network, "MALA")
        if problem is not None and not hasattr(problem, "potential"):
            raise ConcordError("it needs a potential; use another problem")

    def step(self, state, k, problem, network, rng):
        """Return x after a move that is accepted or not."""
        x, eta = state.x, self.step_size(k)
        noise = rng.standard_normal(x.shape)
        there = x - eta * problem.gradient(x) + np.sqrt(2 * eta) * noise
        back = x - there + eta * problem.gradient(there)
        odds = problem.potential(x) - problem.potential(there)
        odds += (noise**2).sum(-1) / 2 - (back**2).sum(-1) / (4 * eta)
        accepted = np.log(rng.random(odds.shape)) < odds
        return Positions(np.where(accepted[..., None], there, x))
'''
)
RIGHT = {"plain": PLAIN, "momentum": MOMENTUM, "accepts": ACCEPTS}

NOISE = "rng.standard_normal(x.shape)"
GRAD = "grad = problem.gradient(x)\n"
WEIGHTS = 'network.matrix("metropolis")'

# Name: the right one, and pairs of texts.
WRONG: dict[str, tuple[str, ...]] = {
    # Noise: how much.
    "noise sqrt(eta)": ("plain", "np.sqrt(2 * eta)", "np.sqrt(eta)"),
    "noise 2 eta": ("plain", "np.sqrt(2 * eta)", "2 * eta"),
    "no noise": ("plain", "noise - eta", "0 * noise - eta"),
    "no noise of velocities": ("momentum", "+ noise", ""),
    "no noise for agent 0": ("plain", "new = ", "noise[:, 0] = 0; new = "),
    "more noise after step 50": ("plain", NOISE, f"(1 + .5 * (k > 50)) * {NOISE}"),
    # Noise: whose.
    "one noise for all chains": ("plain", NOISE, "rng.standard_normal(x.shape[1:])"),
    "a third of the noise shared by chains": ("plain", NOISE, f"np.sqrt(.67) * {NOISE} + np.sqrt(.33) * rng.standard_normal(x.shape[1:])"),
    "chains in pairs": ("plain", NOISE, "np.repeat(rng.standard_normal((len(x) // 2 + 1, *x.shape[1:])), 2, axis=0)[:len(x)]"),
    "a seed for each step": ("plain", NOISE, "np.random.default_rng(k).standard_normal(x.shape)"),
    "noise kept between blocks": ("momentum", NOISE, f"CACHE.setdefault((k, x.shape), {NOISE})"),
    "noise of even steps comes again": ("plain", NOISE, f"({NOISE} if k % 2 == 0 or CACHE.get('w') is None or CACHE['w'].shape != x.shape else CACHE['w']); CACHE['w'] = noise / np.sqrt(2 * eta)"),
    "one noise for all agents": ("plain", NOISE, "rng.standard_normal((len(x), 1, x.shape[2])) * np.ones(x.shape)"),
    "one noise for two agents": ("plain", "new = ", "noise[:, -1] = noise[:, 0]; new = "),
    # Gradients.
    "another sign": ("plain", "noise - eta", "noise + eta"),
    "another sign of velocities": ("momentum", "- eta * grad", "+ eta * grad"),
    "another sign of the last coordinate": ("plain", GRAD, GRAD + "        grad[..., -1] *= -1\n"),
    "divided by the agents": ("plain", "eta * grad", "eta * grad / network.agents"),
    "counted twice": ("plain", "eta * grad", "2 * eta * grad"),
    "a step old": ("plain", GRAD, "grad = CACHE.get('g', 0 * x); grad = grad if grad.shape == x.shape else 0 * x; CACHE['g'] = problem.gradient(x)\n"),
    "of a neighbor": ("plain", "eta * grad", "eta * np.roll(grad, 1, axis=1)"),
    "no gradient for agent 1": ("plain", GRAD, GRAD + "        grad[:, 1 % network.agents] = 0\n"),
    "a prior of its own": ("plain", "eta * grad", "eta * (grad + .3 * x)"),
    # Acceptance.
    "acceptance without the way back": ("accepts", "odds += (noise**2).sum(-1) / 2 - (back**2).sum(-1) / (4 * eta)", "pass"),
    "acceptance the other way round": ("accepts", "problem.potential(x) - problem.potential(there)", "problem.potential(there) - problem.potential(x)"),
    # Mixing.
    "mixing by a matrix that does not add up": ("plain", 'network.mix("metropolis", x, plus=noise - eta * grad)', '.9 * network.mix("metropolis", x) + noise - eta * grad'),
    "mixing without sending": ("plain", 'network.mix("metropolis", x, plus=noise - eta * grad)', f"{WEIGHTS} @ x + noise - eta * grad"),
    "averages over everybody": ("plain", 'network.mix("metropolis", x, ', 'network.mix("metropolis", x.mean(axis=1, keepdims=True) + 0 * x, '),
    "looks at everybody": ("plain", "new = ", "x = .9 * x + .1 * x.mean(axis=1, keepdims=True); new = "),
    "looks at the next agent": ("momentum", GRAD, "grad = problem.gradient((x + np.roll(x, 1, axis=1)) / 2)\n"),
    "chains pull each other": ("plain", "new = ", "x = .99 * x + .01 * x.mean(axis=0); new = "),
    # Its manners.
    "writes into the state": ("plain", "return Positions(new)", "x[:] = new; return Positions(x)"),
    "writes into the velocities": ("momentum", "v = (1 - 2 * eta) * v - eta * grad + noise", "v *= 1 - 2 * eta; v += noise - eta * grad"),
    "keeps velocities outside of the state": ("momentum", "return State(network.mix(\"metropolis\", x, plus=eta * v), v)", "v = v + .1 * CACHE.get(v.shape, 0 * v); CACHE[v.shape] = v; return State(network.mix('metropolis', x, plus=eta * v), v)"),
    "keeps a thing in the sampler": ("plain", "new = ", "self.last = x; new = "),
    "global random state": ("plain", NOISE, "np.random.standard_normal(x.shape)"),
    "Python's random state": ("plain", NOISE, f"({NOISE} + 1e-6 * random.random())"),
    "the time": ("plain", NOISE, f"({NOISE} + 1e-6 * time.perf_counter())"),
    "float32": ("plain", "Positions(new)", "Positions(new.astype(np.float32))"),
    "one dimension alone is squeezed": ("plain", "Positions(new)", "Positions(new.squeeze())"),
    "an error of Python's": ("plain", GRAD, "grad = problem.gradient(x); network.graph.servers\n"),
    "a refusal without a remedy": ("accepts", "a potential; use another problem", "a potential"),
}  # fmt: skip


def sampler(text: str, name: str) -> Any:
    """Return the sampler of a text."""
    module = ModuleType(f"concord_plugins.{name}")
    module.__file__ = f"{name}.py"
    sys.modules[module.__name__] = module  # options look up their annotations there
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return object_of("samplers", module)


def wrong(name: str) -> Any:
    """Return a wrong sampler."""
    kind, *changes = WRONG[name]
    text = RIGHT[kind]
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, f"{name}: {old!r} is not there"
        text = text.replace(old, new)
    return sampler(text, f"wrong_{list(WRONG).index(name)}")
