"""Wall times on other numbers of cores are those of a list schedule, worked out by hand."""

import pytest

import cores

DRY_RUN = """
[Sun Nov 29 22:52:53 2026] Group job experiments (jobs in lexicogr. order):

    [Sun Nov 29 22:52:53 2026]
    rule part:
        input: plan.yaml
        output: results/a/1.csv, results/a/1.json
        benchmark: results/benchmarks/a/1.tsv
        priority: 2
[Sun Nov 29 22:52:53 2026]
rule part:
    input: plan.yaml
    output: results/a/2.csv
    benchmark: results/benchmarks/a/2.tsv
[Sun Nov 29 22:52:53 2026]
localrule gather:
    input: results/a/1.json, results/a/2.csv
    output: results/a.csv
Job stats:
job: count
"""


def test_jobs_wait_for_their_inputs_and_for_a_core():
    jobs = cores.read_jobs(DRY_RUN)
    first, second, last = jobs
    assert (first.priority, second.priority, last.benchmark) == (2, 0, "")
    seconds = {first.benchmark: 3.0, second.benchmark: 4.0}
    assert cores.simulate(jobs, seconds, 1) == 7
    assert cores.simulate(jobs, seconds, 2) == 4


@pytest.mark.parametrize(("number", "end"), [(1, 12), (2, 6), (3, 6), (64, 6)])
def test_priorities_settle_what_starts_first(number, end):
    """Without its priority the longest of five jobs starts last."""
    lengths = [1.0, 2.0, 2.0, 1.0, 6.0]
    jobs = [cores.Job([], [f"{n}.csv"], str(n), n == 4) for n in range(5)]
    seconds = {str(n): length for n, length in enumerate(lengths)}
    assert cores.simulate(jobs, seconds, number) == end
    plain = [job._replace(priority=0) for job in jobs]
    assert cores.simulate(plain, seconds, 2) == 9
