"""Explanations of all controls and figures, in terms of the glossary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import BaseModel

from linearity_lab.view_modules import VIEWS
from linearity_lab.views.glossary.page import FEW
from linearity_lab.views.navigation import PAGES
from linearity_lab.words.markdown import read
from linearity_lab.words.pages import CHANGES, CHART, SHOWS, charts_in, glossary, search
from ntk_core.runs import EXPERIMENTS
from ntk_core.settings.grammar import settings
from tests.dashboard.open_pages import open_page, words

SPECS: tuple[type[BaseModel], ...] = tuple(each.spec for each in EXPERIMENTS.values())
SETTINGS = {f"{spec.__name__}.{setting.name}": setting for spec in SPECS for setting in settings(spec)}
SYMBOLS = {
    "num_samples": "n", "num_classes": "C", "input_dim": "d", "depth": "L", "learning_rate": "η", "rates": "η",
    "widths": "m", "width": "m", "hidden_width": "m", "bottleneck_width": "m_b", "outputs": "φ", "output": "φ",
    "activations": "φ", "use_bias": "b", "output_weights": "v", "momentum": "μ", "scales": "α", "radii": "R",
    "ball_radius": "R", "target": "y", "spectrum": "Σ", "num_hessians": "‖H‖", "starts": "w₀", "initial_output": "w₀",
}  # fmt: skip
FOLDERS = sorted({path.parent for path in VIEWS.glob("*/words.md")} | {VIEWS / "lecture"})
CHARTS = {f"{folder.name}.{name}": each for folder in FOLDERS for name, each in charts_in(folder).items()}


def symbols(title: str) -> set[str]:
    """Single letters, except articles, and other symbols."""
    tokens = re.findall(r"[^\s,()×]+", title)
    letters = {token for token in tokens if len(token) == 1 and token.isalpha()}
    if tokens[-1] != "a":
        letters -= {"a"}
    return letters | {token for token in tokens if not token.isascii() or "_" in token} - {"–"}


def contains(text: str, symbol: str) -> bool:
    """Whether the symbol is in the text, and not part of a word."""
    return re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", text) is not None


def faults_of_help(setting) -> Iterator[str]:
    """Parts missing from a control's title and help."""
    description = setting.info.description or ""
    if not setting.info.title:
        yield "no title of its own"
    if "\n" in description or not 15 <= len(description) <= 170 or description[-1] != ".":
        yield f"not one line of help: {description!r}"
    if description.rstrip(".").lower() == setting.title.lower():
        yield "no more than the title"
    yield from (f"{each} is not in the help" for each in symbols(setting.title) if not contains(description, each))
    if not setting.help.startswith(description):
        yield "the help does not begin with the description"


def test_every_control_has_one_line_of_help():
    assert len(SETTINGS) > 200
    assert [f"{name}: {fault}" for name, each in SETTINGS.items() for fault in faults_of_help(each)] == []


def test_settings_that_papers_have_a_symbol_for_show_it():
    named = {name: (setting.title, name.rpartition(".")[2]) for name, setting in SETTINGS.items()}
    with_symbol = {name: (title, SYMBOLS[last]) for name, (title, last) in named.items() if last in SYMBOLS}
    assert {named[name][1] for name in with_symbol} == set(SYMBOLS), "a symbol that no setting has"
    assert {name: lacks for name, lacks in with_symbol.items() if not contains(*lacks)} == {}


def test_every_heading_of_every_page_is_shown_by_its_page():
    both = ("page_answers(PAGE", "ExperimentPage(", "ExperimentPage[")
    for folder in FOLDERS:
        if folder.name == "lecture":
            continue
        code = re.sub(r"\(\s+", "(", "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py")))
        for heading in read(folder / "words.md").sections:
            asked = {SHOWS: ("SHOWS", *both), CHANGES: ("CHANGES", *both)}.get(heading, (f'"{heading}"',))
            assert heading.startswith(CHART) or any(each in code for each in asked), f"{folder.name}: {heading}"


def test_all_words_of_figures_are_short_and_link_to_the_glossary():
    for key, found in CHARTS.items():
        assert found.formula or key.startswith("lecture."), key
        for text in (found.see, found.finite_width):
            assert 30 <= len(text) <= 330, key
            assert text[-1] == "."
        assert 1 <= len(found.terms) <= 6
        assert set(found.terms) <= set(glossary()), key


def test_greek_letters_that_pages_use_are_in_the_glossary():
    greek = {"Delta", "alpha", "beta", "zeta", "eta", "kappa", "lambda", "mu", "rho", "sigma", "varphi", "psi"}

    def letters(texts) -> set[str]:
        return {letter for text in texts for letter in re.findall(r"\\([A-Za-z]+)", text)} & greek

    used = letters(path.read_text(encoding="utf-8") for path in VIEWS.glob("*/words.md"))
    assert used
    assert used <= letters(each.symbol + each.formula for each in glossary().values())


def test_entries_are_short_distinct_and_cite_a_source():
    pages = {entry.name for entry in PAGES}
    assert {each.page for each in glossary().values()} | {folder.name for folder in FOLDERS} <= pages
    assert len({each.title for each in glossary().values()}) == len(glossary()) >= 40
    for name, each in glossary().items():
        assert name == each.name
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert each.sentence.endswith(".")
        assert len(each.sentence) <= 150
        assert re.search(r"20\d\d", each.source)
        assert each.symbol or each.formula or len(each.sentence) > 30


def test_the_search_finds_words_by_title_symbol_and_other_names():
    found = {"kernel change": "kernel-change", "κ": "kappa", "PL*": "pl-condition", "ntk": "ntk-parameterization"}
    assert {text: search(text)[0].name for text in found} == found
    assert len(search("  ")) == len(glossary())
    assert search("quux <b>") == ()


def titles(app) -> list[str]:
    """Titles of the entries in order."""
    return [line.label.replace("\\", "")[2:].partition("**")[0] for line in app.expander]


def opened(app) -> list[str]:
    """Names of the open entries in order."""
    shown = [text.value for text in app.markdown]
    return [name for name, each in glossary().items() if any(text.startswith(each.sentence) for text in shown)]


def test_linked_word_is_first_and_the_only_one_open():
    app = open_page("glossary")
    assert titles(app) == [entry.title for entry in glossary().values()]
    app.query_params = {"term": "pl-condition"}
    app.run()
    assert titles(app)[0] == "PL* condition"
    assert len(titles(app)) == len(glossary())
    assert f"{len(glossary()) - 1} other words" in words(app)
    assert opened(app) == ["pl-condition"]
    app.session_state["glossary.open.kappa"] = True
    app.run()
    assert titles(app)[0] == "PL* condition"
    assert set(opened(app)) == {"pl-condition", "kappa"}


def test_a_search_is_kept_in_the_address_and_narrows_the_list():
    app = open_page("glossary", search="norm")
    assert "Frobenius norm" in titles(app)
    assert FEW < len(titles(app)) < 15
    assert opened(app) == []
    app.text_input(key="glossary.search").set_value("in-degree").run()
    assert titles(app)[0] == "in-degree"
    assert "in-degree" in opened(app)
    assert app.query_params["search"] in ("in-degree", ["in-degree"])


def test_a_bad_glossary_url_gets_one_sentence():
    app = open_page("glossary")
    for query in ({"term": "[a](http://b)"}, {"word": "x"}, {"term": "9" * 5000}):
        app.query_params = query
        (received,) = app.run().warning
        assert "cannot be used; use " in received.value.replace("\\", "")
        assert len(titles(app)) == len(glossary())
        assert not app.query_params
