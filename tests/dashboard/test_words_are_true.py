"""Words beside figures against the figures.

Of all presets, and of results that rise, are flat or unusable.
"""

import functools
import math
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, get_args

import pytest

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.figure import figures_of, shown_result
from linearity_lab.charts.reading import how_to_read
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.page_modules import page_folder
from linearity_lab.runs import EXPERIMENTS, PRESETS
from linearity_lab.words.pages import CHANGES, FINITE, SHOWS, charts_in, figure_words, prose
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import open_page, words

# A direction or a level of a result.
RESULT = re.compile(
    r"\b(falls?|rises?|decrease\w*|decreasing|increase\w*|increasing|stays?|remains?|flat"
    r"|shrinks?|vanish\w*|grows?|drops?|levels? off"
    r"|coincide|separate|diverges?|converges?|departs?|faster|slower|slowly|steep\w*"
    r"|higher|lower|near(ly)?|close"
    r"|barely|constant|moves? (little|most)|saturates?|approach\w*)\b",
    re.IGNORECASE,
)
# Sentences about any result, or about theory, say so.
GIVEN = re.compile(
    r"\b(theor\w+|if|where|when|because|means|at "
    r"most|bound\w*|would|law|limit|can|may|derived|derivation)\b|^A (flat )?line|^\*\*",
    re.IGNORECASE,
)
FLAT = 0.1  # exponents below are no direction


def sentences(text: str) -> list[str]:
    """Sentences of Markdown, without formulas."""
    text = re.sub(r"\$[^$]*\$", "x", " ".join(text.split()))
    return re.split(r"(?<=[.?!:])\s+", text)


def stated(text: str) -> list[str]:
    """Sentences that state a result without a condition."""
    found = []
    for sentence in re.split(r"(?<=[.?!])\s+", re.sub(r"\$[^$]*\$", "x", " ".join(text.split()))):
        if RESULT.search(sentence) and not GIVEN.search(sentence):
            found.append(sentence)
    return found


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_how_to_read_states_no_result(experiment):
    texts = {}
    for name, each in charts_in(page_folder(experiment)).items():
        meanings = " ".join(text for _, text in each.marks)
        texts[name] = f"{each.see} {meanings}"
        texts[f"{name}, {FINITE}"] = each.finite_width
    for heading in (SHOWS, CHANGES):
        texts[heading] = prose(experiment, heading)
    assert {place: found for place, text in texts.items() if (found := stated(text))} == {}


def test_claims_of_papers_and_our_own_are_told_apart():
    """The label beside the claim is “The paper” or “Our claim”.

    The source states where it was measured.
    """
    for name, preset in PRESETS.items():
        assert preset.is_own == preset.source.startswith("Measured here"), name


def test_a_stated_result_is_found():
    """The sentences of earlier pages, which belonged to one figure of each."""
    for sentence in (
        "With a linear output the line falls faster than the dashed guide.",
        "There are three groups: those with a bottleneck stay flat.",
        "At the larger width the kernel moves little.",
        "Cross-entropy rises as $\\sqrt m$.",
    ):
        assert stated(sentence) == [re.sub(r"\$[^$]*\$", "x", sentence)]
    for sentence in (
        "In theory it falls as $m$.",
        "A flat line means that the kernel moves.",
        "Faint: one seed.",
    ):
        assert stated(sentence) == []


# Word → whether a trace or shape of a figure (as sent to browsers) has this mark.
def _dash(name: str, item: dict[str, Any]) -> bool:
    return (item.get("line") or {}).get("dash") == name


def _symbols(item: dict[str, Any]) -> tuple[str, ...]:
    found = (item.get("marker") or {}).get("symbol") or ()
    return (found,) if isinstance(found, str) else tuple(found)


HAS = {
    r"\bdashed\b": lambda item: _dash("dash", item),
    r"\bdotted\b": lambda item: _dash("dot", item),
    r"\bsolid\b": lambda item: _dash("solid", item),
    r"\bband\b": lambda item: item.get("fill") == "toself",
    r"\barrow\b": lambda item: any(each.startswith("arrow") for each in _symbols(item)),
    r"\bringed\b": lambda item: "circle-open" in _symbols(item),
    r"\bopen marks\b": lambda item: any("open" in each for each in _symbols(item)),
    r"\bfaint marks\b": lambda item: "seeds" in (item.get("meta") or {}),
    r"\bguides?\b": lambda item: (item.get("name") or "").startswith("slope "),
    r"\bcell\b": lambda item: item.get("type") == "heatmap",
    r"\bviolet\b": lambda item: "line" in item and item.get("type") == "scatter",
}


def lacking(chart: Chart, text: str) -> list[str]:
    """Words of marks in a text that the figure lacks; "where drawn" allows either."""
    drawn = chart.figure.to_dict()
    items = [*drawn["data"], *drawn["layout"].get("shapes", ())]
    found = []
    for sentence in sentences(text.lower()):
        for word, has in HAS.items():
            conditional = "where" in sentence
            if re.search(word, sentence) and not conditional and not any(map(has, items)):
                found.append(f"{word}: {sentence}")
    return found


@functools.cache
def drawn(preset: str, made: str = "") -> tuple[tuple[str, Chart], ...]:
    """(key of its words, chart) of all figures of a preset, with its initial options."""
    result = gallery_result(preset)
    assert result is not None
    if made:
        result = MADE[made](result)
    shown = shown_result(result)
    found = []
    for figure in figures_of(shown):
        if not figure.preset:
            for chart in figure.initial_charts(shown):
                found.append((f"{result.spec.experiment}.{chart.name}", chart))
    return tuple(found)


# Results of other settings, made from stored ones.


# Fields of points with results; the others name the point.
RESULTS = ("runs", "kernels", "mean", "cv_squared", "low", "high", "largest_share", "log_variance")


def with_results_of(point: Any, other: Any) -> Any:
    """A point with the results of another one."""
    named = [name for name in RESULTS if name in type(point).model_fields]
    return point.model_copy(update={name: getattr(other, name) for name in named})


def rising(result: Any) -> Any:
    """The same values at the swept ones in reverse order."""
    moved = map(with_results_of, result.points, result.points[::-1])
    return result.model_copy(update={"points": tuple(moved)})


def flat(result: Any) -> Any:
    """The values of the first point everywhere."""
    moved = [with_results_of(point, result.points[0]) for point in result.points]
    return result.model_copy(update={"points": tuple(moved)})


# Outcomes without a usable number, of trainings and of departures.
ENDS = ("stuck", "diverged")


def unusable(result: Any) -> Any:
    """No run converged."""

    def ended(value: Any) -> Any:
        changes: dict[str, Any] = {}
        for name, field in type(value).model_fields.items():
            inner = getattr(value, name)
            if name == "outcome":
                known = get_args(field.annotation)
                changes[name] = next(each for each in ENDS if each in known)
            elif "outcome" in getattr(type(inner), "model_fields", ()):
                changes[name] = ended(inner)
        return value.model_copy(update=changes)

    moved = [
        point.model_copy(update={"runs": tuple(map(ended, point.runs))})
        if hasattr(point, "runs")
        else point
        for point in result.points
    ]
    return result.model_copy(update={"points": tuple(moved)})


MADE = {"rising": rising, "flat": flat, "unusable": unusable}
# Sweeps of every page.
OTHER_SETTINGS = (
    "explore",
    "depth-width",
    "hu-fig3",
    "hu-fig1",
    "adding-networks",
    "adding-many",
    "point-worth",
    "edge-of-stability",
    "liu-fig1-left",
    "liu-table1",
    "bottleneck",
    "zhu-fig2",
    "liu-lazy",
    "richness-dial",
    "catapult-map",
    "horizon-cross-entropy",
    "price-of-linearity",
    "liu-true-and-linearized",
    "liu-section5",
)


def slope_of(trace: Any) -> float:
    """Least-squares slope of a drawn line in logarithms."""
    pairs = [
        (math.log(x), math.log(y)) for x, y in zip(trace.x, trace.y, strict=True) if x > 0 and y > 0
    ]
    mean_x = sum(x for x, _ in pairs) / len(pairs)
    mean_y = sum(y for _, y in pairs) / len(pairs)
    across = sum((x - mean_x) ** 2 for x, _ in pairs)
    return sum((x - mean_x) * (y - mean_y) for x, y in pairs) / across if across else 0.0


def wrong_directions(chart: Chart) -> Iterator[str]:
    """Exponents in names of lines whose sign is not that of the line drawn."""
    for trace in chart.figure.data:
        found = re.search(r"∝ [^<]+<sup>([−-]?[\d.]+)(?: ± ([\d.]+))?", trace.name or "")
        if found is None or "no interval" in trace.name:
            continue
        if trace.x is None or "lines" not in (trace.mode or ""):
            continue
        exponent = float(found[1].replace("−", "-"))
        is_up = slope_of(trace) > 0
        if abs(exponent) > max(FLAT, float(found[2] or 0)) and (exponent > 0) != is_up:
            yield f"{trace.name} is drawn with slope {slope_of(trace):.2f}"


def invented(chart: Chart) -> list[str]:
    """Exponents of the sentence above a figure that no line of it has."""
    names = " ".join(trace.name or "" for trace in chart.figure.data)
    found = re.findall(r"∝ \S\^\(([^)]+)\)", chart.sentence)
    return [each for each in found if each.partition(" ")[0] not in names]


CODE = re.compile(
    r"\b(relu|ntk|lecun|densenet|convnet|resnet|leaky_\w+)\b|= (tree|sines|neurons)\b"
    r"|\b\d{2,}\.0\b|= \d+\.0\b|docs/|\.md\b|[a-z]{3,}_[a-z]{3,}|None|\bnan\b"
)


def faults(key: str, chart: Chart) -> Iterator[str]:
    reading = how_to_read(figure_words(key), chart, in_app=True)
    yield from (f"{key} has no {each}" for each in lacking(chart, reading))
    yield from (f"{key}: {each}" for each in wrong_directions(chart))
    yield from (f"{key}: no line has the exponent {each}" for each in invented(chart))
    if not chart.sentence.endswith((".", ".)")):
        yield f"{key}: half a sentence: {chart.sentence}"
    names = [re.sub(r"<[^>]+>", "", trace.name or "") for trace in chart.figure.data]
    for text in (chart.sentence, *chart.app_caption, *names):
        if found := CODE.search(text):
            yield f"{key}: “{found[0]}” in “{text[:100]}”"


# Every figure of every preset takes half a minute; these had false sentences beside them.
FIRST = (
    "liu-fig1-left",
    "liu-parameterization",
    "relu-and-tanh",
    "adapter-rank-change",
    "zhu-unequal",
    "horizon-rate",
    "no-price-on-digits",
    "hu-theorem35",
)


def in_tiers(names: Iterable[str], first: Collection[str]) -> list[Any]:
    """Names as parameters; those beyond the first ones are slow."""
    return [name if name in first else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.long_after(9)
@pytest.mark.parametrize("preset", in_tiers(PRESETS, FIRST))
def test_words_are_those_of_the_figures_of_a_preset(preset):
    assert [fault for key, chart in drawn(preset) for fault in faults(key, chart)] == []
    for text in (PRESETS[preset].statement, PRESETS[preset].source, PRESETS[preset].our_choice):
        assert not CODE.search(text), text


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    "preset", in_tiers(OTHER_SETTINGS, ("liu-fig1-left", "horizon-cross-entropy"))
)
def test_words_are_those_of_other_results(preset, made):
    assert [fault for key, chart in drawn(preset, made) for fault in faults(key, chart)] == []
    result = gallery_result(preset)
    assert MADE[made](result) != result
    if made == "unusable" and preset in ("liu-fig1-left", "bottleneck", "zhu-fig2"):
        _, chart = drawn(preset, made)[0]
        assert "∝" not in chart.sentence
        assert "no usable run" in chart.sentence


def test_other_results_are_those_of_every_page():
    assert {PRESETS[name].spec.experiment for name in OTHER_SETTINGS} == set(EXPERIMENTS)


def test_no_finding_quotes_a_ringed_value():
    """Of depth against width: values that one network dominates are ringed and
    called unreliable.
    """
    for key, chart in drawn("depth-width"):
        ringed = {
            (x, y)
            for trace in chart.figure.data
            if (trace.name or "").endswith(", ringed")
            for x, y in zip(trace.x, trace.y, strict=True)
        }
        quoted = re.findall(r"[\d.]+", chart.sentence.replace(",", ""))
        assert key.endswith(("figure3", "figure4")) or ringed
        for _, y in ringed:
            assert f"{y:.2g}" not in quoted, chart.sentence


@pytest.mark.parametrize("exponent", [0.8, 0.0, -1.0])
def test_a_page_states_only_its_own_result(exponent, gallery):
    """With kernels that move more, equally, or less.

    No sentence has the result of another figure.
    """
    points = make_points(
        (30, 100, 300, 1000), exponents={"linear": exponent, "softmax": exponent}, seeds=4
    )
    gallery("liu-fig1-left", make_result(points))
    app = open_page("kernel_change", opened=False)
    (finding,) = [
        each.proto.body for each in app.get("html") if 'class="finding"' in each.proto.body
    ]
    assert re.sub("<[^>]+>", "", finding).startswith("Found")
    expected = f"{exponent:.2f}".replace("-", "−")
    assert finding.count(f"<sup>{expected} ±") == 2
    shown = [line for line in words(app).splitlines() if not line.startswith("**The paper")]
    assert stated(" ".join(shown)) == []
