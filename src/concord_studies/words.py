"""Values and numbers as readers see them, in sentences and legends."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from concord import kinds
from concord.kinds import ROOMS, display_name
from concord_studies import metrics
from concord_studies.contracts import PRICES

# Words of figures and tables that a stranger does not know: their meaning, and the metrics, or
# patterns of them, that show what they are about.
TERMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "exact law": (
        "mean and covariance of an agent's draws, computed from the update equations without "
        "chance",
        ("w2_exact*", "exact_*", "law_sd", "consensus_exact", "kl_average", "stationary_*"),
    ),
    "floor": (
        "the distance that the same number of exact posterior draws would show; anything smaller "
        "cannot be detected",
        ("*w[12]*_floor", "*w1_marginal_floor", "sinkhorn_floor"),
    ),
    "point at the posterior's mean": (
        "a point mass at the posterior mean; a sampler above this line is farther from the "
        "posterior than its mean alone",
        ("*_point",),
    ),
    "consensus error": (
        "how far the agents are apart, squared, per agent",
        ("consensus_*", "gossip_added", "gossip_consensus", "gossip_floor"),
    ),
    "plateau": (
        "the consensus error at which a sampler settles",
        ("consensus_floor", "gossip_floor"),
    ),
    "stationary law": ("the stationary distribution of an agent's draws", ("*stationary_*",)),
}


def metric(key: str, scale: float = 1.0) -> str:
    """Return a metric's description, such as "accuracy on MNIST, in per cent" at the scale 100."""
    if at := _BY.fullmatch(key):  # a score of a cell of the arena, at the budget of a price
        floor, score, price, rest = at.groups()
        of, more = "floor of " if floor else "", rest.replace("_", " ").strip()
        text = f"{of}{metric(score)} by {price}{', ' if more else ''}{more}"
    else:
        text = _metric(key)
    return f"{text}, in per cent" if scale == 100 else text


def _metric(key: str) -> str:
    """Return a metric's description in words, composed from its family's labels."""
    if key.endswith(".value"):  # of a condition: the number on the left of its inequality
        key = re.split(" [<>]=? ", key.removesuffix(".value"))[0]
    family, _, rest = key.partition(".")
    plain = rest if rest and not re.search(r"_\d+$", family) else key  # "to_0.01" has a number
    name, (part, says) = key, metrics.find_label(key)
    if not part:
        name, (part, says) = plain, metrics.find_label(plain)
    rest = name.removeprefix(part).replace("_", " ")
    text = says.format(rest) if "{}" in says else f"{says} {rest}"
    return " ".join(text.split())


_BY = re.compile(rf"(floor\.)?(\w+)_by_({'|'.join(PRICES)})(\w*)")


def quantity(key: str) -> str:
    """Return the heading of a metric's column in a table; ``key`` is the metric's name."""
    base = key.removesuffix(".value")
    numbered = re.search(r"_\d+\.", base)  # "to_0.01" has a number
    rest = "" if numbered or _BY.fullmatch(base) else base.partition(".")[2]
    return metrics.column_heading(base) or metrics.column_heading(rest) or rest or metric(base)


def name(key: str, value: Any, names: Mapping[str, str] | None = None) -> str:
    """Return the text for ``value`` of ``key``, such as "No edges", "DE-SGLD" or "agents 5".

    ``names`` are a study's own texts for values; kinds declare their own.
    """
    if text := study_text(key, value, names):
        return text
    last = key.split(".")[-1].replace("_", " ")
    if value is None:
        return "full gradients" if last == "batch size" else f"no {last}"
    if is_number(value):
        return f"{last} {value:g}"
    text = str(value)
    if text in ("True", "False"):
        return "yes" if text == "True" else "no"
    if key == "reading":  # of an equation: published_57
        text = re.sub(r"_(\d+)$", r", (\1)", text)
    word = kind_in_sentence(key, text)
    return word if word.isupper() or word == declared_name(text) else word.capitalize()


def study_text(key: str, value: Any, names: Mapping[str, Any] | None) -> str:
    """Return a study's own text for a key's value, or for the pair "key=value". "" if none."""
    names = names or {}
    return str(names.get(f"{key}={value}", names.get(str(value), "")))


_AXES = {
    **{"entry": "sampler", "metric": "quantity", "topology": "network"},
    **{"read": "output", "paid": "tuning"},  # of an arena
}


def axis(key: str) -> str:
    """Return the name of a label's key for readers, as it heads a column."""
    return _AXES.get(key, key).rpartition(".")[2].replace("_", " ")


def label(key: str, value: Any, names: Mapping[str, str] | None = None) -> str:
    """Return the words for a run's label in a sentence: "ring", "5 agents" or "decay 0.25".

    ``names`` may have a text for the key of numbers, too.
    """
    text = str(value)
    if key == "agent":
        return agent(value)
    if study := study_text(key, value, names):
        return study
    if re.fullmatch(r"[\d.]+(e-?\d+)?", text):
        word = (names or {}).get(key, axis(key))
        if word.endswith("s") and text.isdigit():
            return f"{text} {word.removesuffix('s') if text == '1' else word}"
        return f"{word} {text}"
    signs = {"True": "", "False": "not ", "None": "no "}
    return signs[text] + key.replace("_", " ") if text in signs else kind_in_sentence(key, text)


def case(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return words for a claim's case, such as "5 agents, ring" for "agents=5+topology=ring"."""
    labels = (part.partition("=") for part in text.split("+"))
    return ", ".join(label(key, value or key, names) for key, _, value in labels)


def kind_in_sentence(key: str, kind: str) -> str:
    """Return the words for a kind in a sentence: the name that it declares, or else its key.

    key: the run's key that has the kind, such as "sampler" ("no_edges" of "topology" is "no edges",
    "de_sgld" of "sampler" is "DE-SGLD").
    """
    if key in ("sampler", "sampler.kind"):
        return declared_name(kind) or kind.replace("_", "-").upper()
    return declared_name(kind) or kind.replace("_", " ")


def value(stated: Any) -> str:
    """Return an option's value as text, such as "0.1/(1 + 2 k)" of a schedule or "ring"."""
    if isinstance(stated, Mapping):
        texts = {key: value(part) for key, part in stated.items()}
        if texts.get("kind") == "power" and {"a", "b", "exponent"} <= set(texts):
            return "{a}/({b} + k)^{exponent}".format(**texts)
        if texts.get("kind") == "harmonic":
            return "{a}/(1 + {c} k)".format(**texts)
        name = texts.pop("kind", "")
        text = options(texts)
        return f"{name} ({text})" if name and text else name or text
    if isinstance(stated, bool):
        return "yes" if stated else "no"
    if isinstance(stated, float):
        return format(stated, "g")
    if isinstance(stated, (list, tuple)):
        some = ", ".join(map(value, stated)) or "none"
        return some if len(stated) <= 12 else f"[{len(stated)} entries]"
    return "none" if stated is None else str(stated).replace("_", " ")


def options(stated: Mapping[str, Any]) -> str:
    """Return options with their values as text, such as "step size 0.1, drift half"."""
    return ", ".join(
        f"{k.replace('_', ' ')} {value(v)}" for k, v in stated.items() if v is not None
    )


def declared_name(kind: str, names: Mapping[str, str] | None = None) -> str:
    """Return a study's name for a kind, or the one that the kind declares. "" if neither."""
    if names and kind in names:
        return str(names[kind])
    for package in ROOMS:
        is_loaded = kinds.exists(package, kind) and kinds.is_loaded(package, kind)
        if is_loaded and (name := display_name(kinds.find(package, kind, package))):
            return name
    return ""


def join_alternatives(texts: Iterable[str]) -> str:
    """Return alternatives as "a, b or c", numbers in sequence as "1 to 5", each once."""
    *first, last = dict.fromkeys(texts) or [""]
    if len(first) > 3 and all(text.isdigit() for text in (*first, last)):
        numbers = [*map(int, first), int(last)]
        if numbers == list(range(numbers[0], numbers[-1] + 1)):
            return f"{first[0]} to {last}"
    return f"{', '.join(first)} or {last}" if first else last


def agent(which: Any) -> str:
    """Return an agent's name for readers: "agent 1" for 0; "average" as it is."""
    return f"agent {int(which) + 1}" if str(which).isdigit() else str(which)


def is_number(value: Any) -> bool:
    """Return whether a value is a number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(value: float) -> str:
    """Return a number as text with four significant digits; a count in full."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def count_digits(values: Iterable[float]) -> int:
    """Return how many significant digits exact numbers of one kind need, at most four; whole: 0."""
    broken = (f"{abs(value):.3e}" for value in values if math.isfinite(value) and value % 1)
    return max((len(text.partition("e")[0].rstrip("0")) - 1 for text in broken), default=0)


def format_cell(value: float | None, lo: float | None, hi: float | None, digits: int) -> str:
    """Return a number as ``format_number`` does, for the cell of a table.

    An exact number has the digits of its kind, so that zeros at its end stay, and from 100 000 on
    four of them. A large number with an interval ends at the second digit of its half width.
    digits: those of ``count_digits``; 0: whole numbers, which are in full.
    """
    if value is None or not math.isfinite(value):
        return format_number(value, lo, hi)
    if lo is not None and hi is not None and 100 <= (half := (hi - lo) / 2) < math.inf:
        places = 1 - math.floor(math.log10(half))
        texts = [f"{round(n, places) + 0:.7g}" for n in (value, lo, hi)]
        return _shorten_power("{} [{}, {}]".format(*texts))
    if not digits or abs(value) < 1e-10 or not lo is hi is None:
        return format_number(value, lo, hi)
    if abs(value) >= 1e4:
        return f"{value:.0f}" if abs(value) < 1e5 else _shorten_power(f"{value:.3e}")
    return f"{value:#.{max(digits, len(f'{abs(value):.0f}'))}g}".removesuffix(".")


def _shorten_power(text: str) -> str:
    """Return a text with large numbers such as 1.522e+08 as 1.522e8."""
    return re.sub(r"e\+0*", "e", text)


def format_number(value: float | None, lo: float | None = None, hi: float | None = None) -> str:
    """Return a number as text, with its interval if it has one: "33.4 [31.4, 35.2]".

    Digits end at the second one of the interval's half width, but show at most four of the number
    behind its point; without an interval there are four. An interval that the digits do not tell
    from the number is left out. A count is a whole number, and what is zero up to rounding is 0.
    """
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    ends = [end for end in (lo, hi) if end is not None and math.isfinite(end)]
    half = (ends[1] - ends[0]) / 2 if len(ends) == 2 else 0.0
    if abs(value) < 1e-12 and 0 < half < 1e-12:
        return "0"
    if lo is not None and hi is not None and lo < hi and len(ends) < 2:
        return f"{_format_exact(value)} [{_format_exact(lo)}, {_format_exact(hi)}]"
    if half <= 0:
        return _format_exact(value)
    low, high = ends
    if math.isinf(value):
        return f"{_format_exact(value)} [{_format_exact(low)}, {_format_exact(high)}]"
    largest = max(abs(value), *map(abs, ends))
    digits = min(1 - math.floor(math.log10(half)), 3 - math.floor(math.log10(largest)))
    if digits > 6 or abs(value) >= 1e9:
        texts = [f"{n:.{2 if digits > 6 else 4}g}" for n in (low, value, high)]
    else:
        places = max(digits, 0)  # and adding 0 turns -0 into 0
        texts = [f"{round(n, places) + 0:.{places}f}" for n in (low, value, high)]
    return texts[1] if texts[0] == texts[2] else f"{texts[1]} [{texts[0]}, {texts[2]}]"


def range_of_numbers(value: Sequence[float], lo: Sequence[float], hi: Sequence[float]) -> str:
    """Return the smallest and the largest of numbers as a text has them: "0.09 to 0.11".

    Digits end at the second significant one, of the larger number if both are of one order; of
    numbers with intervals, (lo, hi), with the first one of the half width. Whole numbers are whole.
    """
    half = max((high - low) / 2 for low, high in zip(lo, hi, strict=True))
    ends = min(value), max(value)
    places = [_count_places(end, half) for end in ends]
    if max(map(abs, ends)) < 10 * min(map(abs, ends)):
        places = [max(places[1], 0)] * 2
    texts = [f"{end:.{count}f}" for end, count in zip(ends, places, strict=True)]
    return " to ".join(dict.fromkeys(texts))


def _count_places(value: float, half: float) -> int:
    """Return the number of digits behind the point that a number with this half width shows."""
    if abs(value) < 1e-12 or (value == round(value) and half == 0):
        return 0
    carried = 1 - math.floor(math.log10(abs(value)))
    known = -math.floor(math.log10(half)) if 0 < half < math.inf else carried
    return min(max(carried, 0), max(known, 0))


def _format_exact(value: float) -> str:
    """Return a number as text with four significant digits; whole and large ones in full."""
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "-\N{INFINITY}"
    if abs(value) < 1e-10:
        return "0"
    if abs(value) < 1e9 and (value == round(value) or abs(value) >= 1e4):
        return f"{value:.0f}"
    return f"{value:.4g}"
