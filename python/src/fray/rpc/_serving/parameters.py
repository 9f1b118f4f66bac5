"""Checks values of parameters by their annotations.

Only the types that calls carry are checked, and unions of them; all other annotations are left to the method.
A value is rejected only if it certainly does not fit, with the message that actors in Go have for it.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from inspect import Parameter
from typing import Annotated, Any, Final, NamedTuple, Union

_NONE: Final = type(None)


class Wanted(NamedTuple):
    """What a parameter takes."""

    exact: frozenset[type]
    """Of these types all values fit: what is common is found at once."""
    words: tuple[str, ...]
    """The names of what fits, as the wire has them."""

    def misfit(self, value: Any) -> str:
        """Return what is wrong with a value, "" if it fits or that is not certain."""
        if type(value) in self.exact or any(_FITS[word](value) for word in self.words):
            return ""
        return f"want {' or '.join(self.words)}, got {_word_of(value)}"


class _Kind(NamedTuple):
    exact: frozenset[type]
    fits: Callable[[Any], bool]


def _is_array(value: Any) -> bool:
    kind = type(value)  # handles of actors have attributes of all names
    return hasattr(kind, "dtype") and hasattr(kind, "shape")


def _is_number(value: Any) -> bool:
    return _is_array(value) and not value.shape


_KINDS: Final[Mapping[str, _Kind]] = {
    "nil": _Kind(frozenset({_NONE}), lambda v: v is None),
    "bool": _Kind(frozenset({bool}), lambda v: isinstance(v, bool) or _is_number(v)),
    "int": _Kind(frozenset({int, bool}), lambda v: isinstance(v, int) or _is_number(v)),
    "float": _Kind(frozenset({float, int, bool}), lambda v: isinstance(v, (float, int)) or _is_number(v)),
    "string": _Kind(frozenset({str}), lambda v: isinstance(v, str)),
    "bytes": _Kind(
        frozenset({bytes}), lambda v: isinstance(v, (bytes, bytearray, memoryview)) or _is_array(v)
    ),
    "list": _Kind(frozenset({list}), lambda v: isinstance(v, (list, tuple)) or _is_array(v)),
    "map": _Kind(frozenset({dict}), lambda v: isinstance(v, Mapping)),
    # Most methods that take an array convert other values, but not these.
    "array": _Kind(
        frozenset({list, int, float}), lambda v: not isinstance(v, (_NONE, str, bytes, dict, datetime))
    ),
}
_FITS: Final = {word: kind.fits for word, kind in _KINDS.items()}
_WORDS: Final[Mapping[Any, str]] = {
    None: "nil",
    _NONE: "nil",
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
}
_NAMES: Final[Mapping[type, str]] = {  # in this order: a bool is an int, too
    _NONE: "nil",
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
    bytes: "bytes",
    bytearray: "bytes",
    memoryview: "bytes",
    list: "list",
    tuple: "list",
    dict: "map",
    datetime: "time",
}


def wanted_by(parameter: Parameter, function: Any) -> Wanted | None:
    """Return what a parameter of a function takes, None if its annotation is not judged."""
    if parameter.annotation is Parameter.empty:
        return None
    words = _words(_resolved(parameter.annotation, function))
    if not words:
        return None
    if parameter.default is None and "nil" not in words:
        words = (*words, "nil")
    return Wanted(frozenset().union(*(_KINDS[word].exact for word in words)), words)


def _resolved(annotation: Any, function: Any) -> Any:
    """Return an annotation that is written as text as what it stands for, or as it is."""
    if not isinstance(annotation, str):
        return annotation
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, globalns=getattr(function, "__globals__", {}))["it"]
    except Exception:
        return annotation  # of names that only type checkers have


def _words(annotation: Any) -> tuple[str, ...]:
    """Return the names of what an annotation takes, () if one part of it is not judged."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return _words(annotation.__origin__)
    if origin is Union or origin is types.UnionType:
        parts = [_words(part) for part in typing.get_args(annotation)]
        return tuple(dict.fromkeys(word for part in parts for word in part)) if all(parts) else ()
    kind = origin or annotation
    if isinstance(kind, type) and kind.__name__ == "ndarray" and kind.__module__ == "numpy":
        return ("array",)
    try:
        word = _WORDS.get(kind)
    except TypeError:  # it cannot be hashed
        return ()
    return (word,) if word else ()


def _word_of(value: Any) -> str:
    if _is_array(value):
        return f"array of {value.dtype}, shape {list(value.shape)}"
    for kind, word in _NAMES.items():
        if isinstance(value, kind):
            return word
    return "actor" if hasattr(type(value), "__fray_actor__") else type(value).__qualname__
