"""``python -m tests.claims.page`` writes every claim beside its measurement to ``docs/truth.md``."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ntk_core.environment import TOP
from ntk_core.runs._text_tables import num_runs
from ntk_core.runs.run_directory import write_whole
from tests.claims.claim import Judged, claims, judged
from tests.claims.readings import Measured

TRUTH = TOP / "docs" / "truth.md"
_PAPERS = ("Liu, Zhu & Belkin 2020", "Zhu, Liu & Belkin 2022", "Hu, Xiao, Adlam & Pennington 2020")
_OTHERS = "Other sources"
_HEAD = """\
# What is claimed, and what is measured

Written by `make claims` from `gallery/` and the tables `ntk_core/experiments/*/claims.toml`; nobody edits
it. {counts}

A claim **holds** where the whole measured interval lies in what it says. It **holds with a correction** where the
interval lies elsewhere, in what the correction says. Else it is **not seen here**: it is false, or the runs are too few
to tell. A 95% interval is about other draws of the weights, for one draw of the data; a range is about the runs that
were made, and about no others. Presets run as `python -m ntk_core run PRESET`.
"""
_COLUMNS = ("Claim", "Place", "Measured", "Expected", "Found", "Verdict")


def rendered() -> str:
    """The page, from the gallery as it is."""
    found = [judged(claim) for claim in claims()]
    counts: Counter[str] = Counter(each.verdict for each in found)
    told = (
        f"Of {len(found)} claims {counts['holds']} hold, {counts['holds with a correction']} hold with a correction, "
        f"and {counts['not seen here'] or 'none'} {'is' if counts['not seen here'] < 2 else 'are'} not seen here."
    )
    lines = [_HEAD.format(counts=told)]
    for paper in (*_PAPERS, _OTHERS):
        rows = [each for each in found if _paper(each) == paper]
        if rows:
            lines += [f"## {paper}", "", _table(rows, "" if paper == _OTHERS else paper), ""]
    return "\n".join(lines)


def _paper(each: Judged) -> str:
    return next((paper for paper in _PAPERS if each.claim.source.startswith((paper, f"after {paper}"))), _OTHERS)


def _table(rows: Sequence[Judged], paper: str) -> str:
    cells = [_COLUMNS, tuple("---" for _ in _COLUMNS), *(_row(each, paper) for each in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells)


def _row(each: Judged, paper: str) -> tuple[str, ...]:
    claim, measured = each.claim, each.measured
    said = f"[{_title(claim.said)}](../{claim.said})" if claim.said else "preset"
    verdict = f"**{each.verdict}**" + (f": {claim.correction}" if each.verdict == "holds with a correction" else "")
    return (
        f"“{' '.join(claim.sentence.split())}” ({said})",
        claim.source.removeprefix("after ").removeprefix(paper).lstrip(", ") or "–",
        f"{claim.what}, `{claim.preset}`",
        _bounds(*claim.expected),
        _found(measured),
        verdict,
    )


def _found(measured: Measured) -> str:
    runs = f"({num_runs(measured.count)})"
    if math.isnan(measured.low):
        return f"{'–' if math.isnan(measured.value) else _number(measured.value)}, no interval {runs}"
    return f"{_number(measured.value)}, {measured.kind} {_span(measured.low, measured.high)} {runs}"


def _title(said: str) -> str:
    """``kernel_change`` or ``lecture, bottleneck``: the page, and its step; else the file."""
    path = Path(said)
    if path.stem == "words":
        return path.parent.name
    return f"lecture, {path.stem}" if path.parent.name == "steps" else path.stem


def _bounds(low: float, high: float) -> str:
    if math.isinf(low):
        return f"at most {_number(high)}"
    return f"at least {_number(low)}" if math.isinf(high) else _span(low, high)


def _span(low: float, high: float) -> str:
    return f"{_number(low)} … {_number(high)}"


def _number(value: float) -> str:
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}").replace("-", "−")


if __name__ == "__main__":
    write_whole(TRUTH, rendered(), "docs/truth.md")
