"""NaN, infinities and numbers beyond float64 in settings, graphs and lines of run files.

Each is refused by name, as a value in Python or JSON and as text in a URL or on a command line.
"""

import json
import math
from typing import Any

import pytest

from linearity_lab.runs import KINDS, spec_digest
from linearity_lab.settings.grammar import InvalidSpec, spec_from_texts, with_settings
from linearity_lab.settings.part import SpecPart
from linearity_lab.settings.walk import Setting, settings, values_of
from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import _blocks as blocks
from ntk_core.networks.graphs import parse_composition

NO_NUMBERS = (math.nan, math.inf, -math.inf, 10**400)
NO_TEXTS = ("nan", "NaN", "inf", "-inf", "Infinity", "1e400", "-1e400", "9" * 400)
NUMBERS = ("integer", "number", "list", "parts")


def numbers_of(kind: type[SpecPart]) -> dict[str, Setting]:
    """Return the settings with numbers; of equal groups in a list, those of the first."""
    found: dict[tuple[type, str], Setting] = {}
    for setting in settings(kind):
        is_text = "str" in str(setting.info.annotation)  # a list of names
        if setting.entry in NUMBERS and not is_text:
            found.setdefault((setting.part, setting.name.rpartition(".")[2]), setting)
    return {setting.name: setting for setting in found.values()}


def needed_by(setting: Setting) -> dict[str, object]:
    """Return the choices with which a setting is used."""
    found: dict[str, object] = {}
    for name, needed in setting.conditions:
        found[name] = needed + 1 if isinstance(needed, int) else needed[0]
    return found


def problems_of(spec: Any, setting: Setting, value: object) -> list[InvalidInput]:
    """Return what is wrong with a setting, in a spec that uses it."""
    given = value
    if setting.entry == "list":
        given = [value]
    try:
        with_settings(spec, {**needed_by(setting), setting.name: given})
    except InvalidSpec as error:
        return [problem for problem in error.problems if problem.field.startswith(setting.name)]
    return []


@pytest.mark.first_cases(2)  # all settings pass one grammar
@pytest.mark.parametrize("experiment", KINDS)
def test_settings_are_numbers(experiment: str) -> None:
    spec = KINDS[experiment].spec()
    accepted = [
        (name, value)
        for name, setting in numbers_of(type(spec)).items()
        for value in NO_NUMBERS
        if not problems_of(spec, setting, value)
    ]
    assert accepted == []


@pytest.mark.long_after(2)
@pytest.mark.first_cases(1)  # all settings pass one grammar
@pytest.mark.parametrize("experiment", KINDS)
def test_texts_of_settings_are_numbers(experiment: str) -> None:
    spec = KINDS[experiment].spec()
    for name, setting in numbers_of(type(spec)).items():
        needed = {key: str(value) for key, value in needed_by(setting).items()}
        for text in NO_TEXTS:
            found, problems = spec_from_texts({**needed, name: text}, spec)
            assert name in {problem.field for problem in problems}, (name, text)
            assert all(map(_is_finite, values_of(found).values()))


def _is_finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("experiment", KINDS)
def test_zero_has_one_digest(experiment: str) -> None:
    """Minus zero equals zero, and would otherwise name another run."""
    spec = KINDS[experiment].spec()
    for name, setting in numbers_of(type(spec)).items():
        if setting.entry != "number":
            continue
        needed = needed_by(setting)
        try:
            plus = with_settings(spec, {**needed, name: 0.0})
        except InvalidSpec:  # some settings are above zero
            continue
        minus = with_settings(spec, {**needed, name: -0.0})
        assert spec_digest(plus) == spec_digest(minus), name


@pytest.mark.parametrize("kind", blocks.BLOCKS)
def test_numbers_of_blocks_are_numbers(kind: str) -> None:
    for name, field in blocks.BLOCKS[kind].model_fields.items():
        if not any(number in str(field.annotation) for number in ("int", "float")):
            continue
        for value in NO_NUMBERS:
            data = {"layers": [{"kind": kind, name: value}]}
            for form in (data, json.dumps(data)):
                with pytest.raises(InvalidInput) as caught:
                    parse_composition(form)
                assert caught.value.field.startswith("layers.1"), (name, value)
