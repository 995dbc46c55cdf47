"""Some cases of ``over_ranks`` over the ranks of MPI: mpiexec starts it, the first reports."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import over_ranks

from concord.networks.transports import launched, together

comm, same = launched(), 0
with together(comm):
    for case in over_ranks.cases()[::17]:
        whole = over_ranks.trace(case) if comm.rank == 0 else None
        if same == 40 or not comm.bcast(whole is not None) or case[-1] == "logistic":
            continue
        trace = over_ranks.trace(case, comm)
        if comm.rank == 0:
            assert not over_ranks.different(whole, trace), case
        same += 1
    if comm.rank == 0:
        print(f"same: {same}")
