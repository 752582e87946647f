"""The column beside the figures: main settings, a panel of all others, changed settings."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import streamlit as st

from linearity_lab.dashboard.forms import AnySpec, SpecForm, in_numbers
from linearity_lab.settings.grammar import Setting
from linearity_lab.words.markdown import plain
from linearity_lab.words.run_words import value_words
from ntk_core.numbers import width_label

# Two per row; others fill a row.
CONTROL_PIXELS = {
    "choice": 178,
    "integer": 178,
    "number": 178,
    "switch": 178,
}
Width = int | Literal["stretch"]
OPENED = "all_settings"  # page.OPENED: whether the panel is open
CHANGED = "Changed"  # heading of the settings that differed when the panel was opened
MAX_CHIPS = 5
MAX_CHARACTERS = 24  # of a value in a chip
# Stops of a slider of widths, in addition to those of the preset, each about three
# times the previous one.
STOPS = tuple(factor * 10**power for power in range(7) for factor in (1, 3))

# Shared headings with prefixes of names; the last one takes all other settings.
SHARED_GROUPS = {
    "Network": ("outputs", "architecture.", "infinite_width"),
    "Widths and seeds": ("widths", "num_seeds", "seed", "draws"),
    "Data": ("dataset.",),
    "Training": ("",),
}

# Entries of the column: a setting by its name, or custom widgets of a page.
Control = str | Callable[[SpecForm], None]
# Data, network, output, activation, widths, seeds: first in every column, as far as a page has
# them.
COLUMN: tuple[str, ...] = (
    "dataset.name",
    "architecture.kind",
    "architecture.depth",
    "outputs",
    "output",
    "architecture.activation",
    "widths",
    "num_seeds",
)


def settings_row(form: SpecForm[AnySpec], controls: Sequence[Control]) -> None:
    """Show the preset and the main settings in their order.

    Neighbors that are small share a row.
    """
    used = form.used("")
    known = {setting.name: setting for setting in used}
    controls = [each for each in controls if callable(each) or each in known]

    def is_small(control: Control) -> bool:
        return not callable(control) and known[control].entry in CONTROL_PIXELS

    with st.container(key="controls", gap="xsmall"):
        form.preset_chooser()
        for are_small, neighbors in itertools.groupby(controls, is_small):
            size = 2 if are_small else 1
            for row in _rows_of(list(neighbors), size):
                _row(form, row, known, used)
    for control in controls:
        if control in known and control in form.sentences:
            st.error(plain(form.sentences[control]))


def _rows_of(controls: Sequence[Control], size: int) -> Iterator[Sequence[Control]]:
    """``size`` controls in a row; if some are left over, they have the first row."""
    left_over = len(controls) % size
    if left_over:
        yield controls[:left_over]
    for start in range(left_over, len(controls), size):
        yield controls[start : start + size]


def _row(
    form: SpecForm[AnySpec],
    row: Sequence[Control],
    known: Mapping[str, Setting],
    used: Mapping[Setting, object],
) -> None:
    """Show the controls of one row; a menu alone in its row fills it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for control in row:
            if callable(control):
                control(form)
                continue
            setting = known[control]
            is_alone = len(row) == 1 and setting.entry == "choice"
            pixels = CONTROL_PIXELS.get(setting.entry)
            width: Width = "stretch" if is_alone or pixels is None else pixels
            _control(form, setting, used[setting], width)


def all_settings(
    form: SpecForm[AnySpec],
    groups: Mapping[str, Sequence[str]],
    controls: Sequence[Control] = (),
    elsewhere: Sequence[str] = (),
    first: Callable[[SpecForm], None] | None = None,
) -> None:
    """Show a panel of all other settings of the chosen architectures.

    Prefixes of their names decide the headings.

    Settings that differ from the paper figure come first, then the page's headings, then the shared
    ones; under a common heading, the page's settings come first. Settings in ``elsewhere`` have no
    widget here, since the page sets them in the session. The search keeps settings with all of its
    words in heading, title or help.
    """
    opened = f"{form.page}.{OPENED}"
    panel = st.popover("All settings", icon=":material/tune:", key=opened, on_change="rerun")
    at_opening = f"{form.page}.changed_at_opening"
    if not panel.open:  # its widgets cost more than the rest of the page
        st.session_state.pop(at_opening, None)
        form.keep(controls)
        return
    # Widgets stay in place while the panel is open, also if they change.
    changed = st.session_state.setdefault(at_opening, [each.name for each in form.changed()])
    with panel:
        sought = _search(form.page, opened)
        if first is not None:
            first(form)
        left = _without_widget(form, controls, elsewhere)
        first_ones = [each for each in left if each.name in changed]
        left = [each for each in left if each not in first_ones]
        _group(form, CHANGED, first_ones, sought)
        for heading, prefixes in _headings(groups).items():
            members = _beginning_with(prefixes, left)
            left = [setting for setting in left if setting not in members]
            _group(form, heading, members, sought)


def _search(page: str, opened: str) -> str:
    """Show the search and the button that closes the panel; return the text that is sought."""
    with st.container(horizontal=True, vertical_alignment="center"):
        sought = st.text_input(
            "Search the settings",
            key=f"{page}.search",
            placeholder="Search the settings",
            icon=":material/search:",
            label_visibility="collapsed",
        )
        st.button(
            "Close",
            key=f"{page}.close_settings",
            icon=":material/close:",
            on_click=lambda: st.session_state.update({opened: False}),
            width="content",
        )
    return sought


def _without_widget(
    form: SpecForm[AnySpec], controls: Sequence[Control], elsewhere: Sequence[str]
) -> list[Setting]:
    """Return the used settings that no widget outside the panel sets exactly."""
    found = []
    for setting in form.used(""):
        # A slider in the row has fixed stops: the panel takes exact values.
        is_set_above = setting.name in controls and setting.entry != "list"
        if setting.name not in elsewhere and not is_set_above:
            found.append(setting)
    return found


def _headings(groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the headings with prefixes of their settings, the page's own first."""
    found = {
        heading: tuple(prefixes)
        for heading, prefixes in groups.items()
        if heading not in SHARED_GROUPS
    }
    for heading, prefixes in SHARED_GROUPS.items():
        found[heading] = (*groups.get(heading, ()), *prefixes)
    return found


def _beginning_with(prefixes: Sequence[str], settings: Sequence[Setting]) -> list[Setting]:
    """Return settings in the order of these prefixes, which may differ from that of the spec."""
    found: list[Setting] = []
    for prefix in prefixes:
        found += [each for each in settings if each.name.startswith(prefix) and each not in found]
    return found


def _group(form: SpecForm[AnySpec], heading: str, members: Sequence[Setting], sought: str) -> None:
    """Show the settings of a group that have all sought words in heading, title or help."""
    wanted = sought.lower().split()
    found = []
    for each in members:
        words = f"{heading} {each.full_title} {each.help} {each.name}".lower()
        if all(word in words for word in wanted):
            found.append(each)
    if found:
        st.markdown(f"**{heading}**")
        form.entries(found)


def chips(form: SpecForm[AnySpec]) -> None:
    """Show changed settings as chips, each with a button that resets it."""
    changed = list(form.changed().items())
    single = changed if len(changed) <= MAX_CHIPS else changed[: MAX_CHIPS - 1]
    for setting, value in single:
        _chip(
            form,
            f"{_full_title(form, setting)}: {_shown(setting, value)}",
            [setting],
            f"{setting.name}.back",
        )
    if rest := changed[len(single) :]:
        _chip(form, f"{len(rest)} more changes", [setting for setting, _ in rest], "others.back")


def _chip(form: SpecForm[AnySpec], words: str, members: Sequence[Setting], key: str) -> None:
    titles = ", ".join(dict.fromkeys(_full_title(form, each) for each in members))
    st.button(
        plain(words),
        key=f"{form.page}.{key}",
        icon=":material/close:",
        icon_position="right",
        type="tertiary",
        on_click=form.put_back,
        args=([each.name for each in members],),
        help=plain(f"Restore the value of the paper figure: {titles}."),
    )


def _control(form: SpecForm[AnySpec], setting: Setting, value: object, width: Width) -> None:
    with st.container(width=width):
        if setting.entry != "list":
            form.widget(setting, setting.place or setting.title)
        elif (
            isinstance(values := in_numbers(value), tuple)
            and values
            and all(isinstance(each, int | float) for each in values)
        ):
            _slider(form, setting, sorted(values))


def _slider(form: SpecForm[AnySpec], setting: Setting, given: Sequence[float]) -> None:
    """Return stops from the smallest to the largest value, extended by usual ones."""
    known = {*given, *form.suggested(setting)}
    if setting.counts_neurons:
        known |= {stop for stop in STOPS if min(known) <= stop <= max(known)}
    options = sorted(known)
    if len(options) < 2:
        return
    ends = (given[0], given[-1])
    name = f"{form.page}.{setting.name}.range"
    key = _range_key(name, ends)
    st.session_state[key] = ends

    def write() -> None:
        if st.session_state[f"{name}.key"] != key:  # the slider is no longer drawn
            return
        low, high = st.session_state[f"{name}.ends"] = st.session_state[key]
        between = [each for each in options if low < each < high]
        kept = [each for each in between if each in given or not given[0] < each < given[-1]]
        form.put({setting.name: sorted({low, *kept, high})})

    st.select_slider(
        form.title(setting),
        options,
        (options[0], options[-1]),  # two handles; the session contains their values
        format_func=width_label if setting.counts_neurons else "{:g}".format,
        key=key,
        on_change=write,
        help=setting.info.description,
    )


def _range_key(name: str, ends: tuple[float, float]) -> str:
    """Return the key of a slider, a new one after its values were set elsewhere.

    A browser that has not yet drawn them would send the earlier ends with the next click,
    as if they were moved.
    """
    count = st.session_state.get(f"{name}.count", 0) + (
        st.session_state.get(f"{name}.ends", ends) != ends
    )
    key = f"{name}.{count}" if count else name
    st.session_state.update({f"{name}.count": count, f"{name}.ends": ends, f"{name}.key": key})
    return key


def _full_title(form: SpecForm[AnySpec], setting: Setting) -> str:
    return setting.full_title if setting.place else form.title(setting)


def _shown(setting: Setting, value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else value_words(setting, value) or "none"
    return text if 0 < len(text) <= MAX_CHARACTERS else "changed"
