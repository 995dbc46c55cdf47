# ruff: noqa: E501 (each wrong sampler is a line)
"""Samplers that are wrong by mistake, each by a line of one that is right.

``RIGHT`` are plug-ins as a user may write them; ``WRONG`` says of each mistake which check sees it,
and what it replaces in one of them.
"""

import sys
from types import ModuleType
from typing import Any

from concord.kinds import kind_in_module
from concord_arena.testing import CHECKS, Inapplicable
from concord_arena.testing.variants import SEED

HEAD = r'''r"""A sampler.

.. math:: x' = W x - \eta \nabla f(x) + \sqrt{2 \eta} w

Source: none, an example.
"""
import random
from typing import Annotated, NamedTuple
import numpy as np
from concord.sampler import FullGradientSampler, Positions, Sampler
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
from concord.errors import ConcordError
from concord.needs import Needs

class Accepts(FullGradientSampler):
    """MALA."""
    needs = Needs("alone")
    step_size: Annotated[Schedule, "step size"]

    def check(self, problem, network):
        """Refuse problems without potentials, too."""
        super().check(problem, network)
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
NUMBER = PLAIN.replace("Annotated[Schedule,", "Annotated[float,").replace(
    "step_size(k)", "step_size"
)
MIX = 'network.mix("metropolis", x, plus=noise - eta * grad)'
ALONE = "x + noise - eta * grad"
# Steps that look at the number of their iteration.
LOOKS = {
    "averages after every 4th step": (MIX, f'network.mix("metropolis", {ALONE}) if (k + 1) % 4 == 0 else {ALONE}'),
    "averages at multiples of 7": (MIX, f'network.mix("metropolis", {ALONE}) if k and k % 7 == 0 else {ALONE}'),
    "does not average for a while": (MIX, f"{ALONE} if 5 <= k < 1000 else {MIX}"),
    "another step from 300 on": ("self.step_size(k)", "self.step_size(k) * (1 if k < 300 else 0.5)"),
    "steps in turns": ("self.step_size(k)", "self.step_size(k) * [1, 0.5, 0.2][k % 3]"),
}  # fmt: skip
RIGHT = {"plain": PLAIN, "momentum": MOMENTUM, "accepts": ACCEPTS, "number": NUMBER}
RIGHT |= {name: PLAIN.replace(*texts) for name, texts in LOOKS.items()}
FIRST_ORDER = MOMENTUM.replace("4 * eta", "2 * eta").replace(
    "v = (1 - 2 * eta) * v - eta * grad + noise", "move = noise - eta * grad"
)
RIGHT["an anchor, renewed"] = (
    FIRST_ORDER.replace("np.zeros_like(x0)", "x0")
    .replace("problem.gradient(x)", "problem.gradient(v)")
    .replace("plus=eta * v), v)", "plus=move), x if k % 6 == 5 else v)")
)
RIGHT["a count in its state"] = (
    FIRST_ORDER.replace("np.zeros_like(x0)", "np.ones(())")
    .replace("self.step_size(k)", "self.step_size(k) / np.sqrt(state.v)")
    .replace("plus=eta * v), v)", "plus=move), np.minimum(v + 1, 4))")
)

NOISE = "rng.standard_normal(x.shape)"
GRAD = "grad = problem.gradient(x)\n"
WEIGHTS = 'network.matrix("metropolis")'

# Check that sees the mistake: name of the mistake, the right sampler, and pairs of texts.
POSTERIOR = "tends_to_the_posterior"
LOCAL, HOME = "a_step_is_local", "local_coordinates_stay_at_home"
APART = "chains_are_independent"
GENERATOR = "draws_from_its_generator_alone"
INPUTS = "leaves_its_inputs_as_they_are"
SIZES = "takes_any_number_of_chains_and_dimensions"
REFUSALS = "refuses_in_one_sentence_what_it_cannot_sample"
WRONG: dict[str, tuple[str, ...]] = {
    # How much noise.
    "noise without the factor 2": (POSTERIOR, "plain", "np.sqrt(2 * eta)", "np.sqrt(eta)"),
    "noise without the root": (POSTERIOR, "plain", "np.sqrt(2 * eta)", "2 * eta"),
    "no noise": (POSTERIOR, "plain", "noise - eta", "0 * noise - eta"),
    "no noise of velocities": (POSTERIOR, "momentum", "+ noise", ""),
    "no noise for agent 0": (POSTERIOR, "plain", "new = ", "noise[:, 0] = 0; new = "),
    "noise that is mixed": (POSTERIOR, "plain", MIX, 'network.mix("metropolis", x + 3 * noise, plus=-eta * grad)'),
    # Whose noise.
    "one noise for all agents": (POSTERIOR, "plain", NOISE, "rng.standard_normal((len(x), 1, x.shape[2])) * np.ones(x.shape)"),
    "one noise for two agents": (POSTERIOR, "plain", "new = ", "noise[:, -1] = noise[:, 0]; new = "),
    "one noise for all chains": (APART, "plain", NOISE, "rng.standard_normal(x.shape[1:])"),
    "one noise for two chains": (APART, "plain", NOISE, "np.repeat(rng.standard_normal((len(x) // 2 + 1, *x.shape[1:])), 2, axis=0)[:len(x)]"),
    "a seed for each step": (APART, "plain", NOISE, "np.random.default_rng(k).standard_normal(x.shape)"),
    "noise that is cached": (APART, "momentum", NOISE, f"CACHE.setdefault((k, x.shape), {NOISE})"),
    "numpy's global generator": (GENERATOR, "plain", NOISE, "np.random.standard_normal(x.shape)"),
    "Python's global generator": (GENERATOR, "plain", NOISE, f"({NOISE} + 1e-6 * random.random())"),
    # Gradients.
    "another sign": (POSTERIOR, "plain", "noise - eta", "noise + eta"),
    "another sign of velocities": (POSTERIOR, "momentum", "- eta * grad", "+ eta * grad"),
    "another sign of the last coordinate": (POSTERIOR, "plain", GRAD, GRAD + "        grad[..., -1] *= -1\n"),
    "the mean over agents for the sum": (POSTERIOR, "plain", "eta * grad", "eta * grad / network.agents"),
    "counted twice": (POSTERIOR, "plain", "eta * grad", "2 * eta * grad"),
    "a step old": (GENERATOR, "plain", GRAD, "grad = CACHE.get(x.shape, 0 * x); CACHE[x.shape] = problem.gradient(x)\n"),
    "at half of the position": (POSTERIOR, "plain", GRAD, "grad = problem.gradient(x / 2)\n"),
    "of a neighbor": (LOCAL, "plain", "eta * grad", "eta * np.roll(grad, 1, axis=1)"),
    "none for agent 1": (POSTERIOR, "plain", GRAD, GRAD + "        grad[:, 1 % network.agents] = 0\n"),
    "a prior besides": (POSTERIOR, "plain", "eta * grad", "eta * (grad + .3 * x)"),
    # Velocities and acceptance.
    "velocities that are not carried on": (POSTERIOR, "momentum", "plus=eta * v), v)", "plus=eta * v), 0 * v)"),
    "noise of another friction": (POSTERIOR, "momentum", "1 - 2 * eta", "1 - eta"),
    "acceptance without the way back": (POSTERIOR, "accepts", "odds += (noise**2).sum(-1) / 2 - (back**2).sum(-1) / (4 * eta)", "pass"),
    "acceptance the other way round": (POSTERIOR, "accepts", "problem.potential(x) - problem.potential(there)", "problem.potential(there) - problem.potential(x)"),
    # Mixing.
    "the sum over neighbors for the mean": (POSTERIOR, "plain", MIX, "network.mix(network.graph.adjacency, x, plus=noise - eta * grad)"),
    "mixing with another sign": (POSTERIOR, "plain", MIX, '2 * x - network.mix("metropolis", x) + noise - eta * grad'),
    "weights that do not add up to one": (POSTERIOR, "plain", MIX, '.9 * network.mix("metropolis", x) + noise - eta * grad'),
    "mixing without sending": (LOCAL, "plain", MIX, f"{WEIGHTS} @ x + noise - eta * grad"),
    "the average of all": (LOCAL, "plain", MIX, 'network.mix("metropolis", x.mean(axis=1, keepdims=True) + 0 * x, plus=noise - eta * grad)'),
    "a look at the next agent": (LOCAL, "momentum", GRAD, "grad = problem.gradient((x + np.roll(x, 1, axis=1)) / 2)\n"),
    "the average of chains": (APART, "plain", "new = ", "x = .99 * x + .01 * x.mean(axis=0); new = "),
    "own coordinates in a longer message": (HOME, "plain", MIX, 'network.mix("metropolis", np.concatenate([x, x], -1))[..., : x.shape[-1]] + noise - eta * grad'),
    # What it writes and returns.
    "writes into the positions": (INPUTS, "plain", "return Positions(new)", "x[:] = new; return Positions(x)"),
    "writes into the velocities": (INPUTS, "momentum", "v = (1 - 2 * eta) * v - eta * grad + noise", "v *= 1 - 2 * eta; v += noise - eta * grad"),
    "velocities outside of the state": (GENERATOR, "momentum", "v = (1 - 2 * eta) * v", "v = CACHE.get(v.shape, v); v = CACHE[v.shape] = (1 - 2 * eta) * v"),
    "single precision": (SIZES, "plain", "Positions(new)", "Positions(new.astype(np.float32))"),
    "one chain is squeezed": (SIZES, "plain", "Positions(new)", "Positions(new.squeeze(0) if len(new) == 1 else new)"),
    "a refusal without a remedy": (REFUSALS, "accepts", "a potential; use another problem", "a potential"),
}  # fmt: skip


def accusations(sampler: Any, seed: int = 1) -> list[str]:
    """Return the checks of ``concord test`` that a sampler fails, each with the reason."""
    found, token = [], SEED.set(seed)
    try:
        for check in CHECKS["samplers"]:
            try:
                check(sampler)
            except Inapplicable:
                pass
            except Exception as error:  # that is how a run of all checks counts it, too
                found.append(f"{check.__name__}: {error}")
    finally:
        SEED.reset(token)
    return found


def sampler(text: str, name: str) -> Any:
    """Return the sampler of a text."""
    module = ModuleType(f"concord_plugins.{name}")
    module.__file__ = f"{name}.py"
    sys.modules[module.__name__] = module  # options look up their annotations there
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return kind_in_module("samplers", module)


def wrong(name: str) -> Any:
    """Return a wrong sampler."""
    _, kind, *changes = WRONG[name]
    text = RIGHT[kind]
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, f"{name}: {old!r} is not there"
        text = text.replace(old, new)
    return sampler(text, f"wrong_{list(WRONG).index(name)}")
