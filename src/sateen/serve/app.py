"""The server: its endpoints, what the page asks and who answers, and its socket. The work is done by the workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path as FilePath
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from sateen.core.errors import InputError
from sateen.core.reading import read_bytes
from sateen.core.version import VERSION
from sateen.learning.registry import LEARNERS
from sateen.serve.answers import Refused, error_content, refusal, status_of
from sateen.serve.examples import EXAMPLES
from sateen.serve.files import Folder, is_study, language_of
from sateen.serve.guard import MOST_BODY, Guard
from sateen.serve.session import Session

_HEARTBEAT: Final = 10.0  # seconds
_PAGE_FIRST: Final = 0.5  # seconds in which the page can be loaded, before a worker begins to need a processor
_FOR_COMPARISON: Final = ("-faithful", "-as-run", "sparse-vi")  # learners that nobody would wait for
_HOST: Final = "127.0.0.1"
_GRACE: Final = 1  # seconds for what is under way when the server ends
_TOKEN: Final = 32  # bytes
_MOST_REPORT: Final = 2**27  # bytes
_STATIC: Final = files("sateen.serve") / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_Handler = Callable[[Session, dict[str, Any]], Awaitable[Any]]


def make_app(folder: Folder, target: str | None) -> Starlette:
    """The app, with the workers that begin and end with it."""
    allowed = {"black_boxes": list(folder.allowed), "learners": list(folder.learners)}
    setup = {"folder": str(folder.root), **allowed, "target": target}
    pages = _Pages(folder, target)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.session = session = Session(setup)
        try:
            if target is None:  # then the page needs no worker, until somebody opens or types something
                loop = asyncio.get_running_loop()
                loop.call_later(_PAGE_FIRST, loop.run_in_executor, None, session.begin)
            else:
                await asyncio.to_thread(session.begin)
            yield
        finally:
            await asyncio.to_thread(session.end)

    routes = [
        Route("/", pages.static),
        Route("/static/{name}", pages.static),
        Route("/api/hello", pages.hello),
        Route("/api/sessions", pages.sessions),
        Route("/api/events", _events),
        Route("/api/frame", _frame),
        Route("/api/report", _report),
        *(Route(f"/api/{name}", _posted(handler), methods=["POST"]) for name, handler in _HANDLERS.items()),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.folder = folder
    return app


def _posted(handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a handler: JSON in, JSON out, and errors as data."""

    async def endpoint(request: Request) -> Response:
        try:
            body = json.loads(await request.body(), parse_constant=_no_constant)
            if not isinstance(body, dict):
                raise InputError("the body of a request is a JSON object")
            return JSONResponse(await handler(request.app.state.session, body))
        except ClientDisconnect:
            return Response(status_code=400)
        except (ValueError, RecursionError) as error:
            known = isinstance(error, InputError)
            return _error(error_content(error) if known else refusal("input", f"the request is not JSON: {error}"))
        except Refused as refused:
            return _error(refused.content)
        except Exception as error:
            return _error(error_content(error))

    return endpoint


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON")


def _error(content: Mapping[str, Any]) -> Response:
    return JSONResponse({"error": content}, status_of(content["kind"]))


class _Pages:
    """The files of the page, and what is known of the folder."""

    def __init__(self, folder: Folder, target: str | None) -> None:
        self.folder = folder
        self.target = target
        self.learners = [name for name in LEARNERS.names() if not name.endswith(_FOR_COMPARISON)]
        self._files = {each.name: each.read_bytes() for each in _STATIC.iterdir() if each.is_file()}

    async def static(self, request: Request) -> Response:
        """A file of the page."""
        name = request.path_params.get("name", "index.html")
        kind = _TYPES.get(FilePath(name).suffix)
        if name not in self._files or kind is None:
            return Response("there is no such file", 404, media_type="text/plain")
        return Response(self._files[name], media_type=kind)

    async def hello(self, request: Request) -> Response:
        """What the page shows first."""
        session: Session = request.app.state.session
        try:
            document = await self._document(session)
        except Refused as refused:
            return _error(refused.content)
        except InputError as error:
            return _error(error_content(error))
        listed, sessions = await asyncio.to_thread(lambda: (self.folder.listed(), self._sessions()))
        content = {
            "version": VERSION,
            "folder": self.folder.root.resolve().name,
            "files": listed,
            "examples": [{"name": name, "title": each["title"]} for name, each in EXAMPLES.items()],
            "open": document,
            "sessions": sessions,
            "worker": session.state["worker"],
            "learners": [*self.learners, *self.folder.learners],
            "limits": {"body": MOST_BODY},
        }
        return JSONResponse(content)

    async def sessions(self, request: Request) -> Response:
        """The sessions below the folder."""
        return JSONResponse(await asyncio.to_thread(self._sessions))

    async def _document(self, session: Session) -> Any:
        """What the command line named, or what is being learned."""
        if session.document is not None:
            return session.document
        if self.target is None:
            return None
        if is_study(self.target):
            return (await session.ask("document", {"path": self.target}))["doc"]
        if self.target in self.folder.allowed:
            return {"language": "black-box", "text": None, "source": self.target, **_PLAIN}
        text = await asyncio.to_thread(self.folder.shown, self.target)
        return {"language": language_of(self.target), "text": text, "source": self.target, **_PLAIN}

    def _sessions(self) -> list[dict[str, Any]]:
        from sateen.serve.record import summary

        return [told for path in self.folder.sessions() if (told := summary(path)) is not None]


_PLAIN: Final = {"formula": "", "negate": False, "ranges": [], "fixed": {}, "learner": None, "seed": 1}


async def _events(request: Request) -> Response:
    """The state, whenever it changes."""
    session: Session = request.app.state.session

    async def stream() -> AsyncIterator[bytes]:
        seen = -1
        session.tell(tabs=session.state["tabs"] + 1)
        try:
            while not session.closing:
                await session.news(seen, _HEARTBEAT)
                if session.version == seen:
                    yield b": still here\n\n"
                    continue
                seen = session.version
                yield f"data: {json.dumps({'state': session.content()})}\n\n".encode()
        finally:
            session.tell(tabs=session.state["tabs"] - 1)

    return StreamingResponse(stream(), media_type="text/event-stream")


async def _frame(request: Request) -> Response:
    """The newest frame, if it is newer than the one that the page has."""
    session: Session = request.app.state.session
    after = request.query_params.get("after", "0")
    if not (after.isascii() and after.isdigit() and len(after) < 16):
        return _error(refusal("input", "after is the number of a frame"))
    if not session.frame or session.content()["frame"] <= int(after):
        return Response(status_code=204)
    return Response(session.frame, media_type="application/octet-stream")


async def _report(request: Request) -> Response:
    """The report of a study that was saved."""
    folder: Folder = request.app.state.folder
    try:
        path = folder.path(f"{request.query_params.get('name', '')}-result/report.html")
        content = await asyncio.to_thread(read_bytes, path, _MOST_REPORT)
    except OSError:
        return _error(refusal("input", "there is no such report", "save the study first"))
    except InputError as error:
        return _error(error_content(error))
    disposition = {"content-disposition": 'attachment; filename="report.html"'}
    return Response(content, media_type="text/html; charset=utf-8", headers=disposition)


def _from_front(command: str) -> _Handler:
    async def handler(session: Session, body: dict[str, Any]) -> Any:
        return await session.ask(command, body)

    return handler


def _of_campaign(command: str) -> _Handler:
    async def handler(session: Session, body: dict[str, Any]) -> Any:
        return await session.act(command, body)

    return handler


def _then_state(command: str) -> _Handler:
    async def handler(session: Session, body: dict[str, Any]) -> Any:
        await session.act(command, body)
        return {"state": session.content()}

    return handler


def _halting(phase: str) -> _Handler:
    async def handler(session: Session, body: dict[str, Any]) -> Any:
        return {"state": await session.halt(phase)}

    return handler


async def _resume(session: Session, body: dict[str, Any]) -> Any:
    return {"state": await session.resume()}


async def _campaign(session: Session, body: dict[str, Any]) -> Any:
    return {"state": await session.start(body.get("doc"), body.get("name"))}


async def _open(session: Session, body: dict[str, Any]) -> Any:
    return await session.open(body)


async def _run(session: Session, body: dict[str, Any]) -> Any:
    if "doc" in body:
        return await session.ask("run", body)
    return await session.ask("that run", {**body, "doc": session.current()})


async def _runs(session: Session, body: dict[str, Any]) -> Any:
    return await session.ask("runs", {**body, "doc": session.current()})


async def _view(session: Session, body: dict[str, Any]) -> Any:
    await session.look(body)
    return {"state": session.content()}


_HANDLERS: Final[dict[str, _Handler]] = {
    "check/model": _from_front("check/model"),
    "check/formula": _from_front("check/formula"),
    "open": _open,
    "run": _run,
    "runs": _runs,
    "campaign": _campaign,
    "pause": _halting("paused"),
    "stop": _halting("stopped"),
    "resume": _resume,
    "view": _view,
    "slice": _of_campaign("predict"),
    "predict": _of_campaign("predict"),
    "refine": _then_state("refine"),
    "certify": _then_state("certify"),
    "save": _of_campaign("save"),
}


class _Server(uvicorn.Server):
    """Tells the app at once when it is to end, so that streams of events end too."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.ending()

    ending: Callable[[], None] = staticmethod(lambda: None)


def serve(folder: Folder, target: str | None, port: int, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; `announce` hears the address, with the token in its fragment."""
    # asyncio answers at once only where the protocol is named; else each answer waits .04 s for a delayed reply.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_HOST, port))
        except OSError as error:
            remedy = "choose another one with {port}, or leave it out"
            raise InputError(f"port {port}: {error.strerror}", argument="port", remedy=remedy) from None
        port = int(listening.getsockname()[1])
        token = os.urandom(_TOKEN).hex()
        app = make_app(folder, target)
        config = uvicorn.Config(
            Guard(app, port, token),
            lifespan="on",
            ws="none",
            http="h11",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=128,
            timeout_graceful_shutdown=_GRACE,
        )
        server = _Server(config)

        async def run() -> None:
            loop = asyncio.get_running_loop()

            def ending() -> None:
                session = getattr(app.state, "session", None)
                if session is not None:
                    loop.call_soon_threadsafe(lambda: loop.create_task(session.close_soon()))

            server.ending = ending
            task = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started and not task.done():
                await asyncio.sleep(0.01)
            if server.started:
                announce(f"http://{_HOST}:{port}/#token={token}")
            await task

        asyncio.run(run())
