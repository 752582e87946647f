"""One button that saves every chart of the page as an image, drawn by the browser itself; the keyboard reaches it."""

from __future__ import annotations

import streamlit as st

_HTML = '<button type="button">Save all figures</button>'
_CSS = """
button {
  width: 100%; padding: 0.45rem 0.75rem; font: inherit; cursor: pointer;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, 0.25rem);
}
button:hover, button:focus-visible { border-color: var(--st-primary-color); outline: 2px solid var(--st-primary-color) }
"""
# Each chart has a camera button that draws and saves it; a browser drops downloads that begin at the same moment.
_SCRIPT = """
export default function ({ parentElement }) {
  parentElement.querySelector("button").onclick = async () => {
    for (const chart of document.querySelectorAll(".js-plotly-plot")) {
      const camera = chart.querySelector('.modebar-btn[data-title*="Download plot"]');
      if (camera) {
        camera.click();
        await new Promise((resolve) => setTimeout(resolve, 400));
      }
    }
  };
}
"""
_BUTTON = st.components.v2.component("save_images", html=_HTML, css=_CSS, js=_SCRIPT)


def save_images(key: str) -> None:
    """Every chart of the page as SVG or PNG, whichever is chosen, without the server."""
    _BUTTON(key=key)
