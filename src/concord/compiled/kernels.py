"""The kernels that several rooms share, each a function that compiles it, or finds it compiled.

``fastmath`` stays off, and nothing is called that a library computes: numba neither reorders nor
fuses operations, and their results are IEEE 754's. Constants are compiled in: loops over few
dimensions take half the time so.
"""

from collections.abc import Callable
from typing import Any

from numba import boolean, extending, float64, int64, njit, types, uint32, void

LINE, CUBE, TABLE = float64[::1], float64[:, :, ::1], float64[:, ::1]
# Unsigned, so that no index is looked at for whether it counts from the end.
INDEX, PLACES, COUNTS = uint32[::1], int64[::1], int64[:, ::1]
# A compiled gradient, (x, agents, out, tables): of the agents that are named, or of all.
TABLES = types.UniTuple(TABLE, 8)
GRADIENT = void(TABLE, PLACES, TABLE, TABLES)


def compiled(*signature: Any) -> Callable[..., Any]:
    """Compile at once, so that what is wrong shows before the work, and keep it for later."""

    def compile(function: Callable[..., Any]) -> Any:
        made: Any = njit
        try:
            return made(*signature, cache=True, error_model="numpy")(function)
        except RuntimeError:  # there is no folder to keep it in
            return made(*signature, error_model="numpy")(function)

    return compile


_intrinsic: Any = extending.intrinsic  # it changes what a function takes


@_intrinsic
def shifted(typing, number):  # type: ignore[no-untyped-def]
    """Return the number whose bits are those of a number, 52 places to the left."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, real = map(context.get_value_type, (int64, float64))
        left = builder.shl(builder.bitcast(arguments[0], bits), context.get_constant(int64, 52))
        return builder.bitcast(left, real)

    return float64(float64), made


@_intrinsic
def fused(typing, a, b, c):  # type: ignore[no-untyped-def]
    """Return a b + c, rounded once."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return float64(float64, float64, float64), made


def weigh(dim: int) -> Any:
    """Return ``weigh(x, starts, columns, values, out)``, a product with a sparse matrix by rows."""

    @compiled(void(CUBE, INDEX, INDEX, LINE, CUBE))
    def weigh(x, starts, columns, values, out):  # type: ignore[no-untyped-def]
        for c in range(x.shape[0]):
            old, new = x[c], out[c]
            for i in range(out.shape[1]):
                for k in range(dim):
                    new[i, k] = 0.0
                for e in range(starts[i], starts[i + 1]):
                    j, weight = columns[e], values[e]
                    for k in range(dim):
                        new[i, k] += weight * old[j, k]

    return weigh


def move(dim: int) -> Any:
    """Return ``move(x, starts, columns, values, eta, g, sd, w, fused, beta, out)``.

    It writes the product and a kick, W x + (sd w - eta g), or x - beta W x + (sd w - eta g) where
    they are fused, and uses up w; out may be g.
    """

    @compiled(void(CUBE, INDEX, INDEX, LINE, float64, CUBE, float64, CUBE, boolean, float64, CUBE))
    def move(x, starts, columns, values, eta, g, sd, w, fused, beta, out):  # type: ignore
        for c in range(x.shape[0]):
            old, new, down, more = x[c], out[c], g[c], w[c]
            for i in range(out.shape[1]):
                for k in range(dim):
                    more[i, k] = more[i, k] * sd - down[i, k] * eta
                    new[i, k] = 0.0
                for e in range(starts[i], starts[i + 1]):
                    j, weight = columns[e], values[e]
                    for k in range(dim):
                        new[i, k] += weight * old[j, k]
                if fused:
                    for k in range(dim):
                        new[i, k] = old[i, k] - new[i, k] * beta
                for k in range(dim):
                    new[i, k] += more[i, k]

    return move


def in_turn(dim: int) -> Any:
    """Return ``in_turn(x, starts, columns, beta, more, out)``: to one neighbor after another.

    Each agent goes a part beta of the way to where its first neighbor was, then to the next, and
    moves by ``more``.
    """

    @compiled(void(CUBE, INDEX, INDEX, float64, CUBE, CUBE))
    def in_turn(x, starts, columns, beta, more, out):  # type: ignore[no-untyped-def]
        for c in range(x.shape[0]):
            old, new, add = x[c], out[c], more[c]
            for i in range(x.shape[1]):
                for k in range(dim):
                    new[i, k] = old[i, k]
                for e in range(starts[i], starts[i + 1]):
                    j = columns[e]
                    for k in range(dim):
                        new[i, k] += ((0.0 + old[j, k]) - new[i, k]) * beta
                for k in range(dim):
                    new[i, k] += add[i, k]

    return in_turn


def multiply(dim: int) -> Any:
    """Return ``multiply(x, columns, shift, out)``, which writes H_i x_i - shift_i.

    ``columns`` are the transposes of H, (agents, dim, dim).
    """

    @compiled(void(CUBE, CUBE, TABLE, CUBE))
    def multiply(x, columns, shift, out):  # type: ignore[no-untyped-def]
        for c in range(x.shape[0]):
            old, new = x[c], out[c]
            for i in range(x.shape[1]):
                own = columns[i]
                for k in range(dim):
                    new[i, k] = old[i, 0] * own[0, k]
                for j in range(1, dim):
                    for k in range(dim):
                        new[i, k] += old[i, j] * own[j, k]
                for k in range(dim):
                    new[i, k] -= shift[i, k]

    return multiply


def wake() -> Any:
    """Return ``wake(all, before, after, last, places, w, counts, steps)``, half a tick of gossip.

    It makes after, (m, dim), what before is, which it is but for the places of ``last``, or
    nowhere; writes what is at ``places`` into w, and into the counts, (n, m), that these are
    active: for so many steps.
    """

    @compiled(void(boolean, TABLE, TABLE, PLACES, PLACES, TABLE, COUNTS, int64))
    def wake(everywhere, before, after, last, places, w, counts, steps):  # type: ignore
        dim = w.shape[1]
        if everywhere:
            for p in range(before.shape[0]):
                for k in range(dim):
                    after[p, k] = before[p, k]
                for n in range(counts.shape[0]):
                    counts[n, p] = 0
        else:
            for p in last:
                for k in range(dim):
                    after[p, k] = before[p, k]
                for n in range(counts.shape[0]):
                    counts[n, p] = 0
        for m in range(places.size):
            p = places[m]
            last[m] = p
            counts[0, p] = 1
            if steps > 1:
                counts[3, p] = steps
            for k in range(dim):
                w[m, k] = before[p, k]

    return wake


def gossip() -> Any:
    """Return ``gossip(fuse, beta, hats, w, gains, grad, noise, places, after)``, the other half.

    Pairs w, (chains, 2, dim), of which neighbors know hats, fuse by beta, and are kicked:
    w - gains grad + noise, which is put at its places.
    """

    @compiled(void(boolean, float64, CUBE, CUBE, CUBE, CUBE, CUBE, PLACES, TABLE))
    def gossip(fuse, beta, hats, w, gains, grad, noise, places, after):  # type: ignore
        for c in range(w.shape[0]):
            for a in range(2):
                p, gain = places[2 * c + a], gains[c, a, 0]
                for k in range(w.shape[2]):
                    own = w[c, a, k]
                    if fuse:
                        own -= (hats[c, a, k] - hats[c, 1 - a, k]) * beta
                    after[p, k] = (own - grad[c, a, k] * gain) + noise[c, a, k]

    return gossip


def leap(how: str, dim: int) -> Any:
    """Return a loop over steps, ``leap(gradient, tables, steps, w, matrix, x, spare, g, left)``.

    It leaves in x where all of them lead, as ``kick``, ``move`` where it is fused, or ``in_turn``
    would one by one, which ``how`` names.

    gradient, tables: of all agents (``GRADIENT``). steps: eta, sd and beta of each, (3, steps). w:
    normal numbers, (steps, chains, agents, dim). matrix: its rows' starts, columns and values.
    spare, g: like x. left: for each chain the first step after which it has left what counts as
    finite, which stays if it is none of these, (chains,).
    """
    kicked, moved = how == "kick", how == "move"

    @compiled(
        void(
            *(types.FunctionType(GRADIENT), TABLES, TABLE, float64[:, :, :, ::1]),
            *(INDEX, INDEX, LINE, CUBE, CUBE, CUBE, PLACES, float64),
        )
    )
    def leap(gradient, tables, steps, w, starts, columns, values, x, spare, g, left, most):  # type: ignore
        old, new = x, spare
        for s in range(steps.shape[1]):
            eta, sd, beta = steps[0, s], steps[1, s], steps[2, s]
            gradient(old.reshape(-1, dim), left, g.reshape(-1, dim), tables)
            for c in range(x.shape[0]):
                here, there, down, more = old[c], new[c], g[c], w[s, c]
                for i in range(x.shape[1]):
                    if kicked:
                        for k in range(dim):
                            there[i, k] = (here[i, k] - down[i, k] * eta) + more[i, k] * sd
                        continue
                    if moved:
                        for k in range(dim):
                            there[i, k] = 0.0
                        for e in range(starts[i], starts[i + 1]):
                            j, weight = columns[e], values[e]
                            for k in range(dim):
                                there[i, k] += weight * here[j, k]
                        for k in range(dim):
                            there[i, k] = here[i, k] - there[i, k] * beta
                    else:
                        for k in range(dim):
                            there[i, k] = here[i, k]
                        for e in range(starts[i], starts[i + 1]):
                            j = columns[e]
                            for k in range(dim):
                                there[i, k] += ((0.0 + here[j, k]) - there[i, k]) * beta
                    for k in range(dim):
                        there[i, k] += more[i, k] * sd - down[i, k] * eta
                if left[c] < 0:
                    outside = 0
                    for i in range(x.shape[1]):
                        for k in range(dim):
                            outside += not abs(there[i, k]) < most
                    if outside:
                        left[c] = s
            old, new = new, old
        if steps.shape[1] % 2:  # an assignment to all of it takes seconds to compile
            for c in range(x.shape[0]):
                for i in range(x.shape[1]):
                    for k in range(dim):
                        x[c, i, k] = spare[c, i, k]

    return leap


def ticks(dim: int) -> Any:
    """Return a loop over ticks of gossip, which leaves in x where all of them lead.

    It does what ``gossip`` does, and what comes before: of each tick t agents awake[t], (m,), whose
    positions are at ``places``, in pairs. gains, noise: of their gradients, and what is added. x:
    (places, dim). fuse: whether they fuse, by beta[t]. known, times: what neighbors know, and how
    often an agent has been active, where levels has numbers: the level of each such number, which
    the squared distance to what is known exceeds where an agent tells where it is. counts: how
    often places have been active, told it, and to how many hearers, (3, places). left: as of
    ``leap``.
    """

    @compiled(
        void(
            *(types.FunctionType(GRADIENT), TABLES, COUNTS, COUNTS, COUNTS, TABLE, CUBE, boolean),
            *(LINE, TABLE, TABLE, TABLE, TABLE, TABLE, LINE, LINE, COUNTS, PLACES, float64),
        )
    )
    def ticks(  # type: ignore[no-untyped-def]
        gradient, tables, awake, places, hearers, gains, noise, fuse,
        beta, x, w, grad, hats, known, times, levels, counts, left, most,
    ):  # fmt: skip
        agents = x.shape[0] // left.size
        for t in range(awake.shape[0]):
            for m in range(w.shape[0]):
                for k in range(dim):
                    w[m, k] = x[places[t, m], k]
            gradient(w, awake[t], grad, tables)
            for m in range(w.shape[0]):
                p = places[t, m]
                counts[0, p] += 1
                if levels.size == 0:
                    for k in range(dim):
                        hats[m, k] = w[m, k]
                    continue
                squared = 0.0
                for k in range(dim):
                    apart = w[m, k] - known[p, k]
                    squared += apart * apart
                times[p] += 1.0
                if squared > levels[int64(times[p])]:
                    counts[1, p] += 1
                    counts[2, p] += hearers[t, m]
                    for k in range(dim):
                        known[p, k] = w[m, k]
                for k in range(dim):
                    hats[m, k] = known[p, k]
            for m in range(w.shape[0]):
                p, other, gain, outside = places[t, m], m + 1 - 2 * (m % 2), gains[t, m], False
                for k in range(dim):
                    own = w[m, k]
                    if fuse:
                        own -= (hats[m, k] - hats[other, k]) * beta[t]
                    x[p, k] = (own - grad[m, k] * gain) + noise[t, m, k]
                    outside |= not abs(x[p, k]) < most
                if outside and left[p // agents] < 0:
                    left[p // agents] = t

    return ticks
