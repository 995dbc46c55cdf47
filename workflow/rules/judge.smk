# judge: verdicts on the papers' claims, and the ledger that joins them.
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
        "-o {output.csv:q} {output.md:q} 2> {log:q}"


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
    log:
        f"{LOGS}/join.log",
    benchmark:
        f"{BENCHMARKS}/join.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "python -m concord ledger {input.tables:q} -o {output.csv:q} {output.md:q} 2> {log:q}"


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


# The report shows what has been made, whatever was asked for: `make report` asks for this.
rule made:
    input:
        standing(outputs(STUDIES)),
        CLAIMS,
