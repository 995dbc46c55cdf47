# resolve: every parameter of a run in one small file, the run's identity. Its content is also a
# parameter of the rule, so that editing a paper's file rewrites the run.yaml of the runs it changes.
rule resolve:
    output:
        f"{RESULTS}/{ANY_RUN}/run.yaml",
    log:
        f"{RESULTS}/logs/{ANY_RUN}/resolve.log",
    benchmark:
        f"{RESULTS}/benchmarks/{ANY_RUN}/resolve.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        settings=SETTINGS,
        paper=lambda wildcards: str(paper_of(wildcards).path),
        run=run_digest,
    shell:
        "python -m concord resolve {params.paper:q} {wildcards.experiment} {wildcards.run:q} "
        "{params.settings} --expected {params.run} -o {output:q} 2> {log:q}"
