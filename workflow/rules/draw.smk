# draw: figures and tables, each with its caption and provenance.
rule figure:
    input:
        shown,
        outdated=outdated(f"{RESULTS}/{ENTRY}.pdf", drawn_from),
    output:
        made=[
            f"{RESULTS}/{ENTRY}.pdf",
            report(
                f"{RESULTS}/{ENTRY}.svg",
                caption="../report/caption.rst",
                category="{paper}",
                subcategory="{section}",
                labels={"name": "{name}"},
            ),
            f"{RESULTS}/{ENTRY}.png",
        ],
        beside=[f"{RESULTS}/{ENTRY}.json", f"{RESULTS}/{ENTRY}.caption.md"],
    log:
        f"{LOGS}/{ENTRY}.log",
    benchmark:
        f"{BENCHMARKS}/{ENTRY}.tsv"
    wildcard_constraints:
        section="figures",
    group:
        "outputs"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(600),
        runtime=growing(5),
    params:
        command="draw",
        settings=SETTINGS,
        results=lambda wildcards: str(PLACE),
        paper=lambda wildcards: str(paper_of(wildcards).path),
        caption=caption,
    shell:
        "python -m concord {params.command} {params.paper:q} {wildcards.name} {params.settings} "
        "--results {params.results:q} -o {output.made:q} 2> {log:q}"


use rule figure as table with:
    input:
        shown,
        outdated=outdated(f"{RESULTS}/{ENTRY}.csv", drawn_from),
    output:
        made=[
            report(
                f"{RESULTS}/{ENTRY}.csv",
                caption="../report/caption.rst",
                category="{paper}",
                subcategory="{section}",
                labels={"name": "{name}"},
            ),
            f"{RESULTS}/{ENTRY}.md",
            f"{RESULTS}/{ENTRY}.tex",
        ],
        beside=[f"{RESULTS}/{ENTRY}.json", f"{RESULTS}/{ENTRY}.caption.md"],
    wildcard_constraints:
        section="tables",
    params:
        command="tabulate",
