# measure: the metrics of one run, with intervals.
rule measure:
    input:
        run=f"{RESULTS}/{RUN}/run.yaml",
        trace=f"{RESULTS}/{RUN}/trace.nc",
        data=lambda wildcards: data_files(run_of(wildcards).mapping),
        outdated=outdated(f"{RESULTS}/{RUN}/metrics.csv", measured_from),
    output:
        csv=f"{RESULTS}/{RUN}/metrics.csv",
        seal=f"{RESULTS}/{RUN}/metrics.json",
    log:
        f"{LOGS}/{RUN}/measure.log",
    benchmark:
        f"{BENCHMARKS}/{RUN}/measure.tsv"
    priority: 1
    group:
        with_other_runs
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    shell:
        "python -m concord measure {input.run:q} {input.trace:q} -o {output.csv:q} 2> {log:q}"
