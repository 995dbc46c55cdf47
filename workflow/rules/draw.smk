# draw: figures and tables, each with its caption and provenance.
rule figure:
    input:
        shown("figures"),
        modules=entry_modules("figures"),
        outdated=outdated(f"{RESULTS}/{{paper}}/figures/{{name}}.pdf", intact, of_output("figures")),
    output:
        pdf=f"{RESULTS}/{{paper}}/figures/{{name}}.pdf",
        svg=report(
            f"{RESULTS}/{{paper}}/figures/{{name}}.svg",
            caption="../report/caption.rst",
            category="{paper}",
            subcategory="figures",
            labels={"name": "{name}"},
        ),
        png=f"{RESULTS}/{{paper}}/figures/{{name}}.png",
        provenance=f"{RESULTS}/{{paper}}/figures/{{name}}.json",
        caption=f"{RESULTS}/{{paper}}/figures/{{name}}.caption.md",
    log:
        f"{RESULTS}/logs/{{paper}}/figures/{{name}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{paper}}/figures/{{name}}.tsv"
    group:
        "outputs"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=growing(600),
        runtime=growing(5),
    params:
        code=entry_code("figures"),
        settings=SETTINGS,
        results=lambda wildcards: RESULTS,
        paper=lambda wildcards: str(paper_of(wildcards).path),
        entry=entry_digest("figures"),
        caption=caption("figures"),
    shell:
        "python -m concord draw {params.paper:q} {wildcards.name} {params.settings} --results {params.results:q} "
        "-o {output.pdf:q} {output.svg:q} {output.png:q} 2> {log:q}"


rule table:
    input:
        shown("tables"),
        modules=entry_modules("tables"),
        outdated=outdated(f"{RESULTS}/{{paper}}/tables/{{name}}.csv", intact, of_output("tables")),
        template=template("page.html"),
    output:
        csv=f"{RESULTS}/{{paper}}/tables/{{name}}.csv",
        md=f"{RESULTS}/{{paper}}/tables/{{name}}.md",
        html=report(
            f"{RESULTS}/{{paper}}/tables/{{name}}.html",
            caption="../report/caption.rst",
            category="{paper}",
            subcategory="tables",
            labels={"name": "{name}"},
        ),
        provenance=f"{RESULTS}/{{paper}}/tables/{{name}}.json",
        caption=f"{RESULTS}/{{paper}}/tables/{{name}}.caption.md",
    log:
        f"{RESULTS}/logs/{{paper}}/tables/{{name}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{paper}}/tables/{{name}}.tsv"
    group:
        "outputs"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=growing(600),
        runtime=growing(5),
    params:
        code=entry_code("tables"),
        settings=SETTINGS,
        results=lambda wildcards: RESULTS,
        paper=lambda wildcards: str(paper_of(wildcards).path),
        entry=entry_digest("tables"),
        caption=caption("tables"),
    shell:
        "python -m concord tabulate {params.paper:q} {wildcards.name} {params.settings} --results {params.results:q} "
        "-o {output.csv:q} {output.md:q} {output.html:q} 2> {log:q}"
