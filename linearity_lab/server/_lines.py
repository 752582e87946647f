"""Where a request comes from: one name for each line to the network, and how many proxies are believed on the way."""

import functools
import ipaddress
import os
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ntk_core.errors import InvalidInput

HOPS_VARIABLE = "LINEARITY_LAB_TRUSTED_HOPS"
MAX_HOPS = 10


class ForwardedAddress:
    """ASGI middleware that takes the browser's address from ``X-Forwarded-For``, as far as proxies of ours wrote it.

    Each proxy appends the address that it was asked from, so behind n of them the n-th entry from the right was
    written by the outermost of ours, and whatever stands left of it by anybody.

    Args:
        hops: asked once, at the first request: how many proxies stand in front; 0: as uvicorn has found it.
    """

    def __init__(self, app: ASGIApp, hops: Callable[[], int]):
        self._app, self._hops = app, functools.cache(hops)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (hops := self._hops()):
            headers = Headers(scope=scope)
            written = [entry.strip() for line in headers.getlist("x-forwarded-for") for entry in line.split(",")]
            if len(written) >= hops and _is_address(written[-hops]):
                scope = {**scope, "client": (written[-hops], 0)}
            secure = headers.get("x-forwarded-proto", "").split(",")[-1].strip() in ("https", "wss")
            plain, encrypted = ("ws", "wss") if scope["type"] == "websocket" else ("http", "https")
            scope = {**scope, "scheme": encrypted if secure else plain}
        await self._app(scope, receive, send)


def trusted_hops() -> int:
    """What ``LINEARITY_LAB_TRUSTED_HOPS`` says; 1 where uvicorn is told to believe any proxy, or it would take the
    leftmost entry, which anybody can write.

    Raises:
        InvalidInput: for anything but a small number.
    """
    given = os.environ.get(HOPS_VARIABLE, "").strip()
    if not given:
        return 1 if os.environ.get("FORWARDED_ALLOW_IPS", "").strip() == "*" else 0
    if given.isascii() and given.isdigit() and int(given[:4]) <= MAX_HOPS:
        return int(given)
    raise InvalidInput(HOPS_VARIABLE, given, f"the number of proxies in front of this server, 0 to {MAX_HOPS}")


def address_of_line(address: str) -> str:
    """One name per line to the network: an IPv6 line has 2⁶⁴ addresses to choose from, so its /64 counts as one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


def line_of(scope: Scope) -> str:
    """The line that a request comes from; empty for the machine that the server runs on."""
    host = (scope.get("client") or ("",))[0] or ""
    try:
        return "" if ipaddress.ip_address(host).is_loopback else address_of_line(host)
    except ValueError:  # no address, such as a local socket
        return host


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
