"""Modules that a shared server loads before its first visitor."""

import subprocess
import sys

import pytest

from linearity_lab.page_modules import page_folders, page_module

# The warm-up without opening a store or starting workers; then the names of its modules.
WARM_UP = """
import sys
from linearity_lab.dashboard.server import _app
_app._log_if_wrong = lambda setting: None
_app._warm_up()
assert _app._LOADED.is_set()
print(*sys.modules)
"""


def modules_after_warm_up(monkeypatch: pytest.MonkeyPatch, profile: str) -> set[str]:
    """Return the names of the modules of a server with this profile."""
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", profile)
    command = [sys.executable, "-c", WARM_UP]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    return set(found.stdout.split())


@pytest.mark.slow
@pytest.mark.first_cases(1)  # loads every page in a new process
@pytest.mark.parametrize("profile", ["classroom", "hosted"])
def test_shared_server_loads_every_page_before_visitors(monkeypatch, profile):
    loaded = modules_after_warm_up(monkeypatch, profile)
    pages = {page_module(folder.name).__name__ + ".page" for folder in page_folders()}
    assert len(pages) >= 15
    assert pages <= loaded
    assert {"scipy.optimize", "pyarrow.compute", "plotly.subplots"} <= loaded


def test_local_server_starts_with_the_first_page_alone(monkeypatch):
    loaded = modules_after_warm_up(monkeypatch, "local")
    assert "linearity_lab.dashboard.pages.overview.page" in loaded
    assert "linearity_lab.experiments.hessian.page" not in loaded
    assert "scipy.optimize" not in loaded
