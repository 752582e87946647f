"""The page of statements: its links, presets and tests exist, and no preset of the papers is missing."""

import re

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


def test_numbered_statements_of_the_papers_are_listed():
    numbered = {
        PAPERS[0]: "Proposition 2.1 2.2 2.3 3.1, Theorem 3.1 3.2 3.3 4.1 5.1, Lemma 3.1 E.1",
        PAPERS[1]: "Theorem 3.6 3.8 D.1 E.1, Corollary 3.7 C.1, Proposition 4.4",
        PAPERS[2]: "Theorem 3.2 3.5 C.2 D.1, Corollary 3.3, Proposition 3.4 4.1, Claim 3.1",
    }
    for paper, groups in numbered.items():
        section = PAGE.partition(f"## {paper}")[2].partition("\n## ")[0]
        for group in groups.split(", "):
            kind, *numbers = group.split()
            for number in numbers:
                assert f"| {kind} {number}" in section, (paper, kind, number)
