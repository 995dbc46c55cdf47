# multiverse: runs with other defensible values of assumptions, or other seeds, and the verdicts there.
BATCH = "{paper}/multiverse/{universe}/{batch}"
OVER = f"{RESULTS}/{{paper}}/multiverse"


rule vary:
    input:
        data=lambda wildcards: sorted(
            {file for run in batch_of(wildcards) for file in data_files(run.mapping)}
        ),
        outdated=outdated(f"{RESULTS}/{BATCH}/metrics.csv", varied_from),
    output:
        csv=f"{RESULTS}/{BATCH}/metrics.csv",
        seal=f"{RESULTS}/{BATCH}/metrics.json",
    log:
        f"{LOGS}/{BATCH}.log",
    benchmark:
        f"{BENCHMARKS}/{{paper}}/{{batch}}/{{universe}}/vary.tsv"
    conda:
        varying_environment
    resources:
        mem_mb=growing(varying("mem_mb")),
        runtime=growing(lambda wildcards: min(10 * len(batch_of(wildcards)), 240)),
    params:
        settings=SETTINGS,
        paper=lambda wildcards: str(paper_of(wildcards).path),
    shell:
        "python -m concord vary {params.paper:q} {wildcards.universe:q} {wildcards.batch} "
        "{params.settings} -o {output.csv:q} 2> {log:q}"


rule survey:
    input:
        judged,
        varied,
        outdated=outdated(f"{OVER}.csv", surveyed_from),
    output:
        csv=f"{OVER}.csv",
        md=f"{OVER}.md",
        seal=f"{OVER}.json",
        pictures=report(
            directory(f"{OVER}/figures"),
            patterns=["{name}.svg"],
            caption="../report/multiverse.rst",
            category="{paper}",
            subcategory="multiverse",
            labels={"name": "{name}"},
        ),
    log:
        f"{LOGS}/{{paper}}/survey.log",
    benchmark:
        f"{BENCHMARKS}/{{paper}}/survey.tsv"
    group:
        "outputs"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(1000),
        runtime=growing(20),
    params:
        settings=f"{SETTINGS}{PAIRS}",
        results=lambda wildcards: str(PLACE),
        paper=lambda wildcards: str(paper_of(wildcards).path),
    shell:
        "python -m concord survey {params.paper:q} {params.settings} --results {params.results:q} "
        "--figures {output.pictures:q} -o {output.csv:q} {output.md:q} 2> {log:q}"


rule multiverse:
    input:
        expand(f"{OVER}.csv", paper=PAPERS),


for key in PAPERS:

    rule:
        name:
            f"multiverse_{key}"
        input:
            f"{RESULTS}/{key}/multiverse.csv",
