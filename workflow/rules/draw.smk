# draw: figures and tables, each with its caption and provenance.
ENTRY = "{paper}/{section}/{name}"


rule figure:
    input:
        flow.drawn,
        because=here(flow.stale_output("pdf")),
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
        mem_mb=flow.growing(600),
        runtime=flow.growing(5),
    params:
        command="draw",
        settings=flow.settings,
        results=RESULTS,
        paper=lambda wildcards: str(flow.study(wildcards).path),
        caption=flow.caption,
    shell:
        "python -m concord {params.command} {params.paper:q} {wildcards.name} {params.settings} "
        "--results {params.results:q} -o {output.made:q} 2> {log:q}"


use rule figure as table with:
    input:
        flow.drawn,
        because=here(flow.stale_output("csv")),
    output:
        made=[
            f"{RESULTS}/{ENTRY}.csv",
            f"{RESULTS}/{ENTRY}.md",
            report(
                f"{RESULTS}/{ENTRY}.html",
                caption="../report/caption.rst",
                category="{paper}",
                subcategory="{section}",
                labels={"name": "{name}"},
            ),
            f"{RESULTS}/{ENTRY}.tex",
        ],
        beside=[f"{RESULTS}/{ENTRY}.json", f"{RESULTS}/{ENTRY}.caption.md"],
    wildcard_constraints:
        section="tables",
    params:
        command="tabulate",
