"""The cookie of a shared server.

Signed, set once by a page, refused when changed, absent on a local server.
"""

import stat

import pytest
from starlette.responses import PlainTextResponse

from linearity_lab.dashboard.server import _visitor_cookie
from linearity_lab.dashboard.server._visitor_cookie import (
    COOKIE,
    VisitorCookie,
    new_cookie,
    signing_key,
    visitor_in,
    visitor_of,
)
from ntk_core.errors import InvalidInput
from tests.hosting.answer import Answer

PAGE = {"accept": "text/html,application/xhtml+xml"}
APP = VisitorCookie(PlainTextResponse("a page"))


@pytest.fixture(autouse=True)
def hosted(monkeypatch, tmp_path):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "hosted")
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.delenv("LINEARITY_LAB_COOKIE_KEY", raising=False)
    return tmp_path


def cookie_of(answer: Answer) -> str:
    """``name=value`` of the cookie that an answer sets; empty without one."""
    return answer.headers.get("set-cookie", "").partition(";")[0]


def test_page_sets_a_signed_cookie_once():
    first = Answer(APP, "/kernel_change", headers=PAGE)
    attributes = first.headers["set-cookie"].split("; ")[1:]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(attributes)
    assert "Secure" not in attributes
    assert "Secure" in new_cookie(is_secure=True).split("; ")
    visitor = visitor_in(cookie_of(first))
    assert len(visitor) >= 32
    again = Answer(APP, "/kernel_change", headers={**PAGE, "cookie": cookie_of(first)})
    assert cookie_of(again) == ""
    assert visitor_in(f"a=1; {cookie_of(first)}; b=2") == visitor
    other = Answer(APP, "/kernel_change", headers=PAGE)
    assert visitor_in(cookie_of(other)) not in ("", visitor)


def test_only_pages_of_shared_servers_set_it(monkeypatch):
    assert cookie_of(Answer(APP, "/api/jobs", headers={"accept": "application/json"})) == ""
    assert cookie_of(Answer(APP, "/", method="POST", headers=PAGE)) == ""
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "local")
    assert cookie_of(Answer(APP, "/", headers=PAGE)) == ""


def test_changed_and_foreign_cookies_name_no_one(monkeypatch):
    value = new_cookie(is_secure=False).partition(";")[0].removeprefix(f"{COOKIE}=")
    name, _, signature = value.partition(".")
    assert visitor_of({COOKIE: value}) == name
    last = "0" if signature[-1] != "0" else "1"
    for forged in (
        name,
        f"{name}.",
        f".{signature}",
        f"x{name}.{signature}",
        f"{name}.{signature[:-1]}{last}",
        f"{name}.{signature}0",
        "",
        ".",
        "é.é",
        "a" * 100_000,
    ):
        assert visitor_of({COOKIE: forged}) == "", forged[:60]
    assert visitor_of({}) == ""
    assert visitor_in("\x00=;;;=") == ""
    monkeypatch.setenv("LINEARITY_LAB_COOKIE_KEY", "another key of the server, long enough")
    assert visitor_of({COOKIE: value}) == ""


def test_key_is_kept_beside_the_store_for_its_owner_only(hosted):
    key = signing_key()
    file = hosted / "visitor_key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert signing_key() == key == file.read_bytes()
    assert [path.name for path in hosted.iterdir()] == ["visitor_key"]
    file.write_text("short")
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_COOKIE_KEY"):
        signing_key()


def test_key_of_the_environment_is_checked_and_not_shown(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_COOKIE_KEY", "secret")
    with pytest.raises(InvalidInput, match="at least 32 random letters") as refused:
        signing_key()
    assert "secret" not in str(refused.value)
    monkeypatch.setenv("LINEARITY_LAB_COOKIE_KEY", "s" * 32)
    assert signing_key() == b"s" * 32


def test_database_elsewhere_keeps_the_key_in_the_data_directory(monkeypatch, tmp_path):
    monkeypatch.setattr(_visitor_cookie, "data_directory", lambda: tmp_path / "data")
    monkeypatch.setenv("LINEARITY_LAB_STORE", "postgresql://host/lab")
    signing_key()
    assert (tmp_path / "data" / "visitor_key").exists()
    monkeypatch.setenv("LINEARITY_LAB_STORE", f"sqlite:///{tmp_path}/other.sqlite")
    signing_key()
    assert (tmp_path / "visitor_key").exists()
