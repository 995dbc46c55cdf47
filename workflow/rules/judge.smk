# judge: verdicts on claims, the ledger that joins them, the same over the universes; scores.
OVER = f"{RESULTS}/{{paper}}/multiverse"


rule judge:
    input:
        flow.judged,
        flow.surveyed_first,
        because=here(flow.stale_verdicts()),
    output:
        csv=f"{RESULTS}/{{paper}}/claims.csv",
        md=f"{RESULTS}/{{paper}}/claims.md",
        html=report(
            f"{RESULTS}/{{paper}}/claims.html",
            caption="../report/page.rst",
            category="{paper}",
            subcategory="claims",
            labels={"name": "claims and assumptions"},
        ),
        seal=f"{RESULTS}/{{paper}}/claims.json",
    log:
        f"{LOGS}/{{paper}}/judge.log",
    benchmark:
        f"{BENCHMARKS}/{{paper}}/judge.tsv"
    group:
        "outputs"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=flow.growing(600),
        runtime=flow.growing(5),
    params:
        settings=flow.settings,
        results=RESULTS,
        paper=lambda wildcards: str(flow.study(wildcards).path),
    shell:
        "python -m concord judge {params.paper:q} {params.settings} --results {params.results:q} "
        "-o {output.csv:q} {output.md:q} {output.html:q} 2> {log:q}"


rule join:
    input:
        tables=[flow.claims(key) for key in flow.papers],
        because=here(flow.stale_ledger()),
    output:
        csv=f"{RESULTS}/claims.csv",
        seal=f"{RESULTS}/claims.json",
        md=f"{RESULTS}/claims.md",
        html=report(
            f"{RESULTS}/ledger.html",
            caption="../report/ledger.rst",
            category="ledger",
            labels={"name": "claims and verdicts of all papers"},
        ),
    log:
        f"{LOGS}/join.log",
    benchmark:
        f"{BENCHMARKS}/join.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "python -m concord ledger {input.tables:q} -o {output.csv:q} {output.md:q} {output.html:q} "
        "2> {log:q}"


rule compare:
    input:
        ledger=f"{RESULTS}/claims.csv",
        expected=list(map(local, flow.expected)),
    output:
        f"{RESULTS}/changed_verdicts.txt",
    log:
        f"{LOGS}/compare.log",
    benchmark:
        f"{BENCHMARKS}/compare.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        expected=flow.expected_digests,
        strict="--strict" if flow.config["strict"] else "",
    shell:
        "python -m concord changes {input.ledger:q} {params.strict} > {output:q} 2> {log:q}"


rule survey:
    input:
        flow.judged,
        flow.varied,
        because=here(flow.stale_survey()),
    output:
        csv=f"{OVER}.csv",
        md=f"{OVER}.md",
        html=report(
            f"{OVER}.html",
            caption="../report/page.rst",
            category="{paper}",
            subcategory="multiverse",
            labels={"name": "claims over the universes"},
        ),
        seal=f"{OVER}.json",
        pictures=report(
            directory(f"{OVER}/figures"),
            patterns=["{name}.svg"],
            caption="../report/multiverse.rst",
            category="{paper}",
            subcategory="multiverse",
            labels={"name": "{name}"},
        ),
    log:
        f"{LOGS}/{{paper}}/survey.log",
    benchmark:
        f"{BENCHMARKS}/{{paper}}/survey.tsv"
    group:
        "outputs"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=flow.growing(1000),
        runtime=flow.growing(20),
    params:
        settings=flow.settings + flow.pairs,
        results=RESULTS,
        paper=lambda wildcards: str(flow.study(wildcards).path),
    shell:
        "python -m concord survey {params.paper:q} {params.settings} --results {params.results:q} "
        "--figures {output.pictures:q} -o {output.csv:q} {output.md:q} {output.html:q} 2> {log:q}"


rule board:
    input:
        flow.scored,
        because=here(flow.stale_scores()),
    output:
        csv=f"{RESULTS}/{{paper}}/scores.csv",
        cost=f"{RESULTS}/{{paper}}/cost.csv",
        seal=f"{RESULTS}/{{paper}}/scores.json",
        cards=directory(f"{RESULTS}/{{paper}}/cards"),
    log:
        f"{LOGS}/{{paper}}/board.log",
    benchmark:
        f"{BENCHMARKS}/{{paper}}/board.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        settings=flow.settings,
        results=RESULTS,
        paper=lambda wildcards: str(flow.study(wildcards).path),
    shell:
        "python -m concord board {params.paper:q} {params.settings} --results {params.results:q} "
        "2> {log:q}"


# The report shows what has been made, whatever was asked for: `make report` asks for this.
rule made:
    input:
        flow.standing(flow.outputs(flow.studies)),
        [flow.claims(key) for key in flow.papers],
