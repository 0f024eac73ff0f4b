"""The guard: what does not come from the server's own page is refused, rule by rule."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from sateen.serve.guard import Guard

TOKEN = "a" * 64
GOOD = {"host": "127.0.0.1:8765", "authorization": f"Bearer {TOKEN}"}
POST = {**GOOD, "content-type": "application/json", "x-sateen": "1"}


async def echo(scope, receive, send):
    """An app that reads the body, and answers with its length."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"public")]})
    await send({"type": "http.response.body", "body": str(size).encode()})


def ask(method, path, headers, content=b"", most_body=1000):
    """The answer of the guarded app."""

    async def asked():
        transport = httpx.ASGITransport(Guard(echo, 8765, TOKEN, most_body))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
            return await client.request(method, path, headers=headers, content=content)

    return asyncio.run(asked())


def test_what_the_own_page_asks_is_let_through():
    assert ask("GET", "/api/hello", GOOD).status_code == 200
    own = {**POST, "origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin"}
    assert ask("POST", "/api/run", own, b"{}").text == "2"
    assert ask("GET", "/", {"host": "localhost:8765", "sec-fetch-site": "none"}).status_code == 200
    utf8 = {**POST, "content-type": "application/json; charset=utf-8"}
    assert ask("POST", "/api/run", utf8, b"{}").status_code == 200


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"host": "127.0.0.1:8766"}, 403),
        ({"host": "127.0.0.1"}, 403),
        ({"host": "evil.example:8765"}, 403),
        ({"host": "127.0.0.1.evil.example:8765"}, 403),
        ({"host": "0.0.0.0:8765"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:8766"}, 403),
        ({"origin": "https://127.0.0.1:8765"}, 403),
        ({"origin": "http://localhost:8765"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"authorization": ""}, 403),
        ({"authorization": f"Bearer {TOKEN[:-1]}"}, 403),
        ({"authorization": f"Bearer {TOKEN}x"}, 403),
        ({"authorization": f"Basic {TOKEN}"}, 403),
        ({"authorization": TOKEN}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/jsonp"}, 415),
        ({"x-sateen": "0"}, 403),
        ({"content-length": "1001"}, 413),
        ({"content-length": "-1"}, 413),
        ({"content-length": "9" * 30}, 413),
    ],
)
def test_a_request_with_one_thing_wrong_is_refused_and_told_why(change, status):
    answer = ask("POST", "/api/run", {**POST, **change}, b"{}")
    assert answer.status_code == status
    assert json.loads(answer.text)["error"]["message"]


@pytest.mark.parametrize("missing", ["content-type", "x-sateen", "authorization"])
def test_a_request_without_a_header_is_refused(missing):
    headers = {name: value for name, value in POST.items() if name != missing}
    assert ask("POST", "/api/run", headers, b"{}").status_code in (403, 415)


def test_a_header_that_is_given_twice_is_refused():
    for name in ("host", "origin", "authorization"):
        headers = [*POST.items(), (name, POST.get(name, "http://127.0.0.1:8765")), (name, "http://evil.example")]
        assert ask("POST", "/api/run", headers, b"{}").status_code in (400, 403)


def test_the_host_and_the_origin_count_for_the_page_itself_too():
    assert ask("GET", "/", {"host": "evil.example:8765"}).status_code == 403
    assert ask("GET", "/static/main.js", {**GOOD, "sec-fetch-site": "cross-site"}).status_code == 403


def test_the_token_is_not_needed_for_the_page_but_for_all_that_it_asks():
    assert ask("GET", "/", {"host": "127.0.0.1:8765"}).status_code == 200
    assert ask("GET", "/api/frame", {"host": "127.0.0.1:8765"}).status_code == 403


def test_other_methods_need_what_a_post_needs():
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert ask(method, "/api/run", GOOD).status_code == 415


def test_a_body_without_a_length_is_cut_off_where_it_is_too_long():
    async def chunks():
        for _ in range(11):
            yield b"x" * 100

    async def asked():
        transport = httpx.ASGITransport(Guard(echo, 8765, TOKEN, 1000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
            return await client.post("/api/run", headers=POST, content=chunks())

    assert asyncio.run(asked()).status_code == 413


def test_every_answer_has_the_content_policy_and_is_not_kept():
    for answer in (ask("GET", "/", GOOD), ask("GET", "/", {"host": "evil.example"})):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers.get_list("cache-control") == ["no-store"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_a_websocket_is_closed():
    sent = []

    async def asked():
        async def send(message):
            sent.append(message)

        async def receive():
            return {"type": "websocket.connect"}

        await Guard(echo, 8765, TOKEN)({"type": "websocket", "path": "/", "headers": []}, receive, send)

    asyncio.run(asked())
    assert sent == [{"type": "websocket.close", "code": 4403}]
