# small: small runs of an experiment, from configuration to metrics in one process. Its output says
# how they stand; their files are none of Snakemake's outputs, which it deletes if one run fails.
rule small:
    input:
        asked_alone,
        outdated=outdated(f"{RESULTS}/{SMALL}.csv", small_states, stages.small.stated),
    output:
        f"{RESULTS}/{SMALL}.csv",
    log:
        f"{LOGS}/{SMALL}.log",
    benchmark:
        f"{BENCHMARKS}/{SMALL}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        names=lambda wildcards: [run.name for run in part_of(wildcards)],
        settings=SETTINGS,
        results=lambda wildcards: str(PLACE),
        paper=lambda wildcards: str(paper_of(wildcards).path),
    shell:
        "python -m concord small {params.paper:q} {wildcards.experiment} {params.names:q} "
        "{params.settings} --results {params.results:q} -o {output:q} 2> {log:q}"


# many: stands for up to a hundred runs of an experiment among the inputs of what shows them all.
rule many:
    input:
        many_metrics,
    output:
        touch(f"{RESULTS}/{MANY}.csv"),
    localrule: True
