"""The part of the form that says which networks are compared: a choice of templates, what all share, one in detail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dashboard.components.forms import SpecForm
from dashboard.words.sentences import plain
from ntk_core.experiments.hessian.network import TEMPLATES, ComparedNetwork, named, titles
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.settings.walk import Setting, settings

KEY = "hessian.networks"
NAMES = tuple(setting.name for setting in settings(HessianSpec) if setting.name.startswith("networks"))
_FIELDS = {setting.name: setting for setting in settings(HessianSpec) if setting.name.startswith("networks.0.")}
SHARED = ("activation", "output", "use_bias", "parameterization")


def networks_form(form: SpecForm[HessianSpec]) -> None:
    """Two headings of the sidebar: the networks with what they share, and the settings of one of them."""
    networks = _given(form)
    chosen = named(tuple(networks))
    known = {**{name: network.title for name, network in TEMPLATES.items()}, **titles(chosen)}
    key = f"{KEY}.chosen"

    def choose() -> None:
        _put(form, [chosen.get(name) or TEMPLATES[name] for name in st.session_state[key]])

    with st.expander("Networks", expanded=True):
        st.session_state[key] = list(chosen)
        st.multiselect(
            "Networks",
            list(known),
            format_func=known.__getitem__,
            key=key,
            on_change=choose,
            help="Networks to compare; each can be changed below, under One network.",
        )
        _say(form, lambda field: field not in SHARED)
        for field in SHARED:
            _shared(form, field, networks)
        _counts(form, networks)
    if networks:
        with st.expander("One network"):
            letters = [setting.place for setting in form.used("networks.") if setting.name.endswith(".kind")]
            index = st.selectbox(
                "Network",
                range(len(networks)),
                format_func=lambda index: f"{letters[index]}: {known[list(chosen)[index]]}",
                key=f"{KEY}.one",
            )
            form.entries(list(form.used(f"networks.{index}.")))


def _given(form: SpecForm[HessianSpec]) -> list[ComparedNetwork]:
    """The networks as they are given, right or wrong."""
    found: dict[str, dict[str, Any]] = {}
    for setting, value in form.used("networks.").items():
        _, index, field = setting.name.split(".")
        found.setdefault(index, {})[field] = value
    return [ComparedNetwork.model_construct(**fields) for fields in found.values()]


def _put(form: SpecForm[HessianSpec], networks: list[ComparedNetwork]) -> None:
    values: dict[str, Any] = {"networks": len(networks)}
    for index, network in enumerate(networks):
        values |= {f"networks.{index}.{field}": getattr(network, field) for field in type(network).model_fields}
    form.put(values)


def _shared(form: SpecForm[HessianSpec], field: str, networks: list[ComparedNetwork]) -> None:
    """One setting of all networks that have it: choosing a value writes it into each."""
    own = [getattr(network, field) for network in networks if network.uses(field)]
    if field == "output":
        own = [output for output in own if output != "linear"]
    if not own:
        return
    setting: Setting = _FIELDS[f"networks.0.{field}"]
    key = f"{KEY}.all.{field}"
    st.session_state[key] = own[0]

    def write() -> None:
        _put(form, [network.with_shared(**{field: st.session_state[key]}) for network in networks])

    said: dict[str, Any] = {"key": key, "on_change": write, "help": setting.help}
    if setting.entry == "switch":
        st.toggle(setting.title, **said)
    else:
        options = [option for option in setting.options if (field, option) != ("output", "linear")]
        st.selectbox(setting.title, options, format_func=setting.label, **said)
    _say(form, lambda name: name == field)


def _counts(form: SpecForm[HessianSpec], networks: list[ComparedNetwork]) -> None:
    """How many wide layers there are, and how wide a bottleneck is, in all networks."""
    wide = [network.depth - (network.bottleneck is not None) for network in networks if not network.closed_form]
    narrow = [network.bottleneck[1] for network in networks if network.bottleneck and not network.closed_form]
    for name, title, values in (
        ("layers", "Wide layers L", wide),
        ("bottleneck_width", "Bottleneck width m_b", narrow),
    ):
        key = f"{KEY}.all.{name}"
        if values:
            st.session_state[key] = values[0]

            def write(name: str = name, key: str = key) -> None:
                _put(form, [network.with_shared(**{name: st.session_state[key]}) for network in networks])

            st.number_input(title, min_value=1, step=1, key=key, on_change=write)


def _say(form: SpecForm[HessianSpec], belongs: Callable[[str], bool]) -> None:
    """The first sentence about a setting of some network; the others say the same of further ones."""
    for name, sentence in form.sentences.items():
        if name.startswith("networks") and belongs(name.rpartition(".")[2]):
            st.error(plain(sentence))
            return
