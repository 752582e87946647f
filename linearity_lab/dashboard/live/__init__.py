"""A network and its linear model train in the browser: the data of a custom component."""

from linearity_lab.charts.style import network_style
from linearity_lab.dashboard.live import source
from linearity_lab.dashboard.live.settings import LiveSettings
from ntk_core.markup import JSON

NAME = "linearity_lab_live"
TOUR = (4, 64, 4096)
HOME_NAME = "linearity_lab_home"
HOME_TOUR = (4, 16, 64, 256, 1024, 4096)
SHOWN = LiveSettings(width=TOUR[0])


def given(settings: LiveSettings, **more: object) -> JSON:
    """Return the data of the component: settings, words and colors."""
    return {
        "form": "page",
        "settings": settings.plain(),
        "defaults": LiveSettings().plain(),
        "words": source.words(),
        "colors": source.colors(),
        **more,
    }


def home_data() -> JSON:
    """Return settings, words and styles of the two networks on Home."""
    found = [network_style("fully-connected", output) for output in source.HOME_OUTPUTS]
    styles = [{"color": style.color, "symbol": style.symbol} for style in found]
    return given(SHOWN, outputs=source.HOME_OUTPUTS, styles=styles, tour=HOME_TOUR)
