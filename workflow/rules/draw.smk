# draw: figures and tables, each with its caption and provenance, and the site.
ENTRY = "{paper}/{section}/{name}"
REPORTED = {
    "caption": "../report/caption.rst",
    "category": "{paper}",
    "subcategory": "{section}",
    "labels": {"name": "{name}"},
}


rule figure:
    input:
        flow.drawn,
        because=flow.stale("figure"),
    output:
        made=[
            f"{RESULTS}/{ENTRY}.pdf",
            report(f"{RESULTS}/{ENTRY}.svg", **REPORTED),
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
        **flow.taking(mem_mb=600, runtime=5),
    params:
        command="draw",
        study=flow.settings,
        more="{name}",
        caption=flow.caption,
    shell:
        "python -m concord_cli {params.command} {params.study} {params.more} -o {output.made:q} 2> {log:q}"


use rule figure as table with:
    input:
        flow.drawn,
        because=flow.stale("table"),
    output:
        made=[
            report(f"{RESULTS}/{ENTRY}.csv", **REPORTED),
            f"{RESULTS}/{ENTRY}.md",
            f"{RESULTS}/{ENTRY}.tex",
        ],
        beside=[f"{RESULTS}/{ENTRY}.json", f"{RESULTS}/{ENTRY}.caption.md"],
    wildcard_constraints:
        section="tables",
    params:
        command="tabulate",


# Pages of whatever has been made; `make site` asks for this. It has no output, so that it is made anew
# whenever somebody asks: documents and templates are no inputs.
rule site:
    input:
        flow.shown,
    log:
        f"{LOGS}/site.log",
    localrule: True
    conda:
        "../../envs/site.yaml"
    params:
        command="site",
        output="site",
        options=flow.options,
    shell:
        "python -m concord_cli {params.command} {params.options} -o {params.output:q} 2> {log:q}"


# What was made, in one file that strangers can check; `make crate` asks for this.
use rule site as crate with:
    input:
        flow.without_downloads,
        f"{RESULTS}/claims.csv",
    log:
        f"{LOGS}/crate.log",
    conda:
        ENVIRONMENT
    params:
        command="crate",
        output=f"{RESULTS}/crate.zip",
