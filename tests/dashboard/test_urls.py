"""URLs fill the form and stay in the address bar.

Invalid parts give a sentence, never a traceback.
"""

import functools
import random
from collections.abc import Callable, Iterator

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.dashboard.page_table import EMBEDDED, PAGES
from linearity_lab.runs import PRESETS, spec_digest
from linearity_lab.settings.grammar import differences, settings, spec_from_texts, text_of
from tests.dashboard.open_pages import ROOT, address, checked, form_sentences, open_page, words

SEED = 20260101
WILD = (
    "",
    " ",
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "-inf",
    "1e-320",
    "9" * 400,
    "1,2,,3",
    "1;2;3",
    ",".join(["3"] * 3000),
    "true",
    "None",
    "null",
    "[]",
    "{}",
    '{"a": [1, 2]}',
    "[[[[[[",
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    "![x](http://example.com/x.png)",
    "[a](b) :red[c] $\\frac{1}{0}$ **d** `e`",
    "'; DROP TABLE points; --",
    "../../../../etc/passwd",
    "%00%ff%25%zz",
    "\x00\x01\x7f",
    "\u202eabc\u0000ÿ",
    "Ω≈ç√∫˜µ≤≥÷",
    "１２３",
    "٣",
    "🦄" * 300,
    "a" * 10_000,
    "0x10",
    "1_000",
    "+5",
    "linear,linear",
    "relu\nrelu",
    "__class__",
    "model_fields",
    "{0.__class__}",
    "%s%n%d",
)
ODD = (
    "preset",
    "job",
    "a.job",
    "b.job",
    "graph",
    "",
    "seed ",
    "SEED",
    "a.b.c.d",
    "__proto__",
    "spec",
    "é",
    "x" * 500,
)
SPECS: dict[str, type] = {preset.spec.experiment: type(preset.spec) for preset in PRESETS.values()}
NAMES = tuple(entry.name for entry in PAGES)
ON_NO_PAGE = "kernel-convergence"
PREFIX = "kernel_change."


@pytest.fixture(scope="module")
def opened(module_jobs, tmp_path_factory) -> Iterator[Callable[[str], AppTest]]:
    """Pages without figures, which do not depend on the URL; each is opened once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("linearity_lab.dashboard.gallery.GALLERY", tmp_path_factory.mktemp("gallery"))
        yield functools.cache(open_page)


def at(app: AppTest, **texts: str) -> AppTest:
    """Open the page at another URL; ``__`` in a name is a dot."""
    app.query_params = {name.replace("__", "."): text for name, text in texts.items()}
    return checked(app.run())


def warnings(app: AppTest) -> list[str]:
    """Return the sentences of the warning; several of them are a list."""
    shown = [element.value.replace("\\", "") for element in app.warning]
    return [line.removeprefix("- ") for text in shown for line in text.splitlines()]


def test_every_page_is_in_the_menu():
    scripts = {f"pages/{path.name}" for path in (ROOT / "pages").glob("*.py")}
    assert scripts - {f"pages/{EMBEDDED}.py"} == {entry.path for entry in PAGES}


@pytest.mark.first_cases(6)  # all pages open with their gallery in test_every_page
@pytest.mark.parametrize("page", NAMES)
def test_pages_open_without_a_gallery(page, opened):
    assert opened(page).title


def wild_query(page: str, draw: random.Random) -> dict[str, str | list[str]]:
    """Known and unknown settings with random values."""
    known = (
        [setting.name for setting in settings(SPECS[page])]
        if page in SPECS
        else ["step", "term", "run"]
    )
    query: dict[str, str | list[str]] = {}
    for _ in range(draw.randint(1, 12)):
        text = draw.choice(WILD) if draw.random() < 0.8 else str(draw.uniform(-1e6, 1e6))
        name = draw.choice(known if draw.random() < 0.7 else ODD)
        query[name] = [text, draw.choice(WILD)] if draw.random() < 0.1 else text
    return query


@pytest.mark.first_cases(6)  # each opens a page
@pytest.mark.parametrize("page", NAMES)
def test_no_address_ends_in_a_traceback(page, opened):
    draw = random.Random(f"{SEED} {page}")
    app = opened(page)
    for _ in range(2):
        app.query_params = wild_query(page, draw)
        shown = words(checked(app.run()))
        assert "Traceback" not in shown
        assert 'File "' not in shown


@pytest.mark.first_cases(6)  # each opens a page
@pytest.mark.parametrize("page", SPECS)
def test_what_cannot_be_used_is_named_in_one_sentence(page, opened):
    shown = warnings(at(opened(page), num_seeds="-3", nothing="1", job="no such run"))
    for begin in (
        "In the URL, Seeds: -3 cannot be used",
        "In the URL, nothing: ",
        "In the URL, job: ",
    ):
        assert sum(sentence.startswith(begin) for sentence in shown) == 1, shown
    assert address(opened(page)) == {}


# The last preset of each page.
LAST = {
    preset.spec.experiment: name for name, preset in PRESETS.items() if name != ON_NO_PAGE
}.values()


@pytest.mark.first_cases(6)  # each opens a page
@pytest.mark.parametrize("name", LAST)
def test_presets_and_their_paper_sizes_come_from_the_url(name, opened):
    preset = PRESETS[name]
    page, swept = preset.spec.experiment, getattr(preset.spec, "swept_field", "widths")
    app = at(opened(page), preset=name, **differences(preset.paper_spec, preset.spec))
    assert form_sentences(app) == []
    values = app.text_input(key=f"{page}.{swept}").value
    assert values.replace(" ", "") == text_of(getattr(preset.paper_spec, swept))


def test_paper_sizes_survive_the_url():
    for preset in PRESETS.values():
        changes = differences(preset.paper_spec, preset.spec)
        assert spec_from_texts(changes, preset.spec) == (preset.paper_spec, ())


def test_settings_of_the_url_fill_the_form_and_stay_in_the_url(opened):
    given = {"widths": "30,100", "dataset.name": "mnist", "dataset.classes": "0,1"}
    app = at(opened("kernel_change"), **given)
    assert app.text_input(key=PREFIX + "widths").value == "30, 100"
    assert address(app) == given
    app.selectbox(key=PREFIX + "dataset.name").set_value("gaussian-mixture")
    assert set(address(checked(app.run()))) == {"widths"}


OTHERS = PRESETS["zhu-fig2"].spec
INVALID: list[tuple[str, dict[str, str]]] = [
    *(("kernel_change", {"preset": name}) for name in ("liu-fig9", ON_NO_PAGE, "zhu-fig2")),
    *(
        ("kernel_change", {"job": job})
        for job in ("../../etc/passwd", "0" * 5000, spec_digest(OTHERS)[:16])
    ),
    (
        "kernel_change",
        {"widths": "0", "num_seeds": "nan", "outputs": "linear,,nothing", "nothing": "1"},
    ),
    (
        "kernel_change",
        {"architecture.depth": "99", "architecture.activation": "[click](http://example.com)"},
    ),
    ("architectures", {"architectures.1.kind": "[x](http://y)", "architectures.1.depth": "99"}),
    ("lecture", {"step": "99"}),
    ("lecture", {"step": "[a](http://b)", "present": "maybe", "widths": "30"}),
    ("lecture", {"show": "31"}),
    ("glossary", {"term": "[a](http://b)"}),
    ("glossary", {"word": "x" * 5000}),
    ("live", {"width": "4097", "rate": "nan", "points": "9:0", "activation": "<b>", "seed": "-1"}),
]


@pytest.mark.parametrize(("page", "texts"), INVALID)
def test_invalid_parts_of_the_url_are_named_and_dropped(page, texts, opened, module_jobs):
    module_jobs.add(OTHERS, status="completed")
    app = at(opened(page), **texts)
    reported = warnings(app)
    assert len(reported) == len(texts)
    for sentence in reported:
        assert sentence.startswith(
            "In the URL, Network B, " if page == "architectures" else "In the URL, "
        )
        assert "cannot be used; use " in sentence
        assert ("one of liu-fig1-left" in sentence) == ("preset" in texts)
    assert address(app) == {}


def test_text_from_the_url_is_shown_as_text_until_it_is_mended(opened):
    app = at(
        opened("kernel_change"), architecture__activation="[a](http://b) ![c](d) :red[e] $f$ <b>"
    )
    (shown,) = [element.value for element in app.warning]
    for mark in ("[a]", "![c]", ":red[", "$f$", "<b>"):
        assert mark not in shown
    app = at(opened("kernel_change"), architecture__depth="99")
    assert form_sentences(app)
    app.number_input(key=PREFIX + "architecture.depth").set_value(3)
    assert form_sentences(checked(app.run())) == []
