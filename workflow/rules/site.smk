# site: pages of whatever has been made, whatever was asked for; `make site` asks for this. It has no
# output, so that it is made anew whenever somebody asks: documents and templates are no inputs.
rule site:
    input:
        lambda wildcards: [
            file
            for file in [*outputs(STUDIES), *expand(f"{RESULTS}/{{key}}/claims.csv", key=STUDIES)]
            if placed(file).exists()
        ],
    log:
        f"{LOGS}/site.log",
    localrule: True
    conda:
        "../../envs/site.yaml"
    params:
        settings=SETTINGS,
        results=lambda wildcards: str(PLACE),
    message:
        "Making the site: copies of what has been made, then Sphinx; about a minute."
    shell:
        "python -m concord site {params.settings} --results {params.results:q} -o site 2> {log:q}"
