"""The lecture, one step per screen, with its keys and the speaker's second window."""

import re
from dataclasses import replace
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from linearity_lab.charts.chart import VEILED_KEY, enlarged
from linearity_lab.dashboard import export_menu, session
from linearity_lab.dashboard.chart import Figures, show_chart
from linearity_lab.dashboard.components import component
from linearity_lab.dashboard.explain import provenance_footer
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.pages.lecture import poll_panel
from linearity_lab.dashboard.pages.lecture.drawing import (
    before_answer,
    line_words,
    to_draw,
    with_line,
)
from linearity_lab.dashboard.pages.lecture.steps import (
    PAGE,
    PARTS,
    STEPS,
    LectureStep,
    part_of,
    step_index,
)
from linearity_lab.dashboard.pages.lecture.visit import Visit, control_key
from linearity_lab.dashboard.sketch import sketch
from linearity_lab.runs import PRESETS
from linearity_lab.words.markdown import plain, read
from linearity_lab.words.pages import figure_words, prose
from ntk_core.errors import InvalidInput
from ntk_core.markup import JSON

PRESENT_KEY = "p"
ANSWER_KEY = "a"
ARROWS = ("left", "right")
CLICKER = ("pageup", "pagedown")
# As in presenting.css.
LARGER = 1.3
PRESENTED_HEIGHT = 460
FOLDER = Path(__file__).parent
_mount = component(
    "speaker",
    Path(__file__).with_name("speaker.js"),
    '<div class="speaker"></div>',
    parts=("stage", "speaker"),
)
_KEY = re.compile(r"^- (.+?): (.+)$", re.MULTILINE)


def _speaker_buttons(step: LectureStep, *, presenting: bool) -> None:
    """Show buttons for notes and for the list of keys.

    Send the current step to the second window.
    """
    keys, notes = (
        read(FOLDER / "words.md").sections[heading] for heading in ("Keys", "Speaker notes")
    )
    payload = {
        "step": step.name,
        "keys": _KEY.findall(keys.text),
        "title": keys.field("title"),
        "close": keys.field("close"),
        "notes": notes.field("button"),
        "help": notes.field("help"),
        "presenting": presenting,
    }
    _mount(key=f"{PAGE}.speaker", data=payload, on_step_change=lambda: None)


def _followed_step() -> str:
    """Return the step of the first window; empty before its first report."""
    key = f"{PAGE}.followed"
    at = f"{key}.at"

    def take() -> None:
        if isinstance(found := st.session_state[key].step, str):
            st.session_state[at] = found

    known: str = st.session_state.get(at, "")
    _mount(key=key, data={"follows": True, "step": known}, on_step_change=take)
    return known


def show_notes() -> None:
    """Show the notes of the step, its answer, and the next step."""
    words = read(FOLDER / "words.md").sections["Speaker notes"]
    name = _followed_step()
    try:
        index = step_index(name)
    except InvalidInput:
        st.info(words.field("waiting"))
        return
    step = STEPS[index]
    st.caption(f"Step {index + 1} of {len(STEPS)}")
    st.title(step.title, anchor=False)
    st.markdown(step.notes)
    st.markdown(f"{step.question.text} **{step.question.choices[step.question.answer]}.**")
    is_last = index == len(STEPS) - 1
    st.caption(
        words.field("last") if is_last else f"{words.field('next')}: {STEPS[index + 1].title}"
    )


def show() -> None:
    """Show the current step of URL or session.

    A phone shows a poll instead, and the speaker's second window its own view.
    """
    if "room" in st.query_params:  # links of earlier versions
        st.query_params["poll"] = st.query_params.pop("room")
    if code := st.query_params.get("poll"):
        poll_panel.show_phone(code)
        return
    if "notes" in st.query_params:
        show_notes()
        return
    visit: Visit = st.session_state.setdefault(f"{PAGE}.state", Visit())
    address = session.new_address(PAGE)
    if address is not None:
        visit.read(address)
    st.html(FOLDER / "formulas.css")
    if visit.presenting:
        st.html(FOLDER / "presenting.css")
    above = _bar(visit)
    for note in visit.notes:
        st.warning(plain(note))
    step = visit.step
    st.title(visit.heading(step), anchor=False)
    if not visit.presenting:
        place, part = part_of(step)
        question = "" if visit.index else f". {prose(PAGE, 'Story')}"
        st.caption(f"Part {place} of {len(PARTS)}: **{part}**{question}")
    # The figure first, as on every page, so that it is on a phone's first screen.
    with st.container(key="figure-step"):
        picture, words = st.columns([11, 9], gap="medium")
    results = _results(step)
    figures = Figures(PAGE, [result.spec for result in (results or {}).values()])
    with picture:
        _figure(visit, figures)
    with words, st.container(key="words-step"):
        for piece in step.formula:
            st.latex(piece, width="content")
        is_end = visit.known and visit.index == len(STEPS) - 1
        if not (visit.presenting and is_end):  # the story needs the space
            st.markdown(step.words)
        _question(visit)
    with above:
        runs = [
            export_menu.Taken(name, each.spec, each, PRESETS[name].title)
            for name, each in (results or {}).items()
        ]
        export_menu.export_menu(PAGE, step.title, runs, figures.charts)
    _foot(visit)
    session.show_address(PAGE, visit.query(visit.index))


def _bar(visit: Visit) -> DeltaGenerator:
    """Return the container of the export, at the end of the row."""
    with st.container(horizontal=True, vertical_alignment="center", key="controls"):
        _turn(visit, "top", ARROWS)
        st.progress(
            (visit.index + 1) / len(STEPS), f"Step {visit.index + 1} of {len(STEPS)}", width=200
        )
        st.space("stretch")
        _contents(visit)
        poll_panel.button(visit)
        # A button, not a switch: while a switch has the focus the browser gives it all
        # keys, a clicker's too.
        st.button(
            "Leave" if visit.presenting else "Present",
            key=f"{PAGE}.present",
            icon=":material/fullscreen_exit:" if visit.presenting else ":material/slideshow:",
            shortcut=PRESENT_KEY,
            on_click=visit.present,
            help="Large letters for a projector. A clicker changes steps.",
        )
        _speaker_buttons(visit.step, presenting=visit.presenting)
        return st.container(width="content")


def _foot(visit: Visit) -> None:
    step = visit.step
    with st.container(horizontal=True, vertical_alignment="center", key="foot-step"):
        _turn(visit, "bottom", CLICKER)
        st.caption(step.source, width="content")
        st.page_link(
            f"pages/{step.page}.py",
            label=step.invitation,
            icon=":material/play_arrow:",
            query_params={"preset": step.preset, **({"tab": step.tab} if step.tab else {})},
        )
    if not visit.presenting and (results := _results(step)):
        with st.expander("Where the numbers come from"):
            for result in results.values():
                provenance_footer(result)


def _turn(visit: Visit, place: str, keys: tuple[str, str]) -> None:
    """Show Back and Next, with arrow keys above and a clicker's keys below.

    A button has one key.
    """
    first = visit.next_shows
    st.button(
        "Back",
        key=f"{PAGE}.back.{place}",
        icon=":material/arrow_back:",
        shortcut=keys[0],
        disabled=visit.index == 0,
        on_click=visit.move,
        args=(-1,),
    )
    st.button(
        {"": "Next", "bars": "Bars", "answer": "Answer"}[first],
        key=f"{PAGE}.next.{place}",
        type="primary",
        icon=":material/arrow_forward:",
        shortcut=keys[1],
        disabled=visit.index == len(STEPS) - 1 and not first,
        on_click=visit.move,
        args=(1,),
    )


def _contents(visit: Visit) -> None:
    with st.popover("All steps", icon=":material/list:"):
        for index, step in enumerate(STEPS):
            _, part = part_of(step)
            if PARTS[part][0] == step.name:
                st.markdown(f"**{part}**")
            st.page_link(
                f"pages/{PAGE}.py",
                label=f"{index + 1}. {visit.heading(step)}",
                query_params={"step": step.name, **visit.query(index)},
                disabled=index == visit.index,
            )


def _question(visit: Visit) -> None:
    step = visit.step
    question = visit.step.question
    st.markdown(f"**{'Predicted' if visit.known else 'Predict first'}.** {question.text}")
    if visit.poll_code:
        poll_panel.show_host(visit)
    elif not visit.known:
        for place, index in enumerate(visit.order(step), start=1):
            st.button(
                question.choices[index],
                key=f"{PAGE}.choice{index}",
                on_click=visit.answer,
                args=(index,),
                width="stretch",
                shortcut=str(place),
            )
    if not visit.known:
        st.button(
            "Show the answer",
            key=f"{PAGE}.show",
            type="tertiary",
            on_click=visit.answer,
            args=(None,),
            shortcut=ANSWER_KEY,
        )
        return
    chosen = visit.answers[step.name]
    results = _results(step)
    if step.measured and step.name in visit.drawn and results is not None:
        st.info(line_words(step, visit.drawn[step.name], step.measured(results)))
    box = st.success if chosen in (None, question.answer) else st.warning
    box(question.verdict(chosen, step.name in visit.drawn))
    if results is not None:
        st.markdown(question.why(results))
        st.markdown(figure_words(f"{PAGE}.{step.name}").see)
    if visit.index == len(STEPS) - 1:
        hits = sum(visit.answers.get(step.name) == step.question.answer for step in STEPS)
        st.caption(f"You predicted {hits} of {len(STEPS)} figures.")
        st.markdown(prose(PAGE, "The end"))


def _figure(visit: Visit, figures: Figures) -> None:
    step = visit.step
    known = visit.known
    results = _results(step)
    if results is None:
        st.info("The results of this step are missing; `make gallery` computes them.")
        return
    measured = step.measured(results) if step.measured else None
    control = step.control
    key = control_key(step) + ("" if known else VEILED_KEY)
    if key not in st.session_state:
        st.session_state[key] = (
            visit.shown.get(step.name, control.start) if known else control.start
        )
    chosen = st.segmented_control(
        control.label,
        list(control.options),
        format_func=control.options.__getitem__,
        required=True,
        key=key,
        disabled=not known,
        label_visibility="collapsed",
        help=None if known else "Predict first.",
    )
    # A line on the veiled figure becomes the prediction.
    if measured and not (known or visit.poll_code):
        sketch(f"{PAGE}.{step.name}.sketch", to_draw(step, *measured), visit.draw)
    option = control.start if chosen is None else chosen
    drawn = step.draw(results, option, known) if known else before_answer(step, results, option)
    if known:
        visit.shown[step.name] = chosen
        if measured and step.name in visit.drawn and chosen == control.start:
            drawn = with_line(drawn, visit.drawn[step.name], measured)
    if visit.presenting:
        drawn = replace(drawn, figure=enlarged(drawn.figure, LARGER, PRESENTED_HEIGHT))
    show_chart(figures, replace(drawn, name=step.name, heading="", is_veiled=not known))


def _results(step: LectureStep) -> JSON | None:
    found = {name: gallery_result(name) for name in step.gallery}
    return None if any(result is None for result in found.values()) else found
