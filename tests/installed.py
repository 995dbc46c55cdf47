"""A distribution as an installer leaves it, and a plug-in that it may have."""

from pathlib import Path

LADDER = '''"""Two lines of agents, side by side, with rungs between them."""

{imports}
from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params, agents):
    import networkx as nx

    return nx.convert_node_labels_to_integers(nx.ladder_graph(agents // 2))
'''


def install(site: Path, name: str, files: dict[str, str], entry: str = "", **more: str) -> None:
    """Write a distribution as an installer does; ``more`` are files of its metadata."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{more.pop('requires', '')}"
    entries = f"[concord.topologies]\nrungs = {entry}\n" if entry else ""
    about = {"METADATA": metadata, "entry_points.txt": entries, **more}
    files = files | {f"{info}/{file}": text for file, text in about.items()}
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    (site / info / "RECORD").write_text(record)
