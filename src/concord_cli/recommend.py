"""The command ``recommend``: which sampler for the tasks of an experiment, or of a runs.yaml."""

from argparse import Namespace

import pandas

from concord.errors import ConcordError
from concord_arena.board import choose_tasks, name_task
from concord_arena.recommendation import recommend as answer_of
from concord_cli.runs import read_study
from concord_studies.experiment import read_runs
from concord_studies.io import whole_file, write_whole
from concord_studies.runs.run import Run


def recommend(options: Namespace) -> None:
    """Print an answer for every task, and write tables and figures."""
    answers, tables = {}, []
    for task, run in _tasks(options).items():
        answer = answers[task] = answer_of(
            run.build_problem(options.resources, run.problem.name),
            run.network_of_agents,
            budget=dict(options.budget or ()),
            target=options.target,
            price=options.price,
            by=options.by,
            initial=run.document["initial"],
            batch_size=options.batch_size,
            chains=options.chains,
            verify=options.verify,
            seed=run.seed,
            memory=options.memory,
        )
        print(f"{task}: {answer}")
        if answer.verified is not None:
            print(answer.verified.to_string(index=False))
        tables.append(answer.table.assign(task=task))
    for path in options.output or ():
        if path.suffix == ".csv":
            write_whole(path, pandas.concat(tables).to_csv(index=False))
            continue
        if len(answers) > 1:
            raise ConcordError(
                f"{path}: a figure shows one task, and there are {len(answers)}; choose one with "
                f"--tasks, such as {next(iter(answers))}"
            )
        with whole_file(path) as part:
            next(iter(answers.values())).plot().savefig(part, format=path.suffix[1:])


def _tasks(options: Namespace) -> dict[str, Run]:
    """Return a run of each task by name: a problem on a network."""
    if options.study.is_file():
        return dict(read_runs(options.study).runs)
    study = read_study(options)
    tasks: dict[str, Run] = {}
    distinct = set()
    for run in study.runs_of(options.experiment):
        task_options = [
            run.document.get(key) for key in ("problem", "topology", "network", "agents")
        ]
        if str(task_options) not in distinct:
            distinct.add(str(task_options))
            labels = {key: label for key, label in run.labels.items() if key != "sampler"}
            tasks[name_task(labels)] = run
    chosen = choose_tasks([*tasks.values()], options.tasks)
    return {task: run for task, run in tasks.items() if run in chosen}
