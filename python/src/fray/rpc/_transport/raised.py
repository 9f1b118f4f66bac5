"""Exceptions of methods as objects, beside their texts: sent as far as they can be, and raised by the caller.

Their texts are left to `_transport.failure`. An exception of Python itself is sent as its name and what
it was made of, which runs nothing where it arrives. All others are pickled, where both sides take that.
"""

from __future__ import annotations

import builtins
import copy
from functools import lru_cache
from typing import Any, Final, cast

from fray.rpc._codec import packing, pickling
from fray.rpc._codec.common import CodecError, OnActor
from fray.rpc._codec.lowering import Faithful, Lowering
from fray.rpc._codec.reducing import builtin_base
from fray.rpc._codec.weighing import Budget
from fray.rpc.errors import ActorError, ApplicationError, Packed

_MOST: Final = 1 << 20  # bytes of a pickled exception
_NEVER: Final = (StopIteration, StopAsyncIteration)  # a coroutine or generator cannot raise them


def pack(err: BaseException, pickles: bool) -> Packed | None:
    """Return what is sent of an exception beside its text; `pickles`: the caller takes pickle."""
    if isinstance(err, RaisedError):
        err = err.raised
    if not isinstance(err, Exception) or isinstance(err, (ActorError, *_NEVER)):
        return None
    if type(err).__module__ == "builtins":
        made_of = _packed(tuple(err.__reduce__()[1]), faithfully=pickles)
        if made_of:
            return Packed(arguments=made_of)
    if not pickles:
        return None
    try:
        data, buffers = pickling.encode_result(err)
    except CodecError as problem:
        return Packed(unsent=problem.problem)
    if buffers or len(data) > _MOST:
        return Packed(unsent=f"it is larger than {_MOST >> 20} MiB")
    return Packed(exception=data)


def _packed(made_of: tuple[Any, ...], faithfully: bool) -> bytes:
    """Return what an exception was made of as msgpack, b"" if that carries it not."""
    try:
        data, buffers = packing.encode_args(made_of, {}, Faithful if faithfully else Lowering)
    except CodecError:
        return b""
    return b"" if buffers or len(data) > _MOST else data


def caught(error: ActorError, on_actor: OnActor | None = None) -> ActorError:
    """Return what the caller of a method gets: an exception that is of the raised one's class, too.

    It runs code of that class, so it is called on the thread of the caller; by several threads at once, each
    gets one. `on_actor` makes handles of references in it.
    """
    packed = error.packed
    if packed is None or not isinstance(error, ApplicationError):
        return error
    note = f"The exception itself was not sent: {packed.unsent}" if packed.unsent else ""
    try:
        raised = None
        if packed.exception:
            raised = _unpickled(packed.exception, on_actor)
        elif packed.arguments:
            raised = _builtin(error.type, packed.arguments)
        if raised is not None:
            return joined(error, raised)
    except Exception as err:
        problem = err.problem if isinstance(err, CodecError) else f"{type(err).__name__}: {err}"
        note = f"The exception itself cannot be had here: {problem}"
    error.packed = None
    if note:
        error.add_note(note)
    return error


def _unpickled(data: bytes, on_actor: OnActor | None) -> Exception:
    found = pickling.decode(data, (), on_actor, allowed=True)
    if not isinstance(found, Exception):
        raise CodecError("", f"a {type(found).__qualname__} is no exception")
    return found


def _builtin(name: str, made_of: bytes) -> Exception | None:
    """Return an exception of Python itself; None: there is none of that name here."""
    kind = vars(builtins).get(name)
    if not isinstance(kind, type) or not issubclass(kind, Exception) or issubclass(kind, _NEVER):
        return None
    args = packing.decode(made_of, (), None, Budget(_MOST))[0]
    return kind(*args)


class RaisedError(ApplicationError):
    """An ApplicationError that is of the class of the raised exception, too.

    What ApplicationError has is of the call; `raised` is the exception as it was.
    """

    packed = None
    raised: Exception
    _error: ApplicationError

    def __reduce__(self) -> tuple[Any, ...]:
        return _joined_again, (self._error, pack(self, pickles=True))


def _joined_again(error: ActorError, packed: Packed | None) -> ActorError:
    error = copy.copy(error)  # which a copy of the exception does not share
    error.packed = packed
    return caught(error)


def _of_call(name: str) -> property:
    def read(self: RaisedError) -> Any:
        return getattr(self._error, name)

    def write(self: RaisedError, value: Any) -> None:
        setattr(self._error, name, value)

    return property(read, write)


for _name in (
    "message",
    "ran",
    "actor",
    "method",
    "argument",
    "near",
    "type",
    "traceback",
    "cause",
):
    setattr(RaisedError, _name, _of_call(_name))  # also where the exception has something of that name


def joined(error: ApplicationError, raised: Exception) -> ApplicationError:
    """Return one exception that is both.

    Raises:
        Exception: the class of `raised` lets no class be made of it.
    """
    of: Any = type(raised)
    kind = _joined_class(of)
    base = builtin_base(type(raised))
    parts: Any = base.__reduce__(raised)[1]
    made = cast("RaisedError", base.__new__(kind, *parts))
    base.__init__(made, *parts)
    made.args = raised.args
    vars(made).update({**getattr(raised, "__dict__", {}), "raised": raised, "_error": error})
    made.__cause__ = error.__cause__
    for note in getattr(error, "__notes__", ()):
        made.add_note(note)
    return made


@lru_cache(maxsize=256)
def _joined_class(kind: Any) -> Any:
    about = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind)(kind.__name__, (RaisedError, kind), about)
