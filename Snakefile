# The workflow lies in workflow/, where `snakedeploy` and Snakemake's `module` look for it.
include: "workflow/Snakefile"


# What `snakemake` alone makes: of a file that is included Snakemake takes the rules alone.
rule default:
    """What `snakemake` makes: all figures and tables that need no download."""
    default_target: True
    input:
        rules.reproduce.input,
