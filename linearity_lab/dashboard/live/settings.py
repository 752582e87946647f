"""The settings of the live component, checked again on the server.

They come from a URL or from a browser.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields

from ntk_core.errors import InvalidInput
from ntk_core.markup import JSON
from ntk_core.networks.choices import ACTIVATIONS, OUTPUTS

LivePoints = tuple[tuple[float, float], ...]
WIDTHS = (4, 4096)
RATES = (0.1, 4.0)
OWN = "own"
REACH = 3.0  # the curves are drawn on [−3, 3]
HEIGHT = 1.6
MOST_POINTS = 30
START_POINTS = 12
POINT_REACH = 2.0
# Targets, each with values in [−1, 1].
SHAPES: dict[str, Callable[[float], float]] = {
    "sine": lambda x: math.sin(2 * x),
    "step": lambda x: -0.8 if x < 0 else 0.8,
    "bump": lambda x: 2 * math.exp(-4 * x * x) - 1,
    "two waves": lambda x: 0.7 * math.sin(2 * x) + 0.3 * math.cos(6 * x),
    "zigzag": lambda x: 1 - 2 * abs((x + 2) % 2 - 1),
}
CHOICES: dict[str, tuple[object, ...]] = {
    "activation": tuple(name for name, sigma in ACTIVATIONS.items() if "activation" in sigma.live),
    "output": tuple(name for name, phi in OUTPUTS.items() if "output" in phi.live),
    "layers": (1, 2),
    "bottleneck": (0, 1, 3, 10),
    "target": tuple(SHAPES),
    "speed": (0, 1, 10, 100),
}
# Steps of the guided tour: name of the sentence, and the changes to the default settings.
GUIDE: dict[str, dict[str, object]] = {
    "narrow": {"width": 4},
    "wider": {"width": 64},
    "wide": {"width": 4096},
    "nonlinear": {"width": 1024, "output": "swish"},
    "fast": {"width": 1024, "rate": 2.5},
    "bottleneck": {"width": 1024, "layers": 2, "bottleneck": 1},
}
MOST_TEXT = 1000
MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class LiveSettings:
    """Settings of *Live*."""

    width: int = 64
    rate: float = 1.0  # c = ηλ/n with the largest eigenvalue λ of the kernel at the start
    activation: str = "tanh"
    output: str = "linear"
    layers: int = 1  # hidden layers of width m
    bottleneck: int = 0  # neurons of a narrow layer after the first wide one; 0 for none
    target: str = "zigzag"  # what is learned, or ``own`` points
    seed: int = 3
    speed: int = 0  # steps a frame; 0 begins with single steps and accelerates
    tour: int = 0  # step of the guided tour, from 1; 0 outside of it
    points: LivePoints | None = None  # custom (x, y), if any

    def query(self) -> dict[str, str]:
        """Return the URL parameters that differ from the defaults."""
        default = LiveSettings()
        found = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name != "points" and value != getattr(default, each.name):
                found[each.name] = _text(value)
        if self.points is not None:
            del found["target"]
            found["points"] = ",".join(f"{x:g}:{y:g}" for x, y in self.points)
        return found

    def learned(self) -> LivePoints:
        """Return the points (x, y), custom or of the target, clipped to the range of the output."""
        if self.points is not None:
            return self.points
        scale, shift = fit(OUTPUTS[self.output].values)
        shape = SHAPES[self.target]
        return tuple((x, scale * shape(x) + shift) for x in start_places())

    def kernel_query(self) -> dict[str, str]:
        """Return the same network and points as a query of *Kernel*, at widths around this one.

        Coordinates are rounded to four decimals; learning rate and seeds are those of that page.
        """
        depth = self.layers + (self.bottleneck > 0)
        around = (self.width // 4, self.width, 4 * self.width, 16 * self.width)
        query = {
            "widths": ",".join(str(width) for width in around if 1 <= width <= 10_000),
            "outputs": self.output,
            "dataset.name": "points",
            "dataset.xs": ",".join(str(round(x, 4)) for x, _ in self.learned()),
            "dataset.ys": ",".join(str(round(y, 4)) for _, y in self.learned()),
            "architecture.activation": self.activation,
        }
        if self.bottleneck:
            query["architecture.kind"] = "bottleneck"
            query["architecture.bottleneck_width"] = str(self.bottleneck)
        if depth > 1:
            query["architecture.depth"] = str(depth)
        return query

    def plain(self) -> JSON:
        """Return the settings as JSON data."""
        return asdict(self)


def start_places() -> list[float]:
    """Return the inputs x of the targets."""
    return [POINT_REACH * (2 * i / (START_POINTS - 1) - 1) for i in range(START_POINTS)]


def fit(values: tuple[float, float]) -> tuple[float, float]:
    """Return scale and shift that move a target from [−1, 1] into the values of an output."""
    lower, upper = values
    if math.isfinite(lower) and math.isfinite(upper):
        # Nine tenths of the range, so that a finite weight reaches each value.
        return min(1.0, 0.45 * (upper - lower)), (lower + upper) / 2
    if math.isfinite(lower):
        return 0.5, 0.5
    if math.isfinite(upper):
        return 0.5, -0.5
    return 1.0, 0.0


def facts() -> JSON:
    """Return the facts that the browser needs: choices, ranges, targets and the guided tour."""
    targets = {}
    for name, shape in SHAPES.items():
        targets[name] = [shape(x) for x in start_places()]
    return {
        "choices": {**CHOICES, "target": (*SHAPES, OWN)},
        "widths": WIDTHS,
        "rates": RATES,
        "reach": REACH,
        "height": HEIGHT,
        "mostPoints": MOST_POINTS,
        "maxSeed": MAX_SEED,
        "places": start_places(),
        "targets": targets,
        "fits": {name: fit(OUTPUTS[str(name)].values) for name in CHOICES["output"]},
        "tour": list(GUIDE.items()),
    }


def from_browser(given: JSON) -> LiveSettings:
    """Parse settings reported by a component.

    Raises:
        InvalidInput: for values that no control can set.
    """
    texts = {
        name: _text(given[name])
        for name in READERS
        if given.get(name) is not None and name != "points"
    }
    points = given.get("points") if texts.get("target") == OWN else None
    if points is not None:
        del texts["target"]
        texts["points"] = ",".join(":".join(map(str, pair)) for pair in points)
    return made({name: READERS[name](text) for name, text in texts.items()})


def made(found: JSON) -> LiveSettings:
    """Build settings from parsed values; custom points are a target."""
    return LiveSettings(**{**found, "target": OWN} if "points" in found else found)


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _whole(name: str, least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (
            text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most
        ):
            raise InvalidInput(name, text[:MOST_TEXT], f"an integer from {least:,} to {most:,}")
        return int(text)

    return read


def _rate(text: str) -> float:
    value = _number(text)
    if not RATES[0] <= value <= RATES[1]:
        raise InvalidInput("rate", text[:MOST_TEXT], f"a number from {RATES[0]:g} to {RATES[1]:g}")
    return value


def _chosen(name: str) -> Callable[[str], object]:
    options = {str(option): option for option in CHOICES[name]}

    def read(text: str) -> object:
        if text not in options:
            raise InvalidInput(name, text[:MOST_TEXT], "one of " + ", ".join(options))
        return options[text]

    return read


def _points(text: str) -> LivePoints:
    pairs = []
    are_inside = True
    for pair in text[:MOST_TEXT].split(","):
        numbers = tuple(_number(part) for part in pair.split(":"))
        # Comparisons with NaN are false: only what is surely inside counts.
        if len(numbers) != 2 or not (abs(numbers[0]) <= REACH and abs(numbers[1]) <= HEIGHT):
            are_inside = False
        pairs.append(numbers)
    if not are_inside or len(pairs) > MOST_POINTS or len(text) > MOST_TEXT:
        allowed = (
            f"1 to {MOST_POINTS} pairs such as -1:0.5,1:-0.5, x within ±{REACH:g} and y "
            f"within ±{HEIGHT:g}"
        )
        raise InvalidInput("points", text[:60], allowed)
    return tuple(sorted((round(x, 2), round(y, 2)) for x, y in pairs))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


READERS: dict[str, Callable[[str], object]] = {
    "width": _whole("width", *WIDTHS),
    "rate": _rate,
    **{name: _chosen(name) for name in CHOICES},
    "seed": _whole("seed", 0, MAX_SEED),
    "tour": _whole("tour", 0, len(GUIDE)),
    "points": _points,
}
