"""Write the version into CITATION.cff, and .zenodo.json and codecheck.yml from that.

python .ci/metadata.py                    the three files, of the checkout
python .ci/metadata.py sbom bom.json      CycloneDX 1.6, by cyclonedx-bom: hashes as the lock has
                                          them, licenses as the installed packages state them
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LACKING = """\
# A draft: what a CODECHECK certificate needs besides is a check by somebody else, which nobody has
# done. Missing are codechecker, check_time, certificate, report, repository and the papers' own
# reference here. Written by `make metadata`; `snakemake everything` makes the manifest's files.
"""


def author(entry: dict[str, str]) -> dict[str, str]:
    """Return a creator as Zenodo has it."""
    if "name" in entry:
        return {"name": entry["name"]}
    found = {"name": f"{entry['family-names']}, {entry['given-names']}"}
    if "orcid" in entry:
        found["orcid"] = entry["orcid"].rpartition("/")[2]
    return found


def texts() -> dict[str, str]:
    """Return the three files by name."""
    import yaml

    import concord
    from concord_studies.configuration.project import load_studies

    citation = (ROOT / "CITATION.cff").read_text()
    citation = re.sub(r"^version: .*$", f"version: {concord.__version__}", citation, flags=re.M)
    stated = yaml.safe_load(citation)
    people = [author(entry) for entry in stated["authors"]]
    zenodo = {
        "title": stated["title"],
        "upload_type": "software",
        "description": stated["abstract"],
        "creators": people,
        "license": stated["license"],
        "keywords": stated["keywords"],
        "version": stated["version"],
    }
    _, studies = load_studies(ROOT / "config", checked=True)
    manifest = [
        {"file": f"results/{key}/{section}/{name}.{ending}", "comment": f"{key}, {section} {name}"}
        for key, study in studies.items()
        if study.printed
        for section, ending in (("figures", "pdf"), ("tables", "csv"))
        for name in study.outputs(section)
    ]
    codecheck = {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "paper": {"title": stated["title"], "authors": people},
        "manifest": manifest,
    }
    dumped = yaml.safe_dump(codecheck, sort_keys=False, allow_unicode=True, width=100)
    return {
        "CITATION.cff": citation,
        ".zenodo.json": json.dumps(zenodo, indent=2, ensure_ascii=False) + "\n",
        "codecheck.yml": LACKING + dumped,
    }


def sbom(output: Path) -> None:
    """Write the packages of the lock, with their hashes, and the licenses of those installed."""
    command = [Path(sys.executable).with_name("cyclonedx-py")]

    def made(*arguments: str) -> dict:
        options = ("--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml"))
        done = subprocess.run([*command, *arguments, *options], capture_output=True, check=True)
        return json.loads(done.stdout)

    found = made("requirements", str(ROOT / "envs" / "requirements.lock"))
    there = made("environment", str(ROOT / ".venv" / "bin" / "python"))["components"]
    licenses = {(part["name"].lower(), part["version"]): part.get("licenses") for part in there}
    for part in found["components"]:
        if own := licenses.get((part["name"].lower(), part.get("version"))):
            part["licenses"] = own
    output.write_text(json.dumps(found, indent=1) + "\n")
    named = sum("licenses" in part for part in found["components"])
    print(f"{output}: {len(found['components'])} packages, {named} with a license")


if __name__ == "__main__":
    if sys.argv[1:2] == ["sbom"]:
        sbom(Path(sys.argv[2]))
    else:
        for name, text in texts().items():
            (ROOT / name).write_text(text)
