"""The msgpack codec.

Values that the library does not write are left to `lowering`, and arrays to `arrays`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import msgpack

from fray.rpc._codec import arrays
from fray.rpc._codec.common import (
    BAD_ACTOR,
    BAD_ARRAY,
    BAD_BUFFER,
    BAD_KEY,
    BAD_TEXT,
    BAD_TIME,
    NOT_MSGPACK,
    OUT_OF_BAND,
    READ_TOO_DEEP,
    TRAILING,
    ActorRef,
    Buffer,
    Buffers,
    CodecError,
    OnActor,
    index_step,
    key_step,
)
from fray.rpc._codec.lowering import PLAIN, Faithful, Lowering, find_plain
from fray.rpc._codec.weighing import Budget

_ARRAY = 1
"""An array of dtype, shape and data: bytes, or the index of a buffer."""
_ACTOR = 2
"""An array of name, namespace and URL."""
_BUFFER = 3
"""The index of a buffer."""

_SCAN = 1 << 10
"""Longer messages are scanned before any list is made, as lists are made as long as declared."""
_EXT = 256
"""Bytes of memory of a value that msgpack does not know, but for an actor."""
_HANDLE = 1 << 10
"""Bytes of memory of what stands for an actor."""
_KEEP = 1 << 20
"""A packer that has written more is dropped, with the memory that it keeps."""


_SMALL = PLAIN | {bytes}


class _Packers:
    """Packers that are not in use. One serves one call at a time, and making one costs more than a call."""

    def __init__(self) -> None:
        self._free: list[msgpack.Packer] = []

    def pack(self, value: Any) -> bytes:
        """Return the value as bytes."""
        try:
            packer = self._free.pop()
        except IndexError:
            packer = msgpack.Packer(datetime=True)
        data: bytes = packer.pack(value)
        if len(data) <= _KEEP:
            self._free.append(packer)
        return data


_pack = _Packers().pack


class _Forms:
    """How msgpack writes what it does not know."""

    __slots__ = ("buffers",)

    plain = PLAIN
    int_keys = True

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []

    def number(self, value: int | float) -> Any:
        return value

    def data(self, value: Buffer) -> Any:
        return value if len(value) < OUT_OF_BAND else msgpack.ExtType(_BUFFER, _pack(self._beside(value)))

    def time(self, value: datetime.datetime) -> Any:
        return value

    def array(self, value: Any) -> Any:
        dtype, shape, data = arrays.parts(value)
        place = data if data.nbytes < OUT_OF_BAND else self._beside(data)
        return msgpack.ExtType(_ARRAY, _pack([dtype, shape, place]))

    def actor(self, value: ActorRef) -> Any:
        return msgpack.ExtType(_ACTOR, _pack(list(value) if value.member else list(value[:3])))

    def check_key(self, key: str) -> None:
        pass

    def _beside(self, value: Buffer) -> int:
        self.buffers.append(value)
        return len(self.buffers) - 1


def encode_args(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], kind: type[Lowering] = Lowering
) -> tuple[bytes, list[Buffer]]:
    """Write the arguments of a call."""
    forms = _Forms()
    positional: Any = args
    named: Any = kwargs if type(kwargs) is dict else dict(kwargs)
    if not _SMALL.issuperset(map(type, args)) or any(map(_is_large, args)):
        positional = _positional(kind(forms), args)
    if kwargs and not PLAIN.issuperset(map(type, kwargs.values())):
        named = _named(kind(forms), kwargs)
    try:
        return _pack((positional, named)), forms.buffers
    except (OverflowError, ValueError):
        find_plain(positional, "args")
        find_plain(named, "kwargs")
        raise


def _positional(lowering: Lowering, args: tuple[Any, ...]) -> list[Any]:
    lowered: list[Any] = []
    try:
        for value in args:
            lowered.append(lowering.value(value))
    except CodecError as err:
        raise err.under("args" + index_step(len(lowered))) from err.__cause__
    return lowered


def _named(lowering: Lowering, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    lowered: dict[str, Any] = {}
    key = ""
    try:
        for key, value in kwargs.items():
            lowered[key] = lowering.value(value)
    except CodecError as err:
        raise err.under("kwargs" + key_step(key)) from err.__cause__
    return lowered


def _is_large(value: Any) -> bool:
    return type(value) is bytes and len(value) >= OUT_OF_BAND


def encode_result(value: Any, kind: type[Lowering] = Lowering) -> tuple[bytes, list[Buffer]]:
    """Write what a method returned."""
    forms = _Forms()
    try:
        lowered = value if type(value) in PLAIN else kind(forms).value(value)
    except CodecError as err:
        raise err.under("result") from err.__cause__
    try:
        return _pack(lowered), forms.buffers
    except (OverflowError, ValueError):
        find_plain(lowered, "result")
        raise


def faithful_args(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[bytes, list[Buffer]] | None:
    """Write the arguments of a call; None: they would arrive changed, or not at all."""
    try:
        return encode_args(args, kwargs, Faithful)
    except CodecError:
        return None


def faithful_result(value: Any) -> tuple[bytes, list[Buffer]] | None:
    """Write what a method returned; None: it would arrive changed, or not at all."""
    try:
        return encode_result(value, Faithful)
    except CodecError:
        return None


def decode(data: Buffer, buffers: Buffers, on_actor: OnActor | None, memory: Budget) -> Any:
    """Read a value. How deep it nests and what its keys are is left to `checking`.

    Raises:
        CodecError: the bytes are no such value.
        CodecTooLargeError: it would take more memory.
    """
    scanned = memory.msgpack(data)
    extensions = _Extensions(buffers, on_actor, memory)
    try:
        if len(data) > _SCAN and not scanned:
            _scan(data)
        return msgpack.unpackb(data, ext_hook=extensions.value, timestamp=3, strict_map_key=False)
    except CodecError:
        raise
    except Exception as err:
        if err is extensions.failure:
            raise
        raise CodecError("", _problem(err)) from None


def _scan(data: Buffer) -> None:
    unpacker = msgpack.Unpacker(max_buffer_size=len(data))
    unpacker.feed(data)
    unpacker.skip()


def _problem(err: Exception) -> str:
    """Return what an error of the library means, with the message of Go."""
    if isinstance(err, msgpack.ExtraData):
        return TRAILING
    if isinstance(err, msgpack.StackError):
        return READ_TOO_DEEP
    if isinstance(err, UnicodeDecodeError):
        return BAD_TEXT
    if isinstance(err, TypeError):  # a list as a key, which cannot be hashed
        return BAD_KEY
    if isinstance(err, OverflowError) or "timestamp" in str(err) or "nanoseconds" in str(err):
        return BAD_TIME
    return NOT_MSGPACK


class _Extensions:
    """Reads what msgpack does not know."""

    __slots__ = ("_buffers", "_memory", "_on_actor", "_taken", "failure")

    def __init__(self, buffers: Buffers, on_actor: OnActor | None, memory: Budget) -> None:
        self._memory = memory
        self._buffers = buffers
        self._on_actor = on_actor
        self._taken: set[int] = set()
        self.failure: Exception | None = None
        """What on_actor raised."""

    def value(self, kind: int, payload: bytes) -> Any:
        """Return what an extension stands for."""
        self._memory.take(_HANDLE if kind == _ACTOR else _EXT)
        if kind == _BUFFER:
            found = self._buffer(_payload(payload, BAD_BUFFER))
            return found if type(found) is bytes else bytes(found)
        if kind == _ARRAY:
            return self._array(_payload(payload, BAD_ARRAY))
        if kind == _ACTOR:
            return self._actor(_payload(payload, BAD_ACTOR))
        raise CodecError("", f"extension type {kind} is not of this protocol")

    def _buffer(self, index: Any) -> Buffer:
        """Return a buffer; each may be referred to once, as it may be copied each time."""
        if type(index) is not int or index >= 1 << 63:
            raise CodecError("", BAD_BUFFER)
        count = len(self._buffers)
        if not 0 <= index < count:
            has = "1 buffer" if count == 1 else f"{count} buffers"
            raise CodecError("", f"buffer {index} is referred to, and the message has {has}")
        if index in self._taken:
            raise CodecError("", f"buffer {index} is referred to twice")
        self._taken.add(index)
        return self._buffers[index]

    def _array(self, parts: Any) -> Any:
        if not isinstance(parts, list) or len(parts) != 3:
            raise CodecError("", BAD_ARRAY)
        dtype, shape, data = parts
        if not isinstance(dtype, str) or not isinstance(shape, list):
            raise CodecError("", BAD_ARRAY)
        return arrays.make(dtype, shape, data if isinstance(data, bytes) else self._buffer(data))

    def _actor(self, parts: Any) -> Any:
        if not isinstance(parts, list) or len(parts) not in (3, 4) or any(type(p) is not str for p in parts):
            raise CodecError("", BAD_ACTOR)
        reference = ActorRef(*parts)
        if self._on_actor is None:
            return reference
        try:
            return self._on_actor(reference)
        except Exception as err:
            self.failure = err
            raise


def _refuse(kind: int, _: bytes) -> Any:
    raise ValueError(f"extension {kind} within an extension")


def _payload(payload: bytes, problem: str) -> Any:
    try:
        if len(payload) > _SCAN:
            _scan(payload)
        return msgpack.unpackb(payload, ext_hook=_refuse)
    except Exception:
        raise CodecError("", problem) from None
