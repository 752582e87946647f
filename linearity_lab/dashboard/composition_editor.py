"""Editor of custom layers as text, with examples, a summary and the verdict of the theorems."""

import json

import streamlit as st

from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import (
    BLOCKS,
    COMPOSITION_TITLES,
    Verdict,
    composition_examples,
    graph_verdict,
    parse_composition,
    positions,
)

HEIGHT = 260
# A table, images, sequences.
_INPUTS = ((16,), (32, 32, 3), (16, 8))
_WIDTH = 128
_LOOKS = {
    "wide": ("grows with m", ":material/check_circle:", "green"),
    "not wide": ("has a bottleneck", ":material/cancel:", "red"),
    "undecided": ("narrow with a skip connection", ":material/help:", "orange"),
}


def composition_editor(label: str, key: str, help: str) -> None:
    """Show a text area for the setting of this key.

    Examples stand above it, layers and verdict below.
    """
    held: str = st.session_state.get(key) or ""
    st.session_state[key] = _laid_out(held)
    st.selectbox(
        "Start from",
        list(COMPOSITION_TITLES),
        format_func=COMPOSITION_TITLES.__getitem__,
        index=None,
        placeholder="An example",
        key=f"{key}.example",
        on_change=_take_example,
        args=(key,),
    )
    kinds = ", ".join(f"`{name}`" for name in BLOCKS)
    st.text_area(
        label,
        key=key,
        height=HEIGHT,
        help=f'{help}\n\nKinds: {kinds}. Widths: `"m"`, `"2m"`, `64`.',
    )
    try:
        composition = parse_composition(st.session_state[key])
    except InvalidInput:  # the form shows the error below
        return
    found = _verdict(composition)
    if found is not None:
        words, icon, color = _LOOKS[found.outcome]
        st.badge(words, icon=icon, color=color)  # type: ignore[arg-type]
        st.caption(plain(" ".join(reason.words for reason in found.reasons)))
    num_blocks = sum(1 for _ in positions(composition.layers))
    st.caption(
        f"{len(composition.trained())} layers with weights, {num_blocks} in all, then the output "
        "layer."
    )


def _verdict(composition: object) -> Verdict | None:
    """Lay out for a table, or else images or sequences.

    The form reports layers that do not fit the data.
    """
    for shape in _INPUTS:
        try:
            return graph_verdict(parse_composition(composition), _WIDTH, shape)
        except InvalidInput:
            continue
    return None


def _laid_out(text: str) -> str:
    """Format one layer per line; return unparsable text unchanged."""
    if "\n" in text:
        return text
    try:
        data = parse_composition(text).data()
    except InvalidInput:
        return text
    return (
        '{"layers": [\n' + ",\n".join(f" {json.dumps(layer)}" for layer in data["layers"]) + "\n]}"
    )


def _take_example(key: str) -> None:
    name = st.session_state[f"{key}.example"]
    if name is not None:
        st.session_state[key] = str(composition_examples()[name])
