# Concord: every figure and table of every paper in config/papers is a target of this workflow.
from snakemake.utils import min_version

min_version("9.27.1")


include: "workflow/rules/common.smk"
include: "workflow/rules/fetch.smk"
include: "workflow/rules/resolve.smk"
include: "workflow/rules/sample.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/draw.smk"
include: "workflow/rules/judge.smk"


rule reproduce:
    default_target: True
    input:
        without_downloads(PAPERS),


rule everything:
    input:
        makeable(PAPERS),


rule ledger:
    input:
        f"{RESULTS}/claims.csv",
        f"{RESULTS}/changed_verdicts.txt" if EXPECTED else [],


for key in PAPERS:

    rule:
        name:
            key
        input:
            makeable([key]),


# Snakemake itself would not say which targets there are.
rule unknown:
    input:
        no_such_target,
    output:
        "{target}",
    wildcard_constraints:
        target="[^/.]+",
