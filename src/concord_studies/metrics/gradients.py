"""Gradients that agents have evaluated, full ones or of mini-batches, as samplers count them."""

from collections.abc import Iterator

from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, yields
from concord_studies.metrics._prices import price_rows


@yields("gradients", labels={"gradients": Label(axis="gradients taken by the whole network")})
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the number of gradients that each agent, and the network, has evaluated so far.

    A product with a Hessian counts as two, a proximal step as what its inner solver evaluates, or
    as one where it is a closed form. Where chains differ: mean over chains with an interval.
    """
    return price_rows(m, m.trace["gradients"], "gradients")
