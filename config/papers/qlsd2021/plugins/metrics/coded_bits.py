r"""What a gradient quantized by QSGD takes when its levels are coded by Elias' code.

With d coordinates and s levels, at most

.. math::
    \Bigl( 3 + \tfrac32 \log \tfrac{2 (s^2 + d)}{s (s + \sqrt d)} \Bigr) s (s + \sqrt d) + 32
        \quad (s \le \sqrt{d/2 - \sqrt d}), \qquad
    \Bigl( \tfrac12 \log \bigl( 1 + \tfrac{s^2 + \min(d, s \sqrt d)}{d} \bigr) + \tfrac52 \Bigr) d
        + 32 \quad \text{else}

and :math:`2.8 d + 32` for :math:`s = \sqrt d`. The logarithm is that of base 2. qlsd2021's released
code has the natural one.

Source: Alistarh et al., QSGD (2017, arXiv:1610.02132), and qlsd2021's released code.
"""

import math
from collections.abc import Callable, Iterator

from concord.networks.compressions import qsgd
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, unmet_need, yields


@yields(
    ("saved_by_coding", "saved_by_coding_natural"),
    exact=("*",),
    labels={
        "saved_by_coding": Label("32 bits for every coordinate, over the bits of its code"),
        "saved_by_coding_natural": Label("the same, with natural logarithms in the code's length"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield 32 d over the bits of a coded message, with the base-2 and the natural logarithm."""
    compression = getattr(m.sampler, "compression", None)
    if getattr(compression, "kind", None) != "qsgd":
        raise unmet_need("coded_bits", "a sampler with compression qsgd")
    dim, levels = m.problem.dim, qsgd.count_levels(compression.params)  # type: ignore[union-attr]
    logarithms = {"saved_by_coding": math.log2, "saved_by_coding_natural": math.log}
    return final_rows(
        m, {name: 32 * dim / bound_bits(dim, levels, log) for name, log in logarithms.items()}
    )


def bound_bits(dim: int, levels: int, log: Callable[[float], float]) -> float:
    """Return the bound on the bits of a message of d numbers, with a given logarithm."""
    root, square = math.sqrt(dim), levels**2
    if levels <= math.sqrt(max(dim / 2 - root, 0)):
        sparse = levels * (levels + root)
        return (3 + 1.5 * log(2 * (square + dim) / sparse)) * sparse + 32
    if levels == root:
        return 2.8 * dim + 32
    return (0.5 * (log(1 + (square + min(dim, levels * root)) / dim) + 1) + 2) * dim + 32
