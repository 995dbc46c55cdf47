# measure: the metrics of one run, with intervals, and their seal, which figures and verdicts check.
rule measure:
    input:
        run=f"{RESULTS}/{ANY_RUN}/run.yaml",
        trace=f"{RESULTS}/{ANY_RUN}/trace.nc",
        modules=modules_of(stages.measure),
        data=data_files,
        outdated=outdated(f"{RESULTS}/{ANY_RUN}/metrics.csv", intact, with_trace),
    output:
        csv=f"{RESULTS}/{ANY_RUN}/metrics.csv",
        seal=f"{RESULTS}/{ANY_RUN}/metrics.json",
    log:
        f"{RESULTS}/logs/{ANY_RUN}/measure.log",
    benchmark:
        f"{RESULTS}/benchmarks/{ANY_RUN}/measure.tsv"
    group:
        with_other_runs
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        code=code_of(stages.measure),
        run=run_digest,
    shell:
        "python -m concord measure {input.run:q} {input.trace:q} --expected {params.run} --code {params.code} "
        "-o {output.csv:q} 2> {log:q}"
