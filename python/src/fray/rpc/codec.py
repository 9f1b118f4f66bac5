"""Arguments and results of actors' methods as bytes, as the Go package `actorrpc/codec` writes them.

docs/guides/actors.md has the table of what is carried. Bytes and arrays of at least `OUT_OF_BAND` bytes
are not in the message but in buffers beside it, which are views of the caller's memory: an array or a
bytearray must not be written to before the call is answered.

Start with `encode_args` and `decode_args`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fray.rpc._codec import checking, packing, pickling, text
from fray.rpc._codec.common import (
    MAX_DEPTH,
    OUT_OF_BAND,
    ActorRef,
    Buffer,
    Buffers,
    Codec,
    CodecError,
    CodecTooLargeError,
    OnActor,
    PickleRefusedError,
)
from fray.rpc._codec.packing import faithful_args, faithful_result
from fray.rpc._codec.weighing import Budget

__all__ = [
    "MAX_DEPTH",
    "OUT_OF_BAND",
    "ActorRef",
    "Buffer",
    "Buffers",
    "Codec",
    "CodecError",
    "CodecTooLargeError",
    "OnActor",
    "PickleRefusedError",
    "decode_args",
    "decode_result",
    "encode_args",
    "encode_call",
    "encode_reply",
    "encode_result",
    "faithful_args",
    "faithful_result",
]


def encode_args(codec: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[bytes, list[Buffer]]:
    """Return the arguments of a call as bytes, and the buffers that they refer to.

    Args:
        codec: a `Codec` or its number; 0 is msgpack.
        args: the positional ones.
        kwargs: the named ones.

    Raises:
        CodecError: something in them is carried by no codec; the path names it.
    """
    if codec in _MSGPACK:
        return packing.encode_args(args, kwargs)
    if codec == Codec.JSON:
        return text.encode_args(args, kwargs), []
    if codec == Codec.PICKLE:
        return pickling.encode_args(args, kwargs)
    raise _unknown(codec)


def decode_args(
    codec: int,
    data: Buffer,
    buffers: Buffers = (),
    *,
    on_actor: OnActor | None = None,
    allow_pickle: bool = False,
    memory: int = 0,
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the named arguments of a call.

    Arrays are read-only views of the message; copy one to write to it. Bytes that are out of band are the
    buffer itself if that is `bytes`, else a copy.

    Args:
        codec: a `Codec` or its number; 0 is msgpack.
        data: the bytes that `encode_args` returned.
        buffers: those it returned beside, in the same order. Views are of one dimension, of bytes.
        on_actor: called with each actor reference; what it returns takes its place. None leaves `ActorRef`s.
        allow_pickle: take pickle, which runs whatever code the sender names. Only ever for a peer whose
            identity is proven.
        memory: How many bytes of memory what is decoded may take beside the message, but for pickle; 0: 64
            MiB.

    Raises:
        CodecError: the bytes are no arguments.
        CodecTooLargeError: they would take more memory.
        PickleRefusedError: they are pickle, which is not allowed.
    """
    value = _decode(codec, data, buffers, on_actor, allow_pickle, memory)
    return checking.arguments(value, deep=codec != Codec.PICKLE)


def encode_result(codec: int, value: Any) -> tuple[bytes, list[Buffer]]:
    """Return what a method returned as bytes, and the buffers that they refer to.

    Raises:
        CodecError: something in it is carried by no codec; the path names it.
    """
    if codec in _MSGPACK:
        return packing.encode_result(value)
    if codec == Codec.JSON:
        return text.encode_result(value), []
    if codec == Codec.PICKLE:
        return pickling.encode_result(value)
    raise _unknown(codec)


def encode_reply(codec: int, value: Any, pickles: bool) -> tuple[int, bytes, list[Buffer]]:
    """Return by which codec what a method returned is written, and the same as `encode_result`.

    It is that of the call; with `pickles` it is pickle where msgpack would change the value, and otherwise
    msgpack, which is quicker. Raises as `encode_result` does.
    """
    if not pickles or codec == Codec.JSON:
        return codec, *encode_result(codec, value)
    found = faithful_result(value)
    if found is not None:
        return Codec.MSGPACK, *found
    return Codec.PICKLE, *pickling.encode_result(value)


def encode_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[int, bytes, list[Buffer]]:
    """Return by which codec arguments that may be pickled are written, and the same as `encode_args`.

    It is msgpack where they arrive by that as they are. Raises as `encode_args` does.
    """
    found = faithful_args(args, kwargs)
    if found is not None:
        return Codec.MSGPACK, *found
    return Codec.PICKLE, *pickling.encode_args(args, kwargs)


def decode_result(
    codec: int,
    data: Buffer,
    buffers: Buffers = (),
    *,
    on_actor: OnActor | None = None,
    allow_pickle: bool = False,
    memory: int = 0,
) -> Any:
    """Return what a method returned; the arguments are those of `decode_args`.

    Raises:
        CodecError: the bytes are no value.
        CodecTooLargeError: it would take more memory.
        PickleRefusedError: they are pickle, which is not allowed.
    """
    value = _decode(codec, data, buffers, on_actor, allow_pickle, memory)
    if codec != Codec.PICKLE and type(value) in (list, dict):
        checking.depth(value, 0)
    return value


_MSGPACK = (Codec.MSGPACK, 0)


def _decode(
    codec: int, data: Buffer, buffers: Buffers, on_actor: OnActor | None, allow_pickle: bool, memory: int
) -> Any:
    if codec in _MSGPACK:
        return packing.decode(data, buffers, on_actor, Budget(memory))
    if codec == Codec.JSON:
        Budget(memory).json(data)
        return text.decode(data, on_actor)
    if codec == Codec.PICKLE:
        return pickling.decode(data, buffers, on_actor, allowed=allow_pickle)
    raise _unknown(codec)


def _unknown(codec: int) -> CodecError:
    return CodecError("", f"codec {codec} is unknown; send msgpack")
