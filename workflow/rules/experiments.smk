# From data to the metrics of experiments. One job makes a short experiment; a long one is made in
# parts, a job each, whose tables another one joins.
OF_EXPERIMENT = "{study}/{experiment}"


# The hash alone says what the file is, so neither the code nor the rest of the registry is an
# input. It needs the network, which compute nodes often lack, so it runs where Snakemake runs.
rule fetch:
    """Put a data file into resources/, from the repository, a mirror or its address."""
    output:
        local("resources/{data_file}"),
    log:
        "results/logs/fetch/{data_file}.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        sha256=lambda w: plan.hashes[w.data_file],
    shell:
        "python -m concord_cli fetch {wildcards.data_file} -o {output:q} 2> {log:q}"


rule measure:
    """Sample and measure an experiment: a table of all its runs."""
    input:
        runs=statement("runs"),
        parts=parts("csv"),
        provenance=parts("json"),
        data=ancient(plan.data),
    output:
        made=METRICS,
        runs=f"{EXPERIMENT}/runs.yaml",
        provenance=f"{EXPERIMENT}/metrics.json",
    log:
        f"{LOGS}/{OF_EXPERIMENT}/measure.log",
    benchmark:
        f"{BENCHMARKS}/{OF_EXPERIMENT}/measure.tsv"
    priority: lambda w: plan.experiment(w).priority
    group:
        lambda w: None if plan.experiment(w).part_count else "experiments"
    conda:
        lambda w: f"../../envs/{plan.experiment(w).job['environment']}.yaml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: attempt * plan.experiment(w).job["mem_mb"],
        runtime=lambda w, attempt: attempt * plan.experiment(w).job["runtime"],
    params:
        made_from=digest("runs"),
        command=lambda w: "gather" if plan.experiment(w).part_count else "measure",
    shell:
        "python -m concord_cli {params.command} {input.runs:q} {input.parts:q} "
        "-o {output.made:q} 2> {log:q}"


use rule measure as part with:
    """Sample and measure some runs of a long experiment, or score some tasks of an arena."""
    input:
        runs=statement("runs"),
        parts=[],
        data=ancient(plan.data),
    output:
        made=temp(f"{EXPERIMENT}/{PART}.csv"),
        provenance=temp(f"{EXPERIMENT}/{PART}.json"),
    log:
        f"{LOGS}/{OF_EXPERIMENT}/{PART}.log",
    benchmark:
        f"{BENCHMARKS}/{OF_EXPERIMENT}/{PART}.tsv"
    params:
        command="measure --part {part} --of {parts}",


# The draws of all runs of an experiment, for whoever asks for them.
use rule part as draws with:
    """Sample all runs of an experiment, and keep the draws."""
    output:
        made=f"{EXPERIMENT}/draws.nc",
    log:
        f"{LOGS}/{OF_EXPERIMENT}/draws.log",
    benchmark:
        f"{BENCHMARKS}/{OF_EXPERIMENT}/draws.tsv"
    params:
        command="sample",
