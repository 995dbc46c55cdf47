"""What people would use in our place: the same samplers written in other ways.

Each is a class of ``(kind, problem, graph, options, x0)`` whose ``step(rng)`` advances ``x``,
(chains, agents, dim), by one iteration of DE-SGLD, D-ULA or D-ADMMS on linear regression. Those
that draw with numpy draw in the order of Concord, so that they agree with it number for number, up
to rounding; torch does if it is given the same noise.
"""

from functools import cache
from typing import Any

import numpy as np

from concord.networks.graph import as_dense

KINDS = ("de_sgld", "d_ula", "admm")
# Steps that JAX takes in a call, which costs as much as several of them.
STEPS = 500


class Rival:
    """What all of them start from: gradients gram x - shift, and the weights of neighbors.

    ``options`` are ``step`` (eta or alpha), ``fusion`` (beta) and ``penalty`` (rho). DE-SGLD and
    D-ULA are x <- W x - pull * gradient + spread * noise; ``solve`` are the inverses of ADMM's
    primal steps, all (agents, dim, dim).
    """

    def __init__(self, kind: str, problem: Any, graph: Any, options: Any, x0: np.ndarray) -> None:
        self.kind, self.problem, self.x, self.u = kind, problem, x0.copy(), np.zeros_like(x0)
        agents, self.penalty, step = graph.agents, options["penalty"], options["step"]
        self.neighbors, self.degrees = [list(map(int, n)) for n in graph.neighbors], graph.degrees
        self.gram, self.shift = problem.gram, problem.shift
        self.laplacian = as_dense(graph.laplacian())
        self.weights = as_dense(graph.metropolis())
        self.pull, self.spread = step, np.sqrt(2 * step)
        if kind == "d_ula":
            self.weights = np.eye(agents) - options["fusion"] * self.laplacian
            self.pull, self.spread = step * agents, np.sqrt(2 * step * agents)
        stiff = 2 * self.penalty * self.degrees[:, None, None] * np.eye(problem.dim)
        self.solve = np.linalg.inv(self.gram + stiff)

    def step(self, rng: np.random.Generator) -> None:
        """Take a step of all chains."""
        raise NotImplementedError


class Loops(Rival):
    """As one writes an algorithm down: for each chain, each agent, each neighbor.

    Gradients are of the data; ADMM's primal steps are programs that CVXPY solves.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.programs = self._programs() if self.kind == "admm" else []

    def _programs(self) -> list[tuple[Any, Any, Any]]:
        import cvxpy

        problem, programs = self.problem, []
        data = zip(problem.data.features, problem.data.targets, self.degrees, strict=True)
        for features, targets, degree in data:
            x, b = cvxpy.Variable(problem.dim), cvxpy.Parameter(problem.dim)
            fit = cvxpy.sum_squares(features @ x - targets) / 2
            ridge = (problem.prior_precision / 2 + self.penalty * degree) * cvxpy.sum_squares(x)
            programs.append((cvxpy.Problem(cvxpy.Minimize(fit + ridge - b @ x)), x, b))
        return programs

    def step(self, rng: np.random.Generator) -> None:
        """Take a step chain by chain."""
        one = self._admm if self.kind == "admm" else self._langevin
        for chain in range(len(self.x)):
            one(chain, rng)

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

    def _admm(self, chain: int, rng: np.random.Generator) -> None:
        old, rho = self.x[chain].copy(), self.penalty
        for i, (program, x, b) in enumerate(self.programs):
            degree = self.degrees[i]
            pull = rho * degree * old[i] - rho * self.u[chain, i]
            for j in self.neighbors[i]:
                pull = pull + rho * old[j]
            b.value = pull - np.sqrt(2) * degree * rng.standard_normal(old.shape[1])
            program.solve()
            self.x[chain, i] = x.value
        for i, neighbors in enumerate(self.neighbors):
            for j in neighbors:
                self.u[chain, i] += self.x[chain, i] - self.x[chain, j]


class Compiled(Rival):
    """The same loops compiled by numba, with grams in place of data and inverses of CVXPY."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        counts = [len(n) for n in self.neighbors]
        self.first = np.concatenate([[0], np.cumsum(counts)])
        self.flat = np.concatenate([np.array(n, dtype=np.intp) for n in self.neighbors])
        self.values = np.concatenate([self.weights[i, n] for i, n in enumerate(self.neighbors)])
        self.own = np.diag(self.weights).copy()
        self.spare, self.sum = np.empty_like(self.x), np.empty(self.x.shape[2])

    def step(self, rng: np.random.Generator) -> None:
        """Take a step."""
        langevin, admm = _kernels()
        edges = self.first, self.flat
        if self.kind == "admm":
            matrices = self.solve, self.shift, self.penalty
            admm(self.x, self.u, self.spare, self.sum, *edges, *matrices, rng)
        else:
            moves = self.own, self.values, self.gram, self.shift, self.pull, self.spread
            langevin(self.x, self.spare, *edges, *moves, rng)
        self.x, self.spare = self.spare, self.x


@cache
def _kernels() -> tuple[Any, Any]:
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

    @njit
    def admm(x, u, out, total, first, flat, solve, shift, penalty, rng):  # type: ignore
        chains, agents, dim = x.shape
        for c in range(chains):
            for i in range(agents):
                degree = first[i + 1] - first[i]
                for a in range(dim):
                    total[a] = shift[i, a] + penalty * (degree * x[c, i, a] - u[c, i, a])
                    for e in range(first[i], first[i + 1]):
                        total[a] += penalty * x[c, flat[e], a]
                    total[a] -= np.sqrt(2.0) * degree * rng.standard_normal()
                for a in range(dim):
                    out[c, i, a] = 0.0
                    for b in range(dim):
                        out[c, i, a] += solve[i, a, b] * total[b]
            for i in range(agents):
                for e in range(first[i], first[i + 1]):
                    for a in range(dim):
                        u[c, i, a] += out[c, i, a] - out[c, flat[e], a]

    return langevin, admm


class Torch(Rival):
    """A few products of tensors per step, with torch's own random numbers."""

    def __init__(self, *arguments: Any) -> None:
        import torch

        super().__init__(*arguments)
        torch.set_num_threads(1)
        names = ("weights", "laplacian", "gram", "shift", "solve")
        self.t = {name: torch.from_numpy(np.array(getattr(self, name))) for name in names}
        self.t["degrees"] = torch.from_numpy(self.degrees[:, None].astype(float))
        self.t["x"], self.t["u"] = torch.from_numpy(self.x), torch.from_numpy(self.u)

    def noise(self, rng: np.random.Generator) -> Any:
        """Return normal numbers; the generator is left alone."""
        import torch

        return torch.randn(self.x.shape, dtype=torch.float64)

    def step(self, rng: np.random.Generator) -> None:
        """Take a step."""
        import torch

        t, noise = self.t, self.noise(rng)
        x, rho = t["x"], self.penalty
        if self.kind != "admm":
            gradient = torch.einsum("iab,cib->cia", t["gram"], x) - t["shift"]
            t["x"] = t["weights"] @ x - self.pull * gradient + self.spread * noise
        else:
            degrees = t["degrees"]
            pull = rho * (2 * degrees * x - t["laplacian"] @ x - t["u"]) + t["shift"]
            pull = pull - 2**0.5 * degrees * noise
            t["x"] = torch.einsum("iab,cib->cia", t["solve"], pull)
            t["u"] = t["u"] + t["laplacian"] @ t["x"]
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


class Blackjax(Rival):
    """BlackJAX's SGLD, which knows no network: of one agent, for all chains at once, compiled."""

    def __init__(self, *arguments: Any) -> None:
        import blackjax
        import jax

        jax.config.update("jax_enable_x64", True)
        super().__init__(*arguments)
        gram, shift = self.gram[0], self.shift[0]
        sgld = blackjax.sgld(lambda x, batch: shift - gram @ x)

        def one(key: Any, x: Any) -> Any:
            return sgld.step(key, x, None, self.pull)

        self.made, every = jax.jit(jax.vmap(one)), len(self.x)
        self.many = scanned(lambda key, x: jax.vmap(one)(jax.random.split(key, every), x))
        self.key, self.x = jax.random.key(1), jax.numpy.asarray(self.x[:, 0])

    run = Jax.run

    def drawn(self, keys: Any) -> np.ndarray:
        """Return the noise that a step with these keys has, (chains, 1, dim), to compare."""
        import jax

        flat = jax.vmap(lambda key: jax.random.normal(key, self.x.shape[1:]))
        return np.asarray(flat(keys))[:, None]

    def step(self, rng: np.random.Generator) -> None:
        """Take a step, and wait for it."""
        import jax

        self.key, now = jax.random.split(self.key)
        self.keys = jax.random.split(now, len(self.x))
        self.x = self.made(self.keys, self.x).block_until_ready()
