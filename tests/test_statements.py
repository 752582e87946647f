"""The page of statements: its links, presets and tests exist,
and no preset of the papers is missing.
"""

import re

import pytest

from linearity_lab.runs import PRESETS
from tests.documents import ROOT

PAGE = (ROOT / "docs/statements.md").read_text(encoding="utf-8")
PAPERS = ("Liu, Zhu & Belkin 2020", "Zhu, Liu & Belkin 2022", "Hu, Xiao, Adlam & Pennington 2020")
ROWS = re.findall(r"^\| (?!Statement|---)(.*) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)


def test_every_statement_leads_to_a_preset_or_a_file():
    assert len(ROWS) > 40
    for statement, _, shown in ROWS:
        names = re.findall(r"`([^`]+)`", shown)
        links = re.findall(r"\]\(([^)]+)\)", shown)
        assert names or links or shown.startswith("no figure"), statement
        for name in names:
            assert name in PRESETS or (ROOT / name).exists(), name
        for link in links:
            assert (ROOT / "docs" / link).exists(), link


def test_every_preset_of_the_papers_shows_a_statement():
    of_papers = {name for name, each in PRESETS.items() if each.source.startswith(PAPERS)}
    assert of_papers <= set(re.findall(r"`([^`]+)`", PAGE))


# Counted in the texts: arXiv:2010.01092v3, and the NeurIPS texts of the two others
# with their appendices.
NUMBERED = {
    PAPERS[
        0
    ]: "Definitions 2.1 and 2.2, Remarks 3.1 to 3.5, 4.1 and G.1, Propositions 2.1 to 2.3 and 3.1, "
    "Theorems 3.1 to 3.3, 4.1 and 5.1, Assumption F.1, "
    "Lemmas 3.1, E.1, F.1 to F.6, G.1 to G.5 and H.1",
    PAPERS[
        1
    ]: "Definitions 2.1, 2.2, 2.5 and 2.7, Remarks 2.3, 2.4, 2.6, 2.8, 3.3, 3.4, 3.9, 4.3 and B.3, "
    "Assumptions 3.1, 3.2, 3.5, 4.1 and 4.2, Theorems 3.6, 3.8, D.1 and E.1, Corollaries 3.7 and "
    "C.1, Propositions 4.4 and I.1, Lemmas B.1, B.2, I.2 and K.1 to K.10",
    PAPERS[2]: "Assumptions 3.1, 3.2 and C.1, Claims 3.1 and C.1, Theorems 3.2, 3.5, C.2 and D.1, "
    "Corollary 3.3, Propositions 3.4, 4.1, D.2 to D.4 and D.7 to D.11, "
    "Lemmas B.1 to B.3, D.5, D.6, D.12 and D.13",
}
KINDS = {
    "Definition",
    "Assumption",
    "Remark",
    "Proposition",
    "Lemma",
    "Claim",
    "Theorem",
    "Corollary",
}
WORDS = {"Corollaries": "Corollary"}


def statements(text):
    """Return kind and number of each statement: “Lemmas F.1 to F.3” names three."""
    found: list[tuple[str, str]] = []
    kind = ""
    is_range = False
    for word in re.findall(r"[A-Z][a-z]+|[A-Z]\.\d+|\d\.\d+|to", text):
        if word == "to":
            is_range = True
        elif word[-1].isdigit():
            part, number = word.split(".")
            first = int(found[-1][1].split(".")[1]) + 1 if is_range else int(number)
            found += [(kind, f"{part}.{at}") for at in range(first, int(number) + 1)]
            is_range = False
        else:
            kind = WORDS.get(word, word.removesuffix("s"))
    return found


def test_ranges_name_all_statements():
    assert statements("Lemmas F.2 to F.4, H.1") == [
        ("Lemma", number) for number in ("F.2", "F.3", "F.4", "H.1")
    ]


@pytest.mark.parametrize("paper", PAPERS)
def test_numbered_statements_of_the_papers_are_listed(paper):
    section = PAGE.partition(f"## {paper}")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)
    found = [each for cell in listed for each in statements(cell) if each[0] in KINDS]
    expected = statements(NUMBERED[paper])
    assert len(expected) == {PAPERS[0]: 33, PAPERS[1]: 39, PAPERS[2]: 27}[paper]
    assert sorted(found) == sorted(expected)
