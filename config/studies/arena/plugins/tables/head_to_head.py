"""Who is better than whom: wins, ties and losses of every pair, and the median ratio of scores.

Readers see the percentage of data sets that the row has won against the column, a tie counted as
half, from who wins most to who wins least, where pairs with fewer than five tasks in common do not
count; the CSV has a row for each ordered pair with all of it.

A pair meets on every task that both have a score of, data set by data set; a score within 5 % of
the other's is a tie. What diverged loses against what did not; where both did, it is a tie. The
ratio is that of the column's score to the row's (above one: the row is better), with an interval by
resampling tasks, where there are several.
"""

import itertools
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from concord.options import Options
from concord_arena.pairs import count_wins, log_ratios, median_ratio, scores_of_tasks
from concord_studies import words
from concord_studies.results import Measured
from concord_studies.tables import Layout, Table, marks_divergence

ENOUGH = 5  # tasks in common, to say who wins most


class Params(Options):
    """Options of a head-to-head table."""

    metric: Annotated[str, "score of an entry's worst agent, of which less is better"]
    names: Annotated[dict | None, "other texts for values, {no_edges: Isolated}"] = None


def reads(params: Params) -> list[str]:
    """Return the metrics that some of the table's runs must have."""
    return [params.metric]


@marks_divergence
def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the table of ordered pairs, laid out as a square of the percentages of wins."""
    scores = scores_of_tasks(runs, params.metric)
    rows: list[list[object]] = []
    shares: dict[str, dict[str, float]] = {one: {} for one in scores}
    wins: dict[str, list[float]] = {one: [] for one in scores}  # of pairs with enough tasks
    enough = min(ENOUGH, max(map(len, scores.values())))
    for one, other in itertools.permutations(scores, 2):
        logs = log_ratios(scores, one, other)
        won, tied, lost = count_wins(logs)
        if count := won + tied + lost:
            shares[one][other] = 100 * (won + tied / 2) / count
            wins[one] += [shares[one][other]] * (len(logs) >= enough)
        rows.append([one, other, won, tied, lost, *(median_ratio(logs) if logs else [None] * 3)])
    order = sorted(scores, key=lambda one: -np.mean(wins[one] or [-1.0]))
    names = {one: words.name("entry", one, params.names) for one in order}
    texts = [
        [
            f"{place} {names[one]}",
            *(f"{shares[one][other]:.0f}" if other in shares[one] else "" for other in order),
        ]
        for place, one in enumerate(order, 1)
    ]
    head = f"{words.axis('entry')} (percent won against the numbered column)"
    layout = Layout([head, *(str(place) for place in range(1, len(order) + 1))], texts, 1)
    columns = ["entry", "against", "won", "tied", "lost", "median ratio", "lo", "hi"]
    return Table(columns, rows, layout)
