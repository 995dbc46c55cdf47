# resolve: every parameter of a run in one small file, the run's identity.
rule resolve:
    input:
        outdated(
            f"{RESULTS}/{RUN}/run.yaml",
            lambda wildcards: {"text": run_text(wildcards).encode()},
            lambda path: {"text": path.read_bytes()},
        ),
    output:
        f"{RESULTS}/{RUN}/run.yaml",
    log:
        f"{LOGS}/{RUN}/resolve.log",
    benchmark:
        f"{BENCHMARKS}/{RUN}/resolve.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        text=run_text,
    shell:
        "printf %s {params.text:q} > {output:q} 2> {log:q}"
