# What is made from metrics: figures and tables, verdicts on claims, their ledger, scores.
ENTRY = "{study}/{section}/{name}"
REPORTED = {
    "category": name_study,
    "subcategory": "{section}",
    "labels": label_output,
}
CAPTION = "../report/caption.rst"
BESIDE = "json", "yaml", "caption.md", "caption.rst"
STUDY = f"{RESULTS}/{{study}}"
# The committed verdicts; a user's study may have none.
COMMITTED = "config/expected_verdicts.yaml", "config/expected_multiverse.yaml"
EXPECTED = [file for file in COMMITTED if os.path.exists(file)]


rule figure:
    """Draw a figure from tables of metrics."""
    input:
        entry=statement("figures"),
        tables=metrics("figures"),
    output:
        made=[
            f"{RESULTS}/{ENTRY}.pdf",
            report(f"{RESULTS}/{ENTRY}.svg", caption=CAPTION, **REPORTED),
            f"{RESULTS}/{ENTRY}.png",
        ],
        beside=[f"{RESULTS}/{ENTRY}.{suffix}" for suffix in BESIDE],
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
    threads: 1
    resources:
        **growing(mem_mb=600, runtime=5),
    params:
        made_from=digest("figures"),
        command="draw",
    shell:
        "python -m concord_cli {params.command} {input.entry:q} -o {output.made:q} 2> {log:q}"


use rule figure as table with:
    """Make a table from tables of metrics."""
    input:
        entry=statement("tables"),
        tables=metrics("tables"),
    output:
        made=[
            report(f"{RESULTS}/{ENTRY}.csv", caption=CAPTION, **REPORTED),
            f"{RESULTS}/{ENTRY}.md",
            f"{RESULTS}/{ENTRY}.tex",
        ],
        beside=[f"{RESULTS}/{ENTRY}.{suffix}" for suffix in BESIDE],
    wildcard_constraints:
        section="tables",
    params:
        made_from=digest("tables"),
        command="tabulate",


rule claims:
    """Judge a study's claims from tables of metrics."""
    input:
        stated=statement("claims"),
        tables=metrics("claims"),
        multiverse=branch(lambda w: plan.uses_universes(w.study), then=f"{STUDY}/multiverse.csv"),
    output:
        made=[f"{STUDY}/claims.csv", f"{STUDY}/claims.md"],
        provenance=f"{STUDY}/claims.json",
    log:
        f"{LOGS}/{{study}}/claims.log",
    benchmark:
        f"{BENCHMARKS}/{{study}}/claims.tsv"
    group:
        "outputs"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **growing(mem_mb=1000, runtime=10),
    params:
        made_from=digest("claims"),
        command="judge",
        more=lambda w, input: f"--multiverse {input.multiverse}" if input.multiverse else "",
    shell:
        "python -m concord_cli {params.command} {input.stated:q} --tables {input.tables:q} "
        "{params.more} -o {output.made:q} 2> {log:q}"


# The claims in every universe. Universes are experiments of the study.
use rule claims as universes with:
    """Judge a study's claims in every universe of its multiverse."""
    input:
        stated=statement("multiverse"),
        tables=metrics("multiverse"),
    output:
        made=[f"{STUDY}/multiverse.csv", f"{STUDY}/multiverse.md"],
        provenance=f"{STUDY}/multiverse.json",
        pictures=report(
            directory(f"{STUDY}/multiverse/figures"),
            patterns=["{name}.svg"],
            caption="../report/multiverse.rst",
            **{**REPORTED, "subcategory": "multiverse", "labels": {"name": "{name}"}},
        ),
    log:
        f"{LOGS}/{{study}}/multiverse.log",
    benchmark:
        f"{BENCHMARKS}/{{study}}/multiverse.tsv"
    params:
        made_from=digest("multiverse"),
        command="survey",
        more=lambda w, output: f"--figures {output.pictures}",


# The scores and cards of an arena, and what each cell cost.
use rule claims as scores with:
    """Collect the scores of an arena, with a card for each sampler."""
    input:
        stated=statement("scores"),
        tables=metrics("scores"),
    output:
        made=[f"{STUDY}/scores.csv", f"{STUDY}/cost.csv"],
        provenance=f"{STUDY}/scores.json",
        cards=directory(f"{STUDY}/cards"),
    log:
        f"{LOGS}/{{study}}/scores.log",
    benchmark:
        f"{BENCHMARKS}/{{study}}/scores.tsv"
    params:
        made_from=digest("scores"),
        command="board",
        more=lambda wildcards, output: f"--cards {output.cards}",


# The verdicts of all papers, beside the committed ones.
rule verdicts:
    """Collect the verdicts of all papers in one table."""
    input:
        stated=statement("ledger"),
        tables=[f"{RESULTS}/{key}/claims.csv" for key in plan.papers if plan.studies[key].claims],
        expected=EXPECTED[:1],
    output:
        made=[f"{RESULTS}/claims.csv", f"{RESULTS}/claims.md"],
        provenance=f"{RESULTS}/claims.json",
    log:
        f"{LOGS}/verdicts.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        made_from=digest("ledger"),
    shell:
        "python -m concord_cli ledger {input.tables:q} --planned {input.stated:q} "
        "-o {output.made:q} 2> {log:q}"


rule changed_verdicts:
    """Compare the verdicts with those that are committed."""
    input:
        ledger=f"{RESULTS}/claims.csv",
        expected=EXPECTED,
    output:
        f"{RESULTS}/changed_verdicts.txt",
    log:
        f"{LOGS}/changed_verdicts.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        strict="--strict" if plan.config["strict"] else "",
    shell:
        "python -m concord_cli changes {input.ledger:q} {params.strict} > {output:q} 2> {log:q}"


rule ledger:
    """The verdicts of all papers, and which of them have changed."""
    input:
        multiext(f"{RESULTS}/claims", ".csv", ".md", ".json"),
        f"{RESULTS}/changed_verdicts.txt" if EXPECTED else [],
