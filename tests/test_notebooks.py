"""The notebooks of the documents: each runs, is short, draws, and shows what its text says."""

import re
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest

import concord
from concord_studies.pages import notebooks

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
PICTURES = {"first-steps": 5, "own-data-and-network": 3, "own-sampler": 3, "which-sampler": 3}
SECONDS = 20  # of a CPU


def last_w2(law, problem):
    """Return W2 of the worst agent, and of the average, at the last iteration."""
    *agents, average = concord.w2(law, problem).value.isel(draw=-1).values
    return max(agents), average


def check_first_steps(names):
    posterior = np.sqrt(np.diag(names["problem"].posterior.cov))
    spread = names["trace"]["x"][:, 500:].std(axis=(0, 1)), names["trace"]["x_average"][:, 500:]
    assert (spread[0] > 1.1 * posterior).all()
    assert np.allclose(spread[1].std(axis=(0, 1)), posterior, rtol=0.1)
    ends = np.array([last_w2(law, names["problem"]) for law in names["laws"].values()])
    assert (np.diff(ends[:, 0]) < 0).all()
    early = [
        concord.w2(law, names["problem"]).value.sel(draw=100).max()
        for law in names["laws"].values()
    ]
    assert (np.diff(early) > 0).all()


def check_own_data_and_network(names):
    assert names["trace"].agent_names == ["Antwerp", "Bruges", "Ghent", "Liège"]
    assert names["trace"].coordinate_names == ["bmi", "bp", "s5"]
    assert names["table"].r_hat.max() < 1.05
    lossy, kept = (last_w2(law, names["problem"]) for law in names["laws"].values())
    assert lossy[0] > kept[0] and lossy[1] > kept[1]


def check_own_sampler(names):
    twice, other = (last_w2(law, names["problem"])[0] for law in names["laws"].values())
    assert twice < 0.9 * other
    assert {*names["answer"].table.sampler} == {"TwoRounds", "de_sgld"}
    assert {*names["best"].table.sampler} == {"TwoRounds", "DE-SGLD", "EXTRA-SGLD"}
    assert not (concord.test(names["TwoRounds"]).ended == "failed").any()


def check_which_sampler(names):
    best = names["answer"].table.iloc[0]
    assert (best["sampler"], best["read"]) == ("D-ADMMS", "average")
    average = names["measured"].sel(agent="average")
    assert average.lo <= best.b2 <= average.hi
    draws, posterior = names["trace"]["x_average"][:, 40:], names["problem"].posterior
    assert (draws.std(axis=(0, 1)) < np.sqrt(np.diag(posterior.cov)) / 2).all()
    assert (np.abs(posterior.mean) > 5 * np.sqrt(np.diag(posterior.cov))).all()
    averages = {name: last_w2(law, names["problem"])[1] for name, law in names["laws"].items()}
    assert max(averages, key=averages.get) == "admm"
    assert names["fewer"].table.set_index("sampler").why["D-ADMMS"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_a_notebook_runs_draws_and_says_what_is_so(name):
    text, names, start = (FOLDER / f"{name}.md").read_text(), {}, time.process_time()
    cells = list(notebooks.execute(text, names))
    assert time.process_time() - start < SECONDS
    pictures = [cell for cell in cells if hasattr(cell.value, "_repr_png_")]
    assert len(pictures) == PICTURES[name]
    assert all(cell.value._repr_png_().startswith(b"\x89PNG") for cell in pictures)
    globals()[f"check_{name.replace('-', '_')}"](names)


def test_notebooks_are_short_and_their_texts_have_no_numbers():
    assert {path.stem for path in FOLDER.iterdir()} == {*PICTURES}
    for name in PICTURES:
        parts = notebooks.CELL.split((FOLDER / f"{name}.md").read_text())
        assert len(parts) // 2 <= 12
        assert all(cell.count("\n") <= 12 for cell in parts[1::2])
        for words in parts[::2]:
            assert not re.search(r"(?<![\w{^_])\d", re.sub(r"\$\$.*?\$\$", "", words)), words


def test_a_page_has_what_cells_print_and_draw_and_a_file_for_jupyter(tmp_path):
    path = tmp_path / "one.md"
    cell = "import concord\n\nprint('*')\nconcord.network('ring', 3)"
    path.write_text(
        f"# One\n\nWords.\n\n```python\n{cell}.plot()\n```\n\n```python\n{cell}\n```\n\nEnd.\n"
    )
    notebooks.write_executed(path)
    page = path.read_text()
    assert page.count("~~~text\n*\n~~~") == 2 and page.endswith("End.\n")
    assert page.startswith("# One\n\n{download}`The same for Jupyter <one.ipynb>`\n\nWords.")
    assert '~~~{image} one-1.png\n:alt: "Words."\n' in page and "<th>agents</th>" in page
    assert (tmp_path / "one-1.png").read_bytes().startswith(b"\x89PNG")
    book = nbformat.read(tmp_path / "one.ipynb", as_version=4)
    nbformat.validate(book)
    assert [each.cell_type for each in book.cells] == ["markdown", "code", "code", "markdown"]
    assert book.cells[1].source == f"{cell}.plot()"


def test_a_class_of_a_cell_shows_its_source(tmp_path):
    import inspect

    names = {"__name__": "__main__"}
    list(notebooks.execute("```python\ndef add(x):\n    return x + 1\n```\n", names))
    assert inspect.getsource(names["add"]) == "def add(x):\n    return x + 1\n"
