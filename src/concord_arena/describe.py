"""Describe an answer by a sentence, a table and a figure, and check its mini-batch errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from concord.errors import ConcordError
from concord.options import plain
from concord_arena.doubts import batch_errors
from concord_arena.lattices import Candidate
from concord_arena.predict import UNSOLVED, predict_average_errors, predict_bias
from concord_arena.question import Question, Wish
from concord_arena.refine import find_runner_up
from concord_studies import words
from concord_studies.contracts import PRICES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES = 8  # samplers that a figure shows
NAMED = 4  # of these, whose curves have names and colors
POINTS = 40  # iterations of a curve
ALIKE = 0.3  # distance of two colors, in RGB, below which they are taken for each other
ROUNDING = 1e-12  # b2 of what has no bias, in figures
CHANGED = 1.05  # factor between variances of mini-batch errors from which predictions are doubted
READ = {"agents": "each agent's own draws", "average": "the network average as the draw"}
_AFTER = "each agent's draws after {} more rounds of averaging"


def describe_best(question: Question, rows: Sequence[Candidate]) -> str:
    """Describe the recommendation that answers a question in a sentence.

    rows: the candidates, best first.
    """
    best, wish = rows[0], question.wish
    price = wish.price or next(iter(wish.budget))
    alone = wish.level == "worst" and best.read != "average"
    choice = words.options({"batch_size": wish.batch_size, **_format_tuned_options(best)})
    whose = "worst agent" if alone else "network average"
    read = READ.get(str(best.read), _AFTER.format(best.read))
    bias = f"a squared bias of {best.b2[wish.level]:.2g}"
    if wish.averages:
        error, spread = best.b2["error"], f"({whose}, {best.how})"
        text = (
            f"averages over the second half of a chain have a squared error of {error:.2g} "
            f"posterior variances {spread}, as the mean of {_describe_as_draws(error)} has, and "
            f"the last draw {bias},"
        )
    else:
        text = f"{bias} posterior variances ({whose}, {best.how})"
    text = (
        f"{best.entry.name} with {choice}, using {read}: {text} "
        f"after {_format_amount(best.spent[price], price)} "
        f"per agent, {best.iterations:,} iterations"
    )
    other = rows[find_runner_up(rows)]
    if other is not best and other.score < UNSOLVED:
        text += f"; {other.entry.name}: "
        if wish.target is not None:
            text += _format_amount(other.spent[price], price)
        else:
            other_score = other.b2["error" if wish.averages else wish.level]
            text += f"{other_score:.2g} for as much"
        text += " (screened, no bound)" if other.how == "screened" else ""
    return f"{text}."


def _describe_as_draws(error: float) -> str:
    """Return a squared error as text: the number of independent draws whose mean has it."""
    count = 1 / error
    return f"about {count:,.0f} independent draws" if count >= 1.5 else "one independent draw"


def _format_amount(amount: float, price: str) -> str:
    """Return an amount with its unit as text; ``price`` is gradients, bytes or seconds."""
    if price == "bytes" and amount >= 1000:
        return f"{amount / 1000:,.3g} kB" if amount < 1e6 else f"{amount / 1e6:,.3g} MB"
    return f"{amount:,.4g} {PRICES[price].unit or price}"


def _format_tuned_options(row: Candidate) -> dict[str, Any]:
    """Return a candidate's tuned options, by name; floats as text with three digits."""
    values = row.lattice.values(row.j)
    tuned = {name: values[name] for name in plain(row.sampler) if name in values}
    return {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in tuned.items()}


def tabulate(
    rows: Sequence[Candidate], lacking: Sequence[tuple[str, str]], wish: Wish
) -> pandas.DataFrame:
    """Return the table of an ``Answer``, a row for each candidate.

    lacking: (name, reason) of each sampler without a score; they come last. wish: of the caller.
    """
    clock = any(row.spent["seconds"] for row in rows)
    table_rows = [
        {
            "sampler": row.entry.name,
            "options": words.options(row.nondefault_options(wish) | _format_tuned_options(row)),
            "read": str(row.read),
            **({"error": row.b2["error"]} if wish.averages else {}),
            "b2": row.b2["worst"], "b2_average": row.b2["average"], "iterations": row.iterations,
            **{name: row.spent[name] for name in PRICES if name != "seconds" or clock},
            "least": row.tuned_range[0], "most": row.tuned_range[1], "stable": row.lattice.limit,
            "law": row.how, "why": "",
        }
        for row in rows
    ]  # fmt: skip
    table_rows += [{"sampler": name, "why": why} for name, why in lacking]
    return pandas.DataFrame(table_rows)


def plot(question: Question, rows: Sequence[Candidate]) -> Figure:
    """Plot the score that ranks against cost: a curve for each sampler at its best setting."""
    from concord_studies.figures import style  # matplotlib

    best: dict[str, Candidate] = {}
    for row in rows:
        if row.how != "chains" and len(best) < CURVES:
            best.setdefault(row.entry.name, row)
    if not best:
        raise ConcordError("plot: what chains alone have scored has no curve; see answer.table")
    figure: Figure = style.styled(_plot_curves)(question, best, rows[0])
    return figure


def _plot_curves(question: Question, best: Mapping[str, Candidate], first: Candidate) -> Figure:
    """Plot a curve for each sampler's candidate, by name; ``first`` is the recommended one.

    The first few are named where the panel ends, with their score at the budget, or the cost of the
    target; the others are gray.
    """
    from concord_studies.figures import _axes, style

    wish = question.wish
    price = wish.price or next(iter(wish.budget))
    figure = style.Picture(figsize=(style.FULL, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends, entries, patterns = [], [], []
    gray: dict[str, Any] = {"color": style.mix(style.GRAY, "white", 0.5), "linewidth": 0.7}
    colors = _choose_colors(dict([*best.items()][:NAMED]))
    for place, (name, row) in enumerate(best.items()):
        ks, score = _score_curve(question, row)
        spent = ks * row.spent[price] / row.iterations
        pattern = style.AVERAGE_STYLE if "average" in (wish.level, row.read) else "-"
        line: dict[str, Any] = {"label": name, "linestyle": pattern, "linewidth": 1.1}
        patterns.append(pattern)
        if place >= NAMED:
            axes.plot(spent, score, **line | gray, zorder=1.5)
            continue
        line |= {"marker": style.MARKERS[place], "markevery": (place, 8)}
        line |= {"color": colors[place], "zorder": 2 + place / 10}  # the broad one below
        line |= {"linewidth": 3.0} if row is first else {}
        axes.plot(spent, score, **line)
        if row is first:
            look = {name: line[name] for name in ("color", "marker", "linewidth")}
            entries.append(style.entry("recommended", **look))
        if len(score):
            text, at = style.round_number(score[-1]), score[-1]
            if wish.target is not None:
                text, at = _format_amount(spent[-1], price), wish.target
            ends.append(_axes.End(f"{name}: {text}", colors[place], spent[-1], at))
    if len(best) > NAMED:
        entries.append(style.entry("others", **gray))
    dotted = {**style.FLOOR, "zorder": 0}
    if price in wish.budget:
        entries.append(axes.axvline(wish.budget[price], label="budget", **dotted))
    if wish.target is not None:
        entries.append(axes.axhline(wish.target, label="target", **dotted))
    axes.set_xlabel(PRICES[price].axis)
    what = "squared error of a time average" if wish.averages else "$b^2$ of the last draw"
    about = "" if question.is_exact else "approximate, "
    axes.set_ylabel(f"predicted {what}\n({about}in posterior variances)")
    right = axes.get_xlim()[1]  # names are too long for a place within the panel
    _axes.label_ends(axes, [end._replace(x=right) for end in reversed(ends)])
    for text, pattern in (("worst agent", "-"), ("network average", style.AVERAGE_STYLE)):
        if pattern in patterns:
            entries.append(style.entry(text, color=style.BLACK, linestyle=pattern))
    figure.legend(handles=entries, loc="outside lower center", ncols=len(entries))
    return figure


def _choose_colors(best: Mapping[str, Candidate]) -> list[str]:
    """Return a color for each candidate: its sampler's, or another where one before is alike.

    Of one sampler with several options the shortest name, which is plain, has the color.
    """
    from matplotlib.colors import to_rgb

    from concord_studies.figures import style

    chosen: dict[str, str] = {}
    looks = style.looks("entry", [row.entry.kind for row in best.values()])
    for name, look in sorted(zip(best, looks, strict=True), key=lambda one: len(one[0])):
        pool = [look.color, *style.PALETTE, *style.MORE]
        others = np.array([to_rgb(color) for color in chosen.values()]).reshape(-1, 3)
        away = [np.linalg.norm(others - [*to_rgb(c)], axis=1).min(initial=1.0) for c in pool]
        apart = [color for color, far in zip(pool, away, strict=True) if far >= ALIKE]
        chosen[name] = apart[0] if apart else pool[int(np.argmax(away))]
    return [chosen[name] for name in best]


def _score_curve(question: Question, row: Candidate) -> tuple[np.ndarray, np.ndarray]:
    """Return iterations up to a candidate's last, and its score there, where it is finite."""
    wish = question.wish
    most = POINTS // 2 if wish.averages else POINTS
    ks = np.unique(np.geomspace(1, max(row.iterations, 1), most).astype(int))
    path = question.laws([row.sampler], row.how != "screened", row.lattice.price)
    if wish.averages:
        score = np.ravel([predict_average_errors(question, path, row.read, int(k)) for k in ks])
    else:
        score = predict_bias(question, path, row.read, ks.tolist())[wish.level][:, 0]
    finite = np.isfinite(score)
    return ks[finite], np.maximum(score[finite], ROUNDING)


def doubt_batch_errors(question: Question, candidate: Candidate) -> list[str]:
    """Return a sentence if mini-batch errors over the agents' laws differ from those at the fit.

    Only predictions that take the errors of the fit are doubted; the list is empty otherwise.
    """
    if not question.has_constant_errors(candidate.lattice.price):
        return []
    path = question.laws([candidate.sampler], True, candidate.lattice.price)
    late = path.marginals_at(sorted({candidate.iterations // 2, candidate.iterations}))
    size: Any = question.wish.batch_size
    laws = zip(late.mean[:, 0], late.cov[:, 0], strict=True)
    try:
        own = [batch_errors(question.problem, mean, cov, size) for mean, cov in laws]
    except np.linalg.LinAlgError:
        return ["mini-batches are predicted by their errors at the posterior"]
    variances = [np.trace(errors, axis1=-2, axis2=-1) for errors in (own, question.batch_errors)]
    ratios = np.nan_to_num(variances[0] / variances[1], nan=1.0)  # all points may be alike
    ratio = max(np.ravel(ratios), key=lambda one: abs(np.log(one)))
    if 1 / CHANGED < ratio < CHANGED:
        return []
    return [
        "mini-batches are predicted by their errors at the posterior, and over an agent's law "
        f"these have {ratio:.2g} times that variance"
    ]
