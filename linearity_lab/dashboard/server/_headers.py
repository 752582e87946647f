"""Security headers of all responses; the policy permits only what Streamlit and Plotly need."""

import base64
import hashlib
import re
from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linearity_lab.dashboard.server._first_paint import OWN_SCRIPT, STATIC
from linearity_lab.dashboard.server._visitors import or_strict, strict_profile
from linearity_lab.environment import environment_settings

_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_UNUSED = (
    "accelerometer",
    "camera",
    "geolocation",
    "gyroscope",
    "magnetometer",
    "microphone",
    "payment",
    "usb",
)


class SecurityHeaders:
    """ASGI middleware that adds :func:`security_headers`, and on HTTPS those that need it."""

    def __init__(self, app: ASGIApp):
        self._app = app
        self._headers = security_headers(or_strict(frame_origins, ()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                # Browsers complain about it on a plain connection.
                if scope.get("scheme") == "https":
                    headers["Cross-Origin-Opener-Policy"] = "same-origin"
                    if strict_profile().is_shared:
                        headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        await self._app(scope, receive, send_with_headers)


def security_headers(frames: tuple[str, ...] = ()) -> Mapping[str, str]:
    """Name → value; ``frames`` are the origins whose pages may embed this one."""
    policy = {
        "default-src": "'self'",
        # Scripts of components are loaded as blobs; one of them assembles WebAssembly.
        "script-src": " ".join(
            ["'self'", "blob:", "'wasm-unsafe-eval'", *map(_hash, [OWN_SCRIPT, *inline_scripts()])]
        ),
        "style-src": "'self' 'unsafe-inline'",  # written by Streamlit and Plotly while they draw
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": " ".join(["'self'", *frames]),
    }
    headers = {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",  # the URL contains settings
        "Permissions-Policy": ", ".join(f"{name}=()" for name in _UNUSED),
    }
    return headers if frames else {**headers, "X-Frame-Options": "SAMEORIGIN"}


def frame_origins() -> tuple[str, ...]:
    """Origins in ``LINEARITY_LAB_FRAME_ANCESTORS``, separated by spaces or commas.

    Raises:
        InvalidInput: for a wrong environment.
    """
    return environment_settings().frame_origins


def inline_scripts() -> list[str]:
    """The inline scripts of Streamlit's HTML page."""
    return _INLINE_SCRIPT.findall((STATIC / "index.html").read_text(encoding="utf-8"))


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
