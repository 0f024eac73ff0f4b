"""Who may talk to the server: only the page that it served itself, in a browser on this machine.

A plain ASGI layer outside of everything. The page of another origin can send requests to 127.0.0.1, and a name of its
own can be made to lead there; so the host, the origin, the kind of request and a token are all checked. The token is in
the fragment of the address, which no browser sends, and no cookie is set: cookies go to every port of a host.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias

from sateen.serve.answers import refusal

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
MOST_BODY: Final = 2_000_000  # bytes of a request
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_ONCE: Final = ("host", "origin", "authorization", "content-type", "content-length", "x-sateen", "sec-fetch-site")
_READING: Final = ("GET", "HEAD")


class Guard:
    """Lets through what comes from the server's own page; everything else gets a refusal that says why."""

    def __init__(self, app: App, port: int, token: str, most_body: int = MOST_BODY) -> None:
        self.app = app
        self.token = token
        self.most_body = most_body
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the beginning and the end of the server."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 4403})
            return
        began = False

        async def headed(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                ours = {name for name, _ in _HEADERS}
                others = [(name, value) for name, value in message["headers"] if name.lower() not in ours]
                message = {**message, "headers": [*others, *_HEADERS]}
            await send(message)

        if refused := self._refused(scope):
            await _refuse(headed, *refused)
            return
        try:
            await self.app(scope, _limited(receive, self.most_body), headed)
        except _TooLargeError:
            if not began:
                await _refuse(headed, 413, _too_large(self.most_body))

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason of a refusal; None where there is none."""
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            if key in headers and key in _ONCE:
                return 400, f"the header {key} is given twice"
            headers[key] = value.decode("latin-1")
        if headers.get("host") not in self.hosts:
            return 403, f"this server answers at http://{self.hosts[0]} only"
        if "origin" in headers and headers["origin"] != f"http://{headers['host']}":
            return 403, "the page of another origin asks"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "another site asks"
        if scope["method"] not in _READING:
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "a request is JSON: Content-Type: application/json"
            if headers.get("x-sateen") != "1":
                return 403, "the header X-Sateen: 1 is missing"
        if scope["path"].startswith("/api/") and not self._knows(headers):
            return 403, "the token is missing or wrong; open the address that `sateen serve` printed"
        size = headers.get("content-length", "0")
        if not (size.isascii() and size.isdigit() and int(size[:20]) <= self.most_body):
            return 413, _too_large(self.most_body)
        return None

    def _knows(self, headers: Mapping[str, str]) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme == "Bearer" and hmac.compare_digest(given.encode(), self.token.encode())


class _TooLargeError(Exception):
    """A body that goes on beyond its limit, whatever its header says."""


def _limited(receive: Receive, most: int) -> Receive:
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > most:
            raise _TooLargeError
        return message

    return limited


def _too_large(most: int) -> str:
    return f"a request has at most {most:,} bytes; name a large file by its path"


async def _refuse(send: Send, status: int, why: str) -> None:
    kind = "auth" if status in (400, 403, 415) else "input"
    body = json.dumps({"error": refusal(kind, why)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
