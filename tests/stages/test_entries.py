"""Entries of strangers on the arena's board, fetched cells, and samplers without a law."""

import re
import shutil
from pathlib import Path

import pytest

from concord import plugins
from concord.errors import ConcordError
from concord.make import Batch, at, make
from concord.stages import compete, entries
from concord.studies.config import load_config
from concord.studies.study import Study

ROOT = Path(__file__).resolve().parents[2]
ARENA = ROOT / "config" / "studies" / "arena"


def lazy(folder: Path, with_law: bool = True) -> Path:
    """The example of the documents, with its law or without."""
    text = (ROOT / "docs" / "your-sampler.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    kind = "lazy_de_sgld" if with_law else "lawless_de_sgld"
    path = folder / f"{kind}.py"
    path.write_text(code if with_law else code.partition("def affine")[0])
    return path


@pytest.fixture(scope="module")
def study():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "OPEN", ("tuning",))
        yield Study(ARENA, load_config(ROOT / "config" / "config.yaml", {"scale": "smoke"}))


@pytest.fixture(scope="module")
def added(study, tmp_path_factory) -> Path:
    plugins.use()
    folder = tmp_path_factory.mktemp("added")
    _, kind = plugins.add(lazy(folder))
    (line,) = entries.add(study, kind, folder, folder / "entries")
    assert "2 of 2 cells scored, 2 of them exactly" in line
    return folder / "entries" / kind


@pytest.fixture
def entry(added, tmp_path) -> Path:
    plugins.use()
    plugins.add(added / "lazy_de_sgld.py")
    return Path(shutil.copytree(added, tmp_path / added.name))


def test_an_entry_is_checked_by_its_scores(study, entry, tmp_path):
    assert (entry / "lazy_de_sgld.py").read_bytes() == lazy(tmp_path).read_bytes()
    (line,) = entries.check(study, entry, tmp_path)
    same, count = re.search(r"(\d+) of (\d+) scores are the same", line).groups()
    assert same == count and int(count) > 20


def test_an_exact_score_that_was_changed_is_refused(study, entry, tmp_path):
    table = entry / "scores.csv"
    rows = table.read_text().splitlines()
    number = next(n for n, row in enumerate(rows) if ",worst,b2," in row)
    cells = rows[number].split(",")
    cells[7] = repr(float(cells[7]) * 0.999999)
    table.write_text("\n".join([*rows[:number], ",".join(cells), *rows[number + 1 :], ""]))
    with pytest.raises(ConcordError, match=r"scores.csv: tuning,.* there, .* here"):
        list(entries.check(study, entry, tmp_path))


def test_another_file_or_setting_is_refused(study, entry, tmp_path):
    about = entry / "entry.json"
    text = about.read_text()
    about.write_text(text.replace("Lazy DE-SGLD", "The best of all"))
    with pytest.raises(ConcordError, match=r"entry.json: name is Lazy DE-SGLD here"):
        list(entries.check(study, entry, tmp_path))
    about.write_text(text.replace('"step_size": 0.01', '"step_size": 0.02'))
    with pytest.raises(ConcordError, match=r"entry.json: sampler is"):
        list(entries.check(study, entry, tmp_path))
    about.write_text(re.sub('"sha256": "....', '"sha256": "0000', text))
    with pytest.raises(ConcordError, match="is not the file that was scored"):
        list(entries.check(study, entry, tmp_path))
    about.unlink()
    with pytest.raises(ConcordError, match="it is no entry"):
        list(entries.check(study, entry, tmp_path))


def test_a_score_may_differ_by_rounding_and_not_move_within_its_interval():
    key, ends = ("tuning", "", "mine", "bytes", "9", "worst", "b2"), ("0.5", "1.5", "scored")
    one = (*key, "1.0", *ends)
    assert entries._agree(one, (*key, "1.0000000001", *ends))
    assert not entries._agree(one, (*key, "1.00001", *ends))
    assert not entries._agree(one, (*key, "inf", "", "", "diverged"))
    assert not entries._agree(one, (*key, "small", *ends)) and not entries._agree(one, ())


def test_a_row_too_many_is_refused(study, entry, tmp_path):
    """The right one comes after it, and a page shows both."""
    table = entry / "scores.csv"
    head, first, *rest = table.read_text().splitlines()
    cells = first.split(",")
    flattering = ",".join([*cells[:7], "0.0", *cells[8:]])
    table.write_text("\n".join([head, flattering, first, *rest, ""]))
    with pytest.raises(ConcordError, match=r"scores.csv: tuning.*,0.0,.* there, .* here"):
        list(entries.check(study, entry, tmp_path))


def test_cells_that_others_made_are_fetched(study, tmp_path, monkeypatch):
    plugins.use()
    monkeypatch.chdir(ROOT)
    runs = tuple(r for r in study.runs.values() if r.name.endswith("link=lan+entry=de_sgld"))
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    make(Batch("some", "arena", runs), theirs, Path("resources"), tmp_path / "made.json")
    copy = tmp_path / "elsewhere"  # a cell is found by what it is of, not by where it lies
    shutil.copytree(theirs / runs[0].folder, copy / "any" / "place")
    (line,) = entries.fetch({"arena": study}, ours, copy)
    assert line.startswith("1 of ")
    assert at(runs[0], ours).lacks_metrics() == ""
    table = runs[0].folder + "/metrics.csv"
    assert (ours / table).read_bytes() == (theirs / table).read_bytes()

    shutil.rmtree(ours)
    damaged = copy / "any" / "place" / "metrics.csv"
    damaged.write_text(damaged.read_text().replace("1", "2"))
    with pytest.raises(ConcordError, match="it is damaged"):
        list(entries.fetch({"arena": study}, ours, copy))
    assert not (ours / table).exists()
    with pytest.raises(ConcordError, match="it is no crate, or damaged"):
        list(entries.fetch({"arena": study}, ours, tmp_path / "made.json"))


def test_an_entry_does_not_choose_its_budget(study, tmp_path):
    plugins.use()
    path = lazy(tmp_path)
    entry = {"arena": {"tune": "step_size", "budget": {"gradients": 1e6}}}
    path.write_text(f"{path.read_text()}\n\nENTRY = {entry}\n")
    _, kind = plugins.add(path)
    with pytest.raises(ConcordError, match="ENTRY says budget, which is the same for all"):
        entries.add(study, kind, tmp_path, tmp_path).__next__()


@pytest.mark.thorough
def test_a_sampler_without_a_law_is_compared_where_both_can_be(study, tmp_path):
    plugins.use()
    _, kind = plugins.add(lazy(tmp_path, with_law=False))
    lines = list(compete.compare(study, None, [kind, "de_sgld"], ["noise"], tmp_path))
    start, shown = "Scores are estimated from chains, since no exact law is known of ", lines[1]
    assert lines[0] == f"{start}lawless_de_sgld."
    assert shown.startswith("lawless_de_sgld, tuned on each task: step size from ")
    assert re.search(r" to \S+ \(\d+ settings\); on unknown noise: step size ", shown)
    assert "weights metropolis" in lines[2].partition("; fixed: ")[2]
    assert any(line.startswith("lawless_de_sgld against DE-SGLD, ") for line in lines)


def test_tasks_whose_data_are_not_there_are_left_out(study, tmp_path):
    lines = compete.compare(
        study, "sampled", ["de_sgld", "gossip_ula"], ["even", "cancer"], tmp_path
    )
    assert next(lines).endswith("no exact law is known of Gossip ULA.")
    assert re.match(r"Left out: Breast Cancer, whose data are not in .*; `snakemake", next(lines))
