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
        options=flow.options,
    shell:
        "python -m concord site {params.options} -o site 2> {log:q}"
