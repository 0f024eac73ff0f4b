"""The same function on many items, side by side, in processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from typing import Final, TypeVar

from sateen.core.errors import PoolError, SateenError
from sateen.pools.crew import Crew
from sateen.pools.pool import open_pool

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")
KEPT: Final = "what is finished is kept: run the same again to resume"


def side_by_side(
    work: Callable[..., _Value],
    items: Sequence[_Item],
    arguments: Callable[[_Item], tuple[object, ...]],
    *,
    processes: int,
    began: Callable[[_Item], None],
    ended: Callable[[_Item, _Value], None],
) -> None:
    """Call `work(*arguments(item))` for every item, in this many processes, beginning in the order of the items.

    `work` is a function of a module. `ended` gets what it returned. An error of one, or Ctrl-C, ends all.
    """
    pool = open_pool(f"local:{min(processes, len(items))}")
    try:
        crew: Crew[_Item, _Value] = Crew(pool, lambda item, value: value, kept=KEPT, ahead=1, tries=1)
        work_off(crew, items, lambda item: (work, *arguments(item)), began, ended)
    except PoolError as error:
        if not isinstance(error.__cause__, BrokenExecutor):
            raise
        raise SateenError(
            "a worker process exited unexpectedly; the system may have been short of memory\n"
            "  run the same again with fewer workers: what is finished is kept"
        ) from None
    finally:
        pool.close()


def work_off(
    crew: Crew[_Item, _Value],
    items: Sequence[_Item],
    call: Callable[[_Item], tuple[object, ...]],
    began: Callable[[_Item], None],
    ended: Callable[[_Item, _Value], None],
) -> None:
    """Have a crew do `call(item)`, a function and its arguments, for every item, beginning in their order."""
    waiting = list(reversed(items))
    with crew:
        while waiting or crew.busy:
            while waiting and crew.room > 0:
                item = waiting.pop()
                began(item)
                work, *arguments = call(item)
                crew.hand_out(item, work, *arguments)  # type: ignore[arg-type]
            for item, value in crew.answers():
                ended(item, value)
