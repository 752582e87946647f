"""Visitors of a shared server: a random name in a signed cookie, so that runs belong to a browser.

The cookie contains no personal data. A local server sets none: all its runs belong to its user.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linearity_lab.dashboard.server._visitors import strict_profile
from linearity_lab.environment import environment_settings
from linearity_lab.files import data_directory, private_directory
from linearity_lab.variable_names import MIN_KEY
from ntk_core.errors import InvalidInput

COOKIE = "linearity_lab_visitor"
KEY_VARIABLE = "LINEARITY_LAB_COOKIE_KEY"
YEAR_S = 365 * 24 * 3600
_KEY_FILE = "visitor_key"


class VisitorCookie:
    """ASGI middleware: on a shared server, a page opened without a valid cookie sets one.

    Only answers to page loads set it: the scripts and requests of one page then send the same
    cookie.
    """

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _opens_a_page(scope) or not strict_profile().is_shared:
            await self._app(scope, receive, send)
            return
        if visitor_in(Headers(scope=scope).get("cookie", "")):
            await self._app(scope, receive, send)
            return

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_secure = scope.get("scheme") == "https"
                MutableHeaders(scope=message).append("Set-Cookie", new_cookie(is_secure))
            await send(message)

        await self._app(scope, receive, send_with_cookie)


def new_cookie(is_secure: bool) -> str:
    """Return the header value of a cookie with a new visitor's name."""
    name = secrets.token_urlsafe(24)
    attributes = f"Path=/; Max-Age={YEAR_S}; HttpOnly; SameSite=Lax"
    return f"{COOKIE}={name}.{_signature(name)}; {attributes}{'; Secure' if is_secure else ''}"


def visitor_of(cookies: Mapping[str, object]) -> str:
    """Return the visitor's name in these cookies.

    Empty without a cookie that this server signed.
    """
    value = cookies.get(COOKIE, "")
    if not isinstance(value, str):  # a test's stand-in for a browser
        return ""
    name, _, signature = value.partition(".")
    is_valid = bool(name) and hmac.compare_digest(signature.encode(), _signature(name).encode())
    return name if is_valid else ""


def visitor_in(header: str) -> str:
    """Return the visitor's name in a ``Cookie`` header; empty without a valid one."""
    cookies = SimpleCookie()
    try:
        cookies.load(header)
    except CookieError:
        return ""
    return visitor_of({name: each.value for name, each in cookies.items()})


def signing_key() -> bytes:
    """Return the key that signs cookies.

    It is ``LINEARITY_LAB_COOKIE_KEY``, or in a file beside the store that only its owner reads.

    Raises:
        InvalidInput: for a short key, or if the file cannot be written.
    """
    given = environment_settings().cookie_key
    if given:
        return given.encode()
    file = _store_directory() / _KEY_FILE
    try:
        return _key_in(file)
    except OSError as error:
        allowed = f"a secret of at least {MIN_KEY} letters, since {file} cannot be used ({error})"
        raise InvalidInput(KEY_VARIABLE, "no value", allowed) from None


def _key_in(file: Path) -> bytes:
    """Return the key in a file; create it with mode 600, once even for several processes."""
    if not file.exists():
        part = file.with_name(f"{file.name}.{os.getpid()}.part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(32))
        try:
            os.link(part, file)  # fails if another process was first
        except FileExistsError:
            pass
        finally:
            part.unlink()
    key = file.read_bytes().strip()
    if len(key) < MIN_KEY:
        raise OSError(f"it has {len(key)} letters")
    return key


def _store_directory() -> Path:
    """Return the directory of a SQLite store.

    The user's data directory beside a database elsewhere.
    """
    given = environment_settings().store.removeprefix("sqlite:///")
    if not given or "://" in given:
        return private_directory(data_directory())
    return Path(given).expanduser().resolve().parent


def _signature(name: str) -> str:
    return hmac.new(signing_key(), name.encode(), hashlib.sha256).hexdigest()


def _opens_a_page(scope: Scope) -> bool:
    return scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")
