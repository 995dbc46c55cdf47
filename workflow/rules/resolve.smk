# resolve: every parameter of a run in one small file, the run's identity, which the workflow already
# has: `concord resolve` writes the same text. It is a parameter of the rule, so that editing a paper's
# file rewrites the run.yaml of the runs it changes.
rule resolve:
    input:
        outdated(f"{RESULTS}/{ANY_RUN}/run.yaml", run_on_disk, lambda w: {"run": run_digest(w)}),
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
        text=lambda wildcards: dump_yaml(run_of(wildcards).mapping),
    shell:
        "printf %s {params.text:q} > {output:q} 2> {log:q}"
