"""The command `check`."""

import re

from concord_cli.__main__ import main


def test_check_names_the_runs_that_will_diverge(tmp_path, monkeypatch, capsys):
    """And the step below which they do not, which is that of the exact law."""
    monkeypatch.chdir(tmp_path)
    assert main(["init", "steps"]) == 0
    path = tmp_path / "steps/config/papers/steps/study.yaml"
    path.write_text(
        path.read_text().replace("kind: de_sgld, step_size: 0.005", "kind: de_sgld, step_size: 0.5")
    )
    monkeypatch.chdir(tmp_path / "steps")
    capsys.readouterr()
    assert main(["check", "config/papers/steps"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.split()) == 4
    limits = re.findall(r"sampler=de_sgld: its chains will diverge; .* below ([0-9.]+)", shown.err)
    assert len(limits) == 2 and len(shown.err.splitlines()) == 2
    stable = path.read_text().replace(
        "step_size: 0.5", f"step_size: {0.99 * min(map(float, limits))}"
    )
    path.write_text(stable)
    assert main(["check", "config/papers/steps"]) == 0 and capsys.readouterr().err == ""
