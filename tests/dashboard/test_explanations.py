"""Explanations of all controls and figures in terms of the glossary,
and their texts from Markdown.
"""

import re
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.dashboard.pages.lecture.steps._step import Question
from linearity_lab.experiments.hessian.norm_figures import amount
from linearity_lab.page_modules import page_folders
from linearity_lab.runs import EXPERIMENTS, Mean
from linearity_lab.settings.grammar import settings
from linearity_lab.words.markdown import WordsError, raised, typeset
from linearity_lab.words.pages import (
    MARKS,
    _common_marks,
    charts_in,
    figure_words,
    glossary,
    prose,
    search,
    titled_prose,
    veiled_words,
)
from tests.dashboard.open_pages import address, open_page

SPECS: tuple[type[BaseModel], ...] = tuple(each.spec for each in EXPERIMENTS.values())
SETTINGS = {
    f"{spec.__name__}.{setting.name}": setting for spec in SPECS for setting in settings(spec)
}
FOLDERS = page_folders()
CHARTS = {
    f"{folder.name}.{name}": each for folder in FOLDERS for name, each in charts_in(folder).items()
}


def faults_of_help(setting) -> Iterator[str]:
    """Parts missing from a control's title and help."""
    description = setting.info.description or ""
    if not setting.info.title:
        yield "no title of its own"
    if "\n" in description or not 15 <= len(description) <= 170 or description[-1] != ".":
        yield f"not one line of help: {description!r}"
    if not setting.help.startswith(description):
        yield "the help does not begin with the description"


def test_every_control_has_one_line_of_help():
    assert len(SETTINGS) > 200
    assert [
        f"{name}: {fault}" for name, each in SETTINGS.items() for fault in faults_of_help(each)
    ] == []


def test_all_words_of_figures_are_short_and_link_to_the_glossary():
    assert set(_common_marks()) < set(MARKS)
    for key, found in CHARTS.items():
        assert found.formula or key.startswith("lecture."), key
        assert all(
            30 <= len(text) <= 330 and text[-1] == "." for text in (found.see, found.finite_width)
        ), key
        assert 1 <= len(found.terms) <= 6
        assert set(found.terms) <= set(glossary()), key


def test_entries_are_short_and_cite_a_source():
    pages = {entry.name for entry in PAGES}
    assert {folder.name for folder in FOLDERS if (folder / "words.md").exists()} <= pages
    for each in glossary().values():
        assert len(each.sentence) <= 150
        assert re.search(r"20\d\d", each.source)
        assert each.page in pages


def test_the_search_finds_words_by_title_symbol_and_other_names():
    found = {
        "kernel change": "kernel-change",
        "κ": "kappa",
        "PL*": "pl-condition",
        "ntk": "ntk-parameterization",
    }
    assert {text: search(text)[0].name for text in found} == found
    assert len(search("  ")) == len(glossary())
    assert search("quux <b>") == ()


def titles(app) -> list[str]:
    """Titles of the entries in order."""
    return [line.label.replace("\\", "")[2:].partition("**")[0] for line in app.expander]


def opened(app) -> list[str]:
    """Names of the open entries in order."""
    shown = [text.value for text in app.markdown]
    return [
        name
        for name, each in glossary().items()
        if any(text.startswith(each.sentence) for text in shown)
    ]


def test_glossary_opens_the_linked_word_and_is_searchable():
    app = open_page("glossary", term="pl-condition")
    assert titles(app)[0] == "PL* condition"
    assert len(titles(app)) == len(glossary())
    assert set(opened(app)) == set(glossary())
    app = open_page("glossary")
    app.text_input(key="glossary.search").set_value("in-degree").run()
    assert titles(app)[0] == "in-degree"
    assert "in-degree" in opened(app)
    assert address(app) == {"search": "in-degree"}


PAGE = """# What this page shows

The line falls: it is read from here.

# Chart: change, other

formula: $\\Delta K$: a change
terms: kernel-change, width

## How to read it

A line.

## Why is finite width different?

A mean of few.
"""


def test_new_folder_brings_its_words_without_other_edits(tmp_path, monkeypatch):
    monkeypatch.setattr("linearity_lab.page_modules.ROOTS", {"toys": tmp_path})
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/words.md").write_text(PAGE, encoding="utf-8")
    output = titled_prose("toy", "What this page shows")
    assert output == "**What this page shows.** The line falls: it is read from here."
    found = figure_words("toy.change")
    assert found == figure_words("toy.other")
    assert (found.formula, found.see, found.finite_width) == (
        "$\\Delta K$: a change",
        "A line.",
        "A mean of few.",
    )
    assert found.terms == ("kernel-change", "width")
    assert veiled_words("toy.change").see != found.see
    for ask, sentence in (
        (lambda: figure_words("toy.norm"), r"toy/words\.md has no section “Chart: norm”\."),
        (lambda: prose("other", "What this page shows"), r"other/words\.md is missing\.$"),
    ):
        with pytest.raises(WordsError, match=sentence):
            ask()


WRONG = [
    (
        "kernel-change, width",
        "kernel-change, wdth",
        r"“Chart: change, other”: glossary\.md has no term “wdth”\.",
    ),
    (
        "formula: ",
        "formulas: ",
        r"nothing shows the field “formulas”; it may be formula, terms, clicks, ",
    ),
    ("A mean of few.\n", "", r"has no text “Why is finite width different\?”\."),
    (
        "# Chart: change, other",
        "# What this page shows",
        r"has the heading “What this page shows” twice\.",
    ),
]
BALL = "# ball\n\ntitle: ball\npage: hessian\nsource: Liu 2020\n\nAll weights near w₀.\n"


@pytest.mark.parametrize(
    ("reader", "whole", "written", "instead", "sentence"),
    [
        *((charts_in, PAGE, *each) for each in WRONG),
        (glossary, BALL, "source: Liu 2020\n", "", "words.md, “ball” has no field “source”"),
    ],
)
def test_missing_or_unknown_words_are_reported_with_their_place(
    tmp_path, reader, whole, written, instead, sentence
):
    assert written in whole
    (tmp_path / "words.md").write_text(whole.replace(written, instead), encoding="utf-8")
    with pytest.raises(WordsError, match=sentence) as reported:
        reader(tmp_path if reader is charts_in else tmp_path / "words.md")
    assert "words.md" in str(reported.value)


def test_reason_of_an_answer_has_exactly_its_numbers():
    asked = Question("?", ("a", "b"), 0, "It falls to {{after}}.", lambda _: {"after": "0.1"})
    assert asked.why({}) == "It falls to 0.1."
    for numbers in ({}, {"after": "0.1", "before": "1"}):
        with pytest.raises(WordsError, match="has other numbers than"):
            Question(
                "?", ("a", "b"), 0, "It falls to {{after}}.", lambda _, given=numbers: given
            ).why({})


def test_a_power_of_the_width_is_a_formula():
    for exponent in ("-1/2", "−0.52 ± 0.12"):
        assert (
            typeset(f"decreases like m^({exponent}), about")
            == f"decreases like $m^{{{exponent}}}$, about"
        )
    assert typeset("like m^(2ρ - 1)") == r"like $m^{2\rho  - 1}$"
    assert (
        raised("‖H‖ ∝ r^(-0.44 ± 0.09), <b>") == "‖H‖ ∝ <i>r</i><sup>−0.44 ± 0.09</sup>, &lt;b&gt;"
    )
    assert raised("ΔK ∝ α^(-1.04)") == "ΔK ∝ <i>α</i><sup>−1.04</sup>"
    assert typeset("Q_{2,2,1}, m_b^(-1/2)") == "$Q_{2,2,1}$, $m_{b}^{-1/2}$"
    assert raised("‖b‖_∞ of m_b") == "‖b‖<sub>∞</sub> of <i>m</i><sub>b</sub>"


@pytest.mark.parametrize("text", ["[a](http://b)", "m^(x$y)", "*b* $c$", "![i](j)", "m^([a](b))"])
def test_no_other_markup_gets_through(text):
    assert typeset(text).replace("\\", "") == text
    assert not any(
        text[at] in "[]()*$!^" and typeset(text).count("\\" + text[at]) == 0
        for at in range(len(text))
    )


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (12.34, 0.62, "12.3 ± 0.6"),
        (0.0999, 0.0096, "0.10 ± 0.01"),
        (150.0, 31.0, "150 ± 31"),
        (0.25, float("nan"), "0.25"),
    ],
)
def test_a_mean_has_the_digits_that_its_error_leaves(value, error, words):
    assert amount(Mean(value=value, standard_error=error, count=3)) == words
