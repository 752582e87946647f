"""A poll of the class on the projector and on phones."""

import ipaddress
import secrets
from collections.abc import Sequence
from urllib.parse import urlsplit

import segno
import streamlit as st

from linearity_lab.dashboard import session
from linearity_lab.dashboard.job_status import rerun_on_news
from linearity_lab.dashboard.pages.lecture.poll_votes import (
    COOKIE,
    PATH,
    TIMER_S,
    PollView,
    TooManyPolls,
    shared_polls,
)
from linearity_lab.dashboard.pages.lecture.steps import PAGE, STEPS, LectureStep
from linearity_lab.dashboard.pages.lecture.visit import Visit
from linearity_lab.page_modules import page_folder
from linearity_lab.words.markdown import read

# Between two requests.
HOST_S = 1.0
PHONE_S = 1.5
BARS_KEY = "b"
MAX_SHOWN_ADDRESSES = 6  # in one line under the votes
JOINED = f"{PAGE}.joined"
MEMBER = "me"


def _word(name: str) -> str:
    return read(page_folder(PAGE) / "words.md").sections["Poll"].field(name)


def button(visit: Visit) -> None:
    """Open a poll, or end it."""

    def turn() -> None:
        if visit.poll_code:
            shared_polls().close(visit.poll_code, session.viewer())
            visit.poll_code = ""
            return
        try:
            visit.poll_code = shared_polls().open(session.viewer(), session.network_address())
        except TooManyPolls:
            visit.notes = [_word("full")]

    label = _word("end" if visit.poll_code else "button")
    st.button(
        label, key=f"{PAGE}.poll", icon=":material/how_to_vote:", on_click=turn, help=_word("help")
    )


def show_host(visit: Visit) -> None:
    """Show on the projector how to join, how many have answered, and finally the bars."""
    ask = _asking(visit)
    if ask is None:
        visit.poll_code = ""  # its time is over
        st.warning(_word("ended"))
        return
    if visit.known:
        _bars(visit.step, ask)
        return
    url = f"{st.context.url or ''}?poll={visit.poll_code}"
    answers, code = st.columns([3, 2], vertical_alignment="center")
    with answers:
        st.fragment(_follow)(visit)
    with code:
        st.html(_code_picture(url, "15rem"))
        if st.button(
            _word("large"), key=f"{PAGE}.large", icon=":material/fullscreen:", type="tertiary"
        ):
            _large_code(url)
    st.code(url, language=None, wrap_lines=True)
    st.caption(_word("join"))
    if _is_this_machine(urlsplit(url).hostname or ""):
        st.warning(_word("only here"))
    _host_buttons(visit, ask)


def _host_buttons(visit: Visit, ask: PollView) -> None:
    """Show the buttons of the host: bars or another vote, the timer, and closing the poll."""
    polls = shared_polls()
    host = session.viewer()
    name = visit.step.name
    with st.container(horizontal=True):
        if name not in visit.bars:
            st.button(
                _word("bars"),
                key=f"{PAGE}.bars",
                shortcut=BARS_KEY,
                on_click=visit.bars.add,
                args=(name,),
            )
        elif not ask.before:
            st.button(
                _word("again"),
                key=f"{PAGE}.again",
                on_click=_vote_again,
                args=(visit,),
                help=_word("discuss"),
            )
        st.button(
            _word("timer").format(seconds=int(TIMER_S)),
            key=f"{PAGE}.timer",
            icon=":material/timer:",
            on_click=polls.start_timer,
            args=(visit.poll_code, host),
        )
        st.button(
            _word("close" if ask.is_open else "open"),
            key=f"{PAGE}.admit",
            on_click=polls.admit,
            icon=":material/lock:" if ask.is_open else ":material/lock_open:",
            args=(visit.poll_code, host, not ask.is_open),
        )


def _vote_again(visit: Visit) -> None:
    shared_polls().vote_again(visit.poll_code, session.viewer())
    visit.bars.discard(visit.step.name)


@st.dialog("Join the poll", width="large")
def _large_code(url: str) -> None:
    st.html(_code_picture(url, "min(100%, 75vh)"))
    st.code(url, language=None, wrap_lines=True)


def _code_picture(url: str, width: str) -> str:
    code = segno.make(url, error="m", micro=False).svg_data_uri(
        border=3, scale=5, dark="#000", light="#fff"
    )
    look = f"display: block; width: 100%; max-width: {width}; margin: auto"
    return f'<img src="{code}" alt="QR code of the link to this poll" style="{look}">'


def _asking(visit: Visit) -> PollView | None:
    step = visit.step
    return shared_polls().ask(
        visit.poll_code,
        session.viewer(),
        step.name,
        visit.order(step),
        is_revealed=step.name in visit.answers,
    )


def _follow(visit: Visit) -> None:
    seen = _asking(visit)
    if seen is None:
        st.rerun()
    _watch(visit.poll_code, session.viewer(), HOST_S)
    if visit.step.name in visit.bars:
        _bars(visit.step, seen)
    else:
        for place, index in enumerate(seen.order, start=1):
            st.markdown(f"{place}. {visit.step.question.choices[index]}")
    members = max(seen.num_members, seen.num_votes)
    seconds = seen.seconds_left
    left = ""
    if seconds is not None:
        left = " · " + (_word("left").format(seconds=seconds) if seconds else _word("over"))
    st.caption(_word("count").format(votes=seen.num_votes, members=members) + left)
    if seen.by_address:
        st.caption(_by_address(seen.by_address), help=_word("addresses help"))


def _by_address(votes: Sequence[int]) -> str:
    """Describe votes by network address, most first."""
    shown = [str(count) for count in votes[:MAX_SHOWN_ADDRESSES]]
    if len(votes) > MAX_SHOWN_ADDRESSES:
        shown.append("…")
    return _word("addresses").format(addresses=len(votes), votes=", ".join(shown))


def _watch(code: str, member: str, every_s: float) -> None:
    seen = shared_polls().state(code, member)
    rerun_on_news(f"{PAGE}.watched", PATH, f"{code} {member}", seen, every_s)


def _bars(step: LectureStep, seen: PollView) -> None:
    for place, index in enumerate(seen.order, start=1):
        count = seen.counts[index]
        right = " :material/check:" if seen.is_revealed and index == step.question.answer else ""
        words = f"{place}. {step.question.choices[index]} — "
        if seen.before:
            first = seen.before[index]
            st.progress(
                first / max(sum(seen.before), 1), f"{words}{_word('first')} **{first}**{right}"
            )
            words = f"{_word('then')} "
            right = ""
        st.progress(count / max(seen.num_votes, 1), f"{words}**{count}**{right}")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def show_phone(code: str) -> None:
    """Show the current question on a phone, then whether the vote was right."""
    joined = st.session_state.get(JOINED) == code
    member = st.query_params.get(MEMBER) or st.context.cookies.get(COOKIE, "")  # one vote per phone
    if shared_polls().look(code, member) is None:
        how: str = "ended"
        if not joined:
            member = secrets.token_urlsafe()
            how = shared_polls().join(code, member, session.network_address())
        if how != "joined":
            show = st.info if joined else st.warning
            show(_word("crowded" if how == "full" else how))
            st.page_link(f"pages/{PAGE}.py", label=_word("alone"), icon=":material/co_present:")
            return
        st.query_params[MEMBER] = member
    st.session_state[JOINED] = code
    st.fragment(_answer)(code, member)


def _answer(code: str, member: str) -> None:
    seen = shared_polls().look(code, member)
    if seen is None:
        st.rerun()
    _watch(code, member, PHONE_S)
    step = next((step for step in STEPS if step.name == seen.question), None)
    if step is None:
        st.info(_word("wait"))
        return
    question = step.question
    st.title(f"Step {STEPS.index(step) + 1}", anchor=False)
    st.markdown(question.text)
    if seen.is_revealed:
        is_right = seen.own == question.answer
        answer = f"{_word('answer')}: **{question.choices[question.answer]}.**"
        if seen.own is None:
            st.info(answer)
        elif is_right:
            st.success(f"**{_word('right')}** {answer}")
        else:
            st.error(f"**{_word('wrong')}** {answer}")
        if seen.own is not None and not is_right:
            st.markdown(f"{_word('yours')}: {question.choices[seen.own]}.")
        _bars(step, seen)
        st.caption(_word("wait"))
        return
    is_over = seen.seconds_left == 0
    if seen.before:
        st.info(_word("second"))

    def vote(choice: int) -> None:
        shared_polls().vote(code, member, step.name, choice)

    for place, index in enumerate(seen.order, start=1):
        st.button(
            f"{place}. {question.choices[index]}",
            key=f"{PAGE}.vote.{step.name}.{index}",
            width="stretch",
            type="primary" if seen.own == index else "secondary",
            on_click=vote,
            args=(index,),
            disabled=is_over,
        )
    if is_over:
        st.caption(_word("over"))
    else:
        st.caption(_word("choose" if seen.own is None else "chosen"))
