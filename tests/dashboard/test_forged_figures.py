"""Every imported line that passes the checks can be shown, whatever its numbers are."""

import copy
import json
import random
from typing import Any

import pytest

from linearity_lab.charts.figure import (
    NOT_DRAWN,
    figures_of,
    has_figures,
    main_chart,
    shown_result,
)
from linearity_lab.runs.store import UnusableLine
from linearity_lab.runs.store._run_file import read_line, sealed_line
from tests.runs.store.made_runs import ROOT

RELEASED = ROOT / "tests/runs/stores/0.2.0/runs.jsonl"
NUMBERS = (0.0, 1e149, 1e-300, 1, "NaN", "Infinity", "-Infinity", None)


def released() -> list[dict[str, Any]]:
    """The results of the released export, one or two of every experiment."""
    found = [json.loads(line) for line in RELEASED.read_text(encoding="utf-8").splitlines()]
    for data in found:
        del data["sha256"]
    return found


def places_of(data: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in nested lists and dictionaries."""
    places = [place] if place else []
    inner: Any = ()
    if isinstance(data, dict):
        inner = data.items()
    elif isinstance(data, list):
        inner = enumerate(data)
    for key, value in inner:
        places += places_of(value, (*place, key))
    return places


def forged(data: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The result with one other value in its points: a field is drawn, then one of its places."""
    data = copy.deepcopy(data)
    by_field: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for place in places_of(data["points"]):
        names = tuple(key for key in place if isinstance(key, str))
        by_field.setdefault(names, []).append(place)
    *outer, last = draw.choice(by_field[draw.choice(list(by_field))])
    group = data["points"]
    for key in outer:
        group = group[key]
    value = group[last]
    if isinstance(value, list):
        group[last] = draw.choice([[], value[1:], value + value[:1], [value]])
    elif isinstance(value, str):
        group[last] = draw.choice(["", "x"])
    elif isinstance(value, dict):
        del group[last]
    else:
        group[last] = draw.choice(NUMBERS)
    return data


@pytest.mark.slow  # draws all figures of several hundred results
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # forged zeros and infinities
def test_accepted_forgeries_are_shown():
    draw = random.Random(0)
    good = released()
    num_accepted = 0
    for _ in range(400):
        data = forged(draw.choice(good), draw)
        line = sealed_line(json.dumps(data, separators=(",", ":"), ensure_ascii=False))
        try:
            result = read_line(line).as_imported()
        except UnusableLine:
            continue
        num_accepted += 1
        shown = shown_result(result)
        if has_figures(result.spec.experiment):
            for figure in figures_of(shown):
                assert figure.initial_charts(shown)
    assert 50 < num_accepted < 350


def test_numbers_that_cannot_be_drawn_give_a_sentence():
    (data,) = [
        each
        for each in released()
        if each["spec"]["experiment"] == "optimization" and each["status"] == "completed"
    ]
    for run in data["points"][0]["runs"]:
        run["stable_rate"] = 0.0
    result = read_line(sealed_line(json.dumps(data)))
    assert main_chart(shown_result(result.as_imported())).takeaway == NOT_DRAWN
    with pytest.raises(ZeroDivisionError):  # a fault of the lab stays one
        main_chart(shown_result(result))
