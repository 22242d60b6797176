"""Every code block of the README and the docs runs, as it stands there.

Python blocks of a page share a namespace. Of the shell blocks the lines that begin with `partwise`
run, in a folder that has the files they name, with few scenes. A block under `<!-- slow -->` is not
run; its commands and options must exist.
"""

import re
import shlex
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from typer.testing import CliRunner

import partwise as pw
from partwise.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCENES = "12"
"""Instead of as many as a command asks for."""

BLOCK = re.compile(r"^(<!-- slow -->\n)?```(\w*)\n(.*?)^```", re.M | re.S)


def commands(text, slow):
    """The lines of shell blocks that call partwise, as lists of words."""
    for mark, language, block in BLOCK.findall(text):
        if language in ("", "bash", "sh") and bool(mark) == slow:
            for line in block.splitlines():
                if line.startswith("partwise "):
                    yield shlex.split(line, comments=True)[1:]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the commands run: with the scenes and the model that they name."""
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("partwise.cli.options.cache_compilations", lambda: None)
    monkeypatch.setattr("partwise.evaluation.TIMED_SCENES", int(SCENES))
    scenes = pw.simulate_constellations(int(SCENES), 0.1, 0)
    pw.write_labelled("scenes.npz", scenes)
    rows = [f"{i},{x},{y}" for i, s in enumerate(scenes.scenes[:3]) for x, y in s.parts]
    Path("scenes.csv").write_text("\n".join(["scene,x,y", *rows]) + "\n")
    pw.constellations().save("model.json")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_blocks_run(page, folder, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    plt.close("all")
    if page.name == "README.md":
        assert "square" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_run(page, folder):
    for words in commands(page.read_text(), slow=False):
        before = ["", *words[:-1]]
        small = [SCENES if b == "--scenes" else w for b, w in zip(before, words, strict=True)]
        result = CliRunner().invoke(app, small)
        assert result.exit_code == 0, (words, result.output)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_are_not_run_exist(page):
    for words in commands(page.read_text(), slow=True):
        result = CliRunner().invoke(app, [*words, "--help"])
        assert result.exit_code == 0, (words, result.output)


def test_an_option_that_does_not_exist_would_be_found():
    assert CliRunner().invoke(app, ["movie", "--no-such-option", "--help"]).exit_code != 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_and_files_exist(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
    for module in re.findall(r"python -m (benchmarks\.\w+)", page.read_text()):
        assert (ROOT / (module.replace(".", "/") + ".py")).exists(), module


def test_every_page_is_on_the_site():
    text = (ROOT / "mkdocs.yml").read_text()
    missing = [p.name for p in PAGES[1:] if f": {p.name}" not in text]
    assert not missing, f"put them into mkdocs.yml, nav: {missing}"
