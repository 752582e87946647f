"""What tests of Hessians share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _quickly(quick_compilation: None) -> None:
    """No test here is about speed."""
