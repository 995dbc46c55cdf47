# judge: verdicts on the papers' claims, and the ledger that joins them.
rule judge:
    input:
        judged,
        modules=modules("concord.stages.judge"),
    output:
        csv=f"{RESULTS}/{{paper}}/claims.csv",
        md=f"{RESULTS}/{{paper}}/claims.md",
    log:
        f"{RESULTS}/logs/{{paper}}/judge.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{paper}}/judge.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=SETTINGS,
        results=lambda wildcards: RESULTS,
        paper=lambda wildcards: str(paper_of(wildcards).path),
        claims=lambda wildcards: digest(paper_of(wildcards).mapping),
    shell:
        "python -m concord judge {params.paper:q} {params.settings} --results {params.results:q} "
        "-o {output.csv:q} {output.md:q} 2> {log:q}"


rule join:
    input:
        tables=expand(f"{RESULTS}/{{paper}}/claims.csv", paper=JUDGED),
        modules=modules("concord.stages.judge"),
        template="workflow/report/ledger.html",
    output:
        csv=f"{RESULTS}/claims.csv",
        md=f"{RESULTS}/claims.md",
        html=report(
            f"{RESULTS}/ledger.html",
            caption="../report/ledger.rst",
            category="ledger",
            labels={"name": "claims and verdicts", "format": "html"},
        ),
    log:
        f"{RESULTS}/logs/join.log",
    benchmark:
        f"{RESULTS}/benchmarks/join.tsv"
    conda:
        ENVIRONMENT
    threads: 1
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
        f"{RESULTS}/logs/compare.log",
    benchmark:
        f"{RESULTS}/benchmarks/compare.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        strict="--strict" if CONFIG["strict"] else "",
    shell:
        "python -m concord compare {input.ledger:q} --expected {input.expected:q} {params.strict} "
        "> {output:q} 2> {log:q}"
