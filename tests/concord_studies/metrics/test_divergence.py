"""What every metric makes of chains that diverged, and of chains that did not."""

import math
import re
from fnmatch import fnmatchcase

import numpy as np
import pytest

from concord_studies import metrics
from diverged_runs import CHAINS, DIVERGED, FAMILIES, diverged, measured, sound

# What does not depend on positions: counts, what exact draws alone show, and what others recorded.
APART = re.compile(
    "(uni|broad)cast.*|activation.*|trigger.*|gradients|seconds|waiting|ended|waited"
    "|(?!consensus_).*_floor|.*_recorded|uplink_bits"
)
# Order statistics of chains, of which a diverged one is the worst.
ORDERED = re.compile(r".*_(min|q25|median|q75|whisker_lo|whisker_hi)")

# What only other samplers, data or steps have.
ELSEWHERE = {
    "gossip_theorems": r"gossip\.(threshold|exponent|bend).*"
    r"|gossip_(consensus|kl|kl_most|kl_bound|excess|bias.*)",
    "sinkhorn": r".*_set_.*",
    "stable_step": r".*\.fusion",
    "theorem3": "theorem3_.*|lemma2_.*|posterior_covariance_max",
    "theorems": r"w2_most_mean"  # of mini-batches
    r"|theorem2\.(r|D|C1|C1_bar|lemma7_factor|E\|x0 - .*|E\|xbar0 .*|\|grad .*)"
    r"|theorem10.*|lemma\d+.*",
    "predictions": r".*_(mnist|svhn).*",
    "predictive": "mse|coverage",  # of regressions
    "constraint": "envelope_w2",
    "tempered_distance": "law_tempered_w1.*|law_power",
}


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("chains", [1, CHAINS], ids=["one chain", "all chains"])
def test_no_number_of_a_diverged_run_is_finite(family, chains):
    runs = measured(family), measured(family, seed=1), measured(family, lost=chains)
    for old, again, new in zip(*runs, strict=True):
        assert new[:3] == old[:3] and new.chance == old.chance
        if not new.chance or APART.fullmatch(new.metric):
            assert same(new.value, old.value)
            assert same(again.value, old.value), f"{new.metric} does depend on the draws"
        elif not np.isfinite(new.value):
            assert new.lo is None or not np.isfinite([new.lo, new.hi]).any()
        elif new.value != old.value:
            assert chains < CHAINS and ORDERED.fullmatch(new.metric), new
            assert new.value > old.value or "whisker" in new.metric
        else:  # before, or of other chains
            assert new.iteration < DIVERGED or chains < CHAINS, new


SEVERAL = {
    "six chains": {},
    "six others": {"seed": 1},
    "two chains": {"chains": 2},
    "three chains": {"chains": 3, "seed": 2},
    "all alike": {"alike": True},
    "one diverged": {"lost": 1},
    "two of two diverged": {"chains": 2, "lost": 2},
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("case", SEVERAL)
def test_an_interval_contains_its_number(family, case):
    for row in measured(family, **SEVERAL[case]):
        assert (row.lo is None) == (row.hi is None)
        if row.lo is not None:
            assert row.lo <= row.value <= row.hi, row


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lost", [0, 1])
def test_one_chain_has_no_interval(family, lost):
    """But over what it has many of: images, data sets, exact draws; and a share has Wilson's."""
    for row in measured(family, chains=1, lost=lost):
        if row.chance and row.trials in (None, 1) and row.metric != "learned_share":
            assert row.lo is None and row.hi is None and row.trials in (None, 1), row


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_names_all_that_it_yields_and_no_more(family):
    """`concord check` goes by it."""
    yielded = {row.metric for row in measured(family)}
    assert all(metrics.computes(family, metric) for metric in yielded)
    for name in metrics.find_family(family).metrics:
        if re.fullmatch(ELSEWHERE.get(family, ""), name):
            continue
        assert any(fnmatchcase(metric, name) for metric in yielded), name


def test_a_chain_is_lost_from_the_iteration_at_which_it_diverged():
    marked = diverged(sound(2, 0), 2).mask_diverged()
    for name, lost in (("x", np.isnan), ("x_average", np.isnan), ("accuracy", np.isnan),
                       ("consensus_error", np.isinf), ("misclassified", np.isinf)):  # fmt: skip
        gone = lost(marked[name])
        assert gone[:2, DIVERGED:].all(), name
        assert not gone[:, :DIVERGED].any() and not gone[2:].any(), name
    gone = np.isnan(marked["predictive_mean"])
    assert gone[:2].all() and not gone[2:].any()
    assert marked["unicasts"].dtype.kind == "i"
