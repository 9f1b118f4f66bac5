"""From Python's values to those that a codec's library writes by itself.

A value that the library writes as it is comes back as the same object, so that most calls cost one check of
each type and no copy.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
from typing import Any, NoReturn, Protocol

from fray.rpc._codec import arrays
from fray.rpc._codec.common import MAX_DEPTH, ActorRef, Buffer, CodecError, index_step, key_step, with_article

_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels, or contains itself"
_BIG_INT = "the int is outside of -2^63 to 2^64-1; send a string"
_SURROGATE = "the string is no valid UTF-8; send bytes"
_CHANGED = "it would arrive as a value of another type"
PLAIN = frozenset({type(None), bool, int, float, str})
"""What any library writes as it is."""
_TEXT = frozenset({str})


class Forms(Protocol):
    """How a codec writes what its library does not know. Each returns what the library is given instead."""

    plain: frozenset[type]
    """Types that the library writes as they are, or rejects by itself."""
    int_keys: bool
    """Whether a map's keys may be ints."""

    def number(self, value: int | float) -> Any:
        """Return a number, which may be of a type that is not plain."""

    def data(self, value: Buffer) -> Any:
        """Return bytes."""

    def time(self, value: datetime.datetime) -> Any:
        """Return a time, which is in UTC."""

    def array(self, value: Any) -> Any:
        """Return an array."""

    def actor(self, value: ActorRef) -> Any:
        """Return an actor reference."""

    def check_key(self, key: str) -> None:
        """Refuse a key that has another meaning."""


class Lowering:
    """Turns values into what a codec's library writes."""

    __slots__ = ("_forms", "_plain")

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._plain = forms.plain

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return what the library writes for a value, which is at a depth of lists and maps.

        Raises:
            CodecError: with the path from the value on.
        """
        kind = type(value)
        if kind in self._plain:
            return value
        if kind is list or kind is tuple:
            return self._list(value, depth)
        if kind is dict:
            return self._table(value, depth)
        if kind is bytes:
            return self._forms.data(value)
        return self._other(value, depth)

    def _list(self, values: list[Any] | tuple[Any, ...], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            raise CodecError("", _TOO_DEEP)
        if self._plain.issuperset(map(type, values)):
            return values
        changed: list[Any] | None = None
        index = 0
        try:
            for index, value in enumerate(values):
                lowered = self.value(value, depth + 1)
                if lowered is not value:
                    if changed is None:
                        changed = list(values)
                    changed[index] = lowered
        except CodecError as err:
            raise err.under(index_step(index)) from err.__cause__
        return values if changed is None else changed

    def _table(self, table: dict[Any, Any], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            raise CodecError("", _TOO_DEEP)
        if not _TEXT.issuperset(map(type, table)):
            table = {self._key(key): value for key, value in table.items()}
        if not self._forms.int_keys:
            for key in table:
                self._forms.check_key(key)
        if self._plain.issuperset(map(type, table.values())):
            return table
        changed: dict[Any, Any] | None = None
        key = None
        try:
            for key, value in table.items():
                lowered = self.value(value, depth + 1)
                if lowered is not value:
                    if changed is None:
                        changed = dict(table)
                    changed[key] = lowered
        except CodecError as err:
            raise err.under(key_step(key)) from err.__cause__
        return table if changed is None else changed

    def _key(self, key: Any) -> str | int:
        if isinstance(key, str):
            return str.__str__(key)
        if isinstance(key, int) and not isinstance(key, bool):
            if self._forms.int_keys:
                return int.__int__(key)
            raise CodecError("", "a map key that is no string is not carried by JSON; send msgpack")
        name = type(key).__qualname__
        raise CodecError("", f"a map key of type {name} is carried by no codec; use a str or an int")

    def _other(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            return self._forms.number(value if isinstance(value, bool) else int.__int__(value))
        if isinstance(value, float):
            return self._forms.number(float.__float__(value))
        if isinstance(value, bytes | bytearray | memoryview):
            return self._forms.data(_contiguous(value))
        if isinstance(value, datetime.datetime):
            return self._forms.time(_in_utc(value))
        if hasattr(value, "__fray_actor__") and not isinstance(value, type):
            return self._forms.actor(_reference(value))
        if isinstance(value, list | tuple):
            return self._list(list(value), depth)
        if isinstance(value, dict):
            return self._table(dict(value), depth)
        if arrays.is_array(value):
            return self._forms.array(value)
        return refuse(value)


class Faithful(Lowering):
    """Lowers only what arrives as it was sent: of the same types, and equal.

    So it rejects tuples, which arrive as lists, subclasses of what libraries write, and times of other zones
    than UTC.
    """

    __slots__ = ()

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return what the library writes for a value, see Lowering.value."""
        kind = type(value)
        if kind in self._plain:
            return value
        if kind is list:
            return self._list(value, depth)
        if kind is dict:
            return self._table(value, depth)
        if kind is bytes:
            return self._forms.data(value)
        return self._other(value, depth)

    def _key(self, key: Any) -> str | int:
        if type(key) is str or type(key) is int:
            return super()._key(key)
        raise CodecError("", _CHANGED)

    def _other(self, value: Any, depth: int) -> Any:  # noqa: ARG002
        kind = type(value)
        if kind is datetime.datetime and value.tzinfo is datetime.UTC:
            return self._forms.time(value)
        if arrays.is_plain(value):
            return self._forms.array(value)
        if hasattr(kind, "__fray_actor__"):
            return self._forms.actor(_reference(value))
        raise CodecError("", _CHANGED)


def refuse(value: Any) -> NoReturn:
    """Raise the error of a value that no codec carries; its message names what to send instead."""
    kind = type(value)
    name = kind.__qualname__
    if isinstance(value, type):
        name, instead = f"class {value.__qualname__}", "send its name"
    elif isinstance(value, set | frozenset):
        instead = "send a list"
    elif dataclasses.is_dataclass(value):
        instead = "send dataclasses.asdict of it"
    elif isinstance(value, datetime.date):
        instead = "send a datetime with a zone, or its isoformat()"
    elif isinstance(value, complex):
        instead = "send a list of its two parts"
    elif isinstance(value, concurrent.futures.Future):
        instead = "pass it as an argument of its own, or its result"
    elif hasattr(kind, "__next__"):
        instead = "send a list of what it yields"
    else:
        instead = "send what it is made of"
    raise CodecError("", f"{with_article(name)} is carried by no codec; {instead}")


def find_plain(value: Any, step: str = "") -> None:
    """Raise for the first int or string in a lowered value that a library rejects; pass if there is none.

    This is slow, and so only used after the library has rejected a value without a path to it.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise CodecError(step, _SURROGATE) from None
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise CodecError(step, _BIG_INT)
    elif isinstance(value, list) or type(value) is tuple:
        for index, element in enumerate(value):
            find_plain(element, step + index_step(index))
    elif isinstance(value, dict):
        for key, element in value.items():
            find_plain(key, step)
            find_plain(element, step + key_step(key))


def _contiguous(value: bytes | bytearray | memoryview) -> Buffer:
    if not isinstance(value, memoryview):
        return value
    return value.cast("B") if value.c_contiguous and value.nbytes else bytes(value)


def _in_utc(value: datetime.datetime) -> datetime.datetime:
    if value.utcoffset() is None:
        problem = (
            "a datetime without a zone is carried by no codec; give it one, such as datetime.timezone.utc"
        )
        raise CodecError("", problem)
    try:
        utc = value.astimezone(datetime.UTC)
    except OverflowError:
        problem = "a time outside of the years 1 to 9999 is carried by no codec"
        raise CodecError("", problem) from None
    if type(utc) is datetime.datetime:
        return utc
    return datetime.datetime.combine(
        datetime.date(utc.year, utc.month, utc.day),
        datetime.time(utc.hour, utc.minute, utc.second, utc.microsecond, datetime.UTC),
    )


def _reference(value: Any) -> ActorRef:
    reference = ActorRef(*(str(part) for part in value.__fray_actor__()))
    find_plain(list(reference))
    return reference
