"""Every Python block of the README and the docs runs."""

import re
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_blocks_run(page, tmp_path, monkeypatch, capsys):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    if page.name == "README.md":
        assert "square" in capsys.readouterr().out
        assert (tmp_path / "model.json").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_and_files_exist(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
    for module in re.findall(r"python -m (benchmarks\.\w+)", page.read_text()):
        assert (ROOT / (module.replace(".", "/") + ".py")).exists(), module
