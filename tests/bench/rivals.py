"""What people would use in our place: the same samplers written in other ways.

Each is a class of ``(problem, graph, x0)`` whose ``step(rng)`` advances ``x``, (chains, agents,
dim), by one iteration on linear regression: of DE-SGLD, or as the class says. Those that draw with
numpy draw in the order of Concord, so that they agree with it number for number, up to rounding;
JAX does if it is given the same noise.
"""

from functools import cache
from typing import Any

import numpy as np

from concord.networks.graph import as_dense

# Steps that JAX takes in a call, which costs as much as several of them.
STEPS = 500
ETA = 1e-9  # a step at which nothing diverges; tests take a larger one
PENALTY = 3.0  # of ADMM


class Rival:
    """What all of them start from: gradients gram x - shift, and the weights of neighbors."""

    kind = "de_sgld"

    def __init__(self, problem: Any, graph: Any, x0: np.ndarray, eta: float = ETA) -> None:
        self.problem, self.x, self.eta, self.spread = problem, x0.copy(), eta, np.sqrt(2 * eta)
        self.neighbors, self.degrees = [list(map(int, n)) for n in graph.neighbors], graph.degrees
        self.gram, self.shift = problem.gram, problem.shift
        self.weights = as_dense(graph.metropolis)


class Loops(Rival):
    """As one writes an algorithm down: for each chain, each agent, each neighbor."""

    def step(self, rng: np.random.Generator) -> None:
        """Take a step chain by chain; gradients are of the data."""
        data = self.problem.data
        for chain in range(len(self.x)):
            old = self.x[chain].copy()
            for i, neighbors in enumerate(self.neighbors):
                mixed = self.weights[i, i] * old[i]
                for j in neighbors:
                    mixed = mixed + self.weights[i, j] * old[j]
                residual = data.features[i] @ old[i] - data.targets[i]
                gradient = data.features[i].T @ residual + self.problem.prior_precision * old[i]
                noise = rng.standard_normal(old.shape[1])
                self.x[chain, i] = mixed - self.eta * gradient + self.spread * noise


class Solver(Rival):
    """D-ADMMS in such loops, whose primal steps are programs that CVXPY solves."""

    kind = "admm"

    def __init__(self, *arguments: Any) -> None:
        import cvxpy

        super().__init__(*arguments)
        problem, self.programs, self.u = self.problem, [], np.zeros_like(self.x)
        data = zip(problem.data.features, problem.data.targets, self.degrees, strict=True)
        for features, targets, degree in data:
            x, b = cvxpy.Variable(problem.dim), cvxpy.Parameter(problem.dim)
            fit = cvxpy.sum_squares(features @ x - targets) / 2
            ridge = (problem.prior_precision / 2 + PENALTY * degree) * cvxpy.sum_squares(x)
            program = cvxpy.Problem(cvxpy.Minimize(fit + ridge - b @ x))
            self.programs.append((program, x, b))

    def step(self, rng: np.random.Generator) -> None:
        """Take a step chain by chain."""
        for chain in range(len(self.x)):
            old = self.x[chain].copy()
            for i, (program, x, b) in enumerate(self.programs):
                degree = self.degrees[i]
                pull = PENALTY * (degree * old[i] - self.u[chain, i])
                for j in self.neighbors[i]:
                    pull = pull + PENALTY * old[j]
                b.value = pull - np.sqrt(2) * degree * rng.standard_normal(old.shape[1])
                program.solve()
                self.x[chain, i] = x.value
            for i, neighbors in enumerate(self.neighbors):
                for j in neighbors:
                    self.u[chain, i] += self.x[chain, i] - self.x[chain, j]


class Compiled(Rival):
    """The same loops compiled by numba, with grams in place of data."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.first = np.cumsum([0, *map(len, self.neighbors)])
        self.flat = np.concatenate([np.array(n, dtype=np.intp) for n in self.neighbors])
        self.values = np.concatenate([self.weights[i, n] for i, n in enumerate(self.neighbors)])
        self.own, self.spare = np.diag(self.weights).copy(), np.empty_like(self.x)

    def step(self, rng: np.random.Generator) -> None:
        """Take a step."""
        edges = self.first, self.flat, self.own, self.values
        moves = self.gram, self.shift, self.eta, self.spread
        _kernel()(self.x, self.spare, *edges, *moves, rng)
        self.x, self.spare = self.spare, self.x


@cache
def _kernel() -> Any:
    from numba import njit

    @njit
    def langevin(x, out, first, flat, own, values, gram, shift, eta, spread, rng):  # type: ignore
        chains, agents, dim = x.shape
        for c in range(chains):
            for i in range(agents):
                for a in range(dim):
                    total = own[i] * x[c, i, a] + eta * shift[i, a]
                    for e in range(first[i], first[i + 1]):
                        total += values[e] * x[c, flat[e], a]
                    for b in range(dim):
                        total -= eta * gram[i, a, b] * x[c, i, b]
                    out[c, i, a] = total + spread * rng.standard_normal()

    return langevin


class Lines(Rival):
    """As a statistician writes DE-SGLD in numpy: five lines, and nothing is kept."""

    def step(self, rng: np.random.Generator) -> None:
        """Take a step."""
        x, eta = self.x, self.eta
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

    def _made(self, x: Any, noise: Any) -> Any:
        import jax

        gradient = jax.numpy.einsum("iab,cib->cia", self.gram, x) - self.shift
        return self.weights @ x - self.eta * gradient + self.spread * noise

    def step(self, rng: np.random.Generator) -> None:
        """Take a step with numpy's noise."""
        self.x = self.made(self.x, rng.standard_normal(self.x.shape))

    def run(self) -> None:
        """Take ``STEPS`` steps with its own noise, and wait for them."""
        self.key, self.x = self.many(self.key, self.x)
        self.x.block_until_ready()


def scanned(step: Any) -> Any:
    """Return ``many(key, x)``, which takes ``STEPS`` steps x = step(key, x), compiled as a loop."""
    import jax

    def one(carry: Any, _: Any) -> Any:
        key, now = jax.random.split(carry[0])
        return (key, step(now, carry[1])), None

    return jax.jit(lambda *start: jax.lax.scan(one, start, None, length=STEPS)[0])


class Blackjax(Rival):
    """BlackJAX's SGLD, which knows no network: of one agent, for all chains at once, compiled."""

    kind = "c_ula"

    def __init__(self, *arguments: Any) -> None:
        import blackjax
        import jax

        jax.config.update("jax_enable_x64", True)
        super().__init__(*arguments)
        gram, shift = self.gram[0], self.shift[0]
        sgld = blackjax.sgld(lambda x, batch: shift - gram @ x)

        def one(key: Any, x: Any) -> Any:
            return sgld.step(key, x, None, self.eta)

        every = len(self.x)
        self.many = scanned(lambda key, x: jax.vmap(one)(jax.random.split(key, every), x))
        self.key, self.x = jax.random.key(1), jax.numpy.asarray(self.x[:, 0])

    run = Jax.run
