"""Values and numbers as readers see them, in sentences and legends."""

from __future__ import annotations

from typing import Any

NAMES = {
    "barabasi_albert": "Barabási-Albert",
    "erdos_renyi": "Erdős-Rényi",
    "gossip_ula": "Gossip ULA",
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


def name(key: str, value: Any) -> str:
    """Return the text for ``value`` of ``key``, such as "No edges", "DE-SGLD" or "agents 5"."""
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


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(value: float) -> str:
    """Return a number with four digits, or all of a count."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
