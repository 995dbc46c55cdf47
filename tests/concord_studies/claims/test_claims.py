"""Check kinds: each must say holds, does not hold and inconclusive where its rule says so."""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.stats import t

from concord.laws.intervals import quantile
from concord.options import build
from concord_studies.claims import checks, claim, ledger, quantities, verdicts
from concord_studies.claims.quantities import Quantity
from concord_studies.claims.verdicts import (
    FAILS,
    HEAVY,
    HOLDS,
    INCONCLUSIVE,
    INSIDE,
    LOST,
    MEASURED,
    NOT_RUN,
    OTHER,
    OUTSIDE,
    TIE,
    TOO_FEW,
)
from concord_studies.intervals import replication_reach
from concord_studies.io import dump_yaml
from concord_studies.pages.claims import state_reason
from concord_studies.results import Measured
from concord_studies.runs.run import amplifies

COLUMNS = ["iteration", "agent", "metric", "value", "lo", "hi", "trials"]
NAN, INF = math.nan, math.inf


def run(experiment: str, *rows: tuple[Any, ...], chains: int = 1000, **labels: Any) -> Measured:
    """Return a run from rows (iteration, agent, metric, value[, lo, hi[, trials]]).

    With an interval the trials are the chains; without one w2_exact has none, anything else some.
    """
    full = []
    for row in rows:
        given = dict(zip(COLUMNS, row, strict=False))
        if "trials" not in given:
            exact = 0 if given["metric"] == "w2_exact" else NAN
            given["trials"] = chains if "lo" in given else exact
        full.append(given)
    table = pandas.DataFrame(full, columns=COLUMNS).astype({"agent": str})
    name = ",".join(f"{axis}={label}" for axis, label in labels.items()) or "run"
    labels = {axis: str(label) for axis, label in labels.items()}
    return Measured(
        {"experiment": experiment, "run": name, "labels": labels, "chains": chains}, table
    )


def at_end(experiment: str, *numbers: float, metric: str = "w2_exact", **labels: Any) -> Measured:
    """Return a run with one number, value[, lo, hi], of agent 0 at iteration 10."""
    return run(experiment, (10, 0, metric, *numbers), **labels)


def curve(experiment: str, *numbers: tuple[float, ...]) -> Measured:
    """Return a run with a number of agent 0 at iterations 0, 1, 2, ..."""
    return run(experiment, *((k, 0, "w2_exact", *number) for k, number in enumerate(numbers)))


def judge(kind: str, options: dict[str, Any], *runs: Measured) -> verdicts.Judgement:
    check = build(checks.KINDS[kind], options, "x.yaml: claims.c.check")

    def read(quantity: Quantity) -> list[Measured]:
        return [m for m in runs if m.run["experiment"] == quantity.experiment]

    reads = [(quantity, read(quantity)) for quantity in checks.quantities(check)]
    return verdicts.judge(check, reads, lambda run: run)


A, B = {"experiment": "a", "metric": "w2_exact"}, {"experiment": "b", "metric": "w2_exact"}
A_ALL, B_ALL = {**A, "at": "all"}, {**B, "at": "all"}

VALUE = ("value", {"quantity": A, "printed": 1.0, "tolerance": 0.1})
AT_MOST = ("value", {**VALUE[1], "at_most": True})
ORDER = ("order", {"lower": A, "higher": B})
HALF = ("order", {"lower": A, "higher": B, "factor": 0.5})
RISING = ("trend", {"quantity": A, "axis": "eta", "direction": "rising"})
FALLING = ("trend", {"quantity": A, "axis": "eta", "direction": "falling"})
PAIRED = ("trend", {"quantity": A, "axis": "eta", "direction": "falling", "paired": True})
PAIRS = ("order", {"lower": A, "higher": B, "paired": True})
TASKS = ("order", {"lower": A, "higher": B, "paired": True, "over_tasks": True})
BOARDS = ("agreement", {"one": A, "other": B, "at_least": 0.6, "among": "eta"})
ROOT = ("rate", {"quantity": A, "against": "eta", "at_least": 0.4, "at_most": 0.6})
DECAY = ("rate", {"quantity": A_ALL, "against": "iteration", "at_most": -0.9})
BOUND = ("bound", {"quantity": A_ALL, "bound": B_ALL})
SAME = ("identity", {"left": A, "right": B, "tolerance": 0.1})
SPREAD = ("spread", {"quantity": A, "tolerance": 0.5})
PERCENT = ("spread", {"quantity": A, "tolerance": 0.05, "relative": True})
LOOSE = ("spread", {"quantity": A, "tolerance": 0.42, "relative": True})
MET = ("condition", {"quantity": A})
SOONER = ("sooner", {"first": A_ALL, "later": B_ALL, "threshold": 1.0})


def ends(*numbers: tuple[float, ...], metric: str = "w2_exact") -> list[Measured]:
    """Return runs of experiment a over the axis eta = 1, 4, 16, ... with one number each."""
    return [at_end("a", *number, metric=metric, eta=4**i) for i, number in enumerate(numbers)]


def by_data_set(*values: tuple[float, ...], experiments: str = "aaa") -> list[Measured]:
    """Return runs of experiment a over eta = 1, 4, ..., each with a number for every data set."""
    return [
        run(
            experiments[i],
            (10, 0, "w2_exact", np.mean(sets), -INF, INF),
            *((10, 0, f"w2_exact_set_{d}", value) for d, value in enumerate(sets)),
            eta=4**i,
        )
        for i, sets in enumerate(values)
    ]


def of_tasks(*ratios: float) -> list[Measured]:
    """Return a run of a and one of b for each task, whose numbers on two data sets have a ratio."""
    return [
        run(
            experiment,
            (10, 0, "w2_exact", 1.0, -INF, INF),
            *(
                (10, 0, f"w2_exact_set_{d}", (ratio if experiment == "a" else 1.0) * d)
                for d in (1, 2)
            ),
            eta=task,
        )
        for task, ratio in enumerate(ratios)
        for experiment in "ab"
    ]


def boards(*ranks: str) -> list[Measured]:
    """Return runs of experiments a and b: the same entries on three tasks, ranked by letters."""
    return [
        run(
            experiment,
            (10, 0, "w2_exact", float(place + 1), -INF, INF),
            (10, 0, "w2_exact_set_1", float(place + 1)),
            eta=entry,
            task=task,
        )
        for experiment, entries in zip("ab", ranks, strict=True)
        for place, entry in enumerate(entries)
        for task in range(3)
    ]


CASES = [
    # Logarithms -0.7, -0.7, 0.1: mean -0.43, half width 4.3 * 0.27. The same each time is sure.
    (TASKS, of_tasks(0.5, 0.5, 1.1), INCONCLUSIVE),
    (TASKS, of_tasks(0.5, 0.5, 0.6), HOLDS),
    (TASKS, of_tasks(2.0, 2.0, 1.9), FAILS),
    (TASKS, of_tasks(0.5), NOT_RUN),
    (BOARDS, boards("123", "123"), HOLDS),
    (BOARDS, boards("123", "132"), HOLDS),  # two of three pairs
    (BOARDS, boards("123", "312"), FAILS),  # one of three
    (BOARDS, boards("1", "1"), INCONCLUSIVE),
    (VALUE, [at_end("a", 1.1)], HOLDS),  # the tolerance is meant to be allowed
    (VALUE, [at_end("a", 1.11)], FAILS),
    (VALUE, [at_end("a", 1.0, 0.95, 1.05)], HOLDS),
    (VALUE, [at_end("a", 1.0, 0.85, 1.05)], INCONCLUSIVE),
    (VALUE, [at_end("a", 1.5, 1.2, 1.8)], FAILS),
    (VALUE, ends((1.0,), (1.0,), (2.0,)), FAILS),
    (VALUE, [at_end("a", INF, INF, INF)], FAILS),
    (AT_MOST, [at_end("a", 1.1)], HOLDS),
    (AT_MOST, [at_end("a", -9.0)], HOLDS),
    (AT_MOST, [at_end("a", 1.11)], FAILS),
    (AT_MOST, [at_end("a", 1.0, 0.5, 1.2)], INCONCLUSIVE),
    (ORDER, [at_end("a", 1.0), at_end("b", 1.1)], HOLDS),
    (ORDER, [at_end("a", 1.0), at_end("b", 1.0)], FAILS),
    (ORDER, [at_end("a", 1.0, 1.0, 1.0), at_end("b", 1.0, 1.0, 1.0)], INCONCLUSIVE),
    (ORDER, [at_end("a", 1.0, 0.9, 1.1), at_end("b", 2.0, 1.9, 2.1)], HOLDS),
    (ORDER, [at_end("a", 1.0, 0.9, 1.1), at_end("b", 1.2, 1.0, 1.4)], INCONCLUSIVE),
    (ORDER, [at_end("a", 3.0, 2.9, 3.1), at_end("b", 1.2, 1.0, 1.4)], FAILS),
    (ORDER, [*ends((1.0,), (5.0,)), at_end("b", 2.0)], FAILS),
    (ORDER, [at_end("a", 1.0), at_end("b", INF, INF, INF)], HOLDS),
    (ORDER, [at_end("a", INF, INF, INF), at_end("b", 1.0)], FAILS),
    (HALF, [at_end("a", 1.0), at_end("b", 2.1)], HOLDS),
    (HALF, [at_end("a", 1.0), at_end("b", 1.9)], FAILS),
    (HALF, [at_end("a", 1.0, 0.9, 1.1), at_end("b", 2.1)], INCONCLUSIVE),
    (RISING, ends((1.0,), (2.0,), (3.0,)), HOLDS),
    (RISING, ends((1.0,), (1.0,), (3.0,)), FAILS),
    (RISING, ends((1.0,), (3.0,), (2.0,)), FAILS),
    (RISING, ends((1.0, 0.9, 1.1), (2.0, 1.0, 3.0), (5.0,)), INCONCLUSIVE),
    (FALLING, ends((3.0,), (2.0,), (1.0,)), HOLDS),
    (FALLING, ends((3.0,), (2.0,), (2.0,)), FAILS),
    (FALLING, ends((3.0, 1.0, 4.0), (2.0,), (1.0,)), INCONCLUSIVE),
    (PAIRED, by_data_set((9.0, 5.0, 1.0), (7.9, 4.0, 0.1), (7.0, 2.9, -1.0)), HOLDS),
    (PAIRED, by_data_set((9.0, 5.0, 1.0), (7.9, 4.0, 0.1), (9.0, 4.9, 1.0)), FAILS),
    (PAIRED, by_data_set((9.0, 5.0, 1.0), (7.9, 4.0, 0.1), (1.0, 5.9, 1.0)), INCONCLUSIVE),
    (PAIRED, by_data_set((9.0,), (7.9,)), NOT_RUN),
    (PAIRS, by_data_set((9.0, 5.0, 1.0), (10.0, 5.6, 1.1), experiments="ab"), HOLDS),
    (PAIRS, by_data_set((9.0, 5.0, 1.0), (8.0, 4.6, 0.9), experiments="ab"), FAILS),
    (PAIRS, by_data_set((9.0, 5.0, 1.0), (9.0, 5.0, 1.0), experiments="ab"), FAILS),
    (PAIRS, by_data_set((9.0, 5.0, 1.0), (90.0, 4.0, 1.1), experiments="ab"), INCONCLUSIVE),
    (PAIRS, by_data_set((9.0, INF, 1.0), (10.0, 5.6, 1.1), experiments="ab"), FAILS),
    (PAIRS, by_data_set((9.0, INF, 1.0), (10.0, INF, 1.1), experiments="ab"), FAILS),
    (PAIRS, by_data_set((9.0, 5.0, 1.0), (10.0, INF, 1.1), experiments="ab"), HOLDS),
    (PAIRS, by_data_set((9.0, 5.0, 1.0), (INF, INF, INF), experiments="ab"), HOLDS),
    (PAIRS, by_data_set((9.0, 5.0, 1.0), (80.0, INF, 0.9), experiments="ab"), INCONCLUSIVE),
    (PAIRS, by_data_set((9.0,), (10.0,), experiments="ab"), NOT_RUN),
    (PAIRS, by_data_set((9.0, 5.0), (10.0, 5.6, 1.1), experiments="ab"), NOT_RUN),
    (PAIRED, by_data_set((9.0, 5.0), (7.9, 4.0, 0.1)), NOT_RUN),
    (ROOT, ends((1.0,), (2.0,), (4.0,)), HOLDS),
    (ROOT, ends((1.0,), (4.0,), (16.0,)), FAILS),
    (ROOT, ends((1.0, 0.5, 2.0), (2.0,), (4.0,)), INCONCLUSIVE),
    (ROOT, ends((1.0, -0.5, 2.0), (2.0,), (4.0,)), INCONCLUSIVE),
    (ROOT, ends((1.0,), (2.0,), (INF, INF, INF)), FAILS),
    (DECAY, [curve("a", *((1 / (k + 1),) for k in range(9)))], HOLDS),
    (DECAY, [curve("a", *((1 / (k + 1) ** 0.5,) for k in range(9)))], FAILS),
    (DECAY, [curve("a", (1.0,), (0.5, 0.4, 0.8), (0.33, 0.2, 0.5))], INCONCLUSIVE),
    (BOUND, [curve("a", (1.0,), (2.0,)), curve("b", (1.0,), (9.0,))], HOLDS),
    (BOUND, [curve("a", (1.0,), (2.0,)), curve("b", (9.0,), (1.9,))], FAILS),
    (BOUND, [curve("a", (1.0, 0.9, 1.1), (2.0,)), curve("b", (1.0,), (9.0,))], INCONCLUSIVE),
    (BOUND, [curve("a", (1.0,), (2.0,)), curve("b", (INF,), (9.0,))], HOLDS),
    (BOUND, [curve("a", (INF, INF, INF), (2.0,)), curve("b", (5.0,), (9.0,))], FAILS),
    (BOUND, [curve("a", (1.0,), (2.0,)), curve("b", (INF,), (INF,))], NOT_RUN),
    (BOUND, [curve("a", (1.0,), (2.0,)), curve("b", (9.0,))], NOT_RUN),
    (SAME, [at_end("a", 1.0), at_end("b", 1.05)], HOLDS),
    (SAME, [at_end("a", 1.0), at_end("b", 1.2)], FAILS),
    (SAME, [at_end("a", 1.0, 0.8, 1.2), at_end("b", 1.0)], INCONCLUSIVE),
    (SAME, [at_end("a", 1.2, 1.15, 1.25), at_end("b", 1.0)], FAILS),
    (SAME, [at_end("a", INF, INF, INF), at_end("b", INF, INF, INF)], FAILS),
    (SPREAD, ends((1.0,), (1.5,)), HOLDS),
    (SPREAD, ends((1.0,), (1.6,)), FAILS),
    (SPREAD, ends((1.0, 0.8, 1.2), (1.4, 1.3, 1.5)), INCONCLUSIVE),
    (SPREAD, ends((INF, INF, INF), (INF, INF, INF)), FAILS),
    (SPREAD, ends((1.0,)), NOT_RUN),
    (PERCENT, ends((100.0,), (104.0,)), HOLDS),
    (PERCENT, ends((100.0,), (106.0,)), FAILS),
    (PERCENT, ends((100.0, 98.0, 102.0), (104.0,)), INCONCLUSIVE),
    (PERCENT, ends((INF, INF, INF), (INF, INF, INF)), FAILS),
    (LOOSE, ends((100.0,), (140.0, 130.0, 150.0)), INCONCLUSIVE),  # 50 is 40 to 43 % of the mean
    (MET, ends((1.0,), (1.0,)), INSIDE),
    (MET, ends((1.0,), (0.0,)), OUTSIDE),
    (SOONER, [curve("a", (3,), (1,), (0,)), curve("b", (3,), (2,), (1,))], HOLDS),
    (SOONER, [curve("a", (3,), (2,), (1,)), curve("b", (3,), (2,), (1,))], FAILS),
    (SOONER, [curve("a", (3,), (1,), (0,)), curve("b", (3,), (2, 1, 3), (0,))], INCONCLUSIVE),
    (SOONER, [curve("a", (3,), (1,), (0,)), curve("b", (3,), (2,), (2,))], HOLDS),
    (SOONER, [curve("a", (3,), (2,)), curve("b", (3,), (2,))], FAILS),  # neither arrives
]


@pytest.mark.parametrize(("check", "runs", "verdict"), CASES)
def test_verdict(check, runs, verdict):
    judgement = judge(*check, *runs)
    assert judgement.verdict.startswith(verdict)
    excess = judgement.excess
    if excess is not None:  # by how much, and in how many cases
        assert (excess.lo <= excess.hi).all()
        assert {HOLDS: excess.is_met, FAILS: excess.failures > 0}.get(verdict, True)


EXCESSES = [
    (VALUE, ends((1.05,), (1.5,), (0.7,)), [-0.05, 0.4, 0.2]),  # beyond 0.9 to 1.1
    (RISING, ends((1.0,), (3.0,), (2.5,)), [-2.0, 0.5]),  # steps that do not rise
    (BOUND, [curve("a", (1.0,), (4.0,)), curve("b", (2.0,), (3.0,))], [-1.0, 1.0]),
    (HALF, [at_end("a", 3.0), at_end("b", 4.0)], [1.0]),  # 3 against half of 4
    (MET, ends((1.0,), (0.0,), (1.0,)), [0.0, 1.0, 0.0]),
    (PERCENT, ends((90.0,), (110.0,)), [0.15]),  # a fifth of the mean
    (SOONER, [curve("a", (2.0,), (2.0,), (1.0,)), curve("b", (2.0,), (0.5,), (0.5,))], [1.0]),
]


@pytest.mark.parametrize(("check", "runs", "wanted"), EXCESSES)
def test_a_check_says_by_how_much_each_case_exceeds_the_rule(check, runs, wanted):
    excess = judge(*check, *runs).excess
    assert excess is not None and excess.value == pytest.approx(wanted, abs=1e-12)  # rounding
    assert excess.failures == sum(case > 0 for case in wanted)
    assert excess.decisive_case == np.argmax(wanted)


# Why a claim is inconclusive


def test_too_few_chains_says_how_many_would_do():
    """The half-width 0.15 of 1000 chains must be at most the distance 0.1 from the edge: 2.25."""
    found = judge(*VALUE, at_end("a", 1.0, 0.85, 1.15))
    assert found.verdict == TOO_FEW
    assert found.ours.endswith("; about 3000 chains instead of 1000 would decide")


def test_pairs_of_data_sets_are_compared_by_their_mean_ratio():
    found = judge(*PAIRS, *by_data_set((2.0, 8.0), (4.0, 12.0), experiments="ab"))
    assert found.verdict == TOO_FEW and "data sets instead of 2 would decide" in found.ours
    root = math.sqrt(1 / 2 * 2 / 3)
    factor = math.exp(t.ppf(0.975, 3) * math.log(4 / 3) / math.sqrt(12))
    text = f"{root:.2f} [{root / factor:.2f}, {root * factor:.2f}]"
    found = judge(*PAIRS, *by_data_set((2.0, 8.0) * 2, (4.0, 12.0) * 2, experiments="ab"))
    assert found.ours.startswith(f"mean ratio over 4 data sets {text} (")


def test_what_many_more_chains_leave_open_is_a_tie():
    close = [at_end("a", 1.0, 0.5, 1.5), at_end("b", 1.001, 0.5, 1.5)]
    assert judge(*ORDER, *close).verdict == TIE
    equal = [at_end("a", 1.0, 1.0, 1.0), at_end("b", 1.0, 1.0, 1.0)]
    assert judge(*ORDER, *equal).verdict == TIE


def test_no_verdict_rests_unsaid_on_a_number_of_heavy_tailed_chains():
    """Its interval is from 0 to infinity, in metrics.csv; more chains have none either."""
    heavy, sound = at_end("a", 1.0, 0.0, INF, metric="w2"), at_end("b", 9.0, 8.0, 10.0)
    sentence = "; no interval for 1 of the numbers, whose chains are heavy-tailed"
    sides = {"experiment": "a", "metric": "w2"}, {"experiment": "b", "metric": "w2_exact"}
    for lower, higher in (sides, sides[::-1]):
        found = judge("order", {"lower": lower, "higher": higher}, heavy, sound)
        assert found.verdict == HEAVY and found.ours.endswith(sentence)
    found = judge("measurement", {"quantity": sides[0]}, heavy)
    assert found.verdict == MEASURED and found.ours == f"w2: 1 (agent 1){sentence}"
    apart = {"quantity": {**sides[0], "agents": [0]}, "printed": 5.0, "tolerance": 1.0}
    far = run("a", (10, 0, "w2", 1.0, 0.0, INF), (10, 1, "w2", 9.0, 8.0, 10.0))
    assert judge("value", apart, far).verdict == HEAVY
    found = judge("value", {**apart, "quantity": sides[0]}, far)
    assert found.verdict == FAILS and found.ours.endswith(sentence)  # by the other number


def test_a_claim_has_the_verdict_of_its_worst_case():
    assert verdicts.join_cases([HOLDS, HOLDS]) == HOLDS
    assert verdicts.join_cases([HOLDS, TIE, FAILS]) == FAILS
    assert verdicts.join_cases([HOLDS, TIE, TOO_FEW]) == TOO_FEW
    assert verdicts.join_cases([HOLDS, NOT_RUN]) == NOT_RUN
    assert verdicts.join_cases([INSIDE, OUTSIDE]) == OUTSIDE
    assert verdicts.count_cases([HOLDS, FAILS, FAILS]) == "fails in 2 of 3 cases"
    assert verdicts.count_cases([HOLDS, TIE]) == "a tie in 1 of 2 cases"
    assert verdicts.count_cases([HOLDS, HOLDS]) == ""


def test_pairs_hold_together_and_say_their_differences():
    """Two pairs, differences -1 +- sd 0.1 and 2 +- 0.2 over three data sets: t at 1 - 0.025/2."""
    first, second, third = (9.0, 5.0, 1.0), (8.1, 4.0, -0.1), (9.9, 6.0, 2.1)
    ours = judge(*PAIRED, *by_data_set(first, second, third)).ours
    half = t.ppf(1 - 0.025 / 2, 2) / math.sqrt(3)
    one = f"eta 1 to 4: -1.00 [{-1 - 0.1 * half:.2f}, {-1 + 0.1 * half:.2f}]"
    two = f"eta 4 to 16: 2.00 [{2 - 0.2 * half:.2f}, {2 + 0.2 * half:.2f}]"
    assert ours == f"exact W2: {one}; {two}"


# Intervals that hold together


def test_an_interval_widens_by_the_trials_behind_it_and_not_by_the_chains():
    """Four data sets of 250 chains each: three degrees of freedom, whatever the chains."""
    few = run("b", (10, 0, "w2_exact", 5.0, 4.0, 6.0, 4))
    ours = judge(*ORDER, at_end("a", 1.0, 0.0, 3.0), few).ours
    assert f"5.0 [{5 - t.ppf(1 - 0.025 / 2, 3) / t.ppf(0.975, 3):.1f}, " in ours
    assert f"1.0 [{1 - t.ppf(1 - 0.025 / 2, 999) / t.ppf(0.975, 999):.1f}, " in ours


@pytest.mark.parametrize(
    ("check", "wrong"),
    # At the edge of the rule: what is true is on one side, what the numbers say on either.
    [(BOUND, FAILS), (("identity", {"left": A_ALL, "right": B_ALL, "tolerance": 0.0}), FAILS)],
)
def test_looking_at_many_numbers_does_not_refute_a_true_claim(check, wrong):
    """Each number misses its interval in 5 % of cases; of fifty, some do in 92 %."""
    rng = np.random.default_rng(1)
    trials, numbers = 100, 50
    wrongs = 0
    for _ in range(trials):
        noise = rng.standard_normal(numbers)
        estimate = curve("a", *((5 + z, 5 + z - 1.96, 5 + z + 1.96) for z in noise))
        wrongs += judge(*check, estimate, curve("b", *[(5.0,)] * numbers)).verdict == wrong
    assert wrongs / trials <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_a_mean_over_iterations_counts_as_one_number():
    runs = [curve("a", (1.0, 0.5, 2.0), (3.0, 2.5, 4.0))]
    check = ("value", {"quantity": {**A_ALL, "reduce": "mean"}, "printed": 0, "tolerance": 9})
    assert judge(*check, *runs).ours == "exact W2: 2.00 [1.50, 3.00] (agent 1), against -9 to 9"


def test_an_extreme_lies_between_the_extremes_of_both_ends():
    """Not in the interval of the number that happens to be largest."""
    table = curve("a", (1.0, 0.5, 3.9), (3.0, 2.5, 4.0), (1.0,))
    largest = {"quantity": {**A_ALL, "reduce": "max"}, "printed": 3.0, "tolerance": 2.0}
    wide = quantities.widening(2, 1000)  # of two random numbers
    text = f"3.00 [{3 - wide / 2:.2f}, {1 + 2.9 * wide:.2f}]"
    assert text in judge("value", largest, table).ours


# What cannot be judged


@pytest.mark.parametrize(
    ("options", "rows", "why"),
    [
        ({}, [], "a/run has no w2_exact"),
        ({"agents": [0, 3]}, [(10, 0, "w2_exact", 1.0)], "a/run has no w2_exact of agent 3"),
        ({"at": [5, 10]}, [(10, 0, "w2_exact", 1.0)], "a/run has no w2_exact at iteration 5"),
        ({}, [(10, 0, "w2_exact", NAN)], "w2_exact of a/run is not a number"),
        ({"metric": "broadcasts"}, [(10, 0, "broadcasts", 9.0)], "is random but has no interval"),
        ({"metric": "misclassified_q25"}, [(10, 0, "misclassified_q25", 9.0)], "has no interval"),
        ({"metric": "w2"}, [(10, 0, "w2", 0.1)], "w2 of a/run is random but has no interval"),
        ({"metric": "accuracy_sd"}, [(10, 0, "accuracy_sd", 0.1)], "has no interval"),
    ],
)
def test_not_run_says_why(options, rows, why):
    check = {"quantity": {**A, **options}, "printed": 1.0, "tolerance": 10.0}
    found = judge("value", check, run("a", *rows))
    assert found.verdict == NOT_RUN and why in found.ours


def test_one_chain_says_nothing_of_the_spread_over_chains():
    check = {"quantity": {**A, "metric": "accuracy_mean"}, "printed": 1.0, "tolerance": 0.5}
    one = run("a", (10, 0, "accuracy_mean", 1.0), chains=1)
    assert judge("value", check, one).verdict == TOO_FEW
    bare = run("a", (10, 0, "accuracy_mean", 1.0), chains=20)
    found = judge("value", check, bare)
    assert found.verdict == NOT_RUN and "has no interval" in found.ours
    many = run("a", (10, 0, "accuracy_mean", 1.0, 1.0, 1.0), chains=20)
    assert judge("value", check, many).verdict == HOLDS
    images = run("a", (10, 0, "accuracy_mean", 1.0, 0.9, 1.05, 10_000), chains=1)
    assert judge("value", check, images).verdict == HOLDS


@pytest.mark.parametrize(
    ("check", "runs", "why"),
    [
        (RISING, [*ends((1.0,)), *ends((2.0,))], "one number for each of several values of eta"),
        (RISING, ends((1.0,)), "one number for each of several values of eta"),
        (RISING, [at_end("a", 1.0, eta="ring"), at_end("a", 2.0, eta="star")], "is not a number"),
        (ROOT, ends((1.0,)), "one number for each of several values of eta"),
        (ROOT, ends((1.0,), (0.0,)), "positive numbers"),
    ],
)
def test_axes_that_cannot_be_judged(check, runs, why):
    found = judge(*check, *runs)
    assert found.verdict == NOT_RUN and why in found.ours


def table(experiment: str, agents: tuple[Any, ...], iterations: tuple[int, ...] = (10,), **labels):
    """Return a run whose number of agent a at iteration k is 10 k + a's place."""
    rows = [
        (k, a, "w2_exact", 10.0 * k + place) for place, a in enumerate(agents) for k in iterations
    ]
    return run(experiment, *rows, **labels)


EQUAL = ("identity", {"left": A_ALL, "right": B_ALL, "tolerance": 0.0})


@pytest.mark.parametrize(
    ("left", "right", "why"),
    [
        ([table("a", (0, 1))], [table("b", (2, 3))], "the second quantity has none of agent 0"),
        ([table("a", (0, 1))], [table("b", (0, 1, 2))], "the first quantity has none of agent 2"),
        ([table("a", (0, 1))], [table("b", ("network",))], "2 numbers cannot be paired with 1"),
        (
            [table("a", (0,), (1, 2))],
            [table("b", (0,), (2, 3))],
            "the second quantity has none of iteration 1",
        ),
        (
            [table("a", (0,), eta=1), table("a", (0,), eta=2)],
            [table("b", (0,), eta=1), table("b", (0,), eta=4)],
            "the second quantity has none of eta 2",
        ),
        # As many numbers, and nothing in common: runs here, agents there.
        (
            [table("a", (0,), eta=1), table("a", (0,), eta=2)],
            [table("b", (0, 1))],
            "belong together",
        ),
    ],
)
@pytest.mark.parametrize("check", [EQUAL, BOUND])
def test_numbers_that_do_not_belong_together_are_not_paired(check, left, right, why):
    found = judge(*check, *left, *right)
    assert found.verdict == NOT_RUN and why in found.ours


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # What has one value on a side may differ: the sampler, and an agent from the network.
        ([table("a", (0, 1), sampler="x")], [table("b", (0, 1), sampler="y")]),
        ([table("a", (0,), (1, 2))], [table("b", ("network",), (1, 2))]),
        # However the runs are ordered.
        (
            [table("a", (0,), (eta,), eta=eta) for eta in (1, 2)],
            [table("b", (0,), (eta,), eta=eta) for eta in (2, 1)],
        ),
    ],
)
def test_numbers_are_joined_by_what_varies_on_both_sides(left, right):
    assert judge(*EQUAL, *left, *right).verdict == HOLDS
    assert judge(*BOUND, *left, *right).verdict == HOLDS


def lost(experiment: str, *numbers: Any, **labels: Any) -> Measured:
    """Return a run of which a chain diverged at iteration 5; by default its number is none."""
    rows = [(10, 0, "w2_exact", *(numbers or (NAN, NAN, NAN)))]
    rows += [(10, "network", "diverged", 0.5), (5, "network", "diverged_first", 5.0)]
    return run(experiment, *rows, **labels)


PASSING = at_end("a", 1.0, eta=1)
DIVERGED = [
    (VALUE, [lost("a")], FAILS),
    (ORDER, [at_end("a", 1.0), lost("b")], FAILS),  # said to be higher, of what is better so
    (ORDER, [lost("a"), at_end("b", 1.0)], LOST),
    (ORDER, [lost("a"), lost("b")], FAILS),
    (RISING, [PASSING, lost("a", eta=4)], FAILS),
    (FALLING, [lost("a", eta=1), at_end("a", 1.0, eta=4)], FAILS),
    (ROOT, [PASSING, lost("a", eta=4)], FAILS),
    (BOUND, [lost("a"), at_end("b", 1.0)], FAILS),
    (BOUND, [at_end("a", 1.0), lost("b")], LOST),
    (SAME, [at_end("a", 1.0), lost("b")], FAILS),
    (SPREAD, [PASSING, lost("a", eta=4)], FAILS),
    (PERCENT, [PASSING, lost("a", eta=4)], FAILS),
    (MET, [lost("a")], FAILS),
    (("measurement", {"quantity": A}), [lost("a")], LOST),
    (SOONER, [lost("a"), curve("b", (0.0,))], FAILS),
    (SOONER, [curve("a", (0.0,)), lost("b")], LOST),
    # The mean of what is none and of a number is none.
    (("value", {**VALUE[1], "quantity": {**A, "reduce": "mean"}}), [lost("a")], FAILS),
]


@pytest.mark.parametrize(("check", "runs", "verdict"), DIVERGED)
def test_nothing_holds_because_a_run_diverged(check, runs, verdict):
    found = judge(*check, *runs)
    assert found.verdict == verdict and "diverged" in found.ours


def test_what_is_infinite_needs_no_interval():
    """A distance of one chain, which has no interval, is infinite for sure once it diverged."""
    far = lost("b", INF, NAN, NAN, 1)
    assert judge(*ORDER, at_end("a", 1.0), far).verdict == HOLDS
    assert judge("order", {"lower": B, "higher": A}, at_end("a", 1.0), far).verdict == FAILS


def test_scale():
    check = {"quantity": {**A, "scale": 100}, "printed": 95.0, "tolerance": 1.0}
    assert judge("value", check, at_end("a", 0.95, 0.945, 0.955)) == verdicts.Judgement(
        HOLDS, "exact W2, in per cent: 95.00 [94.50, 95.50] (agent 1), against 94 to 96"
    )


# Cases of claims as files state them


def test_a_rule_gives_kind_tolerance_and_reason():
    check = {"quantity": A, "printed": 80.0}
    found = claim.build_case({"check": check, "reason": "at the end"}, "about", "x.yaml: claims.c")
    assert found.check.tolerance == 5 and found.check.kind == "value"
    assert found.reason == "within five points; at the end" and found.printed == "80"


# Like is compared with like


def grid(experiment, topology, **numbers):
    """Return a run for each sampler, with a number for each agent."""
    return [
        run(
            experiment,
            *((10, agent, "w2_exact", value) for agent, value in enumerate(values)),
            sampler=sampler,
            topology=topology,
        )
        for sampler, values in numbers.items()
    ]


def test_samplers_and_agents_are_compared_one_by_one():
    """The second sampler is nearer than the first everywhere; each is nearer on one graph."""
    near = grid("a", "complete", de_sgld=(2.0, 4.0), extra=(0.2, 0.45))
    far = grid("b", "ring", de_sgld=(3.0, 5.0), extra=(0.3, 0.5))
    found = judge(*ORDER, *near, *far)
    assert found.verdict == HOLDS
    assert found.ours.endswith(
        "0.45 (a, EXTRA, complete, agent 2) is below 0.5 (b, EXTRA, ring, agent 2)"
    )
    assert found.margin is not None and found.margin.value == pytest.approx(0.9)
    far = grid("b", "ring", de_sgld=(3.0, 3.9), extra=(0.3, 0.5))
    found = judge(*ORDER, *near, *far)
    assert found.verdict == FAILS and "4 (a, DE-SGLD, complete, agent 2) is not below" in found.ours


def test_what_only_one_side_varies_is_compared_with_all_of_it():
    others = grid("b", "ring", de_sgld=(3.0,), extra=(0.3,))
    assert (
        judge(*ORDER, at_end("a", 1.0, sampler="mine", topology="ring"), *others).verdict == FAILS
    )
    assert (
        judge(*ORDER, at_end("a", 0.1, sampler="mine", topology="ring"), *others).verdict == HOLDS
    )


# Runs whose chains are others on another machine


LENET = {"problem": {"kind": "torch"}}


def amplified(experiment: str, *rows: tuple[Any, ...], chains: int, **labels: Any) -> Measured:
    made = run(experiment, *rows, chains=chains, **labels)
    return Measured({**made.run, **LENET}, made.metrics)


def test_which_runs_amplify_rounding():
    assert amplifies(LENET)
    assert not amplifies({"problem": {"kind": "linear_regression"}})
    gossip = {"kind": "gossip_ula", "step_size": 1e-4, "fusion": 0.1}
    trigger = {"communication": "triggered", "threshold": 8.0, "decay": 0.25}
    for options, iterations, expected in (
        (gossip, 40_000, False),
        (gossip | trigger, 1_000, False),
        (gossip | trigger, 40_000, True),
        (gossip | trigger | {"decay": 0.51}, 40_000, False),
        (gossip | trigger | {"decay": 0.51, "step_size": 2.5e-5}, 40_000, True),
        ({"kind": "de_sgld", "step_size": 1e-4}, 40_000, False),
    ):
        document = {"sampler": options, "agents": 5, "iterations": iterations}
        assert amplifies(document) == expected


@pytest.mark.parametrize(("half", "verdict"), [(0.017, HOLDS), (0.018, OTHER), (0.2, OTHER)])
def test_a_claim_is_decided_where_other_chains_would_decide_it_alike(half, verdict):
    """Of three chains sqrt(2) + sqrt(19) half-widths: F at 0.95 with 2 and 2 degrees is 19."""
    assert replication_reach(3) == pytest.approx(math.sqrt(2) + math.sqrt(19), rel=1e-9)
    row = (10, 0, "w2", 1.0, 1 - half, 1 + half)
    check = ("value", {**VALUE[1], "quantity": {"experiment": "a", "metric": "w2"}})
    assert judge(*check, amplified("a", row, chains=3)).verdict == verdict
    assert judge(*check, run("a", row, chains=3)).verdict != OTHER
    exact = (10, 0, "w2_exact", 1.0)
    assert judge(*VALUE, amplified("a", exact, chains=3)).verdict == HOLDS


def test_chains_that_happen_to_agree_do_not_decide_what_others_would_be():
    row = (10, 0, "w2", 0.0, 0.0, 0.0)
    check = ("value", {**VALUE[1], "quantity": {"experiment": "a", "metric": "w2"}})
    assert judge(*check, run("a", row, chains=2)).verdict == FAILS
    assert judge(*check, amplified("a", row, chains=2)).verdict == OTHER


@pytest.mark.parametrize(("chains", "numbers"), [(2, 1), (3, 1), (3, 4), (10, 2), (100, 1)])
def test_other_chains_decide_alike_as_often_as_is_said(chains, numbers):
    """What is just decided, by numbers at the edge, is decided alike by nine of ten other sets."""
    rng = np.random.default_rng(1)
    shape = (2, 20_000, numbers, chains)
    mean, sd = (f(rng.standard_normal(shape), axis=-1) for f in (np.mean, partial(np.std, ddof=1)))
    half = quantile(chains, numbers) * sd / math.sqrt(chains)
    edge = mean[0] + replication_reach(chains, numbers) * half[0]
    alike = (mean[1] + half[1] < edge).all(axis=-1).mean()
    assert alike > 0.9 - 3 * math.sqrt(0.09 / 20_000)


def test_a_verdict_that_other_chains_could_turn_is_no_change(tmp_path):
    assert compared(tmp_path, OTHER, HOLDS).changed == ()
    assert compared(tmp_path, FAILS, OTHER).changed == ()
    changed = compared(tmp_path, FAILS, HOLDS).changed
    assert changed == ("p c published: holds -> does not hold",)


def compared(folder, now, before, **row):
    """Return one verdict beside the committed one."""
    path = folder / "expected_verdicts.yaml"
    path.write_text(dump_yaml({"p": {"c": {"published": before}}}))
    key = {"paper": "p", "claim": "c", "reading": "published", "verdict": now, **row}
    return ledger.compare([dict.fromkeys(ledger.COLUMNS, "") | key], path)


@pytest.mark.parametrize("now", [HOLDS, FAILS])
def test_a_verdict_with_one_seed_is_not_like_one_that_depends_on_the_seed(tmp_path, now):
    found = compared(tmp_path, now, verdicts.SEED)
    assert (found.changed, found.compared) == ((), 0)
    assert found.seeds == (f"p c published: {verdicts.SEED} -> {now}, with one seed",)
    assert "1 not compared, since seeds were not varied" in found.text
    assert found.seeds[0] in found.lines
    varied = compared(tmp_path, now, verdicts.SEED, multiverse="robust: holds in 2 of 2 universes")
    assert (varied.changed, varied.seeds) == ((f"p c published: {verdicts.SEED} -> {now}",), ())


def test_what_was_not_varied_is_said_with_what_is_known_to_need_it(tmp_path):
    path, row = tmp_path / "expected_verdicts.yaml", dict.fromkeys(ledger.COLUMNS, "")
    path.write_text(dump_yaml({"p": {"c": {"published": verdicts.SEED}}}))
    alone = row | {"paper": "p", "claim": "c", "reading": "published", "verdict": HOLDS}
    text = "Seeds were not varied; 1 of these verdicts depends on data or seed (committed)."
    assert ledger.note_unvaried_seeds([alone], path) == text
    assert ledger.note_unvaried_seeds([alone | {"claim": "d"}], path) == "Seeds were not varied."
    varied = alone | {"multiverse": "robust: holds in 2 of 2 universes"}
    assert ledger.note_unvaried_seeds([varied, alone | {"claim": "d"}], path) == ""
    of = ledger.note_unvaried_seeds([varied | {"paper": "q"}, alone | {"claim": "d"}], path)
    assert of == "Seeds of p were not varied."
    assert ledger.note_unvaried_seeds([alone | {"source": ledger.OURS}], path) == ""
    assert ledger.note_unvaried_seeds([alone | {"scale": "smoke"}], path) == ""


def of_excess(*values, verdict=FAILS, what="error", **more):
    """Return a judgement whose numbers, all exact, exceed the rule by values."""
    ends = np.array([values] * 3)
    margin = checks.Margin(1 + max(values), 1.0, 1.0, high=1, what=what)
    return verdicts.Judgement(verdict, "", margin, checks.Excess(*ends, **more))


def test_what_fails_says_how_often_and_by_how_much():
    assert of_excess(-0.5, 0.25, 0.125).number.endswith("; not met in 2 of 3, by up to 0.25")
    assert of_excess(0.25).number.endswith("(rule: at most 1); not met by 0.25")
    assert of_excess(0.25, what="w2, ratio").number.endswith("(rule: at most 1)")
    share = of_excess(0.25, 0.5, what="share of its bound").number
    assert share.endswith("; not met in 2 of 2, by a difference of up to 0.5")
    assert of_excess(0.0, -1.0, strict=True).number.endswith("(rule: at most 1); not met in 1 of 2")
    assert of_excess(INF, -1.0).number.endswith("; not met in 1 of 2")
    assert of_excess(-0.5, verdict=HOLDS).number.endswith("(rule: at most 1)")
    assert verdicts.Judgement(FAILS, "").number == ""


def test_reasons_have_numbers_of_all_cases():
    cases = [of_excess(-0.5, 0.25), of_excess(0.125, 0.5, -1.0), verdicts.Judgement(NOT_RUN, "")]
    find = partial(verdicts.find_reason_number, judgement=cases[1], all_cases=cases)
    assert [find(name) for name in ("worst", "by", "failing", "cases")] == ["1.5", "0.5", "3", "5"]
    find = partial(verdicts.find_reason_number, judgement=cases[2], all_cases=cases)
    assert (find("worst"), find("by")) == (None, None)


def test_a_reason_is_that_of_the_verdict():
    because = {"holds": "It does.", "fails": "Beyond by {by}. It is {worst}.", "open": "Who knows?"}
    stated = build(claim.Claim, {"where": "w", "says": "s", "because": because})
    assert state_reason(stated, HOLDS) == state_reason(stated, INSIDE) == "It does."
    assert state_reason(stated, FAILS, {"worst": "2", "by": None}.get) == "It is 2."
    assert state_reason(stated, TIE) == "Who knows?"
    assert state_reason(stated, NOT_RUN) == state_reason(stated, OUTSIDE) == ""


def test_what_fails_in_part_and_what_we_say_ourselves_are_apart_on_the_scoreboard():
    blank = {"paper": "p", "reading": "published", "source": "print"}
    rows = [
        {**blank, "claim": "a", "case": "n=1", "verdict": FAILS},
        {**blank, "claim": "a", "case": "n=2", "verdict": HOLDS},
        {**blank, "claim": "b", "case": "", "verdict": FAILS},
        {**blank, "claim": "c", "case": "", "verdict": HOLDS, "source": ledger.OUR_SENTENCE},
    ]
    columns, cells = ledger.scores(rows)
    assert columns[2:] == ["sentences", "fails", "fails in part", "open", "holds", "neither"]
    assert cells == [
        ["p", "published", *"211000"],
        ["p", "published, our sentences", *"100010"],
    ]
