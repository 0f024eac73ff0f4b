"""A pool of one place in this process, whose answers a test may make itself."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class OnePlace:
    """Answers a call by `answer`, which is given its function and its arguments."""

    def answer(self, work: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return work(*args)

    def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(self.answer(work, args))
        return future

    def places(self) -> int:
        return 1

    def lost(self, error: BaseException) -> bool:
        return False

    def close(self) -> None: ...
