# compete: an entry of the arena on all tasks of an experiment.
CELL_FILES = ("run.yaml", "metrics.csv", "metrics.json", "choice.yaml")


for key, study in STUDIES.items():
    for experiment in study.arenas:
        for entry, own in entries(key, experiment).items():

            rule:
                name:
                    "_".join(("compete", key, experiment, re.sub(r"\W", "_", entry)))
                input:
                    [
                        outdated(f"{RESULTS}/{run.folder}/metrics.csv", scored_from(run.mapping))
                        for run in own
                    ],
                    data=sorted({file for run in own for file in data_files(run.mapping)}),
                output:
                    [f"{RESULTS}/{run.folder}/{file}" for run in own for file in CELL_FILES],
                log:
                    f"{LOGS}/{key}/{experiment}/{entry}.log",
                benchmark:
                    f"{BENCHMARKS}/{key}/{experiment}/{entry}.tsv"
                group:
                    "entries"
                conda:
                    ENVIRONMENT
                resources:
                    mem_mb=growing(1000),
                    runtime=growing(60 if CONFIG["scale"] == "full" else 10),
                params:
                    settings=SETTINGS,
                    results=lambda wildcards: str(PLACE),
                    paper=str(study.path),
                    names=(experiment, entry),
                shell:
                    "python -m concord compete {params.paper:q} {params.names:q} {params.settings} "
                    "--results {params.results:q} 2> {log:q}"


rule board:
    input:
        lambda wildcards: metrics(cells_of(wildcards)),
        outdated=outdated(
            f"{RESULTS}/{{paper}}/scores.csv",
            lambda wildcards: stages.compete.board_made(paper_of(wildcards), PLACE),
        ),
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
        settings=SETTINGS,
        results=lambda wildcards: str(PLACE),
        paper=lambda wildcards: str(paper_of(wildcards).path),
    shell:
        "python -m concord board {params.paper:q} {params.settings} --results {params.results:q} "
        "2> {log:q}"
