# What shows results to others. Documents and templates are no inputs, so pages are made anew
# whenever somebody asks for them.


# For `--report`: what is there, whatever was asked for.
rule made:
    """All figures, tables and verdicts that have been made, for --report."""
    input:
        targets.list_existing,


rule site:
    """The site: results and documents as pages."""
    input:
        targets.list_existing,
    log:
        f"{LOGS}/site.log",
    localrule: True
    conda:
        "../../envs/site.yaml"
    params:
        command="site",
        options=f"--scale {plan.config['scale']} --seed {plan.config['seed']} --results {RESULTS}",
        output="site",
    shell:
        "python -m concord_cli {params.command} {params.options} -o {params.output:q} 2> {log:q}"


# What was made, in one file that strangers can check.
use rule site as crate with:
    """Results, with what strangers check them by, in one file."""
    input:
        targets.list_offline,
        f"{RESULTS}/claims.csv",
    log:
        f"{LOGS}/crate.log",
    conda:
        ENVIRONMENT
    params:
        command="crate",
        output=f"{RESULTS}/crate.zip",
