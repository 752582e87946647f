"""The lecture as a page shows it: one step at a time, by buttons, keys or URL, also large for a projector."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.charts.chart import Chart, drawn_rows, enlarged
from dashboard.components import export, session
from dashboard.components.chart import show_chart, shown_charts
from dashboard.components.gallery import gallery_result
from dashboard.components.live import live_small
from dashboard.components.provenance import provenance_footer
from dashboard.views.lecture.steps import STEPS, Step, named_option, option_name, step_index
from dashboard.words.pages import VEILED_KEY
from dashboard.words.sentences import plain
from ntk_core.errors import InvalidInput
from ntk_core.runs import PRESETS

PAGE = "lecture"
PRESENTING = {"1": True, "true": True, "0": False, "false": False}
PRESENT_KEY = "p"
ANSWER_KEY = "a"
ARROWS, CLICKER = ("left", "right"), ("pageup", "pagedown")
LARGER = 1.3  # of presenting.css, too
PRESENTED_HEIGHT = 500
FOLDER = Path(__file__).parent


@dataclass
class _State:
    """What the lecture remembers in this session.

    Attributes:
        answers: name of a step → index of the predicted choice, or None where the answer was asked for.
        shown: name of a step → option of its figure, which waits for the answer.
        notes: what was wrong with the URL.
    """

    index: int = 0
    presenting: bool = False
    answers: dict[str, int | None] = field(default_factory=dict)
    shown: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def step(self) -> Step:
        return STEPS[self.index]

    @property
    def known(self) -> bool:
        return self.step.name in self.answers

    def query(self, index: int) -> dict[str, str]:
        """The URL of a step, in letters as large as now, with the option of its figure."""
        step = STEPS[index]
        option = self.shown.get(step.name, step.control.start)
        return {
            **({"step": step.name} if index else {}),
            **({"present": "1"} if self.presenting else {}),
            **({"show": option_name(option)} if option != step.control.start else {}),
        }


def show() -> None:
    """The step that the URL or this session is at."""
    state: _State = st.session_state.setdefault(f"{PAGE}.state", _State())
    address = session.new_address(PAGE)
    if address is not None:
        _read(state, address)
    st.html(FOLDER / "formulas.css")
    if state.presenting:
        st.html(FOLDER / "presenting.css")
    above = _bar(state)
    for note in state.notes:
        st.warning(plain(note))
    step = state.step
    st.title(step.title, anchor=False)
    with st.container(horizontal=True, gap="large"):
        for piece in step.formula:
            st.latex(piece, width="content")
    st.space("xsmall")
    words, picture = st.columns([9, 11], gap="medium")
    with words:
        st.markdown(step.words)
        _question(state)
    with picture, shown_charts(result.spec for result in (_results(step) or {}).values()) as figures:
        _figure(state)
    with above:
        _export(step, figures.charts)
    _foot(state)
    session.show_address(PAGE, state.query(state.index))


def _read(state: _State, address: dict[str, str]) -> None:
    """Take step, size and option over from a URL; what cannot be used is told in one sentence each."""
    found, notes = session.read_address(address, {"step": step_index, "present": _is_large, "show": str})
    state.index, state.presenting = found.get("step", 0), found.get("present", False)
    if "step" in notes:
        notes["step"] += " This is the first step."
    step = state.step
    state.shown.pop(step.name, None)
    st.session_state.pop(_control_key(step), None)
    if "show" in found and not notes:
        shown, notes = session.read_address({"show": found["show"]}, {"show": partial(named_option, step)})
        if shown:
            state.shown[step.name] = shown["show"]
    state.notes = list(notes.values())


def _is_large(text: str) -> bool:
    if text not in PRESENTING:
        raise InvalidInput("present", text, "1 for large letters, or 0")
    return PRESENTING[text]


def _move(state: _State, by: int) -> None:
    """One step on or back; while presenting, the way on leads over the answer."""
    state.notes = []
    if by > 0 and state.presenting and not state.known:
        state.answers[state.step.name] = None
    else:
        state.index = min(max(state.index + by, 0), len(STEPS) - 1)


def _present(state: _State) -> None:
    state.presenting = not state.presenting


def _answer(state: _State, choice: int | None) -> None:
    state.answers[state.step.name] = choice


def _bar(state: _State) -> DeltaGenerator:
    """Back, next and all steps; what it returns is the place of the export."""
    with st.container(horizontal=True, vertical_alignment="center"):
        _turn(state, "top", ARROWS)
        st.progress((state.index + 1) / len(STEPS), f"Step {state.index + 1} of {len(STEPS)}", width=200)
        st.space("stretch")
        _contents(state)
        # A button, not a switch: while a switch has the focus the browser gives it all keys, a clicker's too.
        st.button(
            "Leave" if state.presenting else "Present",
            key=f"{PAGE}.present",
            icon=":material/fullscreen_exit:" if state.presenting else ":material/slideshow:",
            shortcut=PRESENT_KEY,
            on_click=_present,
            args=(state,),
            help="Large letters for a projector; a clicker's keys turn the pages.",
        )
        return st.container(width="content")


def _foot(state: _State) -> None:
    step = state.step
    with st.container(horizontal=True, vertical_alignment="center"):
        _turn(state, "bottom", CLICKER)
        st.caption(step.source, width="content")
        st.page_link(
            f"pages/{step.page}.py",
            label=step.invitation,
            icon=":material/play_arrow:",
            query_params={"preset": step.preset},
        )
    if not state.presenting:
        for result in (_results(step) or {}).values():
            provenance_footer(result)


def _turn(state: _State, place: str, keys: tuple[str, str]) -> None:
    """Back and next with a key each; arrows above and a clicker's keys below, since a button has one key."""
    last = state.index == len(STEPS) - 1
    answers_first = state.presenting and not state.known
    st.button(
        "Back",
        key=f"{PAGE}.back.{place}",
        icon=":material/arrow_back:",
        shortcut=keys[0],
        disabled=state.index == 0,
        on_click=_move,
        args=(state, -1),
    )
    st.button(
        "Answer" if answers_first else "Next",
        key=f"{PAGE}.next.{place}",
        type="primary",
        icon=":material/arrow_forward:",
        shortcut=keys[1],
        disabled=last and not answers_first,
        on_click=_move,
        args=(state, 1),
    )


def _contents(state: _State) -> None:
    with st.popover("All steps", icon=":material/list:"):
        for index, step in enumerate(STEPS):
            st.page_link(
                f"pages/{PAGE}.py",
                label=f"{index + 1}. {step.title}",
                query_params={"step": step.name, **state.query(index)},
                disabled=index == state.index,
            )


def _question(state: _State) -> None:
    """The question with its choices; once one is chosen, what the figure answers and why."""
    question = state.step.question
    st.markdown(f"**{'Predicted' if state.known else 'Predict first'}.** {question.text}")
    if not state.known:
        for index, choice in enumerate(question.choices):
            st.button(choice, key=f"{PAGE}.choice{index}", on_click=_answer, args=(state, index), width="stretch",
                      shortcut=str(index + 1))  # fmt: skip
        st.button("Show the answer", key=f"{PAGE}.show", type="tertiary", on_click=_answer, args=(state, None),
                  shortcut=ANSWER_KEY)  # fmt: skip
        return
    chosen = state.answers[state.step.name]
    right = question.choices[question.answer]
    if chosen is None:
        st.success(f"**{right}.**")
    elif chosen == question.answer:
        st.success(f"Right: **{right}.**")
    else:
        st.warning(f"You said “{question.choices[chosen]}”. It is: **{right}.**")
    results = _results(state.step)
    if results is not None:
        st.markdown(question.why(results))
    if state.index == len(STEPS) - 1:
        hits = sum(state.answers.get(step.name) == step.question.answer for step in STEPS)
        st.caption(f"You predicted {hits} of {len(STEPS)} figures.")


def _figure(state: _State) -> None:
    """The control and what it acts on; before the prediction the figure keeps the answer to itself."""
    step, known = state.step, state.known
    if step.live:
        live_small(f"{PAGE}.{step.name}.live", veiled=not known)
    results = _results(step)
    if results is None:
        st.info("The results that this step shows are not here; `make gallery` computes them.")
        return
    control = step.control
    key = _control_key(step) + ("" if known else VEILED_KEY)
    if key not in st.session_state:
        st.session_state[key] = state.shown.get(step.name, control.start) if known else control.start
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
    drawn = step.draw(results, control.start if chosen is None else chosen, known)
    if known:
        state.shown[step.name] = chosen
    else:
        alt = f"{drawn.takeaway} The rest of the figure appears with the answer of step {state.index + 1}."
        drawn = Chart(drawn.figure, alt, drawn_rows(drawn.figure))
    if state.presenting:
        drawn = replace(drawn, figure=enlarged(drawn.figure, LARGER, PRESENTED_HEIGHT))
    # Another key for another figure: a zoom belongs to one of them.
    name = step.name + ("" if known else VEILED_KEY)
    show_chart(PAGE, replace(drawn, name=name, heading=""))


def _control_key(step: Step) -> str:
    return f"{PAGE}.{step.name}.control"


def _export(step: Step, charts: Mapping[str, Chart]) -> None:
    results = _results(step) or {}
    runs = [export.Taken(name, result.spec, result, PRESETS[name].title) for name, result in results.items()]
    export.export_menu(PAGE, step.title, runs, charts)


def _results(step: Step) -> dict[str, Any] | None:
    found = {name: gallery_result(name) for name in step.gallery}
    return None if any(result is None for result in found.values()) else found
