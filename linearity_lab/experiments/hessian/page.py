"""Hessian norms against width.

The kernel change of the same networks is beside them (Liu, Zhu & Belkin 2020, Table 1).
"""

import functools
from collections.abc import Callable, Sequence

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.figure import Shown
from linearity_lab.dashboard.experiment_page import Around, ExperimentPage, OtherPanel
from linearity_lab.dashboard.explain import words_table
from linearity_lab.dashboard.forms import ENTRY_PIXELS, SpecForm
from linearity_lab.dashboard.settings_row import CONTROL_PIXELS
from linearity_lab.dashboard.shown import drawn_once
from linearity_lab.experiments.hessian import norm_figures
from linearity_lab.experiments.hessian.network import TEMPLATES, ComparedNetwork, named, titles
from linearity_lab.experiments.hessian.point import HessianPoint
from linearity_lab.experiments.hessian.spec import HessianSpec
from linearity_lab.settings.part import Values
from linearity_lab.settings.walk import settings
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import titled_prose

Runs = Shown[HessianSpec, HessianPoint]
PAGE_NAME = "hessian"
KEY = "hessian.networks"
CHOOSER_PIXELS = 420
IN_ROW = "activation"  # the shared setting beside the figure
SETTINGS = {
    each.name: each
    for each in settings(HessianSpec)
    if each.name.partition(".")[0] == "networks"  # the list and the settings of its entries
}


def networks_chooser(form: SpecForm[HessianSpec]) -> None:
    """Choose the compared templates."""
    chosen, known = _chosen(form)
    key = f"{KEY}.chosen"
    st.session_state[key] = list(chosen)
    st.multiselect(
        "Networks",
        list(known),
        list(chosen),  # also given, as in the form: an interrupted run must not clear it
        format_func=known.__getitem__,
        key=key,
        on_change=lambda: _put(
            form, [(TEMPLATES | chosen)[name] for name in st.session_state[key]]
        ),
        help="Networks to compare. Change each under All settings, One network.",
        width=CHOOSER_PIXELS,
        wrap=False,
    )
    wrong = [sentence for name, sentence in form.sentences.items() if name in SETTINGS]
    if wrong:  # the other messages repeat this one or follow from it
        st.error(plain(wrong[0]))


def activation_chooser(form: SpecForm[HessianSpec]) -> None:
    """Choose the activation if all networks share one; several are in the panel of all settings."""
    networks = list(_chosen(form)[0].values())
    if len(set(_shared(networks)[IN_ROW])) == 1:
        _shared_widget(form, networks, IN_ROW, CONTROL_PIXELS["choice"])


def networks_form(form: SpecForm[HessianSpec]) -> None:
    """Show shared settings, and the settings of one network."""
    chosen, known = _chosen(form)
    networks = list(chosen.values())
    st.markdown("**All networks**")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for field, values in _shared(networks).items():
            if field != IN_ROW or len(set(values)) > 1:
                _shared_widget(form, networks, field, ENTRY_PIXELS)
    if networks:
        st.markdown("**One network**")
        labels = [
            f"{SETTINGS[f'networks.{at}.kind'].place}: {known[name]}"
            for at, name in enumerate(chosen)
        ]
        options = range(len(labels))
        one = st.selectbox(
            "Network", options, None, labels.__getitem__, f"{KEY}.one", placeholder="Choose one"
        )
        if one is not None:
            form.entries(list(form.used(f"networks.{one}.")))


def _chosen(form: SpecForm[HessianSpec]) -> tuple[dict[str, ComparedNetwork], dict[str, str]]:
    """Return networks of the form by name, valid or not, and titles of these and all templates."""
    given: dict[str, Values] = {}
    for setting, value in form.used("networks.").items():
        _, index, field = setting.name.split(".")
        given.setdefault(index, {})[field] = tuple(value) if isinstance(value, list) else value
    chosen = named(tuple(ComparedNetwork.model_construct(**fields) for fields in given.values()))
    return chosen, {
        **{name: network.title for name, network in TEMPLATES.items()},
        **titles(chosen),
    }


def _shared(networks: Sequence[ComparedNetwork]) -> dict[str, list[object]]:
    """Map settings that can be changed in all networks to their values."""
    free = [network for network in networks if not network.closed_form]
    return {
        "layers": [
            network.depth - (network.bottleneck is not None)
            for network in free
            if network.uses("depth")
        ],
        "activation": [network.activation for network in free if network.uses("activation")],
        "output": [network.output for network in free if network.output != "linear"],
        "bottleneck_width": [network.bottleneck[1] for network in free if network.bottleneck],
        "use_bias": [network.use_bias for network in free if network.uses("use_bias")],
        "parameterization": [network.parameterization for network in free],
    }


def _shared_widget(
    form: SpecForm[HessianSpec], networks: Sequence[ComparedNetwork], field: str, pixels: int
) -> None:
    """Return widgets of shared settings; none if no network has them."""
    values = _shared(networks)[field]
    if not values:
        return
    setting = SETTINGS["networks.0." + ("depth" if field == "layers" else field)]
    title = "Wide layers L" if field == "layers" else setting.title
    key = f"{KEY}.all.{field}"
    st.session_state[key] = values[0]

    def write() -> None:
        _put(form, [network.with_shared(**{field: st.session_state[key]}) for network in networks])

    draw: dict[str, Callable[..., object]] = {
        "integer": functools.partial(st.number_input, min_value=1, step=1),
        "switch": st.toggle,
        "choice": functools.partial(
            st.selectbox,
            options=[
                option for option in setting.options if (field, option) != ("output", "linear")
            ],
            format_func=setting.label,
        ),
    }
    with st.container(width=pixels):
        draw[setting.entry](title, key=key, on_change=write, help=setting.help)


def _put(form: SpecForm[HessianSpec], networks: Sequence[ComparedNetwork]) -> None:
    values: Values = {"networks": len(networks)}
    for index, network in enumerate(networks):
        used = [field for field in type(network).model_fields if network.uses(field)]
        values |= {f"networks.{index}.{field}": getattr(network, field) for field in used}
    form.put(values)


def show_table(shown: Runs) -> None:
    """Show Table 1 of the paper with measured numbers."""
    rows = drawn_once(
        f"{PAGE_NAME}.table", shown.identity, lambda: norm_figures.table_rows(shown.points)
    )
    about = (
        f"95% confidence intervals {shown.spec.scope}, converged runs. The verdict uses ‖H‖ / "
        "‖∇f‖²."
    )
    words_table(rows, about)


def above_network(_: Runs, charts: Sequence[Chart]) -> None:
    """Explain the scaling of layer quantities, if they were measured."""
    if any(chart.name == "quantities" for chart in charts):
        st.markdown(titled_prose(PAGE_NAME, "Why do Hessian and gradient scale differently?"))


PAGE = ExperimentPage[HessianSpec, HessianPoint](
    PAGE_NAME,
    others=[OtherPanel("Table 1, measured", show_table, before="one")],
    around={"one": Around(above=above_network)},
    controls=("dataset.name", networks_chooser, activation_chooser, "widths", "num_seeds"),
    groups={
        "Widths and seeds": ("widths", "num_seeds", "seed", "draws", "num_inputs", "output_index"),
        "Balls and bounds": ("bounds", "vector", "blocks", "radii", "num_starts", "num_ball_seeds"),
    },
    elsewhere=tuple(SETTINGS),
    first=networks_form,
)
show = PAGE.show
