"""Validates a crate without internet, with roc-validator: python valid_crate.py CONTEXT CRATE.

The validator has the profiles, but not the JSON-LD context of RO-Crate 1.1: here it gets that of
1.3, which ``rocrate`` has, with the four terms that 1.1 has under other addresses. It prints what
is not valid.
"""

import sys
from pathlib import Path

from requests import Response
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.services import validate
from rocrate_validator.utils.http import HttpRequester

WORKFLOW = "https://bioschemas.org/ComputationalWorkflow"
TERMS = {
    "ComputationalWorkflow": WORKFLOW,
    "FormalParameter": "https://bioschemas.org/FormalParameter",
    "input": f"{WORKFLOW}#input",
    "output": f"{WORKFLOW}#output",
}

context, crate = sys.argv[1:]


def get(url, **_):
    answer = Response()
    answer.status_code, answer.url = 200, url
    answer.headers["Content-Type"] = "application/ld+json"
    text = Path(context).read_text()
    for term, address in TERMS.items():
        text = text.replace(f'"https://bioschemas.org/terms/{term}"', f'"{address}"')
    answer._content = text.encode()
    if "w3id.org/ro/crate/1.1/context" not in url:
        answer.status_code = 504
    return answer


HttpRequester().get = get
found = {}
for severity in (Severity.REQUIRED, Severity.RECOMMENDED):
    result = validate(
        ValidationSettings(
            rocrate_uri=crate,
            profile_identifier="workflow-run-crate-0.5",
            requirement_severity=severity,
            offline=True,
            cache_path=str(Path(crate).with_suffix(".cache")),
            skip_availability_check=True,
            enable_profile_inheritance=True,
        )
    )
    found[severity] = sorted({f"{i.check.identifier}: {i.message}" for i in result.get_issues()})
    print(severity.name, "valid" if result.passed() else "not valid", *found[severity], sep="\n  ")
