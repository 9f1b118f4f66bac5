"""Callables as bytes: what is uploaded to a cluster, and found in the file that FRAY_CALLABLE names.

The bytes are a line of JSON with the Python version that pickled, and a pickle of (function, args, kwargs).
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import cloudpickle

from fray.cluster.errors import FieldError, PickleError
from fray.cluster.types import PythonCall

_FORMAT = "fray-callable/1"
_DEPTH = 12  # of the search for what cannot be pickled


class CallableError(Exception):
    """The bytes are no callable that this Python can run."""


def python_version() -> str:
    """Return the version that pickles are tied to, such as "3.11"."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def dump(call: PythonCall) -> bytes:
    """Pickle a callable.

    Raises:
        PickleError: something in it cannot be pickled; the message names what.
    """
    content = (call.function, call.args, dict(call.kwargs))
    try:
        pickled: bytes = cloudpickle.dumps(content)
    except Exception as err:
        path, culprit, cause = _culprit(call, err)
        what = f"{path}, a {type(culprit).__qualname__}, cannot be pickled: {cause}"
        hint = "make it inside of the function, or pass what it is made from"
        raise PickleError(
            "the callable cannot be sent", [FieldError("entrypoint.callable", f"{what}; {hint}")]
        ) from err
    head = {"format": _FORMAT, "python": python_version(), "name": call.name}
    return json.dumps(head).encode() + b"\n" + pickled


def load(data: bytes) -> PythonCall:
    """Return the callable that `dump` pickled.

    Raises:
        CallableError: these are no such bytes, or of another version of Python.
    """
    line, _, pickled = data.partition(b"\n")
    try:
        head = json.loads(line)
        known = head["format"] == _FORMAT
        pickler, name = head["python"], head["name"]
    except (ValueError, TypeError, KeyError):
        known = False
    if not known:
        raise CallableError("it is no callable that this version of fray knows")
    if pickler != python_version():
        raise CallableError(
            f"{name} was pickled by Python {pickler}, and this is Python {python_version()}; "
            f'use the same on both sides, as with EnvironmentConfig.create(python="{pickler}")'
        )
    try:
        function, args, kwargs = cloudpickle.loads(pickled)
    except ModuleNotFoundError as err:
        raise CallableError(
            f"{name} needs the module {err.name}, which is not here: ship it with the job's project, or "
            "add it to the project's dependencies"
        ) from err
    return PythonCall(function, args, kwargs)


def _culprit(call: PythonCall, err: Exception) -> tuple[str, Any, Exception]:
    """Return the path to the innermost value that cannot be pickled, the value, and why."""
    roots: list[tuple[str, Any]] = [(call.name, call.function)]
    roots += [(f"args[{i}]", value) for i, value in enumerate(call.args)]
    roots += [(f"kwargs[{key!r}]", value) for key, value in call.kwargs.items()]
    seen: set[int] = set()
    for path, value in roots:
        cause = _why_not(value)
        if cause is not None:
            return _innermost(path, value, cause, seen)
    return "it", call, err  # only together


def _innermost(path: str, value: Any, cause: Exception, seen: set[int]) -> tuple[str, Any, Exception]:
    for _ in range(_DEPTH):
        seen.add(id(value))
        for step, part in _parts(value):
            why = None if id(part) in seen else _why_not(part)
            if why is not None:
                path, value, cause = path + step, part, why
                break
        else:
            break
    return path, value, cause


def _why_not(value: Any) -> Exception | None:
    try:
        cloudpickle.dumps(value)
    except Exception as err:
        return err
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what pickling a value pickles too, each with the step that leads there."""
    if isinstance(value, functools.partial):
        yield ".func", value.func
        yield from ((f".args[{i}]", each) for i, each in enumerate(value.args))
        yield from ((f".keywords[{key!r}]", each) for key, each in value.keywords.items())
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, types.FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", each) for key, each in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{i}]", each) for i, each in enumerate(value))
    elif isinstance(value, type):
        yield from ((f".{name}", each) for name, each in vars(value).items())
    else:
        yield from ((f".{name}", each) for name, each in getattr(value, "__dict__", {}).items())
        for name in getattr(type(value), "__slots__", ()):
            if hasattr(value, name):
                yield f".{name}", getattr(value, name)


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    closure = inspect.getclosurevars(function)
    yield from ((f", which closes over {name}", each) for name, each in closure.nonlocals.items())
    yield from ((f", which uses the global {name}", each) for name, each in closure.globals.items())
    yield from ((f", whose default is [{i}]", each) for i, each in enumerate(function.__defaults__ or ()))
    for name, each in (function.__kwdefaults__ or {}).items():
        yield f", whose default of {name} is", each
