"""The loops that numba compiles, once for each combination of argument types.

The compiled code is cached on disk. ``fastmath`` is off. Kernels stop after the first step in which
a chain leaves the finite range.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from concord.values import FINITE_RANGE

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
    """Write the gradients of the tied mixture's potentials at x, (2, m), into out, (2, m).

    points: data of each column of x, (n, m); a column may have fewer than n, and fill. totals:
    number and sum of each column's points, (2, m).
    model: whether the second mean is theta_1 + theta_2, the precision of a component, and those of
    an agent's share of the prior. sums: work space of five rows, (5, m).
    """
    tied, precision = model[0], model[1]
    weight, middle, mean, number, total = sums[0], sums[1], sums[2], sums[3], sums[4]
    many = x.shape[1]
    for m in range(many):
        mean[m] = x[1, m] + tied * x[0, m]
        weight[m] = (mean[m] - x[0, m]) * (precision * LOG2_E)
        middle[m] = (x[0, m] + mean[m]) * 0.5
        number[m] = total[m] = 0.0
    for j in range(len(points)):
        point = points[j]
        for m in range(many):
            part = component_share(middle[m], point[m], weight[m]) * (j < totals[0, m])
            number[m] += part
            total[m] += part * point[m]
    for m in range(many):
        second = (mean[m] * number[m] - total[m]) * precision
        first = x[0, m] * (totals[0, m] - number[m]) - (totals[1, m] - total[m])
        out[0, m] = first * precision + tied * second + model[2] * x[0, m]
        out[1, m] = second + model[3] * x[1, m]


@compile_lazily
def take_affine_steps(old, new, places, draws, rng, phase, rows, powers, mixture, inside):  # type: ignore[no-untyped-def]
    """Take steps s' = M (s, g, w, 1); return how many were taken.

    old, new: vectors (s, g, w, 1), (entries, chains), which steps read and write in turns; old has
    the first state.
    places: where in them the positions x end, with which s begins, the state s, and gradients g.
    draws: how many numbers of a chain each call of the generator rng draws.
    phase: the first step's place in a period. rows: start of each row among M's nonzero entries,
    their columns, and the coefficients of powers by which they come out, (period, powers, entries).
    powers: those of each step, (steps, powers).
    mixture: tables of the tied mixture's potentials by agents, points, (agents, n, chains), and
    totals, (agents, 2, chains), and their model; None where there is no g.
    inside: which chains are within the finite range. The first step in which one leaves it is the
    last.
    """
    (starts, columns, coefficients), (positions, size, end) = rows, places
    chains, entries = len(inside), np.empty(len(columns))
    for step in range(len(powers)):
        parts, escaped = coefficients[(phase + step) % len(coefficients)], False
        for e in range(len(entries)):
            entries[e] = powers[step, 0] * parts[0, e]
        for p in range(1, len(parts)):
            for e in range(len(entries)):
                entries[e] += powers[step, p] * parts[p, e]
        if mixture is not None:
            points, totals, model = mixture
            sums = np.empty((5, chains))
            for i in range(len(points)):
                x, g = old[2 * i : 2 * i + 2], old[size + 2 * i : size + 2 * i + 2]
                differentiate_mixture(x, points[i], totals[i], model, sums, g)
        first = end
        for count in draws:
            for c in range(chains):
                for j in range(first, first + count):
                    old[j, c] = rng.standard_normal()
            first += count
        for i in range(size):
            row = new[i]
            for c in range(chains):
                row[c] = 0.0
            for e in range(starts[i], starts[i + 1]):
                entry, column = entries[e], old[columns[e]]
                for c in range(chains):
                    row[c] += entry * column[c]
            if i < positions:
                for c in range(chains):
                    escaped |= inside[c] & (not abs(row[c]) < FINITE_RANGE)
        if escaped:
            return step + 1
        old, new = new, old
    return len(powers)


@compile_lazily
def take_gossip_ticks(x, drawn, amounts, trigger, counts, quadratic, mixture, inside):  # type: ignore[no-untyped-def]
    """Take ticks of gossip ULA, which change x, (chains, agents, dim); return how many.

    drawn: pairs, (ticks, chains, 2), and normal numbers, (ticks, chains, 2, dim).
    amounts: weights of gradients, (agents,), alpha and sd of the ticks, (ticks,), and beta,
    (ticks,), empty where nobody fuses.
    trigger: communicated positions, counts of activations, and the threshold by count; without a
    trigger arrays without entries.
    counts: (2, chains, agents), to which activations and communications are added.
    quadratic: transposed H_i, (agents, dim, dim), and b_i, (agents, dim), of gradients H_i x - b_i,
    or None. mixture, inside: as of ``take_affine_steps``.
    """
    pairs, normals = drawn
    gains, alpha, sd, beta = amounts
    communicated, times, levels = trigger
    dim, many = x.shape[2], 2 * len(x)
    agents, sums = np.empty(many, np.int64), np.empty((5, many))
    w, hats, g = np.empty((many, dim)), np.empty((many, dim)), np.empty((many, dim))
    if mixture is not None:
        points, totals, model = mixture
        own_points, own_totals = np.empty((points.shape[1], many)), np.empty((2, many))
    for tick in range(len(pairs)):
        for m in range(many):
            c, i = m // 2, pairs[tick, m // 2, m % 2]
            agents[m] = i
            counts[0, c, i] += 1
            for k in range(dim):
                w[m, k] = hats[m, k] = x[c, i, k]
            if len(levels):
                squared = 0.0
                for k in range(dim):
                    squared += (w[m, k] - communicated[c, i, k]) ** 2
                times[c, i] += 1.0
                if squared > levels[int(times[c, i])]:
                    counts[1, c, i] += 1
                    for k in range(dim):
                        communicated[c, i, k] = w[m, k]
                for k in range(dim):
                    hats[m, k] = communicated[c, i, k]
        if quadratic is not None:
            columns, shift = quadratic
            for m in range(many):
                for k in range(dim):
                    g[m, k] = -shift[agents[m], k]
                for j in range(dim):
                    for k in range(dim):
                        g[m, k] += w[m, j] * columns[agents[m], j, k]
        if mixture is not None:
            for m in range(many):
                for j in range(len(own_points)):
                    own_points[j, m] = points[agents[m], j, m // 2]
                for j in range(2):
                    own_totals[j, m] = totals[agents[m], j, m // 2]
            differentiate_mixture(w.T, own_points, own_totals, model, sums, g.T)
        escaped = False
        for m in range(many):
            c, i = m // 2, pairs[tick, m // 2, m % 2]
            for k in range(dim):
                moved = w[m, k]
                if len(beta):
                    moved -= beta[tick] * (hats[m, k] - hats[m ^ 1, k])
                moved -= alpha[tick] * gains[i] * g[m, k]
                x[c, i, k] = moved + sd[tick] * normals[tick, c, m % 2, k]
                escaped |= inside[c] and not abs(x[c, i, k]) < FINITE_RANGE
        if escaped:
            return tick + 1
    return len(pairs)
