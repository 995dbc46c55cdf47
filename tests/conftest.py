"""Run before any test module: one BLAS thread, set before numpy is imported."""

import os

from hypothesis import settings

os.environ.update(
    dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
        "1",
    )
)

# The same examples on every machine; no deadline, since machines differ in speed and load.
settings.register_profile("concord", deadline=None, derandomize=True)
settings.load_profile("concord")
