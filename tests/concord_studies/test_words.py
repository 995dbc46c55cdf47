"""What readers see of kinds and metrics stands in the kinds' own files."""

from collections import Counter

import pytest

from concord import kinds
from concord.errors import ConcordError
from concord.kinds import display_name
from concord_studies import metrics, words
from concord_studies.contracts import Label
from concord_studies.metrics import matches

for family in kinds.names("metrics"):
    kinds.find("metrics", family)  # their labels are known once a run has used them


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("w2_exact_mean", "exact W2, mean over the agents"),  # the longest part that is known
        ("w2_floor", "w2 floor"),
        ("accuracy_mnist", "accuracy on MNIST"),
        ("consensus_floor", "plateau of the consensus error"),
        ("recall_mnist_3", "part of the label's images classified right 3 on MNIST"),
        ("theorem3.tau_G", "condition number of the graph"),
        ("by_step.stationary_w2", "stationary W2"),
        ("theorem2.step size", "step size"),
        ("gradients_to_0.01", "gradients until b² is 0.01"),  # a number's point ends no name
        ("b2_by_gradients", "b² by gradients"),
        ("floor.b2_by_bytes", "floor of b² by bytes"),
        ("b2_by_bytes_set_1", "b² by bytes, set 1"),
    ],
)
def test_what_a_metric_is(key, text):
    assert words.metric(key) == text
    assert words.metric(key, 100) == f"{text}, in per cent"


def test_conditions_are_told_from_their_values():
    assert metrics.is_condition("lemma12.beta") and metrics.is_condition("gossip.condition_1")
    assert not metrics.is_condition("lemma12.beta.value")
    assert not metrics.is_condition("theorem2.rate") and not metrics.is_condition("w2")


def test_every_sampler_has_a_name_of_its_own():
    modules = [kinds.find("samplers", kind, "tests") for kind in kinds.built_in("samplers")]
    assert all(display_name(module) for module in modules)
    assert max(Counter(display_name(module) for module in modules).values()) == 1


PRICED = '''"""Watts that agents have drawn."""

from concord_studies.contracts import Label
from concord_studies.metrics import yields


@yields(
    ("watts", "watts_peak"),
    labels={
        "watts_peak": Label("largest power", "peak"),
        "watts": Label(axis="power drawn", unit="W"),
    },
)
def rows(m):
    return iter(())
'''


def test_a_plug_in_declares_its_own_and_is_not_executed_for_it(tmp_path):
    (tmp_path / "plugins" / "metrics").mkdir(parents=True)
    (tmp_path / "plugins" / "metrics" / "power.py").write_text(PRICED)
    try:
        kinds.use(tmp_path)
        assert words.metric("watts_peak") == "watts peak" and "watts" not in metrics.prices()
        kinds.find("metrics", "power")  # as a run does that uses it
        assert words.metric("watts_peak") == "largest power"
        assert words.quantity("watts_peak") == "peak"
        assert metrics.prices()["watts"].unit == "W"
    finally:
        kinds.use()
    assert words.metric("watts_peak") == "watts peak" and "watts" not in metrics.prices()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (PRICED.replace("labels=", "label="), "line 7: .*unexpected keyword argument 'label'"),
        (PRICED.replace("def rows", "def row"), "it lacks rows, which a metric defines"),
        ("def rows(m):\n    return iter(())\n", "write @yields"),
    ],
    ids=["keyword", "function", "none"],
)
def test_a_misspelled_declaration_is_refused_at_once(tmp_path, text, sentence):
    (tmp_path / "plugins" / "metrics").mkdir(parents=True)
    path = tmp_path / "plugins" / "metrics" / "power.py"
    path.write_text(text)
    kinds.use(tmp_path)
    with pytest.raises(ConcordError, match=sentence) as caught:
        metrics.find_family("power")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("kind", kinds.built_in("metrics"))
def test_families_declare_what_is_theirs(kind):
    family = metrics.find_family(kind)
    stated = *family.labels, *family.conditions, *family.exact, *family.of_law
    for name in stated:  # a metric, or a pattern or the beginning of some
        named = (matches(n, own) for n in (name, f"{name}_*") for own in family.metrics)
        assert name in family.metrics or any(named), name
    assert all(isinstance(label, Label) for label in family.labels.values())
    assert family.network in (None, *metrics.NETWORKS)
