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
        sampling_environment
    threads: 1
    resources:
        mem_mb=sampling("mem_mb"),
        runtime=sampling("runtime"),
    params:
        run=run_digest,
        options=sampling("options"),
    shell:
        "python -m concord sample {input.run:q} --expected {params.run} {params.options} -o {output:q} "
        "2> {log:q}"
