"""The library and its tests work without the packages above it, and without their libraries."""

import re
from pathlib import Path

from processes import python

ABOVE = ("concord_studies", "concord_arena", "concord_cli")
OTHERS = (
    *("arviz_stats", "h5netcdf", "jinja2", "matplotlib", "numba", "ot", "pooch", "requests"),
    *("sklearn", "snakemake", "threadpoolctl", "tqdm", "yaml"),
)
CODE = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # each import of them fails
import numpy as np, concord
rng = np.random.default_rng(0)
rows = rng.standard_normal((40, 2))
problem = concord.problems.linear_regression(rows, rows[:, 0], agents=4)
network = concord.network("erdos_renyi", 4, probability=0.7)
run = {"sampler": "de_sgld", "step_size": 0.01, "iterations": 20, "network": network}
trace, law = (make(problem=problem, **run) for make in (concord.sample, concord.law))
table = concord.compare({"trace": trace, "law": law}, problem.posterior)
print(concord.w2(trace, problem.posterior).value.shape, len(table))
"""


def test_the_public_names_work_without_other_packages():
    assert python(CODE, *ABOVE, *OTHERS) == "(21, 5) 2\n"


def test_tests_of_the_library_import_nothing_above_it():
    imports = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(ABOVE)})\b", re.M)
    files = sorted(Path(__file__).parent.rglob("*.py"))
    assert len(files) > 40 and not [file.name for file in files if imports.search(file.read_text())]
