"""The page of the whole report: what it shows, and that it needs nothing beside it."""

import re
from html.parser import HTMLParser

import pytest

import partwise as pw
from partwise.paper import EXPERIMENTS, Entry
from partwise.paper.reporting import Report, write_report
from partwise.paper.tables import Claim, Grid, Measured
from partwise.plotting.saving import save
from partwise.report import write_page


class Page(HTMLParser):
    """All tags with their attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def with_one_experiment(folder):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot([1, 2])
    picture = save(figure, folder, "first", "Two points & a line.")
    cells = [
        Measured(0.9, 0.01, 0.8),
        Measured(0.80, 0.01, 0.81),
        Measured(0.7, 0.01, 0.8),
        Measured(0.7, 0.01, 0.8, more=False),
    ]
    lines = [["<accuracy>", name, cell] for name, cell in zip("abcd", cells, strict=True)]
    lines.append(["words", "", Claim("in 3 of 4", False)])
    grid = Grid("A table", ["metric", "model", "figure"], lines)
    report = Report("It says *so*.", "- one\n- two", [grid], [grid], [picture], [{"a": 1}])
    write_report(folder, "first", "The first", report, 3, 61.0)


@pytest.fixture
def page(tmp_path, monkeypatch):
    entries = {
        "first": Entry("The first", "a.B", 1),
        "second": Entry("The second", "a.B", 1),
        "third": Entry("The third", "a.B", 1, ("no_such_module",), "faces"),
    }
    for name in list(EXPERIMENTS):
        monkeypatch.delitem(EXPERIMENTS, name)
    for name, entry in entries.items():
        monkeypatch.setitem(EXPERIMENTS, name, entry)
    with_one_experiment(tmp_path)
    return write_page(tmp_path).read_text()


def test_what_exists_is_shown_and_what_is_missing_is_said(page):
    text = " ".join(Page(page).text.split())
    assert "2 ▲ better" in text  # one of them is better for being less
    assert "1 ≈ within noise" in text
    assert "1 ▼ short" in text
    assert "1 ✗ does not hold" in text
    assert "Seed 3, 61 seconds. Files: first.csv, first.json" in text
    assert "Not run yet: partwise reproduce --only second." in text
    assert "Not run: this needs the extra faces" in text
    assert "<em>so</em>" in page
    assert "<accuracy>" not in page
    assert "&lt;accuracy&gt;" in page


def test_it_needs_nothing_beside_it(page):
    tags = Page(page).tags
    names = {tag for tag, _ in tags}
    assert names.isdisjoint({"script", "link", "iframe"})
    images = [attrs for tag, attrs in tags if tag == "img"]
    assert len(images) == 1
    assert all(i["src"].startswith("data:image/png;base64,") and i["alt"] for i in images)
    assert not re.search(r"(https?:)?//\w", re.sub(r"base64,[^\"]+", "", page))
    assert "@import" not in page
    targets = {attrs["href"] for tag, attrs in tags if tag == "a"}
    inside = {t[1:] for t in targets if t.startswith("#")}
    assert inside <= {attrs["id"] for _, attrs in tags if "id" in attrs}


def test_a_name_that_stands_for_several_rows_stands_once(page):
    spans = [attrs for tag, attrs in Page(page).tags if tag == "th" and "rowspan" in attrs]
    assert [s["rowspan"] for s in spans] == [
        "4"
    ] * 3  # at a glance, in the part, and in its details


def test_a_damaged_file_is_one_sentence(tmp_path):
    (tmp_path / "table1.json").write_text("{")
    with pytest.raises(pw.InputError, match="damaged"):
        write_page(tmp_path)
