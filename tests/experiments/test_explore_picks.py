"""Explore: any order of picks and any URL give settings that run, or a repair."""

import random

import pytest

from linearity_lab.data import DATASETS
from linearity_lab.experiments import ExploreSpec
from linearity_lab.experiments.explore.pairs import following, in_full, preview_of
from linearity_lab.runs import estimate
from linearity_lab.runs.repairs import repaired
from linearity_lab.settings.aliases import ALIASES, usual_texts
from linearity_lab.settings.grammar import spec_from_texts, value_of
from linearity_lab.settings.walk import settings, values_of
from ntk_core.networks.choices import ACTIVATIONS, OUTPUTS
from ntk_core.networks.kinds import ARCHITECTURES

KNOWN = {setting.name: setting for setting in settings(ExploreSpec)}
JUNK = ("", "-1", "0", "1e9", "nan", "no-such", "ΔK", "1,2,3", "true", "\u202eabc", "9" * 400)


def assert_answers(spec: ExploreSpec) -> None:
    """The page has a preview and a full run of these settings, each with an estimate."""
    small = preview_of(spec)
    assert len(small.widths) <= 3
    assert small.num_seeds <= 2
    assert estimate(small).seconds > 0
    assert max(in_full(spec).widths) >= max(spec.widths)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_picks_is_repaired(seed):
    draw = random.Random(seed)
    options = {
        "dataset.name": [name for name in DATASETS if name != "upload"],
        "architecture.kind": list(ARCHITECTURES),
        "architecture.activation": list(ACTIVATIONS),
    }
    values = values_of(ExploreSpec())
    for _ in range(12):
        name = draw.choice([*options, "outputs"])
        if name == "outputs":
            picked = tuple(draw.sample(list(OUTPUTS), draw.randint(1, 3)))
        else:
            picked = draw.choice(options[name])
        values[name] = picked
        found = repaired(ExploreSpec(), {**values, **following({name: picked})}, {name})
        assert found is not None, (name, picked, values)
        assert_answers(found.spec)
        values = values_of(found.spec)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("seed", range(12))
def test_any_url_opens_settings_that_run(seed):
    draw = random.Random(seed)
    words = [*JUNK, *DATASETS, *ARCHITECTURES, *ACTIVATIONS, *OUTPUTS, "CNN", "MNIST", "ReLU"]
    for _ in range(12):
        names = draw.sample([*ALIASES, *KNOWN, "nonsense"], draw.randint(1, 5))
        texts = usual_texts(ExploreSpec, {name: draw.choice(words) for name in names})
        spec, problems = spec_from_texts(texts, ExploreSpec())
        assert_answers(spec)
        given = {name: value_of(KNOWN[name], text) for name, text in texts.items() if name in KNOWN}
        found = repaired(ExploreSpec(), given, given.keys())
        if found is not None:
            assert_answers(found.spec)
        else:
            assert problems  # each is stated beside its widget
