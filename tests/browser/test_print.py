"""The exported page as a browser prints it: each figure with its caption, in the text of a PDF."""

import re
import unicodedata
import zlib

import pytest

from linearity_lab.charts.figure import main_chart, shown_result
from linearity_lab.dashboard.export_formats import page_html
from linearity_lab.dashboard.gallery import gallery_result
from ntk_core.markup import without_marks
from tests.browser.conftest import new_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]  # starts a browser


def text_of(pdf: bytes) -> str:
    """Return the letters of a PDF in the order in which they are drawn, without spaces.

    Fonts number their glyphs; their ``ToUnicode`` tables have the letters.
    """
    objects = dict(re.findall(rb"(?s)(\d+) 0 obj\b(.*?)endobj", pdf))
    letters = {}  # number of a font → glyph → letters
    for number, font in objects.items():
        if table := re.search(rb"/ToUnicode (\d+) 0 R", font):
            letters[number] = _letters(_stream(objects[table[1]]))
    drawn = []
    for page in objects.values():
        if not re.search(rb"/Type /Page\b", page):
            continue
        (listed,) = re.findall(rb"(?s)/Font <<(.*?)>>", page)
        fonts = dict(re.findall(rb"/(\w+) (\d+) 0 R", listed))
        (content,) = re.findall(rb"/Contents (\d+) 0 R", page)
        glyphs: dict[bytes, str] = {}
        for name, codes in re.findall(
            rb"/(\w+) [\d.]+ Tf|<([0-9A-Fa-f]+)>", _stream(objects[content])
        ):
            if name:
                glyphs = letters[fonts[name]]
            drawn += [glyphs.get(codes[at : at + 4].upper(), "") for at in range(0, len(codes), 4)]
    return packed("".join(drawn))


def packed(words: str) -> str:
    """Return words without spaces and ligatures."""
    return "".join(unicodedata.normalize("NFKC", words).split())


def _stream(part: bytes) -> bytes:
    (packed,) = re.findall(rb"(?s)stream\r?\n(.*?)\r?\nendstream", part)
    return zlib.decompress(packed) if b"/FlateDecode" in part else packed


def _letters(table: bytes) -> dict[bytes, str]:
    """Return glyph → letters of a ``ToUnicode`` table."""
    found = {}
    for block in re.findall(rb"(?s)beginbfchar(.*?)endbfchar", table):
        for glyph, letter in re.findall(rb"<(\w+)>\s*<(\w+)>", block):
            found[glyph.upper()] = bytes.fromhex(letter.decode()).decode("utf-16-be")
    for block in re.findall(rb"(?s)beginbfrange(.*?)endbfrange", table):
        for first, last, letter in re.findall(rb"<(\w+)>\s*<(\w+)>\s*<(\w+)>", block):
            start = int(first, 16)
            for glyph in range(start, int(last, 16) + 1):
                found[b"%04X" % glyph] = chr(int(letter, 16) + glyph - start)
    return found


def test_a_printed_page_has_the_figure_and_its_caption(browser, tmp_path):
    result = gallery_result("liu-fig1-left")
    assert result is not None
    chart = main_chart(shown_result(result))
    file = tmp_path / "exported.html"
    file.write_text(page_html("Figure 1", [chart], [result]))
    page = new_page(browser)
    page.goto(file.as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg")
    text = text_of(page.pdf())
    page.context.close()
    caption = packed(without_marks(" ".join((chart.takeaway, *chart.caption))))
    axis = packed(without_marks(chart.figure.layout.xaxis.title.text))
    assert len(caption) > 100
    assert caption in text
    assert axis in text
    assert "saveasPDF" not in text, "without the button"
