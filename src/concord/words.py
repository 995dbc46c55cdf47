"""Values and numbers as readers see them, in sentences and legends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

NAMES = {
    "barabasi_albert": "Barabási-Albert",
    "diging_sgld": "DIGing-SGLD",
    "erdos_renyi": "Erdős-Rényi",
    "gossip_ula": "Gossip ULA",
    "local_sgld": "Local SGLD",
    "published_57": "Published, (57)",
    "sgld": "SGLD",
    "watts_strogatz": "Watts-Strogatz",
}

# What a metric is, where its own name does not say it; parts in order, for the rest of its name.
METRICS = {
    "w2_exact_mean": "exact W2, mean over the agents",
    "w2_exact": "exact W2",
    "stationary_trace": "trace of the stationary covariance over the posterior's",
    "stationary_w2": "stationary W2",
    "stationary_bias": "stationary bias, in posterior standard deviations",
    "exact_trace": "trace of the exact covariance over the posterior's",
    "exact_bias": "bias of the exact law, in posterior standard deviations",
    "posterior_trace": "trace of the draws' covariance over the posterior's",
    "posterior_covariance_max": "largest entry of the posterior's covariance",
    "kl_average": "KL divergence of the average's law",
    "consensus_exact": "exact consensus error",
    "accuracy_network": "accuracy, mean over the agents",
    "accuracy_apart": "difference of the agents' accuracies",
    "accuracy_sd": "standard deviation of the accuracy",
    "accuracy_after_sd": "standard deviation of the accuracy once settled",
    "accuracy_after_mean": "accuracy once settled",
    "accuracy_mean": "accuracy",
    "activation_rate": "active part of the ticks",
    "trigger_rate": "messages per activation",
    "confidence_mean": "mean probability of the predicted label",
    "confidence_sd": "standard deviation of the predicted label's probability",
    "recall": "part of the label's images classified right",
    "learned_share": "part of the chains that learn",
    "two_modes_share": "part of such data sets with two modes",
    "modes_share": "part of the draws in the second mode",
    "w1_marginal_spread": "difference of the agents' marginal W1 distances, over their mean",
    "w1_marginal": "W1 distance of the marginals",
    "sinkhorn": "Sinkhorn distance",
    "misclassified_median": "points classified wrong, median over chains",
    "misclassified_mean": "points classified wrong, mean over chains",
    "gossip_kl": "KL divergence of the average's law",
    "budget_ratio": "exact W2 after K steps, over the rate in K",
    "tau_G": "condition number of the graph",
    "waiting": "share of the time that agents wait",
    "seconds": "simulated time, in seconds",
    "epsilon": "epsilon of what agents have sent",
}
# What heads the columns of tables, where ``METRICS`` would be too long or says it otherwise.
HEADS = {
    "w2": "W2 [95 % interval]",
    "w2_exact_mean": "exact mean W2",
    "stationary_w2": "W2",
    "stationary_trace": "variance ratio",
    "stationary_narrowest": "narrowest direction",
    "stationary_widest": "widest direction",
    "stationary_bias": "bias, posterior sd",
    "spectral_radius": "spectral radius",
    "theorem2_bound": "bound",
    "theorem2_rederived": "bound, rederived",
    "theorem10_bound": "bound",
    "theorem10_rederived": "bound, rederived",
    "theorem3_distance": "exact distance",
    "theorem3_bound": "bound",
    "theorem3_penalty": "rho of the proof",
    "posterior_covariance_max": "largest covariance entry",
    "theorem3.tau_G": "tau_G",
    "theorem3.limit_at_2": "limit of tau_f at m_f = 2",
    "theorem3.limit": "limit of tau_f",
    "theorem3.holds": "condition",
    "used.step_size": "step used",
    "used.fusion": "fusion used",
    "stable.step_size": "largest stable step",
    "stable.fusion": "largest stable fusion",
    "diverged": "chains that diverged, share",
    "budget_w2": "exact W2 after K steps",
    "budget_ratio": "over sqrt(log K / K)",
    "gossip_floor": "consensus error per agent",
    "gossip_bias": "KL of the average",
    "gossip_bias_bound": "Theorem 2's bound",
    "gossip.condition_1": "Condition 1, (25)",
    "gossip.condition_2": "Condition 2, (26)",
    "gossip.drift_share": "share of the gradient",
    "gossip.threshold": "largest threshold at the end",
    "gossip.threshold_bound": "its bound (9)",
    "gossip.threshold_rederived": "(9) rederived",
    "trigger_rate": "messages per activation",
    "modes_share": "share in the mode with theta_2 < 0",
    "modes_share_exact": "its probability",
    "modes_visited": "chains that visit both",
    "modes_crossings": "crossings per chain",
    "mode_negative_0": "theta_1 of the mode with theta_2 < 0",
    "mode_negative_1": "its theta_2",
    "mode_positive_0": "theta_1 of the other mode",
    "mode_positive_1": "its theta_2 (other)",
    "two_modes_share": "share of such data sets with two modes",
    "w1_marginal_pooled": "W1 of the marginals, all chains",
    "w1_marginal_floor": "floor of W1",
    "w1_marginal_spread": "agents' spread of W1",
    "posterior_w1_floor": "floor of W1, two dimensions",
    "posterior_w2_floor": "floor of W2, two dimensions",
    "law_half_w1": "W1 of the posterior to the power 1/2",
    "sinkhorn": "Sinkhorn",
    "sinkhorn_floor": "floor of Sinkhorn",
    "w1_pooled": "exact W1",
    "w1_pooled_floor": "floor of W1",
    "consensus_exponent": "measured exponent",
    "consensus_exponent_bound": "delta_2 - 2 delta_1",
    "consensus_exponent_ratio": "delta_2 - delta_1",
    "consensus_exact": "exact consensus error",
    "kl_average": "KL of the average",
    "learned_share": "share of chains that learn",
}
# Words of captions that a stranger does not know.
TERMS = {
    "exact law": (
        "mean and covariance of an agent's draws, computed from the update equations without chance"
    ),
    "floor": (
        "what as many independent exact draws of the posterior would show; nothing estimated from "
        "so many chains can be seen to be nearer"
    ),
    "point at the posterior's mean": (
        "a law without any width at the right place; a sampler that ends farther than that tells "
        "less of the posterior than its mean does"
    ),
    "consensus error": "how far the agents are apart, squared, per agent",
    "stationary law": "the law that an agent's draws settle to if the sampler runs for ever",
}
TEST_SETS = {"mnist": "MNIST", "svhn": "SVHN", "digits": "digits"}


def metric(key: str, scale: float = 1.0) -> str:
    """Return what the metric ``key`` is, such as "accuracy on MNIST, in per cent"."""
    key = key.split(".", 1)[-1]
    known = next((part for part in METRICS if key == part or key.startswith(f"{part}_")), "")
    rest = key.removeprefix(known).strip("_").split("_")
    where = [f"on {TEST_SETS[word]}" for word in rest if word in TEST_SETS]
    others = [word for word in rest if word and word not in TEST_SETS]
    text = " ".join([METRICS.get(known, ""), *others, *where]).strip()
    return f"{text}, in per cent" if scale == 100 else text


def quantity(key: str) -> str:
    """Return what heads a metric's column in a table."""
    base = key.removesuffix(".value")
    if base in HEADS:
        return HEADS[base]
    _, dot, rest = base.partition(".")
    return rest if dot else metric(base)


def condition(key: str) -> bool:
    """Whether a metric says if a condition is met: 1 or 0."""
    family, _, rest = key.partition(".")
    return not key.endswith(".value") and (
        family in ("condition1", "lemma12", "theorem2_step")
        or rest in _CONDITIONS
        or key in ("gossip.condition_1", "gossip.condition_2")
    )


_CONDITIONS = (
    *("strong convexity", "connected graph", "step size", "contraction", "decay", "holds"),
    *("(4.9)", "beta", "(4.10), first bound", "(4.10), second bound"),
    *("Lemma 15, step size", "Lemma 15, decay"),
)


def name(key: str, value: Any, names: Mapping[str, str] | None = None) -> str:
    """Return the text for ``value`` of ``key``, such as "No edges", "DE-SGLD" or "agents 5".

    ``names`` are a study's own texts for values.
    """
    if names and str(value) in names:
        return str(names[str(value)])
    last = key.split(".")[-1].replace("_", " ")
    if value is None:
        return "full gradients" if last == "batch size" else f"no {last}"
    if is_number(value):
        return f"{last} {value:g}"
    text = str(value)
    if text in NAMES:
        return NAMES[text]
    if key in ("sampler", "sampler.kind"):
        return text.replace("_", "-").upper()
    return text.replace("_", " ").capitalize()


def either(texts: Iterable[str]) -> str:
    """Return "a, b or c"; what occurs twice is named once."""
    *first, last = dict.fromkeys(texts) or [""]
    return f"{', '.join(first)} or {last}" if first else last


def agent(which: Any) -> str:
    """Return who an agent is: files and commands count agents from 0, readers from 1."""
    return f"agent {int(which) + 1}" if str(which).isdigit() else str(which)


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(value: float) -> str:
    """Return a number with four digits, or all of a count."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def rounded(value: float | None, lo: float | None = None, hi: float | None = None) -> str:
    """Return a number as a table has it, with its interval if it has one: "33.4 [31.4, 35.2]".

    Digits end at the second one of the interval's half width; without an interval there are four. A
    count is a whole number, and what is zero up to rounding is 0.
    """
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    known = [end for end in (lo, hi) if end is not None and math.isfinite(end)]
    half = (known[1] - known[0]) / 2 if len(known) == 2 else 0.0
    if abs(value) < 1e-12 and 0 < half < 1e-12:
        return "0"
    if math.isinf(value) or half <= 0 or not math.isfinite(half):
        text = _exact(value)
        return f"{text} [{_exact(known[0])}, {_exact(known[1])}]" if len(known) == 2 else text
    digits = max(1 - math.floor(math.log10(half)), 0)
    if digits > 6 or abs(value) >= 1e9:
        low, middle, high = (f"{n:.{2 if digits > 6 else 4}g}" for n in (known[0], value, known[1]))
    else:
        # adding 0 turns -0 into 0
        low, middle, high = (
            f"{round(n, digits) + 0:.{digits}f}" for n in (known[0], value, known[1])
        )
    return f"{middle} [{low}, {high}]"


def _exact(value: float) -> str:
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "-\N{INFINITY}"
    if abs(value) < 1e-12:
        return "0"
    if abs(value) < 1e9 and (value == round(value) or abs(value) >= 1e4):
        return f"{value:.0f}"
    return f"{value:.4g}"
