"""What every sampler promises (``concord.testing``), for each file in ``samplers``.

A prototype may allocate in its steps; what is built in may not.
"""

import pytest

from concord.testing import CHECKS, Inapplicable, gate
from concord.testing.samplers import positions_have_uniform_ranks_in_their_exact_law
from variants import SAMPLERS

# Without affine; their own tests, or tests/calibration, have their laws.
LAWLESS = {"gossip_ula", "sgd", "consensus_mc", "fsgld", "qlsd", "choco_sgld", "de_psgld"}
# Alone, or with a server, which sends what nobody hears otherwise.
ALONE = {"c_ula", "sgd", "dg_lmc", "consensus_mc", "fsgld", "qlsd"}
# They say which other law they sample.
BIASED = {"admm", "graph_gibbs", "dg_lmc", "de_psgld", "sgd"}


# Of most samplers the checks that take long are for `make test-all`.
LONG = {*gate.CHECKS, positions_have_uniform_ranks_in_their_exact_law}
CASES = [
    pytest.param(
        *(kind, check),
        marks=[pytest.mark.thorough] * (check in LONG and kind != "de_sgld"),
        id=f"{kind}-{check.__name__}",
    )
    for kind in SAMPLERS
    for check in CHECKS["samplers"]
]


@pytest.mark.parametrize(("kind", "check"), CASES)
def test_contract(kind, check):
    try:
        check(SAMPLERS[kind])
    except Inapplicable as reason:
        if "reads its x" in str(reason):
            return
        lawless = kind in LAWLESS and "affine" in str(reason)
        alone = kind in ALONE and "no network with edges" in str(reason)
        assert lawless or alone or (kind in BIASED and "another law" in str(reason))
