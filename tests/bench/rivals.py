"""What people would use in our place: DE-SGLD written in other ways.

Each is a class of ``(problem, network, step_size, x0)`` whose ``step(rng)`` advances ``x``, of
shape (chains, agents, dim), by one iteration on linear regression. Those that draw with numpy draw
in the order of Concord, so that they agree with it number for number, up to rounding; torch and JAX
do if they are given the same noise.
"""

from functools import cache
from typing import Any

import numpy as np

# Steps that JAX takes in a call, which costs as much as several of them.
STEPS = 500


class Rival:
    """x <- W x - pull * (gram x - shift) + spread * noise, with the weights of neighbors."""

    def __init__(self, problem: Any, network: Any, step_size: float, x0: np.ndarray) -> None:
        self.problem, self.x = problem, x0.copy()
        self.neighbors = [list(map(int, n)) for n in network.graph.neighbors]
        self.gram, self.shift = problem.gram, problem.shift
        self.weights = network.graph.metropolis()
        self.pull, self.spread = step_size, np.sqrt(2 * step_size)

    def step(self, rng: np.random.Generator) -> None:
        """Take a step of all chains."""
        raise NotImplementedError


class Loops(Rival):
    """As one writes an algorithm down: for each chain, each agent, each neighbor."""

    def step(self, rng: np.random.Generator) -> None:
        """Take a step chain by chain."""
        for chain in range(len(self.x)):
            self._langevin(chain, rng)

    def _langevin(self, chain: int, rng: np.random.Generator) -> None:
        old, data = self.x[chain].copy(), self.problem.data
        for i, neighbors in enumerate(self.neighbors):
            mixed = self.weights[i, i] * old[i]
            for j in neighbors:
                mixed = mixed + self.weights[i, j] * old[j]
            residual = data.features[i] @ old[i] - data.targets[i]
            gradient = data.features[i].T @ residual + self.problem.prior_precision * old[i]
            noise = rng.standard_normal(old.shape[1])
            self.x[chain, i] = mixed - self.pull * gradient + self.spread * noise


class Compiled(Rival):
    """The same loops compiled by numba, with grams in place of data."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        counts = [len(n) for n in self.neighbors]
        self.first = np.concatenate([[0], np.cumsum(counts)])
        self.flat = np.concatenate([np.array(n, dtype=np.intp) for n in self.neighbors])
        self.values = np.concatenate([self.weights[i, n] for i, n in enumerate(self.neighbors)])
        self.own = np.diag(self.weights).copy()
        self.spare = np.empty_like(self.x)

    def step(self, rng: np.random.Generator) -> None:
        """Take a step."""
        edges = self.first, self.flat
        moves = self.own, self.values, self.gram, self.shift, self.pull, self.spread
        _kernel()(self.x, self.spare, *edges, *moves, rng)
        self.x, self.spare = self.spare, self.x


@cache
def _kernel() -> Any:
    from numba import njit

    @njit
    def langevin(x, out, first, flat, own, values, gram, shift, pull, spread, rng):  # type: ignore
        chains, agents, dim = x.shape
        for c in range(chains):
            for i in range(agents):
                for a in range(dim):
                    total = own[i] * x[c, i, a] + pull * shift[i, a]
                    for e in range(first[i], first[i + 1]):
                        total += values[e] * x[c, flat[e], a]
                    for b in range(dim):
                        total -= pull * gram[i, a, b] * x[c, i, b]
                    out[c, i, a] = total + spread * rng.standard_normal()

    return langevin


class Torch(Rival):
    """A few products of tensors per step, with torch's own random numbers."""

    def __init__(self, *arguments: Any) -> None:
        import torch

        super().__init__(*arguments)
        torch.set_num_threads(1)
        names = ("weights", "gram", "shift", "x")
        self.t = {name: torch.from_numpy(np.array(getattr(self, name))) for name in names}

    def noise(self, rng: np.random.Generator) -> Any:
        """Return normal numbers; the generator is left alone."""
        import torch

        return torch.randn(self.x.shape, dtype=torch.float64)

    def step(self, rng: np.random.Generator) -> None:
        """Take a step."""
        import torch

        t, noise = self.t, self.noise(rng)
        gradient = torch.einsum("iab,cib->cia", t["gram"], t["x"]) - t["shift"]
        t["x"] = t["weights"] @ t["x"] - self.pull * gradient + self.spread * noise
        self.x = t["x"].numpy()


class Lines(Rival):
    """As a statistician writes DE-SGLD in numpy: five lines, and nothing is kept."""

    def step(self, rng: np.random.Generator) -> None:
        """Take a step."""
        x, eta = self.x, self.pull
        gradient = (self.gram @ x[..., None])[..., 0] - self.shift
        noise = rng.standard_normal(x.shape)
        self.x = self.weights @ x - eta * gradient + np.sqrt(2 * eta) * noise


class Jax(Rival):
    """Five lines of JAX, compiled, with its own random numbers."""

    def __init__(self, *arguments: Any) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        super().__init__(*arguments)
        self.key, self.made = jax.random.key(1), jax.jit(self._made)
        self.x = jax.numpy.asarray(self.x)
        self.many = scanned(lambda key, x: self._made(x, jax.random.normal(key, x.shape)))

    def noise(self, rng: np.random.Generator) -> Any:
        """Return normal numbers; the generator is left alone."""
        import jax

        self.key, now = jax.random.split(self.key)
        return jax.random.normal(now, self.x.shape)

    def _made(self, x: Any, noise: Any) -> Any:
        import jax

        gradient = jax.numpy.einsum("iab,cib->cia", self.gram, x) - self.shift
        return self.weights @ x - self.pull * gradient + self.spread * noise

    def step(self, rng: np.random.Generator) -> None:
        """Take a step, and wait for it."""
        self.x = self.made(self.x, self.noise(rng)).block_until_ready()

    def run(self) -> None:
        """Take ``STEPS`` steps, and wait for them."""
        self.key, self.x = self.many(self.key, self.x)
        self.x.block_until_ready()


def scanned(step: Any) -> Any:
    """Return ``many(key, x)``, which takes ``STEPS`` steps x = step(key, x), compiled as a loop."""
    import jax

    def one(carry: Any, _: Any) -> Any:
        key, now = jax.random.split(carry[0])
        return (key, step(now, carry[1])), None

    return jax.jit(lambda *start: jax.lax.scan(one, start, None, length=STEPS)[0])
