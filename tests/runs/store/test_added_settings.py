"""A new setting with a default changes no digest, and stored runs stay readable."""

import json
import shutil
import subprocess
import sys

import pydantic
import pytest

from linearity_lab.runs import PRESETS, canonical_json, parse_spec, spec_digest
from linearity_lab.runs._documents import _parts_in
from linearity_lab.runs._table import KINDS
from linearity_lab.runs.store import Store
from linearity_lab.settings.part import SpecPart
from ntk_core.networks.graphs._written import Written
from tests.runs.store.made_runs import ROOT
from tests.runs.store.test_released_stores import RELEASED


def setting_classes() -> list[str]:
    """Return ``module:name`` of all classes that settings consist of, with their base classes."""
    waiting: list[type[pydantic.BaseModel]] = [kind.spec for kind in KINDS.values()]
    found: set[type[pydantic.BaseModel]] = set()
    while waiting:
        part = waiting.pop()
        if part in found:
            continue
        found.add(part)
        for field in part.model_fields.values():
            waiting += _parts_in(field.annotation)
        if issubclass(part, Written):
            continue  # takes its fields by place, so a base gets no new ones
        for base in part.__bases__:
            if issubclass(base, pydantic.BaseModel) and base is not pydantic.BaseModel:
                waiting.append(base)
    return sorted(f"{part.__module__}:{part.__name__}" for part in found)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory):
    """A store of the last released version, opened by this version,
    with its runs and their classes.
    """
    file = tmp_path_factory.mktemp("migrated") / "runs.sqlite"
    shutil.copy(RELEASED[-1] / "runs.sqlite", file)
    store = Store(file)
    expected = {}
    classes = {}
    for entry in store.runs(limit=1000).runs:
        expected[entry.digest] = entry.num_points
        classes[entry.digest] = classes_in(entry.spec)
    store.close()
    return file, expected, classes


# Slow: a process for each class.
@pytest.mark.long_after(1)
@pytest.mark.sampled(8)  # one rule for all classes of settings
@pytest.mark.slow
@pytest.mark.parametrize("target", setting_classes())
def test_added_setting_changes_no_digest(migrated, tmp_path, target):
    file, expected, classes = migrated
    copy = tmp_path / "runs.sqlite"
    shutil.copy(file, copy)
    command = [sys.executable, "-m", "tests.runs.store.added_setting", target, str(copy)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == set(expected)
    for digest, facts in found.items():
        assert facts["reason"] == ""
        assert facts["digest"] == digest
        assert facts["num_points"] == expected[digest]
        # The written form of a graph leaves out its defaults, also a new one.
        shows_defaults = not target.startswith("ntk_core.networks.graphs.")
        assert facts["has_setting"] == (shows_defaults and target in classes[digest])


def classes_in(value: object) -> set[str]:
    """Return ``module:name`` of the classes of all settings that are in use,
    with their base classes.
    """
    found: set[str] = set()
    if isinstance(value, tuple | list):
        for each in value:
            found |= classes_in(each)
    if isinstance(value, pydantic.BaseModel):
        found.update(f"{kind.__module__}:{kind.__name__}" for kind in type(value).__mro__)
        for name in type(value).model_fields:
            if not isinstance(value, SpecPart) or value.uses(name):
                found |= classes_in(getattr(value, name))
    return found


def test_different_settings_have_different_digests():
    digests = {spec_digest(preset.spec): preset.name for preset in PRESETS.values()}
    texts = {canonical_json(preset.spec) for preset in PRESETS.values()}
    assert len(digests) == len(texts)


@pytest.mark.parametrize("name", KINDS)
def test_digest_depends_on_values_not_on_how_they_are_given(name):
    preset = next((each for each in PRESETS.values() if each.spec.experiment == name), None)
    spec = preset.spec if preset is not None else KINDS[name].spec.model_construct()
    if preset is None:
        return  # settings of your own models have no defaults
    assert spec_digest(parse_spec(canonical_json(spec))) == spec_digest(spec)
