# sample: the draws and probes of one run, or of some of its chains, which are then joined.
rule sample:
    input:
        run=f"{RESULTS}/{ANY_RUN}/run.yaml",
        pieces=pieces,
        modules=modules_of(stages.sample),
        data=data_files,
        outdated=outdated(f"{RESULTS}/{ANY_RUN}/trace.nc", made_of_trace, of_run(stages.sample)),
    output:
        f"{RESULTS}/{ANY_RUN}/trace.nc",
    log:
        f"{RESULTS}/logs/{ANY_RUN}/sample.log",
    benchmark:
        f"{RESULTS}/benchmarks/{ANY_RUN}/sample.tsv"
    group:
        with_other_runs
    conda:
        sampling_environment
    threads: 1
    resources:
        mem_mb=growing(sampling("mem_mb")),
        runtime=growing(sampling("runtime")),
    params:
        code=code_of(stages.sample),
        run=run_digest,
        command=lambda wildcards: (
            "join" if pieces(wildcards) else f"sample {sampling('options')(wildcards)}"
        ),
    shell:
        "python -m concord {params.command} {input.run:q} {input.pieces:q} --expected {params.run} --code {params.code} "
        "-o {output:q} 2> {log:q}"


rule sample_chains:
    input:
        run=f"{RESULTS}/{ANY_RUN}/run.yaml",
        modules=modules_of(stages.sample),
        data=data_files,
    output:
        temp(f"{RESULTS}/{ANY_RUN}/chains_{{first}}_{{end}}.nc"),
    log:
        f"{RESULTS}/logs/{ANY_RUN}/chains_{{first}}_{{end}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{ANY_RUN}/chains_{{first}}_{{end}}.tsv"
    wildcard_constraints:
        first="[0-9]+",
        end="[0-9]+",
    conda:
        sampling_environment
    threads: 1
    resources:
        mem_mb=growing(sampling("mem_mb")),
        runtime=growing(sampling("runtime")),
    params:
        code=code_of(stages.sample),
        run=run_digest,
        options=sampling("options"),
    shell:
        "python -m concord sample {input.run:q} --chains {wildcards.first}:{wildcards.end} "
        "--expected {params.run} --code {params.code} {params.options} -o {output:q} 2> {log:q}"
