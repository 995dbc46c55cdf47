"""The same words of papers are judged by the same rule, whichever paper says them."""

import re
from collections import defaultdict

import pytest

import everything
from concord_studies.claims.claim import rules

PAPERS = {key: study for key, study in everything.studies().items() if study.printed}
# Words that bear a rule, in print's first words of a claim or in ours, and the rules for them.
PHRASES = {
    r"(converge\w*|approach\w*|replicat\w*|sampl\w*) (to )?(the |its )?(same |true )?"
    r"(posterior|target)\b": ("converges", "replicates"),
    r"outperform|ends? nearer|closer to the posterior": ("nearer",),
    r"(converge|fall|rise)s? faster": ("faster",),
    r"in fewer iterations": ("sooner",),
    r"comparable|similar accurac|negligible loss": ("comparable",),
    r"exactly the same|identical|not affected|does not depend": ("same",),
    r"of the order of": ("order",),
    r"about \d+(\.\d+)? %": ("about",),
}
# Where another rule, or a check without one, judges such words, and why.
OF_AVERAGE = "the metric is the exact trace of the average's law, with the rule's tolerance"
EXCEPTIONS = {
    "bajwa2025.direction_link": OF_AVERAGE,
    "bajwa2025.direction_one_way": OF_AVERAGE,
    "bajwa2025.direction_sender_keeps": OF_AVERAGE,
    "fald2023.common_noise_samples": OF_AVERAGE,
    "fald2023.code_step_samples": "in every direction, with the rule's tolerance",
    "fald2023.smaller_steps_sample": "in every direction, with the rule's tolerance",
    "fald2023.proposition2_step": "at least of the order: a lower bound, so an exponent at most",
    "fald2023.proposition2_heterogeneity": "at least of the order, as H grows: at least",
    "fald2023.communications_order": "scales as: the exponent itself, within 0.05",
    "fald2023.iterations_order": "scales as: the exponent itself, within 0.05",
    "gurbuzbalaban2021.larger_steps_fall_faster": "the mean error of `faster`, along "
    "several steps as `rises` asks",
    "tzikas2024.ring_accuracy_faster": "print names no level to arrive at",
    "fsgld2021.fsgld_converges": "the metric is the exact trace given visits, with the rule's "
    "tolerance",
    "fsgld2021.fsgld_converges_without_batches": "the same",
    "fsgld2021.only_fsgld_converges": "of the mean of draws: the exponent of its error",
    "fsgld2021.theorem1_time": "two orders, in long chains and in short ones",
    "fsgld2021.theorem2_time": "the same",
    "bhar2023.table1_activity": "printed of each agent with a decimal",
    "bhar2023.table1_trigger_rate": "printed of each agent with a decimal",
}


def judged_claims():
    """Yield the name of each claim that is judged, the claim, and the kinds of its checks."""
    for key, study in PAPERS.items():
        kinds = defaultdict(set)
        for (name, _, _), case in study.cases.items():
            kinds[name].add(case.check.kind)
        for name, claim in study.claims.items():
            if kinds[name] != {"measurement"}:
                words = (claim.words,) if isinstance(claim.words, str) else claim.words or ()
                yield f"{key}.{name}", claim, words, kinds[name]


@pytest.mark.parametrize("phrase", PHRASES)
def test_words_that_bear_a_rule_are_judged_by_it(phrase):
    others = {
        name: claim.rule
        for name, claim, words, _ in judged_claims()
        if any(re.search(phrase, text, re.I) for text in (*words, " ".join(claim.says.split())))
        and claim.rule not in PHRASES[phrase]
    }
    assert {n: rule for n, rule in others.items() if n not in EXCEPTIONS} == {}


def test_phrases_are_of_rules_and_exceptions_have_reasons():
    assert {rule for of in PHRASES.values() for rule in of} <= rules().keys()
    assert all(EXCEPTIONS.values())


def test_the_same_first_words_are_judged_by_one_rule():
    """In all papers; within one the first words may head a sentence that states several things."""
    rule_of = defaultdict(lambda: defaultdict(set))
    for name, claim, words, kinds in judged_claims():
        for text in words:
            if not re.match(r"(Theorem|Lemma|Remark|Corollary|Proposition) \d", text):
                folded = re.sub(r"[\W_]", "", text).lower()
                rule = claim.rule or "+".join(sorted(kinds))
                rule_of[folded][name.partition(".")[0]].add(rule)
    differ = {w: of for w, of in rule_of.items() if len(set(map(frozenset, of.values()))) > 1}
    assert differ == {}
