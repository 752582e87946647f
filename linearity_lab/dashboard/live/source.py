"""Scripts of the component as one ES module, its style and its words."""

import json
from functools import cache
from pathlib import Path

from linearity_lab.charts.style import model_style
from linearity_lab.dashboard.live.settings import CHOICES, GUIDE, OWN, SHAPES, facts
from linearity_lab.dashboard.scripts import joined
from linearity_lab.words.markdown import read
from ntk_core.markup import JSON
from ntk_core.networks.choices import ACTIVATIONS

FOLDER = Path(__file__).parent
# In the order of their imports; the worker's part has no page to draw on.
MODEL = ("random", "functions", "products", "model", "training", "second")
PAGE = (
    "settings",
    "player",
    "plot",
    "panel",
    "panels",
    "record",
    "verdict",
    "hand",
    "controls",
    "live",
)
HOME = ("settings", "player", "plot", "panel", "panels", "verdict", "controls", "home")
_LINEAR = "linear"
HOME_OUTPUTS = (_LINEAR, "swish")


@cache
def model_module() -> str:
    """Return the networks of *Live* as an ES module without a page.

    It has the network, its linear model and the generator of their weights.
    """
    return (
        joined(FOLDER, MODEL)
        + "\nexport { LargeMatrix, Training, erf, normals, precisionFor, secondTask, threefry };\n"
    )


@cache
def module() -> str:
    """Everything as one ES module with a default export, as Streamlit loads it."""
    return _with_worker(PAGE)


@cache
def home_module() -> str:
    """The two networks of *Home* as one ES module with a default export."""
    return _with_worker(HOME)


def early_module(module: str, begin: str, shown: JSON) -> str:
    """Return a module of this file that begins its panel by itself.

    It contains the constant ``EARLY`` of the script.
    """
    return f"const EARLY = {json.dumps(shown)};\n{module}\n{joined(FOLDER, ('early',))}\n{begin};\n"


def _with_worker(names: tuple[str, ...]) -> str:
    worker = joined(FOLDER, (*MODEL, "worker"))
    begin = f"const WORKER_SOURCE = {json.dumps(worker)};\nconst FACTS = {json.dumps(facts())};\n"
    return begin + joined(FOLDER, names)


@cache
def style() -> str:
    """The component's style."""
    return (FOLDER / "live.css").read_text(encoding="utf-8")


@cache
def words() -> JSON:
    """Return all words of the component.

    Raises:
        WordsError: some are missing.
    """
    found = read(FOLDER / "words.md").sections
    choices = found["Choices"]
    drawn = found["Drawn"]
    home = found["Home"]
    titles = {name: term.title for name, term in ACTIVATIONS.items()}
    bottlenecks: dict[object, str] = {
        0: choices.field("no bottleneck"),
        1: choices.field("one neuron"),
    }
    speeds: dict[object, str] = {0: choices.field("gradual"), 1: choices.field("one step")}
    neurons = choices.field("neurons")
    steps = choices.field("steps a frame")
    guide = found["Tour"]
    return {
        "controls": dict(found["Controls"].fields),
        "choices": {
            "activation": titles,
            "output": {**titles, _LINEAR: _LINEAR},
            "layers": {str(count): str(count) for count in CHOICES["layers"]},
            "bottleneck": {
                str(count): bottlenecks.get(count, neurons.format(count=count))
                for count in CHOICES["bottleneck"]
            },
            "target": {name: choices.field(name) for name in (*SHAPES, OWN)},
            "speed": {
                str(count): speeds.get(count, steps.format(count=count))
                for count in CHOICES["speed"]
            },
        },
        "drawn": dict(drawn.fields),
        "verdicts": dict(found["Verdicts"].fields),
        "home": {**home.fields, "end": {each: home.field(f"{each} end") for each in HOME_OUTPUTS}},
        "tour": {name: guide.field(name) for name in GUIDE},
        "parts": {
            name: {"title": part.field("title"), "text": " ".join(part.text.split())}
            for name, part in found["Parts"].sections.items()
        },
    }


def colors() -> dict[str, str]:
    """The colors of the network and of its linear model, as in every chart."""
    return {"network": model_style("network").color, "linear": model_style("linearized").color}
