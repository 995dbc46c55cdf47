"""YAML that is meant to harm: it is refused at its line, quickly, and nothing of it is executed."""

import pytest

from concord.errors import ConcordError
from concord_studies.configuration.study import Study
from concord_studies.io import DEEPEST, LARGEST, load_yaml

DEEP = 100_000  # at which PyYAML's parser crashes the process


def laughs(template: str) -> str:
    """Ten aliases to ten aliases to ten aliases, nine times: a billion values."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, 10):
        inner = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} {template.format(inner)}")
    return "\n".join(lines)


HOSTILE = {
    "deep lists": ("[" * DEEP + "]" * DEEP, rf"line 1 column {DEEPEST + 1}: nested more than"),
    "deep mappings": ("{a: " * DEEP, "line 1 column 201: nested more than"),
    "deep blocks": ("\n".join(" " * i + "a:" for i in range(300)), "line 51 column 51: nested"),
    "deep dashes": ("- " * DEEP, "line 1 column 101: nested more than"),
    "a billion laughs": (laughs("[{}]"), rf"line 5 column \d+: more than {LARGEST} values"),
    "a billion merges": (laughs("{{<<: [{}]}}"), rf"line 5 column \d+: more than {LARGEST}"),
    "too many values": ("[" + "1," * (LARGEST + 9) + "]", f"more than {LARGEST} values"),
    "an alias within itself": ("a: &a\n  b: [*a]", "line 1 column 4: has an alias of itself"),
    "an anchor again": ("x: &a 1\ny: &a [*a]", "line 2 column 4: second occurrence"),
    "a merge of itself": ("a: &a\n  <<: *a", "line 1 column 4: has an alias of itself"),
    "a merge of a number": ("<<: 3\nb: 1", "line 1 column 5: expected a mapping"),
    "an unknown alias": ("a: *nix", "line 1 column 4: found undefined alias"),
    "an object": ("!!python/object/apply:os.system ['touch pwned']", "line 1 column 1: the tag"),
    "a name": ("a: !!python/name:os.system", "line 1 column 4: the tag '.*os.system' is not"),
    "a module": ("a: !!python/module:os", "line 1 column 4: the tag"),
    "a set": ("a: !!set {b}", "line 1 column 4: the tag"),
    "an ordered map": ("a: !!omap [b: 1]", "line 1 column 4: the tag"),
    "bytes": ("a: !!binary aGk=", "line 1 column 4: the tag"),
    "a wrong date": ("a: !!timestamp 2001-99-99", "line 1 column 4: the tag"),
    "an integer that is none": ("a: !!int x", "line 1 column 4: the tag"),
    "a tag of its own": ("a: !mine x", "line 1 column 4: the tag '!mine' is not allowed"),
    "a key twice": ("a: 1\nb: 2\na: 3", "line 3 column 1: the key 'a' is in line 1 too"),
    "a key twice, inside": ("a:\n  b: 1\n  'b': 2", "line 3 column 3: the key 'b' is in line"),
    "a merge twice": ("a: &a {b: 1}\nc:\n  <<: *a\n  <<: *a", "line 4 column 3: the key '<<'"),
    "a list as key": ("? [a]\n: 1", "line 1 column 3: the key here is not text"),
    "a number as key": ("1: a", "line 1 column 1: the key 1 is not text"),
    "true as key": ("yes: a", "line 1 column 1: the key yes is not text"),
    "null as key": ("~: a", "line 1 column 1: the key ~ is not text"),
    "a key of two lines": ('"a\\nb": 1', r"line 1 column 1: the key 'a\\nb' is not text"),
    "a long key": (f"{'a' * 101}: 1", "line 1 column 1: the key 'aaa.* is longer than 100"),
    "a control character": ("a: 1\nb: \x07", r"line 2 holds a character that .* \(U\+0007\)"),
    "a NUL": ("é: 1\nb: \0", r"line 2 holds a character that .* \(U\+0000\)"),
    "UTF-16": ("a: 1".encode("utf-16"), "line 1 is not UTF-8 text"),
    "Latin-1": ("a: 1\nb: \xe9".encode("latin-1"), "line 2 is not UTF-8 text"),
    "a tab": ("a:\n\tb: 1", "line 2 column 1: found character that cannot start any token"),
    "two documents": ("a: 1\n---\nb: 1", "line 2 column 1: but found another document"),
    "an open quote": ("a: 'b\nc: 1\n", r"line \d+ column \d+: found unexpected end of stream"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_at_its_line(name, tmp_path, monkeypatch, reliability):
    monkeypatch.chdir(tmp_path)
    text, message = HOSTILE[name]
    path = tmp_path / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rule = "refused with file and line, nothing executed"
    with reliability.trial("inputs", "hostile YAML: bombs, depth, tags, keys", rule):
        with pytest.raises(ConcordError, match=message) as caught:
            load_yaml(path)
        assert str(caught.value).startswith(f"{path}: line ") and str(caught.value).isprintable()
        assert [p.name for p in tmp_path.iterdir()] == ["x.yaml"]


def test_a_long_text_is_read_and_told_in_short(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "study.yaml").write_text(
        f"paper: {{title: T, authors: A, year: {'y' * 10**6}}}\nexperiments: {{a: {{}}}}"
    )
    with pytest.raises(
        ConcordError, match=r"paper\.year: 'yyy.*\.\.\. is not an integer"
    ) as caught:
        Study(tmp_path / "x", {})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("010", "010"), ("1:30", "1:30"), ("1:30.5", "1:30.5"), ("2021-11-20", "2021-11-20")),
        *(("1e-4", 1e-4), ("1E5", 1e5), ("-2e+3", -2e3), ("1.5e3", 1500.0), ("1.0e-4", 1e-4)),
        *(("e5", "e5"), ("1e", "1e"), ("1e5x", "1e5x"), ("9" * 302 + "e5", "9" * 302 + "e5")),
        *(("0x10", 16), ("1_000", 1000), ("0b_", "0b_")),
        *(("yes", True), ("off", False), ("~", None), ("=", "="), ("-.inf", -float("inf"))),
        *(("9" * 5000, "9" * 5000), ("12345678901234567890", 12345678901234567890)),
        *(("-7", -7), ("+.5", 0.5), ("08", "08"), ("0", 0), ("1.5.2", "1.5.2")),
    ],
)
def test_what_plain_values_are(text, value, tmp_path):
    (tmp_path / "x.yaml").write_text(f"a: {text}")
    assert load_yaml(tmp_path / "x.yaml") == {"a": value}


def test_anchors_and_merges_still_work(tmp_path):
    (tmp_path / "x.yaml").write_text("a: &a {b: 1, c: 2}\nd: {<<: *a, c: 3}\ne: *a")
    found = load_yaml(tmp_path / "x.yaml")
    assert found == {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}, "e": {"b": 1, "c": 2}}
