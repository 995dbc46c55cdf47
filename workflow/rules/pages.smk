# What shows results to others. Documents and templates are no inputs, so the site is made anew
# whenever somebody asks for it.


# For `--report`: what is there, whatever was asked for.
rule made:
    input:
        plan.made,


rule site:
    input:
        plan.made,
    log:
        f"{LOGS}/site.log",
    localrule: True
    conda:
        "../../envs/site.yaml"
    params:
        options=plan.options,
    shell:
        "python -m concord_cli site {params.options} --results {RESULTS:q} -o site 2> {log:q}"


# What was made, in one file that strangers can check; `make crate` asks for this.
rule crate:
    input:
        plan.without_downloads,
        f"{RESULTS}/claims.csv",
    log:
        f"{LOGS}/crate.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        options=plan.options,
    shell:
        "python -m concord_cli crate {params.options} --results {RESULTS:q} -o {RESULTS:q}/crate.zip 2> {log:q}"
