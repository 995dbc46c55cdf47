# Runs, from data to metrics. A job makes a batch of them; the file of the batch stands for it.


# The hash alone says what the file is, so neither the code nor the rest of the registry is an
# input. It needs the network, which compute nodes often lack, so it runs where Snakemake runs.
rule fetch:
    output:
        local("resources/{data_file}"),
    log:
        "results/logs/fetch/{data_file}.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        sha256=lambda wildcards: flow.hashes[wildcards.data_file],
    shell:
        "python -m concord_cli fetch {wildcards.data_file} -o {output} 2> {log}"


# The draws of a long run, or of some of its chains, which are then joined.
rule sample_chains:
    input:
        flow.data,
        because=flow.stale_draws,
    output:
        temp(f"{RESULTS}/{{batch}}.sampled_{{first}}_{{end}}.json"),
    log:
        f"{LOGS}/{{batch}}/chains_{{first}}_{{end}}.log",
    benchmark:
        f"{BENCHMARKS}/{{batch}}/chains_{{first}}_{{end}}.tsv"
    priority: 1  # runs that take long go first, not last, where most cores would wait for them
    conda:
        flow.environment(flow.sampling)
    resources:
        **flow.taking(flow.sampling),
    params:
        batch=flow.command,
        how="--sampled --chains {first}:{end}",
    shell:
        "python -m concord_cli make {params.batch} {params.how} -o {output:q} 2> {log:q}"


use rule sample_chains as sample with:
    input:
        flow.for_draws,
        because=flow.stale_draws,
    output:
        f"{RESULTS}/{{batch}}.sampled.json",
    log:
        f"{LOGS}/{{batch}}/sample.log",
    benchmark:
        f"{BENCHMARKS}/{{batch}}/sample.tsv"
    group:
        flow.group
    params:
        how="--sampled",


# The metrics of a batch; short runs and those of universes are sampled, cells of the arena scored.
use rule sample as measure with:
    input:
        flow.for_metrics,
        because=flow.stale_metrics,
    output:
        f"{RESULTS}/{{batch}}.made.json",
    log:
        f"{LOGS}/{{batch}}/measure.log",
    benchmark:
        f"{BENCHMARKS}/{{batch}}/measure.tsv"
    conda:
        flow.environment(flow.measuring)
    resources:
        **flow.taking(flow.measuring),
    params:
        how="",


# A file of one run, for whoever asks for it: its batch has made it.
rule run:
    input:
        lambda wildcards: ancient(flow.batch_of_run(wildcards)),
    output:
        update(f"{RESULTS}/{{paper}}/{{experiment}}/{{run}}/{{file}}"),
    log:
        f"{LOGS}/{{paper}}/{{experiment}}/{{run}}/{{file}}.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        make=flow.by_hand,
    shell:
        "test -f {output:q} || {params.make} 2> {log:q}"
