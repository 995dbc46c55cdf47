# judge: verdicts on the papers' claims, the ledger that joins them, and the report's front page.
CLAIMS = [f"{RESULTS}/{paper}/claims.csv" for paper in PAPERS]


rule judge:
    input:
        judged,
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
        results=lambda wildcards: RESULTS,
        paper=lambda wildcards: str(paper_of(wildcards).path),
    shell:
        "python -m concord judge {params.paper:q} {params.settings} --results {params.results:q} "
        "-o {output.csv:q} {output.md:q} {output.html:q} 2> {log:q}"


rule join:
    input:
        tables=CLAIMS,
        outdated=outdated(
            f"{RESULTS}/claims.csv",
            lambda wildcards: stages.judge.joined([Path(path) for path in CLAIMS]),
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
        expected="config/expected_verdicts.yaml",
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
        expected=sha256(Path("config/expected_verdicts.yaml")),
        strict="--strict" if CONFIG["strict"] else "",
    shell:
        "python -m concord compare {input.ledger:q} --expected {input.expected:q} {params.strict} "
        "> {output:q} 2> {log:q}"


rule front:
    input:
        ledger=f"{RESULTS}/claims.csv",
        page=f"{RESULTS}/ledger.html",
        expected="config/expected_verdicts.yaml",
    output:
        f"{RESULTS}/front.html",
    log:
        f"{LOGS}/front.log",
    benchmark:
        f"{BENCHMARKS}/front.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=told(code)("concord.stages.judge"),
        template=template_digest("front.html"),
        results=lambda wildcards: RESULTS,
        commit=commit(),
    shell:
        "python -m concord front {input.ledger:q} {input.page:q} --results {params.results:q} "
        "--expected {input.expected:q} -o {output:q} 2> {log:q}"


# The report shows what has been made, whatever was asked for: `make report` asks for this.
rule made:
    input:
        lambda wildcards: filter(os.path.exists, outputs(PAPERS)),
        f"{RESULTS}/front.html",
        expand(f"{RESULTS}/{{paper}}/claims.html", paper=PAPERS),


if Path(RESULTS, "front.html").exists():

    report: "../report/workflow.rst"
