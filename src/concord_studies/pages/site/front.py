"""The first page: what was found, how to start, and from what the site was made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord_studies.claims import ledger
from concord_studies.claims.ledger import Row, is_smoke
from concord_studies.configuration.study import Study
from concord_studies.markup import fence, fold, markdown
from concord_studies.pages import claims as of_claims
from concord_studies.pages.findings import format_sentence, group_by_sentence
from concord_studies.provenance import describe

LEAD = """Each agent of a network, say a hospital, keeps its data to itself and exchanges its
current samples with neighbors only. Together the agents sample the posterior that all data give.
Concord reproduces the papers on such samplers figure by figure, judges every claim by a stated
rule, and compares all samplers, yours too, at the same price: gradients computed, or bytes sent."""
# What the first page leads to, where the documents are at hand.
START = (
    ("docs/your-data", "Sample your own data in a notebook"),
    ("docs/your-sampler", "Compare your own sampler with DE-SGLD, in ten minutes"),
    ("docs/recommend", "Find the sampler for your problem, network and budget"),
    ("docs/reproduce", "Reproduce a paper"),
)
COMMANDS = """snakemake          # every figure and table that needs no download
snakemake ledger   # the verdicts, and the runs that only they read
snakemake site     # these pages, of whatever has been made"""

PICTURE = (
    "Fig. 3 of Gürbüzbalaban and others (2021), reproduced: with DE-SGHMC an agent's draws stay "
    "far from the posterior on every network, while the network average comes close."
)


def page(
    settings: Mapping[str, Any],
    studies: Mapping[str, Study],
    rows: Sequence[Row],
    has: Callable[[str], bool],
) -> list[str]:
    """Return the lines of the first page: what was found, and how to start.

    has: whether there is a page of a name.
    """
    lines = ["# Concord", "", LEAD, ""]
    if settings["scale"] == "smoke":
        lines += [f"**{ledger.SMOKE}**", ""]
    if findings := _list_findings(studies, rows, settings["findings"]):
        lines += ["## What was found", "", of_claims.describe_verdicts(rows, ""), "", *findings, ""]
        lines += ["[All claims of all papers](claims.md)", ""]
    if has("README"):
        lines += [f"![{PICTURE}](docs/example.png)", "", f"*{PICTURE}*", ""]
    started = [f"- [{text}]({name}.md)" for name, text in START if has(name)]
    return [*lines, "## How to start", "", *started, "", *fence("text", COMMANDS)]


def describe_origin(settings: Mapping[str, Any], compared: ledger.Comparison) -> list[str]:
    """Return lines on the versions that made the site, and on verdicts that differ.

    compared: verdicts beside the committed ones.
    """
    about = describe()
    lock = (about["lock"] or "unknown")[:12]
    lines = [
        "## How it was made",
        "",
        f"Concord {about['concord']}, commit `{about['commit'] or 'unknown'}`, master seed "
        f"{settings['seed']}, Python {about['python']}, libraries of the lock file `{lock}`. Every "
        "figure has its provenance beside it.",
        "",
    ]
    if compared.compared is not None:
        others = (*compared.changed, *compared.seeds, *compared.new)
        listed = [f"- {markdown(line)}" for line in others]
        lines += [markdown(compared.text), "", *fold("Which are not the same", listed)]
    return lines


def _list_findings(
    studies: Mapping[str, Study], rows: Sequence[Row], chosen: Sequence[str]
) -> list[str]:
    """Return the rows of the claims that the first page lists.

    chosen: claims that the configuration names; none: the first five.
    """
    stated = {f"{key}/{claim}" for key, study in studies.items() for claim in study.claims}
    for name in chosen:
        if name not in stated:
            raise ConcordError(
                f"config.yaml: findings: there is no claim {short(name)}; {nearest(name, stated)}"
            )
    judged = {f"{s.first_row['paper']}/{s.first_row['claim']}": s for s in group_by_sentence(rows)}
    lines = []
    for name in [name for name in chosen if name in judged] or list(judged)[:5]:
        study = studies[judged[name].first_row["paper"]]
        text = format_sentence(judged[name], study.sections.names, is_smoke(rows))
        lines.append(f"{text} ([{markdown(study.name)}](papers/{study.key}.md))")
    return lines
