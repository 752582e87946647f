"""Words are read from Markdown; missing or unknown ones are reported with file, section and name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from linearity_lab.view_modules import VIEWS
from linearity_lab.views.lecture.steps import STEPS
from linearity_lab.views.lecture.steps._step import Question
from linearity_lab.words.markdown import WordsError, read
from linearity_lab.words.pages import GLOSSARY_FILE, VEILED_KEY, charts_in, figure_words, glossary, prose, titled_prose

ROOT = Path(__file__).resolve().parents[2]
PAGE = """# What this page shows

The line falls: it is read from here.

# Chart: change, other

formula: $\\Delta K$: a change
terms: kernel-change, width

## What should I see?

A line.

## Why is finite width different?

A mean of few.
"""


def page(tmp_path: Path, text: str, name: str = "words.md") -> Path:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_new_folder_brings_its_words_without_other_edits(tmp_path, monkeypatch):
    monkeypatch.setattr("linearity_lab.view_modules.VIEWS", tmp_path)
    (tmp_path / "toy").mkdir()
    page(tmp_path / "toy", PAGE)
    assert (
        titled_prose("toy", "What this page shows") == "**What this page shows.** The line falls: it is read from here."
    )
    found = figure_words("toy.change")
    assert found == figure_words("toy.other")
    assert (found.formula, found.see, found.finite_width) == ("$\\Delta K$: a change", "A line.", "A mean of few.")
    assert found.terms == ("kernel-change", "width")
    assert figure_words("toy.change" + VEILED_KEY).see != found.see
    with pytest.raises(WordsError, match=r"toy/words\.md has no section “Chart: norm”\."):
        figure_words("toy.norm")
    with pytest.raises(WordsError, match=r"toy.words\.md has no text “Why”\."):
        prose("toy", "Why")


@pytest.mark.parametrize(
    ("written", "instead", "sentence"),
    [
        ("kernel-change, width", "kernel-change, wdth", r"“Chart: change, other”: glossary\.md has no term “wdth”\."),
        ("terms: kernel-change, width\n", "", r"“Chart: change, other” has no field “terms”\."),
        ("formula: ", "formulas: ", r"nothing shows the field “formulas”; it may be formula, terms\."),
        ("## What should I see?\n\nA line.\n", "", r"“Chart: change, other” has no text “What should I see\?”\."),
        ("A mean of few.\n", "", r"has no text “Why is finite width different\?”\."),
        ("## Why is", "## Why, if at all, is", r"nothing shows the heading “Why, if at all, is finite width"),
        ("# Chart: change, other", "# What this page shows", r"has the heading “What this page shows” twice\."),
    ],
)
def test_missing_or_unknown_words_are_reported_with_their_place(tmp_path, written, instead, sentence):
    assert written in PAGE
    with pytest.raises(WordsError, match=sentence) as reported:
        charts_in(page(tmp_path, PAGE.replace(written, instead)))
    assert "words.md" in str(reported.value)


def test_a_missing_file_is_named():
    with pytest.raises(WordsError, match=r"^linearity_lab/views/toy/words\.md is missing\.$"):
        prose("toy", "What this page shows")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# ball\n\ntitle: ball\npage: hessian\n\nAll weights near w₀.\n", "“ball” has no field “source”"),
        ("# ball\n\ntitle: ball\npage: hessian\nsource: Liu 2020\n", "“ball” has no sentence"),
        (
            "# ball\n\ntitel: ball\n\nAll weights near w₀.\n",
            "“ball”: nothing shows the field “titel”",
        ),
    ],
)
def test_incomplete_glossary_entries_are_reported(tmp_path, text, sentence):
    with pytest.raises(WordsError, match=f"words.md, {sentence}"):
        glossary(page(tmp_path, text) / "words.md")


def test_every_markdown_file_of_every_page_is_valid():
    folders = {path.relative_to(VIEWS).parts[0] for path in VIEWS.rglob("*.md")}
    assert folders >= {"kernel_change", "lecture", "overview"}
    for folder in folders:
        for name, found in charts_in(VIEWS / folder).items():
            assert found.see, name
            assert found.finite_width, name
    assert {step.name for step in STEPS} == set(charts_in(VIEWS / "lecture"))
    assert set(read(GLOSSARY_FILE).sections) == set(glossary())


def test_reason_of_an_answer_has_exactly_its_numbers():
    asked = Question("?", ("a", "b"), 0, "It falls to {{after}}.", lambda _: {"after": "0.1"})
    assert asked.why({}) == "It falls to 0.1."
    for numbers in ({}, {"after": "0.1", "before": "1"}):
        with pytest.raises(WordsError, match="has other numbers than"):
            Question("?", ("a", "b"), 0, "It falls to {{after}}.", lambda _, given=numbers: given).why({})


def test_no_words_are_read_before_a_page_asks_for_them():
    code = (
        "import sys; seen = []; sys.addaudithook(lambda event, given: "
        "seen.append(str(given[0])) if event == 'open' and str(given[0]).endswith('.md') else None); "
        "import app; from linearity_lab.words import pages; print(seen)"
    )
    started = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert started.stdout.strip() == "[]"
