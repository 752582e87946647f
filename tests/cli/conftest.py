"""A separate store for all tests of the command line."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_store(tmp_path_factory):
    """Protect the user's results from the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINEARITY_LAB_STORE", str(tmp_path_factory.mktemp("lab") / "results.sqlite"))
        yield
