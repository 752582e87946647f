"""Hessian norms against width, beside the kernel change of the same networks (Liu, Zhu & Belkin 2020, Table 1)."""

import functools
from collections.abc import Callable, Sequence

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.dashboard.chart import Choice, Panel, slide
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.explain import words_table
from linearity_lab.dashboard.forms import ENTRY_PIXELS, SpecForm
from linearity_lab.dashboard.settings_row import CONTROL_PIXELS
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.hessian import figures
from linearity_lab.experiments.hessian import part_figures as parts
from linearity_lab.experiments.hessian.network import TEMPLATES, ComparedNetwork, named, titles
from linearity_lab.experiments.hessian.point import HessianPoint
from linearity_lab.experiments.hessian.spec import HessianSpec
from linearity_lab.settings.part import Values
from linearity_lab.settings.walk import settings
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import titled_prose

Runs = Shown[HessianSpec, HessianPoint]
KEY = "hessian.networks"
CHOOSER_PIXELS = 420
IN_ROW = "activation"  # the shared setting beside the figure
SETTINGS = {each.name: each for each in settings(HessianSpec) if each.name.startswith("networks")}


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


def balls(shown: Runs) -> list[Panel]:
    """Draw suprema over the ball of a chosen measured radius; nothing if none was measured."""
    radii = parts.radii_of(shown.points)

    def ball(quantity: str, radius: float) -> Chart:
        return parts.ball(shown.points, radius, quantity, shown.spec.num_starts)

    def both() -> list[Chart]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.subheader("In the whole ball of radius R around w₀", anchor=False, width="content")
            if len(radii) > 1:
                radius = slide(
                    PAGE.name, "radius", "Radius R", radii, "R = {:g}", len(radii) // 2, 260
                )
            else:
                (radius,) = radii
                st.caption(f"R = {radius:g}")
        quantities = ("hessian", "kernel_change")
        return [shown.drawn("ball", ball, each, radius) for each in quantities]

    return [Panel("In a ball", both)] if radii else []


def one_network(shown: Runs) -> list[Panel]:
    """Draw one network: its norm between bounds, layer quantities and blocks; nothing if none has any."""
    points = shown.points
    known = titles(figures.networks_of(points))
    detailed = [line for line in known if _has_detail(points, line)]

    def drawn(line: str) -> list[Chart]:
        found = (
            parts.shares(points, line),
            parts.bounded(points, line),
            parts.quantities(points, line),
            parts.blocks(points, line),
        )
        return [chart for chart in found if chart is not None]

    def charts() -> list[Chart]:
        (line,) = shown.choose(
            "One network", Choice("one", "Network", detailed, known.__getitem__, 260)
        )
        found = shown.drawn("one", drawn, line)
        if any(chart.name == "quantities" for chart in found):
            st.markdown(titled_prose(PAGE.name, "Why do Hessian and gradient scale differently?"))
        return found

    return [Panel("One network", charts)] if detailed else []


def _has_detail(points: Sequence[HessianPoint], line: str) -> bool:
    runs = [run for point in figures.of_line(points, line) for run in point.runs]
    measured = any(
        run.bound or run.parts or run.vector or run.shares or run.exact is not None for run in runs
    )
    return measured or parts.blocks_of(points, line) is not None


def draw(shown: Runs) -> list[Panel]:
    """Draw norms, kernel changes from the same weights, Table 1, balls around w₀, and one network in detail."""
    points = shown.points

    def norms() -> Chart:
        views = Choice("view", "Vertical axis", list(figures.VIEWS), pixels=150)
        (view,) = shown.choose(views, f"against {figures.place_name(points).rpartition(' ')[0]}")
        return shown.drawn("norms", lambda view: figures.against_width(points, view), view)

    def changes() -> Chart:
        return shown.drawn("changes", lambda: figures.change_against_width(points))

    def table() -> None:
        rows = shown.drawn("table", lambda: figures.table_rows(points))
        about = f"95% confidence intervals {shown.spec.scope}, converged runs. The verdict uses ‖H‖ / ‖∇f‖²."
        words_table(rows, about)

    trained = [Panel("ΔK of the same weights", changes)] if figures.trained_lines(points) else []
    table_1 = Panel("Table 1, measured", table)
    return [Panel("Norms", norms), *trained, *balls(shown), table_1, *one_network(shown)]


PAGE = ExperimentPage(
    "hessian",
    draw,
    controls=(networks_chooser, activation_chooser, "widths", "num_seeds"),
    groups={
        "Widths and seeds": ("widths", "num_seeds", "seed", "draws", "num_inputs", "output_index"),
        "Balls and bounds": ("bounds", "vector", "blocks", "radii", "num_starts", "num_ball_seeds"),
    },
    title="Why do wide networks become linear? The Hessian",
    elsewhere=tuple(SETTINGS),
    first=networks_form,
)
show = PAGE.show
