"""Nothing in the sources is named by a participle or particle alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = {
    *("beside", "coming", "found", "given", "heard", "held", "here", "kept", "known", "made"),
    *("mine", "near", "own", "said", "seen", "standing", "taken", "through", "told", "tried"),
    *("wanted", "within"),
}


KEYS = {("src/concord/samplers/gossip_ula.py", "known")}  # that studies' files have


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that a module gives to something, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


def poor_names(source: str) -> list[tuple[str, int]]:
    """Return the names in a module's text that say nothing of what they are names of."""
    return [(name, n) for name, n in names(ast.parse(source)) if name.lower().strip("_") in WORDS]


def test_names_say_what_they_are_names_of():
    paths = [path for top in ("src", "config") for path in (ROOT / top).rglob("*.py")]
    poor = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(paths)
        for name, line in poor_names(path.read_text())
        if (str(path.relative_to(ROOT)), name) not in KEYS
    ]
    assert not poor, "\n".join(poor)


def test_a_participle_is_noticed():
    source = "def _told(found):\n    own = found\n    own.kept = 1\nHERE = 2\n"
    poor = [("HERE", 4), ("_told", 1), ("found", 1), ("kept", 3), ("own", 2)]
    assert sorted(poor_names(source)) == poor
