"""Runs with made-up metrics for the tests of the figures."""

from typing import Any

import numpy as np
import pandas

from concord_studies.results import Measured

COLUMNS = ["iteration", "agent", "metric", "value", "lo", "hi"]


def run(experiment: str = "linear", agents: int = 6, **labels: Any) -> dict[str, Any]:
    """Return a resolved run whose parameters follow its labels."""
    resolved: dict[str, Any] = {
        "paper": "paper",
        "experiment": experiment,
        "run": "+".join(f"{key}={value}" for key, value in labels.items()) or "single",
        "labels": {key: str(value) for key, value in labels.items()},
        "scale": "paper",
        "agents": labels.get("agents", agents),
        "topology": {"kind": labels.get("topology", "ring")},
        "sampler": {"kind": labels.get("sampler", "de_sgld"), "step_size": 0.005},
        "chains": 1000,
        "iterations": 150,
    }
    for key, value in labels.items():
        if "." in key:
            component, name = key.split(".")
            resolved[component][name] = value
    return resolved


def w2(
    resolved: dict[str, Any],
    agents: list[int | str],
    *,
    end: float = 0.03,
    rate: float = 0.05,
    seed: int = 0,
    iterations: int = 150,
    exact: bool = True,
    floor: bool = True,
    diverged_at: int | None = None,
    fraction: float = 1.0,
) -> Measured:
    """Return W2 curves that fall from about 1.5 to ``end``, or grow until ``diverged_at``."""
    rng = np.random.default_rng(seed)
    k = np.arange(iterations + 1)
    rows: list[tuple[Any, ...]] = []
    for place, agent in enumerate(agents):
        level = end * (1 + 0.08 * place) if agent != "average" else 0.8 * end
        curve = level + (1.5 + 0.1 * place) * np.exp(-rate * k)
        if diverged_at is not None:
            curve = 1.5 * np.exp(0.4 * k)
        noisy = np.hypot(curve, 0.025 + 0.006 * rng.standard_normal(k.size).cumsum() / 10)
        noisy *= 1 + 0.02 * rng.standard_normal(k.size)
        # The chains that stay still give a number: a wrong one, as the others are missing.
        if diverged_at is not None and fraction == 1:
            noisy[k >= diverged_at] = np.inf
        low, high = noisy * 0.92, noisy * 1.09
        name = str(agent)
        rows += [(i, name, "w2", *v) for i, v in enumerate(zip(noisy, low, high, strict=True))]
        if exact:
            rows += [(i, name, "w2_exact", v, np.nan, np.nan) for i, v in enumerate(curve)]
    if floor:
        rows.append((0, "network", "w2_floor", 0.026, np.nan, np.nan))
    part = 0.0 if diverged_at is None else fraction
    rows.append((iterations, "network", "diverged", part, np.nan, np.nan))
    if diverged_at is not None:
        rows.append((diverged_at, "network", "diverged_first", diverged_at, np.nan, np.nan))
    return Measured(resolved, pandas.DataFrame(rows, columns=COLUMNS))


def counts(resolved: dict[str, Any], agents: list[int], seed: int = 0, every: int = 1) -> Measured:
    """Return box-plot counts of 569 misclassified points, which fall from half of them to 60."""
    rng, rows = np.random.default_rng(seed), []
    for agent in agents:
        for k in range(0, 101, every):
            left = np.exp(-0.08 * k)
            center = 60 + 224.5 * left
            sample = rng.normal(center, 0.06 * center + 100 * left, 50).round().clip(0, 569)
            q25, median, q75 = np.quantile(sample, [0.25, 0.5, 0.75])
            inside = sample[np.abs(sample - (q25 + q75) / 2) <= 2 * (q75 - q25)]
            numbers = {"mean": sample.mean(), "min": sample.min(), "max": sample.max()}
            numbers |= {"q25": q25, "median": median, "q75": q75}
            numbers |= {"whisker_lo": inside.min(), "whisker_hi": inside.max()}
            rows += [
                (k, str(agent), f"misclassified_{name}", value, np.nan, np.nan)
                for name, value in numbers.items()
            ]
    return Measured(resolved, pandas.DataFrame(rows, columns=COLUMNS))
