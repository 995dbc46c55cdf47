"""The loops that numba compiles, once for each combination of argument types.

The compiled code is cached on disk. ``fastmath`` is off. Sizes of vectors up to ``UNROLLED`` are
the lengths of tuples, ``dims``, which the compiler knows. Kernels stop after the first step in
which a chain leaves the finite range.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

LOG2_E = 1.4426950408889634
ROUND = 1.5 * 2.0**52 + 1023  # numbers near it are integers
LARGEST = 1000.0  # beyond it 1 + 2^y is 2^y, or one


def compile_lazily(function: Callable[..., Any]) -> Any:
    """Compile a function by numba when it is first called.

    The compiled code is cached on disk if there is a folder to write it to.
    """
    make: Any = njit  # its decorators are not typed
    try:
        return make(function, cache=True, error_model="numpy")
    except RuntimeError:
        return make(function, error_model="numpy")


@compile_lazily
def fill_normals(rng, out):  # type: ignore[no-untyped-def]
    """Fill out with the next normal numbers of the generator rng, in its order."""
    for i in range(out.size):
        out[i] = rng.standard_normal()


@compile_lazily
def is_inside(x, most):  # type: ignore[no-untyped-def]
    """Return which chains of x, (chains, agents, dim), have all coordinates below ``most``."""
    inside = np.empty(x.shape[0], np.bool_)
    for c in range(x.shape[0]):
        inside[c] = True
        for i in range(x.shape[1]):
            for k in range(x.shape[2]):
                inside[c] &= abs(x[c, i, k]) < most
    return inside


@compile_lazily
def differentiate_quadratic(x, places, quadratic, dims, out):  # type: ignore[no-untyped-def]
    """Write the gradients H_i x - b_i at x, (m, dim), into out, (m, dim).

    places: number of each row of x among chains times agents; i is that modulo the number of
    agents. quadratic: transposed H, (agents, dim, dim), and b, (agents, dim). dims: of length dim.
    """
    columns, shift = quadratic  # the transposes of H
    for m in range(len(places)):
        i = places[m] % len(shift)
        for k in range(len(dims)):
            out[m, k] = -shift[i, k]
        for j in range(len(dims)):
            for k in range(len(dims)):
                out[m, k] += x[m, j] * columns[i, j, k]


@compile_lazily
def component_share(middle, point, weight):  # type: ignore[no-untyped-def]
    r"""Return 1 / (1 + 2^y) for y = (middle - point) weight, to two units in the last place.

    This is the second component's share of a point. It has no branch and calls nothing, so that the
    compiler vectorizes it. With :math:`y = n + f`, n an integer, :math:`2^f = (q + p) / (q - p)`: p
    / q, whose coefficients are of Remez' algorithm, is :math:`\tanh(\tfrac12 f \log 2)`. The bits
    of 2^n are those of n.
    """
    y = (middle - point) * weight
    y = LARGEST if y > LARGEST else -LARGEST if y < -LARGEST else y  # nan stays nan
    rounded = y + ROUND
    f = y - (rounded - ROUND)
    s = f * f
    p = ((s * 0.023094408441817863 + 20.201667274658167) * s + 1513.8603572515423) * f
    q = (s + 233.17769678806853) * s + 4368.07766001039
    power = np.int64(np.float64(rounded).view(np.int64) << 52).view(np.float64)
    return (q - p) / ((q + p) * power + (q - p))


@compile_lazily
def differentiate_mixture(x, points, totals, model, sums, out):  # type: ignore[no-untyped-def]
    """Write the gradients of the tied mixture's potentials at x, (m, 2), into out, (m, 2).

    points: data of each row of x, (n, m); a column may have fewer than n, and fill. totals: number
    and sum of each column's points, (2, m).
    model: whether the second mean is theta_1 + theta_2, the precision of a component, and those of
    an agent's share of the prior. sums: work space of five rows, (5, m).
    """
    tied, precision = model[0], model[1]
    weight, middle, mean, number, total = sums[0], sums[1], sums[2], sums[3], sums[4]
    for m in range(len(x)):
        mean[m] = x[m, 1] + tied * x[m, 0]
        weight[m] = (mean[m] - x[m, 0]) * (precision * LOG2_E)
        middle[m] = (x[m, 0] + mean[m]) * 0.5
        number[m] = total[m] = 0.0
    for j in range(len(points)):
        point = points[j]
        for m in range(len(x)):
            part = component_share(middle[m], point[m], weight[m]) * (j < totals[0, m])
            number[m] += part
            total[m] += part * point[m]
    for m in range(len(x)):
        second = (mean[m] * number[m] - total[m]) * precision
        first = x[m, 0] * (totals[0, m] - number[m]) - (totals[1, m] - total[m])
        out[m, 0] = first * precision + tied * second + model[2] * x[m, 0]
        out[m, 1] = second + model[3] * x[m, 1]


@compile_lazily
def take_langevin_steps(x, spare, rng, rows, values, gain, sd, quadratic, mixture, dims, most):  # type: ignore[no-untyped-def]
    """Take steps x' = M x - gain grad f(x) + sd w; return how many were taken.

    x, spare: the positions, (chains, agents, dim), and an array like it; the steps write spare and
    x in turns. rows: start of each row among M's nonzero entries, and their columns. values: the
    entries, (1, entries) or (steps, entries). gain, sd: (steps,). quadratic, mixture: tables of the
    potentials, of which one is None. dims: of length dim. most: end of the finite range.
    """
    starts, columns = rows
    chains, agents, dim = x.shape
    inside, places = is_inside(x, most), np.arange(chains * agents)
    old, new, g, w, sums = x, spare, x.copy(), x.copy(), np.empty((5, chains * agents))
    for step in range(len(gain)):
        flat, slopes = old.reshape(-1, dim), g.reshape(-1, dim)
        if quadratic is not None:
            differentiate_quadratic(flat, places, quadratic, dims, slopes)
        if mixture is not None:
            points, totals, model = mixture
            differentiate_mixture(flat, points, totals, model, sums, slopes)
        fill_normals(rng, w.reshape(-1))
        entries, escaped = values[step % len(values)], False
        for c in range(chains):
            for i in range(agents):
                for k in range(len(dims)):
                    new[c, i, k] = 0.0
                for e in range(starts[i], starts[i + 1]):
                    for k in range(len(dims)):
                        new[c, i, k] += entries[e] * old[c, columns[e], k]
                for k in range(len(dims)):
                    new[c, i, k] += sd[step] * w[c, i, k] - gain[step] * g[c, i, k]
                    escaped |= inside[c] and not abs(new[c, i, k]) < most
        if escaped:
            return step + 1
        old, new = new, old
    return len(gain)


@compile_lazily
def take_gossip_ticks(x, drawn, amounts, trigger, counts, quadratic, mixture, dims, most):  # type: ignore[no-untyped-def]
    """Take ticks of gossip ULA, which change x, (chains, agents, dim); return how many.

    drawn: pairs, (ticks, chains, 2), and normal numbers, (ticks, chains, 2, dim).
    amounts: weights of gradients, (agents,), alpha and sd of the ticks, (ticks,), and beta,
    (ticks,), empty where nobody fuses.
    trigger: communicated positions, counts of activations, and the threshold by count; without a
    trigger arrays without entries.
    counts: (2, chains, agents), to which activations and communications are added.
    quadratic, mixture, dims, most: as in ``take_langevin_steps``.
    """
    pairs, normals = drawn
    gains, alpha, sd, beta = amounts
    communicated, times, levels = trigger
    chains, agents, dim = x.shape
    inside, many = is_inside(x, most), 2 * chains
    places, sums = np.empty(many, np.int64), np.empty((5, many))
    w, hats, g = np.empty((many, dim)), np.empty((many, dim)), np.empty((many, dim))
    if mixture is not None:
        points, totals, model = mixture
        own_points, own_totals = np.empty((len(points), many)), np.empty((2, many))
    for tick in range(len(pairs)):
        for m in range(many):
            c, i = m // 2, pairs[tick, m // 2, m % 2]
            places[m] = c * agents + i
            counts[0, c, i] += 1
            for k in range(len(dims)):
                w[m, k] = hats[m, k] = x[c, i, k]
            if len(levels):
                squared = 0.0
                for k in range(len(dims)):
                    squared += (w[m, k] - communicated[c, i, k]) ** 2
                times[c, i] += 1.0
                if squared > levels[int(times[c, i])]:
                    counts[1, c, i] += 1
                    for k in range(len(dims)):
                        communicated[c, i, k] = w[m, k]
                for k in range(len(dims)):
                    hats[m, k] = communicated[c, i, k]
        if quadratic is not None:
            differentiate_quadratic(w, places, quadratic, dims, g)
        if mixture is not None:
            for j in range(len(points)):
                for m in range(many):
                    own_points[j, m] = points[j, places[m]]
            for m in range(many):
                own_totals[0, m], own_totals[1, m] = totals[0, places[m]], totals[1, places[m]]
            differentiate_mixture(w, own_points, own_totals, model, sums, g)
        escaped = False
        for m in range(many):
            c, i = m // 2, pairs[tick, m // 2, m % 2]
            for k in range(len(dims)):
                moved = w[m, k]
                if len(beta):
                    moved -= beta[tick] * (hats[m, k] - hats[m ^ 1, k])
                moved -= alpha[tick] * gains[i] * g[m, k]
                x[c, i, k] = moved + sd[tick] * normals[tick, c, m % 2, k]
                escaped |= inside[c] and not abs(x[c, i, k]) < most
        if escaped:
            return tick + 1
    return len(pairs)
