"""How classes, exceptions and handles are pickled. Which pickler uses this is left to `pickling`."""

from __future__ import annotations

import threading
import weakref
from types import FunctionType, MethodDescriptorType
from typing import Any

import cloudpickle
from cloudpickle.cloudpickle import (
    _DYNAMIC_CLASS_TRACKER_BY_ID,
    _get_or_create_tracker_id,
    _should_pickle_by_reference,
)

from fray.rpc._codec.common import ActorRef, OnActor

_sent: weakref.WeakKeyDictionary[type, tuple[str, bytes]] = weakref.WeakKeyDictionary()
"""Classes that were sent with their code: what they are called between processes, and the code."""
_local = threading.local()


def arriving(on_actor: OnActor | None) -> OnActor | None:
    """Have this thread make handles by `on_actor` of references that it unpickles; return by what before."""
    before: OnActor | None = getattr(_local, "on_actor", None)
    _local.on_actor = on_actor
    return before


def has_code(value: Any) -> bool:
    """Return whether a value is a function that the receiver cannot import."""
    return isinstance(value, FunctionType) and not _should_pickle_by_reference(value)


def reduced(value: Any) -> Any:
    """Return how a value is pickled, as `__reduce__` does; NotImplemented: as always."""
    kind = type(value)
    if isinstance(value, type):
        return NotImplemented if _should_pickle_by_reference(value) else _reduced_class(value)
    if isinstance(value, BaseException):
        return _reduced_exception(value)
    if hasattr(kind, "__fray_actor__") and kind is not ActorRef:
        return _handle, (value.__fray_actor__(), *_reduced_handle(value))
    return NotImplemented


# Classes of the main program, or made in a function. Sending their code takes as long as ten calls, so it is
# made once, and read once. A receiver keeps the class that it has, so who gets one back has its own.


def _reduced_class(kind: type) -> Any:
    known = _sent.get(kind)
    if known is None:
        name = _get_or_create_tracker_id(kind)
        known = _sent[kind] = name, cloudpickle.dumps(kind, protocol=5)
    return _class, known


def _class(name: str, code: bytes) -> Any:
    known = _DYNAMIC_CLASS_TRACKER_BY_ID.get(name)
    return cloudpickle.loads(code) if known is None else known


# Exceptions are made anew without their constructors, which seldom take what Exception.__reduce__ assumes.


def _reduced_exception(value: BaseException) -> Any:
    kind = type(value)
    own = (
        not isinstance(kind.__reduce__, MethodDescriptorType)
        or kind.__reduce_ex__ is not object.__reduce_ex__
    )
    if own or kind.__module__ == "builtins" or "__setstate__" in vars(kind):
        return NotImplemented
    parts: Any = value.__reduce__()
    return _exception, (kind, parts[1], parts[2] if len(parts) > 2 else None)


def builtin_base(kind: type) -> Any:
    """Return the class of Python itself whose layout an exception has."""
    while kind.__module__ != "builtins":
        assert kind.__base__ is not None
        kind = kind.__base__
    return kind


def _exception(kind: Any, made_of: tuple[Any, ...], state: dict[str, Any] | None) -> BaseException:
    base = builtin_base(kind)
    made: BaseException = base.__new__(kind, *made_of)
    base.__init__(made, *made_of)
    if state:
        made.__setstate__(state)
    return made


# Handles are made by who receives the message, as references in msgpack are, or as handles unpickle anywhere.


def _reduced_handle(value: Any) -> tuple[Any, Any]:
    """Return what makes a handle anywhere, and its options."""
    kind: Any = type(value)
    anywhere = None if kind.__reduce__ is object.__reduce__ else value.__reduce__()[0]
    return anywhere, getattr(value, "_options", None)


def _handle(parts: tuple[str, str, str, str], anywhere: Any, options: Any) -> Any:
    on_actor = getattr(_local, "on_actor", None)
    if on_actor is None:
        return ActorRef(*parts) if anywhere is None else anywhere(*parts, options)
    handle = on_actor(ActorRef(*parts))
    return handle if options is None else handle.with_options(options)
