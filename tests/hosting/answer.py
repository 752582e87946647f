"""Answers of an ASGI application to one request, without a server."""

import asyncio


class Answer:
    """Return the response of an ASGI app to one request."""

    def __init__(
        self,
        app,
        path: str = "/",
        *,
        host="localhost:8501",
        scheme="http",
        method="GET",
        accept="*/*",
        headers=None,
    ):
        self.messages: list[dict] = []
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "scheme": scheme,
            "query_string": b"",
            "headers": [
                (name.lower().encode(), value.encode())
                for name, value in {"host": host, "accept": accept, **(headers or {})}.items()
            ],
            "client": ("192.0.2.7", 1234),
        }

        async def receive() -> dict:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict) -> None:
            self.messages.append(message)

        asyncio.run(app(scope, receive, send))

    @property
    def status(self) -> int:
        return self.messages[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        return {
            name.decode().lower(): value.decode() for name, value in self.messages[0]["headers"]
        }

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.messages[1:]).decode()
