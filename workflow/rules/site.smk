# site: pages of whatever has been made, whatever was asked for; `make site` asks for this. It has no
# output, so that it is made anew whenever somebody asks: documents and templates are no inputs.
rule site:
    input:
        standing(
            [
                *outputs(STUDIES),
                *(f"{RESULTS}/{key}/claims.csv" for key in STUDIES),
                *(f"{RESULTS}/{key}/scores.csv" for key in STUDIES if STUDIES[key].arenas),
            ]
        ),
        damaged_multiverses,
    log:
        f"{LOGS}/site.log",
    localrule: True
    conda:
        "../../envs/site.yaml"
    params:
        settings=SETTINGS,
        results=lambda wildcards: str(PLACE),
    shell:
        "python -m concord site {params.settings} --results {params.results:q} -o site 2> {log:q}"
