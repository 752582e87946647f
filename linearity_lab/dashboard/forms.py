"""Widgets derived from a spec.

Titles and help come from its fields, and the spec itself validates every value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

import streamlit as st

from linearity_lab.dashboard.composition_editor import composition_editor
from linearity_lab.dashboard.jobs import shared_jobs
from linearity_lab.dashboard.jobs.limits import check_limits, largest_of
from linearity_lab.dashboard.jobs.profile import profile
from linearity_lab.dashboard.own_data import upload_chooser, uploaded
from linearity_lab.dashboard.session import warn_once
from linearity_lab.dashboard.smaller_runs import largest_fit
from linearity_lab.runs import PRESETS, Preset, SeededSpec, Spec
from linearity_lab.runs.repairs import Repaired, repaired
from linearity_lab.settings.aliases import PICKS, setting_named, usual_texts
from linearity_lab.settings.grammar import (
    InvalidSpec,
    Setting,
    changed_values,
    differences,
    settings,
    spec_from_texts,
    text_of,
    value_of,
    values_of,
    with_settings,
)
from linearity_lab.settings.part import SpecPart, Values
from linearity_lab.settings.validation import lengths
from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput

AnySpec = TypeVar("AnySpec", bound=Spec)
PICKS_KEY = "picks"  # session entry: pick → its text, for all pages
MAX_SHOWN = 60  # characters of a setting inside a sentence
ENTRY_PIXELS = 210


@dataclass
class _FormState:
    """State of a page's form while its widgets are not drawn."""

    preset: str
    raw: Values = field(default_factory=dict)  # dotted name → widget value
    # (widget value at that time, error in the URL)
    notes: dict[str, tuple[object, str]] = field(default_factory=dict)
    mended: tuple[str, ...] = ()  # sentences on the settings that followed the last pick
    before: Values = field(default_factory=dict)  # widget values before that pick
    picks: dict[str, str] = field(default_factory=dict)  # of the session, as last seen by this page


# Changed settings by dotted name → values of the settings that follow them.
Follow = Callable[[Mapping[str, object]], Values]


class SpecForm(Generic[AnySpec]):
    """The settings of one page, in the session and in the URL.

    ``spec`` is None while a setting is invalid; ``sentences`` maps dotted names to errors.
    """

    def __init__(
        self,
        page: str,
        preset_names: Sequence[str],
        address: Mapping[str, str] | None,
        job_spec: AnySpec | None = None,
        follow: Follow | None = None,
    ):
        """Read the URL when ``address`` is given, then the widgets.

        ``job_spec`` is that of the job in the URL.

        With ``follow`` settings mend themselves: it returns those that follow the changed ones, and
        settings that do not fit the changed ones move.
        """
        self.page = page
        self._preset_names = tuple(preset_names)
        self.answers: tuple[Spec, ...] = ()  # specs whose results answer these settings, too
        self._settings = settings(type(PRESETS[preset_names[0]].spec))
        key = f"{page}.form"
        if key not in st.session_state:
            st.session_state[key] = _FormState(self._preset_names[0])
            address = address or {}
        self._state: _FormState = st.session_state[key]
        before = dict(self._state.raw)
        changed: set[str] = set()
        if address is not None:
            moved = self._read(address, job_spec, mends=follow is not None)
            named = (setting_named(type(self.preset.spec), name) for name in address)
            changed = {name for name in (*named, *moved) if name in self._state.raw}
        self._collect()
        if before and address is None:
            changed = {name for name in before if before[name] != self._state.raw[name]}
        self._travel(changed if before else set(), is_asked=bool(address))
        if follow is not None and changed:
            self._follow(follow, changed, before)
        self.spec, self.sentences = self._validate()

    def _follow(self, follow: Follow, changed: set[str], before: Values) -> None:
        """Move settings that follow the changed ones, or do not fit them.

        Keep the sentences and the way back.
        """
        self._state.mended = ()
        values = self._values()
        given = {name: values[name] for name in changed if name in values}
        own = {name: value for name, value in follow(given).items() if name not in changed}
        found = repaired(self.preset.spec, {**values, **own}, changed)
        if found is None:
            return
        moved = {**own, **found.changes}
        moved |= {
            name: value
            for name, value in follow(found.changes).items()
            if name not in changed and name not in found.changes
        }
        self._state.mended = found.sentences
        self._state.before = before
        self.put(moved)
        self._collect()

    def _travel(self, changed: set[str], *, is_asked: bool) -> None:
        """Keep the picks of data, network, outputs and activation for other pages, and take theirs.

        A URL with settings of its own takes none.
        """
        picks: dict[str, str] = st.session_state.setdefault(PICKS_KEY, {})
        model = type(self.preset.spec)
        names = {pick: setting_named(model, pick) for pick in PICKS}
        values = self._values()
        for pick, name in names.items():
            if name in changed and name in values and values[name] != "upload":
                picks[pick] = text_of(values[name])
        if not changed and not is_asked and picks != self._state.picks:
            texts = usual_texts(model, picks)
            known = {setting.name: setting for setting in self._settings}
            given = {
                name: value_of(known[name], text) for name, text in texts.items() if name in known
            }
            found = repaired(self.preset.spec, given, given.keys())
            if found is not None and found.spec != self.preset.spec:
                self._state.before = dict(self._state.raw)
                self.fill(found.spec)
                self._collect()
                self._state.mended = ("Your picks from the other pages", *found.sentences)
        self._state.picks = dict(picks)

    def mended(self) -> None:
        """Show what moved with the last pick, and Undo."""
        if not self._state.mended:
            return
        with st.container(horizontal=True, vertical_alignment="center", key=self._key("mended")):
            st.caption(plain("; ".join(self._state.mended) + "."), width="content")
            st.button("Undo", key=self._key("undo"), type="tertiary", on_click=self._undo)

    def _undo(self) -> None:
        """Return to the settings before the last pick."""
        self._state.mended = ()
        for name, held in self._state.before.items():
            self._state.raw[name] = held
            st.session_state[self._key(name)] = held

    def repair(self) -> Repaired[AnySpec] | None:
        """Return settings that fit together, and this server, instead of the invalid ones.

        None if nothing helps.
        """
        found = repaired(self.preset.spec, self._values())
        if found is None:
            return None
        smaller = cast(AnySpec | None, largest_fit(found.spec))
        if smaller is None:
            return None
        sizes = differences(smaller, found.spec)
        titles = {setting.name: setting.full_title for setting in self._settings}
        words = [f"{titles[name]}: {text.replace(',', ', ')}" for name, text in sizes.items()]
        changes = {**found.changes, **changed_values(smaller, found.spec)}
        return Repaired(smaller, changes, (*found.sentences, *words))

    @property
    def preset(self) -> Preset[AnySpec]:
        """The preset chosen last."""
        return cast(Preset[AnySpec], PRESETS[self._state.preset])

    def query(self) -> dict[str, str]:
        """Return the URL query that restores the form."""
        changed = differences(self.spec, self.preset.spec) if self.spec else {}
        first = self._state.preset == self._preset_names[0]
        return changed if first else {"preset": self._state.preset, **changed}

    def title(self, setting: Setting) -> str:
        """Return the title of a setting; swept values are named by their meaning."""
        spec = self.spec or self.preset.spec
        return spec.swept_title if setting.name == spec.swept_field else setting.title

    def preset_chooser(self) -> None:
        """Show a menu of presets, if there are several; choosing one fills the form."""
        if len(self._preset_names) == 1:
            return
        st.session_state[self._key("preset")] = self._state.preset
        st.selectbox(
            "Paper figure",
            self._preset_names,
            format_func=lambda name: PRESETS[name].title,
            key=self._key("preset"),
            on_change=self._choose_preset,
            help="Fills in the settings of a published figure, sized for two cores.",
        )

    def paper_size(self) -> None:
        """Show a button that fills in the sizes of the paper."""
        paper = self.preset.paper_spec
        if paper == self.preset.spec:
            return
        swept = paper.swept_title[:1].lower() + paper.swept_title[1:]
        explained = (
            f"{self.preset.source}: {swept} up to {max(getattr(paper, paper.swept_field)):,}."
        )
        largest: Spec | None = paper
        title = "Paper size"
        try:
            check_limits(paper)
        except InvalidInput as refusal:
            title = "Largest size here"
            largest = largest_fit(paper)
            explained += f" Too much for this server: {plain(str(refusal))}."
        is_largest = self.spec == largest
        st.button(
            "Sized for two cores" if is_largest else title,
            key=self._key("paper_size"),
            on_click=self.fill,
            args=(self.preset.spec if is_largest else largest,),
            disabled=largest is None,
            help=explained,
        )

    def new_data(self) -> None:
        """Show a button for new data per seed if all seeds share one draw."""
        spec = self.spec
        if isinstance(spec, SeededSpec) and not spec.draws_data and spec.dataset.uses("seed"):
            st.button(
                "New data per seed",  # short: it shares a row with Paper size
                key=self._key("new_data"),
                on_click=self.fill,
                args=(with_settings(spec, {"draws": "network and data"}),),
                help="Intervals then include the scatter between data sets. Press Run to compute "
                "them.",
            )

    def entries(self, members: Sequence[Setting]) -> None:
        """Show widgets side by side, each with its error if any."""
        row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
        for setting in members:
            wide = setting.entry in ("upload", "composition", "choices")
            with row.container(width="stretch" if wide else ENTRY_PIXELS):
                self.widget(setting)
                if setting.name in self.sentences:
                    st.error(plain(self.sentences[setting.name]))

    def used(self, prefix: str) -> dict[Setting, object]:
        """Map used settings below this prefix to their values."""
        values = self._values()
        return {
            setting: values[setting.name]
            for setting in self._settings
            if setting.name.startswith(prefix) and setting.name in values
        }

    def keep(self, drawn: Sequence[object]) -> None:
        """Keep the values of all widgets but these, which are drawn; the others would reset."""
        for setting in self.used(""):
            if setting.name not in drawn or setting.entry == "list":
                st.session_state[self._key(setting.name)] = self._state.raw[setting.name]

    def put(self, values: Mapping[str, object]) -> None:
        """Set widgets by the dotted names of their settings."""
        for setting in self._settings:
            if setting.name in values:
                st.session_state[self._key(setting.name)] = _held(setting, values[setting.name])

    def changed(self) -> dict[Setting, object]:
        """Map used settings that differ from the preset to their values."""
        before = values_of(self.preset.spec)

        def is_as_before(setting: Setting, value: object) -> bool:
            other = before.get(setting.name, setting.info.default)
            return in_numbers(value) == in_numbers(other) or text_of(value) == text_of(other)

        return {
            setting: value
            for setting, value in self.used("").items()
            if not is_as_before(setting, value)
        }

    def put_back(self, names: Sequence[str]) -> None:
        """Reset these settings to the preset."""
        before = values_of(self.preset.spec)
        self.put(
            {
                each.name: before.get(each.name, each.info.default)
                for each in self._settings
                if each.name in names
            }
        )

    def suggested(self, setting: Setting) -> list[float]:
        """Return the values of a list in the preset and its paper size."""
        specs = (self.preset.spec, self.preset.paper_spec)
        return [value for spec in specs for value in values_of(spec).get(setting.name) or ()]

    def notes(self) -> None:
        """Show errors in the URL."""
        warn_once([sentence for _, sentence in self._state.notes.values()])

    def _key(self, name: str) -> str:
        return f"{self.page}.{name}"

    def _note(self, name: str, sentence: str) -> None:
        """Keep an error in the URL until its widget changes or another URL is opened."""
        self._state.notes[name] = (self._state.raw.get(name), sentence)

    def _read(
        self, address: Mapping[str, str], job_spec: AnySpec | None, *, mends: bool
    ) -> tuple[str, ...]:
        """Fill the form from a URL.

        With ``mends`` other settings move so that those of the URL fit.

        Returns:
            The names of the moved settings.
        """
        given = {name: text for name, text in address.items() if name not in ("preset", "job")}
        texts = usual_texts(type(self.preset.spec), given)
        name = address.get("preset", self._preset_names[0])
        # "adapter-rank" is *Hessian*'s; on *Architectures* a link to it leads to
        # "adapter-rank-change".
        known = [each for each in self._preset_names if each == name or each.startswith(f"{name}-")]
        self._state.notes = {}
        self._state.preset = name if name in known else next(iter(known), self._preset_names[0])
        base = job_spec if job_spec is not None and not texts else self.preset.spec
        spec, problems = spec_from_texts(texts, base)
        found: Repaired[AnySpec] | None = None
        unusable: set[str] = set()
        if mends and problems:
            found, unusable = self._mended_address(texts, base, problems)
        if found is not None:
            spec = found.spec
            names = {setting.name for setting in self._settings} - unusable
            problems = tuple(problem for problem in problems if problem.field not in names)
        self.fill(spec)
        titled = {setting.name: setting for setting in self._settings}
        for problem in problems:
            if (setting := titled.get(problem.field)) is None:
                self._note(problem.field, f"In the URL, {problem}.")
                continue
            # Or the choice that makes it visible.
            shown = setting.unmet_condition(self._state.raw) or setting.name
            kept = text_of(self._state.raw.get(shown))
            instead = kept if 0 < len(kept) <= MAX_SHOWN else "Value of the preset"
            self._note(shown, f"In the URL, {setting.sentence(problem)} {instead} is used instead.")
        if "job" in address and job_spec is None:
            self._note("job", _words_for_job(address["job"]))
        if not known:
            unknown = InvalidInput("preset", name, "one of " + ", ".join(self._preset_names))
            self._note("preset", f"In the URL, {unknown}. {self._state.preset} is used instead.")
        return tuple(found.changes) if found is not None else ()

    def _mended_address(
        self, texts: Mapping[str, str], base: AnySpec, problems: Sequence[InvalidInput]
    ) -> tuple[Repaired[AnySpec] | None, set[str]]:
        """Return a spec with the settings of the URL, and others moved to fit; None if none fits.

        Also return the settings with values that cannot be used, whatever the others are: they do
        not keep the others from being used.
        """
        known = {setting.name: setting for setting in self._settings}
        given = {name: value_of(known[name], text) for name, text in texts.items() if name in known}
        found = _fitting(base, given)
        if found is not None:
            return found, set()
        reported = given.keys() & {problem.field for problem in problems}
        unusable = {name for name in reported if _fitting(base, {name: given[name]}) is None}
        usable = {name: value for name, value in given.items() if name not in unusable}
        if not unusable or not usable:
            return None, set()
        return _fitting(base, usable), unusable

    def fill(self, spec: SpecPart) -> None:
        """Fill the widgets from a spec; for callbacks, which run before widgets are drawn."""
        values = values_of(spec)
        for setting in self._settings:
            held = _held(setting, values.get(setting.name, setting.info.default))
            self._state.raw[setting.name] = held
            if setting.name in values:
                st.session_state[self._key(setting.name)] = held
            else:  # every widget checks every key: those of lists of groups would be hundreds
                st.session_state.pop(self._key(setting.name), None)

    def _choose_preset(self) -> None:
        self._state.preset = st.session_state[self._key("preset")]
        self._state.notes = {}
        self.fill(self.preset.spec)

    def _collect(self) -> None:
        """Read the widgets; a note disappears when its widget changes."""
        for setting in self._settings:
            held = st.session_state.get(self._key(setting.name), self._state.raw[setting.name])
            if setting.entry == "upload" and not held and uploaded():  # the last upload
                held = st.session_state[self._key(setting.name)] = uploaded()[0].digest
            self._state.raw[setting.name] = held
            if setting.name in self._state.notes and self._state.notes[setting.name][0] != held:
                del self._state.notes[setting.name]

    def _values(self) -> Values:
        """Map dotted names of used settings to their values."""
        given = {
            setting.name: _given(setting, self._state.raw[setting.name])
            for setting in self._settings
        }
        return {
            setting.name: given[setting.name]
            for setting in self._settings
            if setting.is_used(given)
        }

    def _validate(self) -> tuple[AnySpec | None, dict[str, str]]:
        titled = {setting.name: setting for setting in self._settings}
        try:
            spec = with_settings(self.preset.spec, self._values())
            check_limits(spec)
        except (InvalidSpec, InvalidInput) as error:
            found = error.problems if isinstance(error, InvalidSpec) else (error,)
            return None, {
                p.field: self._sentence(titled[p.field], p) if p.field in titled else f"{p}."
                for p in found
            }
        return spec, {}

    def _sentence(self, setting: Setting, problem: InvalidInput) -> str:
        given = self._state.raw[setting.name]
        most = lengths(setting.info)[1]
        if setting.entry == "choices" and (not given or len(given) > (most or len(given))):
            return f"{setting.full_title}: choose {f'at most {most}' if given else 'at least one'}."
        if given in setting.options:  # named as in its menu
            problem = InvalidInput(problem.field, setting.label(given), problem.allowed)
        return setting.sentence(problem)

    def widget(self, setting: Setting, title: str = "") -> None:
        """Show the widget of one setting, under this title or its own."""
        key = self._key(setting.name)
        if key not in st.session_state:
            st.session_state[key] = self._state.raw[setting.name]
        held = st.session_state[key]
        shared: Values = {
            "label": title or self.title(setting),
            "key": key,
            "help": help_of(setting),
        }
        # Session state alone would be lost in an overtaken run; bounds are left to the spec,
        # which explains them.
        match setting.entry:
            case "choice":
                index = list(setting.options).index(held) if held in setting.options else 0
                st.selectbox(
                    **shared, index=index, options=setting.options, format_func=setting.label
                )
            case "choices":
                known = [each for each in held if each in setting.options]
                # "linear" among outputs, whose list has the word in its title
                st.multiselect(
                    **shared,
                    default=known,
                    options=setting.options,
                    format_func=lambda option: setting.label(option).removesuffix(
                        setting.common_ending
                    ),
                    wrap=False,
                )
            case "switch":
                st.toggle(**shared, value=held)
            case "integer" | "parts":
                st.number_input(**shared, value=held, step=1)
            case "number":
                value = None if held is None else float(held)
                st.number_input(**shared, value=value, step=float(setting.step), format="%g")
            case "composition":
                composition_editor(**shared)
            case "upload":
                upload_chooser(**shared)
            case _:
                st.text_input(**shared, value=held, placeholder=setting.when_empty)


def help_of(setting: Setting) -> str:
    """Meaning of a setting, its allowed values, and its limit on a shared server."""
    limits = profile()
    most = largest_of(setting, limits) if limits.is_shared else None
    return "\n\n".join(
        filter(None, [setting.help, f"On this server: at most {most:,}." if most else ""])
    )


def in_numbers(value: object) -> object:
    """Convert a list to a tuple of numbers where possible, so that equal settings compare equal."""
    if not isinstance(value, list | tuple):
        return value
    try:
        return tuple(float(each) if isinstance(each, str) else each for each in value)
    except ValueError:
        return tuple(value)


def _held(setting: Setting, value: object) -> object:
    if setting.entry in ("list", "text", "upload", "composition"):
        text = "" if value is None else text_of(value)
        return text.replace(",", ", ") if setting.entry == "list" else text
    return list(value) if setting.entry == "choices" and isinstance(value, list | tuple) else value


def _given(setting: Setting, held: object) -> object:
    return value_of(setting, held) if isinstance(held, str) and setting.entry != "choice" else held


def _fitting(base: AnySpec, given: Mapping[str, object]) -> Repaired[AnySpec] | None:
    """Return a spec with all given settings, and others moved to fit; None if there is none."""
    found = repaired(base, given, given.keys())
    return None if found is None or given.keys() & found.changes.keys() else found


def _words_for_job(job_id: str) -> str:
    """Say why the URL's job cannot be shown, and what the visitor can do instead."""
    known = shared_jobs().known_run(job_id)
    if known is None:
        job = InvalidInput("job", job_id, "the id of a run from this page")
        return f"In the URL, {job}. Press Run to compute these settings."
    return f"{known.sentence} Open it on the page Results. This page shows other settings."
