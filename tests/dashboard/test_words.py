"""Texts from Markdown: errors name file, section and name; text from outside is never markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from linearity_lab.views.hessian.figures import amount
from linearity_lab.views.lecture.steps._step import Question
from linearity_lab.words.markdown import WordsError, raised, typeset
from linearity_lab.words.pages import VEILED_KEY, charts_in, figure_words, glossary, prose, titled_prose
from ntk_core.runs import Mean

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
    with pytest.raises(WordsError, match=r"other/words\.md is missing\.$"):
        prose("other", "What this page shows")


WRONG = [
    ("kernel-change, width", "kernel-change, wdth", r"“Chart: change, other”: glossary\.md has no term “wdth”\."),
    ("terms: kernel-change, width\n", "", r"“Chart: change, other” has no field “terms”\."),
    ("formula: ", "formulas: ", r"nothing shows the field “formulas”; it may be formula, terms\."),
    ("## What should I see?\n\nA line.\n", "", r"“Chart: change, other” has no text “What should I see\?”\."),
    ("A mean of few.\n", "", r"has no text “Why is finite width different\?”\."),
    ("## Why is", "## Why, if at all, is", r"nothing shows the heading “Why, if at all, is finite width"),
    ("# Chart: change, other", "# What this page shows", r"has the heading “What this page shows” twice\."),
]
BALL = "# ball\n\ntitle: ball\npage: hessian\nsource: Liu 2020\n\nAll weights near w₀.\n"
WRONG_ENTRIES = [
    ("source: Liu 2020\n", "", "“ball” has no field “source”"),
    ("All weights near w₀.\n", "", "“ball” has no sentence"),
    ("title: ", "titel: ", "“ball”: nothing shows the field “titel”"),
]


@pytest.mark.parametrize(("written", "instead", "sentence"), WRONG)
def test_missing_or_unknown_words_are_reported_with_their_place(tmp_path, written, instead, sentence):
    assert written in PAGE
    with pytest.raises(WordsError, match=sentence) as reported:
        charts_in(page(tmp_path, PAGE.replace(written, instead)))
    assert "words.md" in str(reported.value)


@pytest.mark.parametrize(("written", "instead", "sentence"), WRONG_ENTRIES)
def test_incomplete_glossary_entries_are_reported(tmp_path, written, instead, sentence):
    with pytest.raises(WordsError, match=f"words.md, {sentence}"):
        glossary(page(tmp_path, BALL.replace(written, instead)) / "words.md")


def test_reason_of_an_answer_has_exactly_its_numbers():
    asked = Question("?", ("a", "b"), 0, "It falls to {{after}}.", lambda _: {"after": "0.1"})
    assert asked.why({}) == "It falls to 0.1."
    for numbers in ({}, {"after": "0.1", "before": "1"}):
        with pytest.raises(WordsError, match="has other numbers than"):
            Question("?", ("a", "b"), 0, "It falls to {{after}}.", lambda _, given=numbers: given).why({})


def test_a_power_of_the_width_is_a_formula():
    for exponent in ("-1/2", "−0.52 ± 0.12"):
        assert typeset(f"decreases like m^({exponent}), about") == f"decreases like $m^{{{exponent}}}$, about"
    assert typeset("like m^(2ρ - 1)") == r"like $m^{2\rho  - 1}$"
    assert typeset("‖H‖ ∝ r^(−0.44 ± 0.09)") == "‖H‖ ∝ $r^{−0.44 ± 0.09}$"
    assert raised("‖H‖ ∝ r^(-0.44 ± 0.09), <b>") == "‖H‖ ∝ <i>r</i><sup>−0.44 ± 0.09</sup>, &lt;b&gt;"


@pytest.mark.parametrize("text", ["[a](http://b)", "m^(x$y)", "*b* $c$", "![i](j)", "m^([a](b))"])
def test_no_other_markup_gets_through(text):
    assert typeset(text).replace("\\", "") == text
    assert not any(text[at] in "[]()*$!^" and typeset(text).count("\\" + text[at]) == 0 for at in range(len(text)))


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (12.34, 0.62, "12.3 ± 0.6"), (1.02, 0.2, "1.0 ± 0.2"), (0.6, 0.006, "0.600 ± 0.006"),
        (0.0999, 0.0096, "0.10 ± 0.01"), (150.0, 31.0, "150 ± 31"), (0.25, float("nan"), "0.25"),
    ],
)  # fmt: skip
def test_a_mean_has_the_digits_that_its_error_leaves(value, error, words):
    assert amount(Mean(value=value, standard_error=error, count=3)) == words
