"""Distributions of plug-ins, as an installer leaves them."""

from pathlib import Path

LADDER = '''"""Two lines of agents, side by side, with rungs between them."""

{imports}
from concord.errors import ConcordError
from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params, agents):
    import networkx as nx

    if agents % 2:
        raise ConcordError(f"{{agents}} agents make no rails; use an even number")
    return nx.convert_node_labels_to_integers(nx.ladder_graph(agents // 2))
'''


def install(site: Path, name: str, files: dict[str, str], entry: str = "") -> None:
    """Write a distribution as an installer does; ``entry`` is the module of a topology, rungs."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    entries = f"[concord.topologies]\nrungs = {entry}\n" if entry else ""
    about = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"}
    about["entry_points.txt"] = entries
    files = files | {f"{info}/{file}": text for file, text in about.items()}
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    (site / info / "RECORD").write_text(record)
