"""What other pages show of this one: its card on the overview."""

import math
from typing import Any

from dashboard.charts.style import model_style
from dashboard.charts.vector import Stroke, thumbnail

CARD = ""
DOTS = 60


def card(_: Any) -> str:
    """Two curves that part: a picture, not a result."""
    x = [6 * index / DOTS - 3 for index in range(DOTS + 1)]
    curves = {"network": [math.sin(2 * at) for at in x], "linearized": [0.8 * math.sin(2 * at + 0.25) for at in x]}
    return thumbnail([Stroke(list(zip(x, y, strict=True)), model_style(name).color) for name, y in curves.items()])
