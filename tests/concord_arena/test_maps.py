"""Points of the phase diagrams, computed once more: by loops, over all that can get lost."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from concord_arena import cells
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def arena():
    return Study(ROOT / "config" / "studies" / "arena", load_config(ROOT / "config/config.yaml"))


def scored(arena, experiment, name):
    run = arena.run(experiment, name)
    task = cells.build_task(run, Path())
    found = cells.score(run, task)
    return task, found, {row.metric: row.value for row in found.rows if row.agent != "average"
                         and row.agent != "pooled"}  # fmt: skip


def b2_of_de_sgld(problem, lossless, step, iterations, edges, loss):
    """b² of the worst agent, by a loop over iterations and over all that links can lose.

    ``lossless`` is W; the weight of what does not arrive stays the agent's own.
    """
    agents, dim = problem.agents, problem.dim
    matrices, chances = [], []
    for lost in itertools.product([0, 1], repeat=len(edges)) if loss else [[0] * len(edges)]:
        weights = lossless.copy()
        for gone, (i, j) in zip(lost, edges, strict=True):
            if gone:
                for one, other in ((i, j), (j, i)):
                    weights[one, one] += weights[one, other]
                    weights[one, other] = 0
        chances.append(loss ** sum(lost) * (1 - loss) ** (len(lost) - sum(lost)))
        move = np.kron(weights, np.eye(dim))
        for i in range(agents):
            own = slice(i * dim, (i + 1) * dim)
            move[own, own] -= step * problem.gram[i]
        matrices.append(move)
    moves, share = np.array(matrices), np.array(chances)
    mean = np.zeros(agents * dim)
    second = np.eye(agents * dim)  # of a start at N(0, I)
    shift = step * problem.shift.ravel()
    for _ in range(iterations):
        average = np.tensordot(share, moves, 1) @ mean
        second = np.einsum("c,cij,cjk->ik", share, moves @ second, moves.swapaxes(1, 2))
        second += np.outer(average, shift) + np.outer(shift, average) + np.outer(shift, shift)
        second += 2 * step * np.eye(agents * dim)
        mean = average + shift
    exact, spread = problem.posterior.mean, problem.posterior.cov.diagonal()
    apart = (mean.reshape(agents, dim) - exact) ** 2 / spread
    squares = second.diagonal().reshape(agents, dim) - exact**2 - spread
    wide = squares**2 / (2 * spread**2 + 4 * exact**2 * spread)
    return max(apart.max(), wide.max())


@pytest.mark.parametrize(
    ("experiment", "name", "loss", "seconds"),
    [
        ("phase", "zeta=3+topology=ring+entry=de_sgld", 0.0, None),
        ("slow_links", "loss=0.2+bandwidth=1000+entry=de_sgld", 0.2, 2.0),
    ],
)
def test_a_point_of_the_map_is_right(arena, experiment, name, loss, seconds):
    task, found, values = scored(arena, experiment, name)
    price = "gradients" if seconds is None else "seconds"
    about = found.choice[price]
    agents = task.network.agents
    weights = np.zeros((agents, agents))
    for i in range(agents):  # on a ring all degrees are 2
        weights[i, [i, (i + 1) % agents, i - 1]] = 1 / 3
    edges = [(i, (i + 1) % agents) for i in range(agents)]
    iterations = 2000 if seconds is None else int(seconds / about["price of an iteration"][price])
    limit = values["stable.step_size"]
    steps = [limit * 2 ** (-i / 2) for i in range(1, 37)]
    step = about["chosen"]["step_size"]
    assert min(abs(np.log(step / other)) for other in steps) < 1e-9
    place = int(np.argmin([abs(np.log(step / other)) for other in steps]))
    tuned = {
        other: b2_of_de_sgld(task.problems[0], weights, steps[other], iterations, edges, loss)
        for other in {max(place - 1, 0), place, place + 1}
    }
    assert min(tuned, key=tuned.get) == place
    assert about["b2"] == pytest.approx(tuned[place], rel=1e-6)
    judged = b2_of_de_sgld(task.problems[1], weights, step, iterations, edges, loss)
    own = values.get(f"b2_by_{price}_set_1", values[f"b2_by_{price}"])  # of several data sets
    assert own == pytest.approx(judged, rel=1e-6)
