"""YAML as plain data: what values are, and what is refused at its line."""

import pytest

from concord.errors import ConcordError
from concord_studies.io import load_yaml

REFUSED = {
    "an object": ("!!python/object/apply:os.system ['touch pwned']", "line 1 column 1: the tag"),
    "a name": ("a: !!python/name:os.system", "line 1 column 4: the tag '.*os.system' is not"),
    "a set": ("a: !!set {b}", "line 1 column 4: the tag"),
    "an integer that is none": ("a: !!int x", "invalid literal for int"),
    "a tag of its own": ("a: !mine x", "line 1 column 4: the tag '!mine' is not allowed"),
    "a key twice": ("a: 1\nb: 2\na: 3", "line 3 column 1: the key 'a' is in line 1 too"),
    "a key twice, inside": ("a:\n  b: 1\n  'b': 2", "line 3 column 3: the key 'b' is in line"),
    "a merge of a number": ("<<: 3\nb: 1", "line 1 column 5: expected a mapping"),
    "an unknown alias": ("a: *nix", "line 1 column 4: found undefined alias"),
    "a list as key": ("? [a]\n: 1", "line 1 column 3: the key 'here' is not text"),
    "a number as key": ("1: a", "line 1 column 1: the key '1' is not text"),
    "true as key": ("yes: a", "line 1 column 1: the key 'yes' is not text"),
    "a key of two lines": ('"a\\nb": 1', r"line 1 column 1: the key 'a\\nb' is not text"),
    "a control character": ("a: 1\nb: \x07", "control characters are not allowed.*; correct the"),
    "Latin-1": ("a: 1\nb: \xe9".encode("latin-1"), "line 2 is not UTF-8 text"),
    "a tab": ("a:\n\tb: 1", "line 2 column 1: found character that cannot start any token"),
    "two documents": ("a: 1\n---\nb: 1", "line 2 column 1: but found another document"),
}


# From ten bytes to 9 MB; read whole, or handed on, they take all memory, or the stack.
BOMB = "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(12))
MERGES = "".join(f"a{i + 1}: &a{i + 1} {{<<: [{', '.join([f'*a{i}'] * 9)}]}}\n" for i in range(12))
UNBOUNDED = {
    "an alias bomb": (f"a0: &a0 x\n{BOMB}", "line 7 column .* stand for more than 100,000 values"),
    "a bomb of merges": (f"a0: &a0 {{x: 1}}\n{MERGES}", "line 6 column .*use fewer aliases"),
    "a list in itself": ("a: &a [*a]", "line 1 column 8: the alias 'a' is inside its own value"),
    "a mapping in itself": ("&a\nb: {c: *a}", "line 2 column 8: the alias 'a' is inside its own"),
    "a merge of itself": ("a: &a {<<: *a}", "line 1 column 12: the alias 'a' is inside its own"),
    "nested keys": ("".join(f"{' ' * i}k:\n" for i in range(3000)), "line 101 column 101: values"),
    "brackets": ("[" * 100_000, "line 1 column 101: values are nested more than 100 deep"),
    "braces": ("{a: " * 100_000 + "}" * 100_000, "line 1 column 401: values are nested more"),
    "dashes": ("- " * 100_000 + "x", "line 1 column 201: values are nested more than 100 deep"),
}
REFUSED |= UNBOUNDED


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_plain_data_is_refused_at_its_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, message = REFUSED[name]
    path = tmp_path / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConcordError, match=message) as caught:
        load_yaml(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert [p.name for p in tmp_path.iterdir()] == ["x.yaml"]  # nothing was executed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("010", "010"), ("1:30", "1:30"), ("1:30.5", "1:30.5"), ("2021-11-20", "2021-11-20")),
        *(("1e-4", 1e-4), ("1E5", 1e5), ("-2e+3", -2e3), ("1.5e3", 1500.0), ("1.0e-4", 1e-4)),
        *(("e5", "e5"), ("1e", "1e"), ("1e5x", "1e5x"), ("0x10", 16), ("1_000", 1000)),
        *(("yes", True), ("off", False), ("~", None), ("=", "="), ("-.inf", -float("inf"))),
        *(("-7", -7), ("+.5", 0.5), ("08", "08"), ("0", 0), ("1.5.2", "1.5.2"), ("5.", 5.0)),
    ],
)
def test_what_plain_values_are(text, value, tmp_path):
    (tmp_path / "x.yaml").write_text(f"a: {text}")
    found = load_yaml(tmp_path / "x.yaml")["a"]
    assert found == value and type(found) is type(value)


def test_anchors_and_merges_still_work(tmp_path):
    (tmp_path / "x.yaml").write_text("a: &a {b: 1, c: 2}\nd: {<<: *a, c: 3}\ne: *a")
    found = load_yaml(tmp_path / "x.yaml")
    assert found == {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}, "e": {"b": 1, "c": 2}}
