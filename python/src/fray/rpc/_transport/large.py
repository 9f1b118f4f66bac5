"""Decodes large messages of the protocol without copies of what they carry, within a limit of memory.

Arguments, results and buffers remain where they were received. The memory for all else in a message is
estimated before it is decoded, as a field of two bytes may become a hundred in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from fray._pb import actor_pb2
from fray.rpc._transport.wire import OversizeError, Pieces

# What decoded messages take in bytes, from above.
_MESSAGE: Final = 256
_PIECE: Final = 64
_NUMBER: Final = 16

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_NESTING: Final = 90  # of messages; protobuf takes 100

_CALL: Final = (actor_pb2.Call.ARGS_FIELD_NUMBER, actor_pb2.Call.BUFFERS_FIELD_NUMBER)
_REPLY: Final = (actor_pb2.Reply.RESULT_FIELD_NUMBER, actor_pb2.Reply.BUFFERS_FIELD_NUMBER)


def frame(data: memoryview, memory: int) -> tuple[actor_pb2.Frame, Pieces]:
    """Decode a frame; what it carries is a view of the data.

    Raises:
        DecodeError: it is no frame.
        OversizeError: it takes more than so many bytes of memory beside what it carries.
    """
    check(data, actor_pb2.Frame.DESCRIPTOR, memory)
    fields = list(_fields(data)) if len(data) else []
    if len(fields) == 1:
        number, kind, _, value, end = fields[0]
        if kind == _BYTES and number == actor_pb2.Frame.CALL_FIELD_NUMBER:
            part, pieces = call(data[value:end])
            return actor_pb2.Frame(call=part), pieces
        if kind == _BYTES and number == actor_pb2.Frame.REPLY_FIELD_NUMBER:
            rest, pieces = _parted(data[value:end], _REPLY)
            return actor_pb2.Frame(reply=actor_pb2.Reply.FromString(rest)), pieces
    return actor_pb2.Frame.FromString(data), Pieces(None)  # type: ignore[arg-type] # takes any bytes


def call(data: memoryview) -> tuple[actor_pb2.Call, Pieces]:
    """Decode a call that `check` has accepted; what it carries is a view of the data. Raises DecodeError."""
    rest, pieces = _parted(data, _CALL)
    return actor_pb2.Call.FromString(rest), pieces


def check(data: memoryview, of: Any, memory: int) -> None:
    """Reject a message that takes more than so many bytes of memory beside what it carries.

    Raises:
        DecodeError: it is no message.
        OversizeError: it does.
    """
    if _left(data, of, memory, 0) < 0:
        raise OversizeError(len(data) + memory, memory, None)


def _left(data: memoryview, of: Any, left: int, depth: int) -> int:
    """Return what is left of the memory, below 0 if it is too little."""
    left -= _MESSAGE
    if depth > _MAX_NESTING:
        return -1
    known = of.fields_by_number
    for number, kind, start, value, end in _fields(data):
        field = known.get(number)
        if field is None:  # kept as it is
            left -= _PIECE + end - start
        elif kind != _BYTES:
            left -= _NUMBER
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            left = _left(data[value:end], field.message_type, left - _PIECE, depth + 1)
        elif field.type == FieldDescriptor.TYPE_BYTES:
            left -= _PIECE
        elif field.type == FieldDescriptor.TYPE_STRING:
            left -= _PIECE + end - value
        else:  # numbers of a list in one piece
            left -= _NUMBER * (end - value)
        if left < 0:
            return left
    return left


def _parted(data: memoryview, carried: tuple[int, int]) -> tuple[bytes, Pieces]:
    """Take what a message carries out of it; return the rest."""
    one, several = carried
    rest = bytearray()
    pieces = Pieces(memoryview(b""))
    for number, kind, start, value, end in _fields(data):
        if kind == _BYTES and number == one:
            pieces.payload = data[value:end]
        elif kind == _BYTES and number == several:
            pieces.append(data[value:end])
        else:
            rest += data[start:end]
    return bytes(rest), pieces


def _fields(data: memoryview) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield number and kind of each field, where it begins, where its value does, and its end.

    Raises:
        DecodeError: there are no such fields.
    """
    at, end = 0, len(data)
    while at < end:
        start = at
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value = at
            _, at = _varint(data, at)
        elif kind == _BYTES:
            size, value = _varint(data, at)
            at = value + size
        elif kind in (_FIXED64, _FIXED32):
            value, at = at, at + (8 if kind == _FIXED64 else 4)
        else:
            raise DecodeError("a field of a kind that the protocol has not")
        if at > end:
            raise DecodeError("a field is cut off")
        yield tag >> 3, kind, start, value, at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number, at
            shift += 7
            if shift > 63:
                raise DecodeError("a number is too long")
    except IndexError:
        raise DecodeError("a number is cut off") from None


def bounded(kind: type[Message], memory: int) -> Any:
    """Return a decoder of a message for grpcio, which rejects what takes more memory."""

    def decode(data: bytes) -> Any:
        if len(data) > _SMALL:
            check(memoryview(data), kind.DESCRIPTOR, memory)
        return kind.FromString(data)

    return decode


def bounded_call(memory: int) -> Any:
    """Return a decoder of a call and what it carries for grpcio, likewise."""

    def decode(data: bytes) -> tuple[actor_pb2.Call, Pieces | list[memoryview]]:
        if len(data) <= _SMALL:
            message = actor_pb2.Call.FromString(data)
            return message, [memoryview(b) for b in message.buffers]
        view = memoryview(data)
        check(view, actor_pb2.Call.DESCRIPTOR, memory)
        return call(view)

    return decode


_SMALL: Final = 64 << 10
