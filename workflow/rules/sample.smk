# sample: the draws and probes of a run, or of some of its chains, which are then joined.
rule sample_chains:
    input:
        run=f"{RESULTS}/{RUN}/run.yaml",
        pieces=[],
        data=lambda wildcards: data_files(run_of(wildcards).mapping),
        outdated=outdated(
            f"{RESULTS}/{RUN}/chains_{{first}}_{{end}}.nc", sampled_from, trace_made, missing=False
        ),
    output:
        trace=temp(f"{RESULTS}/{RUN}/chains_{{first}}_{{end}}.nc"),
        seal=temp(f"{RESULTS}/{RUN}/chains_{{first}}_{{end}}.json"),
    log:
        f"{LOGS}/{RUN}/chains_{{first}}_{{end}}.log",
    benchmark:
        f"{BENCHMARKS}/{RUN}/chains_{{first}}_{{end}}.tsv"
    wildcard_constraints:
        first="[0-9]+",
        end="[0-9]+",
    priority: 1  # runs that take long go first, not last, where most cores would wait for them
    conda:
        sampling_environment
    resources:
        mem_mb=growing(sampling("mem_mb")),
        runtime=growing(sampling("runtime")),
    params:
        command="sample",
        options=lambda wildcards: (
            f"--chains {wildcards.first}:{wildcards.end} {sampling('options')(wildcards)}"
        ),
    shell:
        "python -m concord {params.command} {input.run:q} {input.pieces:q} {params.options} "
        "-o {output.trace:q} 2> {log:q}"


use rule sample_chains as sample with:
    input:
        run=f"{RESULTS}/{RUN}/run.yaml",
        pieces=pieces,
        seals=lambda wildcards: pieces(wildcards, "json"),
        data=lambda wildcards: data_files(run_of(wildcards).mapping),
        outdated=outdated(f"{RESULTS}/{RUN}/trace.nc", sampled_from, trace_made, missing=False),
    output:
        trace=f"{RESULTS}/{RUN}/trace.nc",
        seal=f"{RESULTS}/{RUN}/trace.json",
    log:
        f"{LOGS}/{RUN}/sample.log",
    benchmark:
        f"{BENCHMARKS}/{RUN}/sample.tsv"
    group:
        with_other_runs
    params:
        command=lambda wildcards: "join" if pieces(wildcards) else "sample",
        options=lambda wildcards: "" if pieces(wildcards) else sampling("options")(wildcards),
