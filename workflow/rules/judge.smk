# judge: verdicts on claims, the ledger that joins them, the same over the universes; scores.
OVER = f"{RESULTS}/{{paper}}/multiverse"
SURVEYED = {**REPORTED, "caption": "../report/multiverse.rst", "subcategory": "multiverse"}


use rule figure as judge with:
    input:
        flow.judged,
        flow.surveyed_first,
        because=flow.stale("judge"),
    output:
        made=[f"{RESULTS}/{{paper}}/claims.csv", f"{RESULTS}/{{paper}}/claims.md"],
        seal=f"{RESULTS}/{{paper}}/claims.json",
    log:
        f"{LOGS}/{{paper}}/judge.log",
    benchmark:
        f"{BENCHMARKS}/{{paper}}/judge.tsv"
    params:
        command="judge",
        more="",
        caption="",


use rule judge as survey with:
    input:
        flow.judged,
        flow.varied,
        because=flow.stale("survey"),
    output:
        made=[f"{OVER}.csv", f"{OVER}.md"],
        seal=f"{OVER}.json",
        pictures=report(directory(f"{OVER}/figures"), patterns=["{name}.svg"], **SURVEYED),
    log:
        f"{LOGS}/{{paper}}/survey.log",
    benchmark:
        f"{BENCHMARKS}/{{paper}}/survey.tsv"
    resources:
        **flow.taking(mem_mb=1000, runtime=20),
    params:
        command="survey",
        more=lambda wildcards, output: f"{flow.pairs} --figures {output.pictures}",


# The scores and cards of an arena, and what each cell cost.
use rule judge as board with:
    input:
        flow.scored,
        because=flow.stale("board"),
    output:
        made=[f"{RESULTS}/{{paper}}/{name}.csv" for name in ("scores", "cost")],
        seal=f"{RESULTS}/{{paper}}/scores.json",
        cards=directory(f"{RESULTS}/{{paper}}/cards"),
    log:
        f"{LOGS}/{{paper}}/board.log",
    benchmark:
        f"{BENCHMARKS}/{{paper}}/board.tsv"
    params:
        command="board",
        more=lambda wildcards, output: f"--cards {output.cards}",


rule join:
    input:
        tables=[flow.table(key, "claims") for key in flow.papers],
        because=flow.stale("join"),
    output:
        made=[f"{RESULTS}/claims.csv", f"{RESULTS}/claims.md"],
        seal=f"{RESULTS}/claims.json",
    log:
        f"{LOGS}/join.log",
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "python -m concord_cli ledger {input.tables:q} -o {output.made:q} 2> {log:q}"


rule compare:
    input:
        ledger=f"{RESULTS}/claims.csv",
        expected=flow.expected,
    output:
        f"{RESULTS}/changed_verdicts.txt",
    log:
        f"{LOGS}/compare.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        expected=flow.expected_digests,
        strict="--strict" if flow.config["strict"] else "",
    shell:
        "python -m concord_cli changes {input.ledger:q} {params.strict} > {output:q} 2> {log:q}"
