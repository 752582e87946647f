"""The page *Live*: settings, URL, link to the page *Kernel*, and its scripts as one module."""

import json
import re
from itertools import product
from typing import cast

import pytest

from linearity_lab.dashboard.live import NAME, given, source
from linearity_lab.dashboard.live.settings import (
    CHOICES,
    OWN,
    READERS,
    LiveSettings,
    facts,
    fit,
    from_browser,
    made,
)
from linearity_lab.dashboard.run_panel import SHORT_S
from linearity_lab.dashboard.session import read_address
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import PRESETS, estimate
from linearity_lab.settings.grammar import spec_from_texts
from linearity_lab.site._page import embedded
from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import OUTPUTS
from tests.dashboard.open_pages import address, checked, open_page

OTHER = LiveSettings(
    1000,
    2.5,
    "gelu",
    "swish",
    layers=2,
    bottleneck=3,
    target=OWN,
    seed=7,
    speed=10,
    tour=2,
    points=((-1.5, 0.25), (2.0, -1.0)),
)
FILES = [*source.MODEL, "worker", *source.PAGE, "home", "early"]


def received(app) -> dict:
    (component,) = (
        each.proto for each in app.get("bidi_component") if each.proto.component_name.endswith(NAME)
    )
    return json.loads(component.json)


@pytest.mark.parametrize(
    "settings", [LiveSettings(), OTHER, LiveSettings(width=4, target="two waves")]
)
def test_settings_survive_the_url_and_the_browser(settings):
    found, notes = read_address(settings.query(), READERS)
    assert notes == {}
    assert made(found) == settings
    assert from_browser(json.loads(json.dumps(settings.plain()))) == settings


def test_the_url_has_differences_the_component_everything():
    assert LiveSettings().query() == {}
    app = open_page("live", **OTHER.query())
    first = received(app)
    assert first["settings"] == json.loads(json.dumps(OTHER.plain()))
    assert address(app) == OTHER.query()
    assert received(checked(app.run()))["version"] == first["version"]
    app.query_params = {"width": "200"}
    after = received(checked(app.run()))
    assert (after["version"] != first["version"], after["settings"]["width"]) == (True, 200)


UNUSABLE = [
    ("width", "3"),
    ("width", "4097"),
    ("width", "1e3"),
    ("rate", "4.1"),
    ("rate", "nan"),
    ("activation", "<b>"),
    ("layers", "3"),
    ("target", "own"),
    ("seed", "-1"),
    ("points", "1:2:3"),
    ("points", "9:0"),
    ("points", "0:nan"),
    ("points", ",".join(["0:0"] * 31)),
    ("points", "0:0," * 5000),
]


def test_unusable_settings_are_refused():
    for name, text in UNUSABLE:
        with pytest.raises(InvalidInput):
            READERS[name](text)
    for sent in ({"width": "<script>"}, {"target": OWN, "points": [[0, 7]]}, {"seed": [1]}):
        with pytest.raises(InvalidInput):
            from_browser(sent)


def on_the_kernel_page(settings: LiveSettings):
    base = cast(KernelChangeSpec, PRESETS["liu-fig1-left"].spec)
    spec, problems = spec_from_texts(settings.kernel_query(), base)
    assert problems == ()
    return spec


def test_the_kernel_page_understands_every_setting():
    names = ("activation", "output", "layers", "bottleneck")
    for activation, output, layers, bottleneck in product(*(CHOICES[name] for name in names)):
        spec = on_the_kernel_page(LiveSettings(512, 1.0, activation, output, layers, bottleneck))
        assert 512 in spec.widths
        assert (spec.architecture.activation, spec.outputs) == (activation, (output,))
        assert spec.architecture.depth == layers + (bottleneck > 0)
        assert spec.architecture.kind == ("bottleneck" if bottleneck else "fully-connected")
        assert (spec.dataset.name, len(spec.dataset.xs)) == ("points", 12)
    for layers in CHOICES["layers"]:
        spec = on_the_kernel_page(LiveSettings(width=64, layers=layers))
        assert estimate(spec).seconds <= SHORT_S, "starts by itself"


@pytest.mark.parametrize(
    "settings", [OTHER, *(LiveSettings(target=name) for name in CHOICES["target"])]
)
def test_the_points_go_to_the_kernel_page_too(settings):
    dataset = on_the_kernel_page(settings).dataset
    handed = zip(dataset.xs, dataset.ys, strict=True)
    assert [pytest.approx(pair, abs=5e-5) for pair in settings.learned()] == list(handed)


def test_the_browser_has_a_function_for_each_choice():
    """``functions.js`` alone states in JavaScript what Python states too,
    because functions are no data.
    """
    functions = (source.FOLDER / "functions.js").read_text("utf-8")
    computed = set(re.findall(r"^  (\w+)\(z, value, slope\)", functions, re.M))
    chosen = {*CHOICES["activation"], *CHOICES["output"]}
    assert chosen - computed == set(), "missing in functions.js"
    assert computed - chosen == set(), "without `live` in ntk_core/networks/choices.py"


def test_all_other_facts_of_the_browser_come_from_python():
    for module in (source.module(), source.home_module()):
        (written,) = re.findall(r"^const FACTS = (.*);$", module, flags=re.MULTILINE)
        assert json.loads(written) == json.loads(json.dumps(facts()))
    names = {*CHOICES["target"], *CHOICES["output"]} - {"linear"}  # the linear model, too
    for path in source.FOLDER.glob("*.js"):
        if path.stem not in ("functions", "verdict"):
            text = path.read_text("utf-8")
            quoted = [name for name in names if f'"{name}"' in text or f" {name}:" in text]
            assert [name for name in quoted if name not in ("step",)] == [], path
    used = set(re.findall(r"FACTS\.(\w+)", (source.FOLDER / "settings.js").read_text("utf-8")))
    assert used == facts().keys()


@pytest.mark.parametrize("output", OUTPUTS)
def test_targets_fit_into_the_values_of_every_output(output):
    scale, shift = fit(OUTPUTS[output].values)
    lower, upper = OUTPUTS[output].values
    assert scale > 0
    assert lower <= shift - scale
    assert shift + scale <= upper


def test_scripts_are_bundled_without_requests():
    assert {path.stem for path in source.FOLDER.glob("*.js")} == set(FILES)
    text = source.module()
    assert not re.search(r"^import |https?://|\beval\(|new Function", text, flags=re.MULTILINE)
    assert re.findall(r"^export .*", text, flags=re.MULTILINE) == [
        "export default function live({ parentElement, data, setStateValue }) {"
    ]


def test_data_of_the_static_page_do_not_end_their_script():
    page = embedded("data", given(LiveSettings(), note="</script><b>"))
    assert page.count("</script>") == 1
