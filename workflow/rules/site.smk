# site: pages of whatever has been made, whatever was asked for; `make site` asks for this. It has no
# output, so that it is made anew whenever somebody asks: documents and templates are no inputs.
rule site:
    input:
        flow.shown,
    log:
        f"{LOGS}/site.log",
    localrule: True
    conda:
        "../../envs/site.yaml"
    params:
        settings=flow.settings,
        results=RESULTS,
    shell:
        "python -m concord site {params.settings} --results {params.results:q} -o site 2> {log:q}"
