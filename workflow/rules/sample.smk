# sample: the draws and probes of one run.
rule sample:
    input:
        run=f"{RESULTS}/{ANY_RUN}/run.yaml",
        modules=modules("concord.stages.sample"),
        kinds=kind_modules,
        data=data_files,
    output:
        f"{RESULTS}/{ANY_RUN}/trace.nc",
    log:
        f"{RESULTS}/logs/{ANY_RUN}/sample.log",
    benchmark:
        f"{RESULTS}/benchmarks/{ANY_RUN}/sample.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        run=run_digest,
    shell:
        "python -m concord sample {input.run:q} --expected {params.run} -o {output:q} 2> {log:q}"
