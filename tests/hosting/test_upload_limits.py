"""The largest file of each profile is read, one more byte is refused, by the page and by the server's own limit."""

from __future__ import annotations

import asyncio
import os
import urllib.error

import pytest

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.report import own_data
from benchmarks.drills.served_app import ServedApp, served_app
from linearity_lab.components.own_data import upload_limits
from linearity_lab.jobs.profile import OVERRIDES, PROFILES
from ntk_core.data.uploads import parse_upload
from ntk_core.errors import InvalidInput


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in OVERRIDES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("limits", PROFILES.values(), ids=PROFILES.keys())
def test_file_at_the_limit_passes_and_one_more_byte_fails(limits, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", limits.name)
    assert upload_limits().max_bytes == limits.max_upload_bytes
    largest = b"%PDF-" + b" " * (limits.max_upload_bytes - 5)
    with pytest.raises(InvalidInput, match="file: a PDF"):  # let pass by its size, quickly refused by its kind
        parse_upload(largest, upload_limits())
    with pytest.raises(InvalidInput) as refused:
        parse_upload(largest + b" ", upload_limits())
    assert refused.value.field == "file"
    assert f"{limits.max_upload_bytes + 1:,} bytes" in str(refused.value)
    assert f"at most {limits.max_upload_bytes:,} bytes" in str(refused.value)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_server_refuses_uploads_beyond_the_limit():
    with own_data(), served_app(LINEARITY_LAB_PROFILE="hosted", LINEARITY_LAB_MAX_UPLOAD_MIB="1") as app:
        asyncio.run(upload_three(app))


async def upload_three(app: ServedApp) -> None:
    file = b"column413,allowed\n1,2\n3,4\n"
    largest = file + b"\n" * (2**20 - len(file))
    seen: list[bytes] = []
    async with BrowserSession(f"ws://{app.address}", "own_data", listen=seen.append) as session:
        await session.act()
        with pytest.raises(urllib.error.URLError):  # 413, or the server hangs up while more is sent
            await session.upload("own_data.upload", "much-larger.csv", largest * 3)
        await session.upload("own_data.upload", "larger.csv", largest + b"\n")
        assert any("1,048,577 bytes" in alert for alert in session.alerts)
        assert not any(b"column413" in message for message in seen)
        await session.upload("own_data.upload", "largest.csv", largest)
        assert any(b"column413" in message for message in seen)
        assert session.errors == []
