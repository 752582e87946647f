"""Bidirectional and zero-width marks of outside text are removed wherever it is shown."""

import pytest

from linearity_lab.words.markdown import plain, raised, typeset
from ntk_core.errors import InvalidInput, UnknownSetting
from ntk_core.markup import without_marks

MARKS = {
    "right-to-left override": "\u202e",
    "left-to-right embedding": "\u202a",
    "right-to-left isolate": "\u2067",
    "pop isolate": "\u2069",
    "left-to-right mark": "\u200e",
    "Arabic letter mark": "\u061c",
    "zero-width space": "\u200b",
    "zero-width joiner": "\u200d",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "tag letter": "\U000e0041",
    "Hangul filler": "\u3164",
    "grapheme joiner": "\u034f",
}


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_mark_is_removed_wherever_text_is_shown(mark):
    given = f"report{mark}vsc.exe"
    for show in (without_marks, plain, typeset, raised):
        assert mark not in show(given)
    assert mark not in str(InvalidInput("file", given, "a table"))
    assert mark not in str(InvalidInput(given, 1, "a name"))
    assert mark not in str(UnknownSetting.among(given, 1, ["widths"]))


def test_letters_of_every_script_stay():
    for text in ("naïve", "ρ ≤ ½", "日本語", "שלום", "مرحبا", "क्ष", "n\u0303"):
        assert without_marks(text) == text


def test_addresses_are_still_split_by_a_mark_of_the_lab():
    """A user's mark inside an address must not hide it from the rule against links."""
    assert plain("ht\u200btps://evil.example") == plain("https://evil.example")
    assert "\u2060" in plain("https://evil.example")
