"""What is checked of a decoded value after the library has made it.

What is checked of the bytes before is left to `weighing`.
"""

from __future__ import annotations

from typing import Any

from fray.rpc._codec.common import BAD_KEY, MAX_DEPTH, NOT_ARGS, READ_TOO_DEEP, CodecError

_CONTAINERS = frozenset({list, dict})
_TEXT = frozenset({str})
_KEYS = frozenset({str, int})


def arguments(value: Any, *, deep: bool = True) -> tuple[list[Any], dict[str, Any]]:
    """Return the two parts of arguments.

    Args:
        value: what was decoded.
        deep: check inside the arguments too.

    Raises:
        CodecError: they are none, or nest too deep, or have a map with other keys than str and int.
    """
    if type(value) is not list or len(value) != 2:
        raise CodecError("", NOT_ARGS)
    positional, named = value
    if type(positional) is not list or type(named) is not dict:
        raise CodecError("", NOT_ARGS)
    if deep:
        for element in positional:
            if type(element) in _CONTAINERS:
                depth(element, 0)
    if named:
        if not _KEYS.issuperset(map(type, named)):
            raise CodecError("", BAD_KEY)
        if not _TEXT.issuperset(map(type, named)):
            raise CodecError("", NOT_ARGS)
        for element in named.values() if deep else ():
            if type(element) in _CONTAINERS:
                depth(element, 0)
    return positional, named


def depth(value: list[Any] | dict[Any, Any], at: int) -> None:
    """Refuse a list or map that nests too deep, or one with other keys than str and int.

    Raises:
        CodecError: it does.
    """
    if at >= MAX_DEPTH:
        raise CodecError("", READ_TOO_DEEP)
    elements: Any = value
    if type(value) is dict:
        if not _KEYS.issuperset(map(type, value)):
            raise CodecError("", BAD_KEY)
        elements = value.values()
    if _CONTAINERS.isdisjoint(map(type, elements)):
        return
    for element in elements:
        if type(element) in _CONTAINERS:
            depth(element, at + 1)
