"""Render the committed results as docs/benchmarks.md and its pictures: ``python -m benchmarks.table``."""

from __future__ import annotations

import json
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta

from benchmarks import coverage, estimates, first_calls, pictures, site, words
from benchmarks.measure import RESULTS, ROOT
from benchmarks.words import Data

TEMPLATE = Path(__file__).with_name("page.md.jinja")
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = PAGE.parent / "images"
PICTURES = {
    "kernel": pictures.kernel,
    "hessian": pictures.hessian,
    "sweep": pictures.sweep,
    "growth": pictures.growth,
    "estimates": pictures.estimates,
}


def results() -> dict[str, Data]:
    """Return every committed result by its name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def groups_of_estimates(rows: list[Data]) -> dict[str, list[Data]]:
    """Title → rows: experiments, presets, random specs, all."""
    groups = {name: [row for row in rows if row["experiment"] == name] for name in sorted(_each(rows, "experiment"))}
    drawn = [row for row in rows if row["name"].startswith("random")]
    return {**groups, "presets": [row for row in rows if row not in drawn], "random specs": drawn, "all": rows}


def within(rows: list[Data]) -> list[str]:
    """For every claim about estimates: the median ratio, and the share of ratios within its factor."""
    found = [estimates.verdict(rows, claim) for claim in estimates.CLAIMS]
    return [cell for each in found for cell in (f"{each['median']:.2f}", f"{each['within']:.0%}")]


def coverage_of(data: Data) -> Data:
    """Return cells of the table of intervals: coverage by regime, widths against the first method by seeds."""
    rows = data["rows"]
    regimes, seeds, methods = _each(rows, "regime"), _each(rows, "seeds"), list(rows[0]["methods"])

    def span(regime: str, method: str, name: str) -> str:
        found = [row["methods"][method][name] for row in rows if row["regime"] == regime]
        return f"{min(found):.1%} – {max(found):.1%}"

    def width(method: str, number: int) -> str:
        found = [row["methods"] for row in rows if row["regime"] == regimes[0] and row["seeds"] == number]
        return f"{statistics.mean(row[method]['half_width'] / row[methods[0]]['half_width'] for row in found):.2f} ×"

    def cells(method: str) -> list[str]:
        covered = [span(regime, method, "covers") for regime in regimes]
        return [*covered, span(regimes[-1], method, "covers_of_kept"), *(width(method, number) for number in seeds)]

    return {
        "regimes": regimes,
        "seeds": seeds,
        "seed_titles": [f"width, {number} seeds" for number in seeds],
        "widths": _each(rows, "widths"),
        "error": (0.05 * 0.95 / data["trials"]) ** 0.5,
        "moved": [row["exponent_of_kept"] - coverage.EXPONENT for row in rows if row["regime"] == regimes[-1]],
        "bends": [row["bends"] for row in rows],
        "rows": [(method, cells(method)) for method in methods],
    }


def _each(rows: list[Data], field: str) -> list[Any]:
    return list(dict.fromkeys(row[field] for row in rows))


FILTERS = (
    *(words.seconds, words.count_of, words.size, words.timed, words.faster, words.exponent, words.stamp),
    *(words.versions, words.names_of, groups_of_estimates, within, coverage_of),
)


def page(found: dict[str, Data]) -> str:
    """Return the page: a blank line between its paragraphs, none between rows of a table."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.filters |= {each.__name__: each for each in FILTERS} | {"f": format}
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    absent = dict.fromkeys(set(jinja2.meta.find_undeclared_variables(environment.parse(TEMPLATE.read_text()))))
    aims = {"aims": site, "first_call_aims": (first_calls.SLOWER_AT_MOST, first_calls.BLOCK_AT_MOST_S)}
    text = template.render(absent | found | aims | {"first_call_names": first_calls.NAMES})
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    apart = ["\n" if line[0] == after[0] == "|" else "\n\n" for line, after in pairwise(lines)]
    return "".join(line + gap for line, gap in zip(lines, [*apart, "\n"], strict=True))


def images(found: dict[str, Data]) -> dict[Path, str]:
    """Return the pictures of the page."""
    return {IMAGES / f"benchmarks-{name}.svg": draw(found[name]) for name, draw in PICTURES.items() if name in found}


if __name__ == "__main__":
    committed = results()
    PAGE.write_text(page(committed))
    for path, drawn in images(committed).items():
        path.write_text(drawn)
