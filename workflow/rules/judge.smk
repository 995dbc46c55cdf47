# judge: verdicts on the papers' claims, the ledger that joins them, and the report's front page.
CLAIMS = [f"{RESULTS}/{paper}/claims.csv" for paper in PAPERS]
# A study of one's own may have committed no verdicts.
EXPECTED = [f"config/expected_{what}.yaml" for what in ("verdicts", "multiverse")]
EXPECTED = list(filter(os.path.exists, EXPECTED))


rule judge:
    input:
        judged,
        multiverse_first,
        outdated=outdated(f"{RESULTS}/{{paper}}/claims.csv", judged_from),
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
        mem_mb=growing(600),
        runtime=growing(5),
    params:
        settings=SETTINGS,
        results=lambda wildcards: str(PLACE),
        paper=lambda wildcards: str(paper_of(wildcards).path),
    shell:
        "python -m concord judge {params.paper:q} {params.settings} --results {params.results:q} "
        "-o {output.csv:q} {output.md:q} {output.html:q} 2> {log:q}"


rule join:
    input:
        tables=CLAIMS,
        outdated=outdated(
            f"{RESULTS}/claims.csv",
            lambda wildcards: stages.judge.joined(list(map(placed, CLAIMS))),
        ),
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
        expected=list(map(local, EXPECTED)),
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
        expected=told(lambda wildcards: [sha256(Path(file)) for file in EXPECTED]),
        strict="--strict" if CONFIG["strict"] else "",
    shell:
        "python -m concord changes {input.ledger:q} {params.strict} > {output:q} 2> {log:q}"


rule front:
    input:
        ledger=f"{RESULTS}/claims.csv",
        page=f"{RESULTS}/ledger.html",
        outdated=outdated(
            f"{RESULTS}/front.html",
            lambda wildcards: stages.judge.front_made(
                placed(f"{RESULTS}/claims.csv"), Path("config/expected_verdicts.yaml")
            ),
        ),
    output:
        html=f"{RESULTS}/front.html",
        seal=f"{RESULTS}/front.json",
    log:
        f"{LOGS}/front.log",
    benchmark:
        f"{BENCHMARKS}/front.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        results=lambda wildcards: str(PLACE),
    shell:
        "python -m concord front {input.ledger:q} {input.page:q} --results {params.results:q} "
        "-o {output.html:q} 2> {log:q}"


# The report shows what has been made, whatever was asked for: `make report` asks for this.
rule made:
    input:
        standing(outputs(STUDIES)),
        f"{RESULTS}/front.html",
        expand(f"{RESULTS}/{{paper}}/claims.html", paper=PAPERS),


if Path(PLACE, "front.html").exists():

    report: "../report/workflow.rst"
