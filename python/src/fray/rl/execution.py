"""Calls that are written the same for objects of this process and for actors of other processes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fray.rpc.handle import ActorMethod

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def execute(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function, or a method of an actor, and return its result.

    A method of an actor is waited for as long as it takes; `handle.method.options(timeout=5)` has a limit.

    Raises:
        ActorError: the call of the actor failed.
    """
    return func(*args, **kwargs)


def execute_async(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Begin a call of an actor's method and return its ActorFuture; of a function return its result."""
    method = actor_method(func)
    return func(*args, **kwargs) if method is None else method.remote(*args, **kwargs)


def actor_method(func: Any) -> ActorMethod | None:
    """Return a method of an actor as such, None for what runs in this process."""
    import sys

    handles = sys.modules.get("fray.rpc.handle")  # a program without it has no handle
    return func if handles is not None and isinstance(func, handles.ActorMethod) else None


def set_logging_basic_config(level: int | str = logging.INFO) -> None:
    """Have all modules log alike: time, level, logger and message, on standard error.

    It may be called again for another level. Requests of HTTP clients are logged as warnings only.
    """
    logging.basicConfig(format=_FORMAT, level=level, force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def is_actor(value: Any) -> bool:
    """Return whether a value stands for an actor: a handle, or a wrapper of one."""
    return hasattr(type(value), "__fray_actor__") or getattr(type(value), "wraps_actor", False)
