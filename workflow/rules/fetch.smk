# Data files: resources/<data set>/<file>, from the data mirror or a host, or made by their recipe,
# checked by SHA-256.
import re

from concord.datasets.registry import load_registry

DATASETS = told(load_registry)()

# What a rule that reads a data set has as input: DATA_FILES["mnist"].
DATA_FILES = {
    dataset: [f"resources/{dataset}/{file}" for file in entry.files]
    for dataset, entry in DATASETS.items()
}
DATA_SHA256 = {
    f"{dataset}/{file}": facts.sha256
    for dataset, entry in DATASETS.items()
    for file, facts in entry.files.items()
}


# The hash alone says what the file is, so neither the code nor the rest of the registry is an
# input. It needs the network, which compute nodes often lack, so it runs where Snakemake runs.
rule fetch:
    output:
        local("resources/{data_file}"),  # of all modules, whatever their prefix
    log:
        "results/logs/fetch/{data_file}.log",
    benchmark:
        "results/benchmarks/fetch/{data_file}.tsv"
    wildcard_constraints:
        data_file="|".join(map(re.escape, DATA_SHA256)),
    localrule: True
    conda:
        ENVIRONMENT
    params:
        sha256=lambda wildcards: DATA_SHA256[wildcards.data_file],
    shell:
        "python -m concord fetch {wildcards.data_file} -o {output} 2> {log}"
