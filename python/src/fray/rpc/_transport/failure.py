"""Exceptions of methods as errors that are sent: text only, of limited size.

The classes of errors are left to `errors`.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from types import TracebackType
from typing import Final

from fray.rpc._transport.retry import type_name
from fray.rpc.errors import ActorError, ApplicationError

_MAX_MESSAGE: Final = 64 << 10  # characters
_MAX_TRACEBACK: Final = 256 << 10
_MAX_CAUSES: Final = 16
_MAX_NAME: Final = 200  # characters of a name that a peer sent, in a message
_MAX_NEAR: Final = 3


def raised(err: BaseException, frames: int) -> ApplicationError:
    """Return what a method raised. Its traceback is without the first `frames`, which are the server's."""
    trace = err.__traceback__
    for _ in range(frames):
        trace = trace.tb_next if trace else None
    error = _of(err, trace, _cause(err, _MAX_CAUSES), whole=True)
    error.ran = True
    return error


def _cause(err: BaseException, left: int) -> ActorError | None:
    cause = err.__cause__ or (None if err.__suppress_context__ else err.__context__)
    if cause is None or left == 0:
        return None
    if isinstance(cause, ActorError):
        return cause  # of a call that the method made
    return _of(cause, cause.__traceback__, _cause(cause, left - 1), whole=False)


def _of(
    err: BaseException, trace: TracebackType | None, cause: ActorError | None, whole: bool
) -> ApplicationError:
    kind = type(err)
    try:
        text = str(err)
    except Exception:
        text = "its text cannot be had"
    message = f"{kind.__name__}: {text}" if text else kind.__name__
    try:
        lines = "".join(traceback.format_exception(kind, err, trace, chain=whole))
    except Exception:
        lines = message
    return ApplicationError(
        clip(message, _MAX_MESSAGE), type=type_name(kind), traceback=_tail(lines, _MAX_TRACEBACK), cause=cause
    )


def clip(text: str, limit: int = _MAX_NAME) -> str:
    """Shorten a text, and make it one that can be sent."""
    if len(text) > limit:
        text = text[:limit] + "…"
    return text.encode(errors="replace").decode()


def _tail(text: str, limit: int) -> str:
    return clip(text if len(text) <= limit else "…" + text[-limit:], limit + 1)


def near(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that one was perhaps meant to be, the nearest first."""
    if len(name) > _MAX_NAME:
        return []
    import difflib  # rarely needed

    return difflib.get_close_matches(name, list(names), _MAX_NEAR)
