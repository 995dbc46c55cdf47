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
        study=flow.settings,
        caption=flow.caption,
    shell:
        "python -m concord {params.command} {params.study} {wildcards.name} -o {output.made:q} "
        "2> {log:q}"


use rule figure as table with:
    input:
        flow.drawn,
        because=here(flow.stale_output("csv")),
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
        study=flow.settings,
        caption=flow.caption,
