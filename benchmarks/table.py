"""Render the committed results as docs/benchmarks.md: ``python -m benchmarks.table``."""

import json
from itertools import pairwise
from pathlib import Path

import jinja2
import jinja2.meta

from benchmarks import coverage, estimates, first_calls, visits, words
from benchmarks.measure import RESULTS, ROOT
from benchmarks.words import Data

TEMPLATE = Path(__file__).with_name("page.md.jinja")
PAGE = ROOT / "docs" / "benchmarks.md"
FILTERS = (
    words.seconds,
    words.count_of,
    words.size,
    words.timed,
    words.faster,
    words.exponent,
    words.names_of,
)
# Aims and vocabularies that the template names.
GIVEN = {
    "aims": visits,
    "estimate_claims": estimates.CLAIMS,
    "verdict": estimates.verdict,
    "exponent_of_runs": coverage.EXPONENT,
    "first_call_aims": (first_calls.SLOWER_AT_MOST, first_calls.BLOCK_AT_MOST_S),
    "first_call_names": first_calls.NAMES,
}


def results() -> dict[str, Data]:
    """Return every committed result by its name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def page(found: dict[str, Data]) -> str:
    """Return the page, with blank lines between paragraphs."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.filters |= {each.__name__: each for each in FILTERS} | {"f": format}
    environment.tests["random"] = lambda name: name.startswith("random")
    source = TEMPLATE.read_text(encoding="utf-8")
    absent = dict.fromkeys(jinja2.meta.find_undeclared_variables(environment.parse(source)))
    text = environment.from_string(source).render(absent | found | GIVEN)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    apart = ["\n" if line[0] == after[0] == "|" else "\n\n" for line, after in pairwise(lines)]
    return "".join(line + gap for line, gap in zip(lines, [*apart, "\n"], strict=True))


if __name__ == "__main__":
    PAGE.write_text(page(results()))
