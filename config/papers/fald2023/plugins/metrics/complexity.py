"""What a tolerance of W2 costs by Theorems 1 and 3: formulas of section 9, values of Table 5."""

from collections.abc import Iterator
from typing import Any

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields

from .. import theory
from ..theory import CLIENTS, RENEWAL, TABLE_5


@yields(
    ("communications", "iterations_b", "physical_time_*", "physical_round_*"),
    exact=("*",),
    labels={
        "communications": Label("communications, scenario A", "communications"),
        "iterations_b": Label("iterations, scenario B", "iterations"),
        "physical_time_a": Label("physical time lambda, scenario A", "physical time, A"),
        "physical_time_b": Label("physical time gamma K, scenario B", "physical time, B"),
        "physical_round_a": Label(
            "physical time between communications, scenario A", "per round, A"
        ),
        "physical_round_b": Label(
            "physical time between communications, scenario B", "per round, B"
        ),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the least communications and iterations for each tolerance, with their physical times.

    They follow from formulas alone. Of the run only count whether its sampler renews references,
    and its recorded iterations, which are 1 over the tolerances.
    """
    sampler: Any = m.sampler
    if not hasattr(sampler, "renews"):
        raise unmet_need("complexity", "the sampler fald")
    renews = sampler.renews
    drift = TABLE_5["d"] / CLIENTS + (0.0 if renews else TABLE_5["H"])
    variance = 0.0 if renews else TABLE_5["V_pi"]
    error = TABLE_5["J"] / CLIENTS
    if renews:
        error += TABLE_5["d"] * TABLE_5["omega"] / (CLIENTS * RENEWAL)
    for inverse in m.trace.draw.tolist():
        a = theory.fewest_communications(1 / inverse, drift)
        b = theory.fewest_iterations(1 / inverse, variance, error)
        names = ("communications", "physical_time_a", "physical_round_a")
        numbers = dict(zip(names, a, strict=True))
        names = ("iterations_b", "physical_time_b", "physical_round_b")
        numbers |= dict(zip(names, b, strict=True))
        yield from series([inverse], "network", numbers, chance=False)
