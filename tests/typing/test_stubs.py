"""The stub of the experiments' public names agrees with experiments and presets.

``make stubs`` writes it.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def stubs() -> ModuleType:
    found = importlib.util.spec_from_file_location("stubs", ROOT / ".ci/stubs.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_stub_is_current() -> None:
    module = stubs()
    assert module.STUB.read_text(encoding="utf-8") == module.stub(), "run make stubs"
