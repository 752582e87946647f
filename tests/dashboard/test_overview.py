"""The overview: a picture that moves and ends at the numbers of the gallery, questions, and a card for every page."""

from __future__ import annotations

import base64
import re
import time
import xml.etree.ElementTree as ET

import pytest

from dashboard.charts.vector import Scale, Stroke, cells, letters, thumbnail
from dashboard.components.gallery import gallery_result
from dashboard.views.kernel_change.figures import change_lines
from dashboard.views.lecture.steps import step_index
from dashboard.views.navigation import PAGES
from dashboard.views.overview import thumbnails
from dashboard.views.overview.living import FLOOR, FRAMES, change_so_far, living_picture, moments
from dashboard.views.overview.parts import QUESTIONS
from dashboard.views.overview.thumbnails import page_thumbnail
from ntk_core.runs import PRESETS
from tests.dashboard.contrast import contrast
from tests.dashboard.made_results import make_run
from tests.dashboard.open_pages import open_page, words

DRAWN = (
    "lecture",
    "kernel_change",
    "hessian",
    "architectures",
    "depth_width",
    "dynamics",
    "optimization",
    "lazy",
    "early_time",
    "dag",
)
BY_NAME = {page.name: page for page in PAGES}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _no_workers(jobs, through_the_menu):
    return


def pictures(app) -> list[tuple[str, str]]:
    """(alternative text, SVG) of every picture."""
    found = []
    for element in app.get("image"):
        for image in element.proto.imgs:
            found.append((image.alt, base64.b64decode(image.url.partition("base64,")[2]).decode()))
    return found


def test_the_overview_shows_the_phenomenon_in_motion_with_its_numbers():
    app = open_page("overview")
    alt, svg = pictures(app)[0]
    assert "linear output: from 1.5 at m = 30 to 0.0098 at 10,000" in alt
    assert "@keyframes living-linear" in svg
    assert [expander.label for expander in app.expander] == ["The numbers"]
    assert len(app.expander[0].dataframe[0].value) == 18  # six widths, three outputs
    assert "\\Delta K" in "".join(caption.value for caption in app.caption)


def test_the_motion_ends_at_the_means_of_the_gallery_and_never_falls():
    points = gallery_result("liu-fig1-left").points
    lines = change_lines(points)
    for output in ("linear", "softmax", "swish"):
        ends = moments(points, output, 1.0)
        assert ends == [(width, pytest.approx(average.value)) for width, average in lines[output].means]
        for width, _ in ends:
            along = [dict(moments(points, output, index / (FRAMES - 1)))[width] for index in range(FRAMES)]
            assert along == sorted(along)
            assert along[0] < 0.5 * along[-1]


def test_the_first_moment_is_the_first_recorded_step():
    run = make_run("linear", 0, 0.5)
    assert change_so_far(run, 0.0) == max(run.change[:2])
    assert change_so_far(run, 1.0) == run.sup_change


def test_the_picture_stands_still_where_motion_is_not_wanted_and_is_well_formed():
    svg = living_picture(gallery_result("liu-fig1-left").points)
    assert re.search(r"prefers-reduced-motion: reduce\) \{ .living-linear, .* animation: none", svg)
    root = ET.fromstring(svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1))
    lines = [each for each in root.iter(f"{SVG}path") if each.get("class")]
    assert [each.get("class") for each in lines] == ["living-linear", "living-softmax", "living-swish"]
    # The resting line is the last frame of its motion.
    for line in lines:
        assert f'100% {{ d: path("{line.get("d")}") }}' in svg


@pytest.mark.parametrize(("scheme", "background"), [("light", "#FFFFFF"), ("dark", "#10151D")])
def test_words_of_the_moving_picture_stand_out_from_the_page(scheme, background):
    svg = living_picture(gallery_result("liu-fig1-left").points)
    assert 'fill="currentColor"' in svg
    (ink,) = re.findall(rf"prefers-color-scheme: {scheme}\) {{ svg {{ color: (#\w{{6}})", svg)
    assert contrast(ink, background) > 5
    (either,) = re.findall(r' color="(#\w{6})"', svg)
    assert contrast(either, background) > 4


def test_three_questions_lead_to_places_that_exist():
    assert len(QUESTIONS) == 3
    names = {entry.name for entry in PAGES}
    for question, _, page, query in QUESTIONS:
        assert question.endswith("?")
        assert page in names
        assert set(query) in ({"preset"}, {"step"})
        assert query.get("preset", "liu-fig1-left") in PRESETS
        assert step_index(query.get("step", "1")) >= 0
    links = [link.proto for link in open_page("overview").get("page_link")]
    for question, _, _, query in QUESTIONS:
        (link,) = [each for each in links if question in each.label]
        assert dict(part.split("=") for part in link.query_string.split("&")) == query


def test_every_page_has_a_card_with_its_question():
    app = open_page("overview")
    labels = [link.proto.label for link in app.get("page_link")]
    for entry in PAGES[1:]:
        assert f"**{entry.title}**" in labels
        assert entry.question in words(app)


@pytest.mark.parametrize("page", DRAWN)
def test_pictures_of_pages_are_drawn_from_the_gallery(page):
    svg = page_thumbnail(BY_NAME[page])
    assert svg != letters(BY_NAME[page].title)
    root = ET.fromstring(svg)
    assert len(list(root)) >= 3
    assert "nan" not in svg
    assert len(svg) < 15_000


def test_without_a_gallery_the_overview_still_leads_everywhere(gallery):
    app = open_page("overview")
    assert len(app.get("page_link")) == len(QUESTIONS) + len(PAGES) - 1
    assert page_thumbnail(BY_NAME["kernel_change"]) == letters("Kernel")


def test_all_pictures_together_take_little_of_a_second():
    """Once the gallery is read; the time is that of the fastest of several, since other work shares the processor."""
    times = []
    for _ in range(5):
        thumbnails._drawn.cache_clear()
        start = time.perf_counter()
        living_picture(gallery_result("liu-fig1-left").points)
        for entry in PAGES:
            page_thumbnail(entry)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.3


def test_scales_keep_what_lies_outside_on_the_edge():
    scale = Scale(FLOOR, 1.0, 100, 0, log=True)
    assert (scale(FLOOR / 10), scale(1.0), scale(5.0)) == (100, 0, 0)
    assert scale(FLOOR**0.5) == pytest.approx(50)
    assert Scale(2, 2, 0, 10)(2) == 5


def test_drawings_have_one_mark_a_point():
    root = ET.fromstring(
        thumbnail([Stroke([(0, 0), (1, 1), (2, 0)], "#000", dots=True), Stroke([(0, 1), (2, 1)], "#111")])
    )
    assert len(list(root.iter("circle"))) == 3
    assert len(list(root.iter("path"))) == 2  # the axes and the line
    assert len(list(ET.fromstring(cells([[0, 1], [1, 0]])).iter("rect"))) == 4
