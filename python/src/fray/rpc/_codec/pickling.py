"""The pickle codec: for Python peers that trust each other, as reading it runs what the sender names."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import cloudpickle

from fray.rpc._codec.common import OUT_OF_BAND, Buffer, Buffers, CodecError, PickleRefusedError


def encode_args(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[bytes, list[Buffer]]:
    """Write the arguments of a call."""
    try:
        return _dump([list(args), dict(kwargs)])
    except Exception:
        for index, value in enumerate(args):
            _check(value, f"args[{index}]")
        for key, value in kwargs.items():
            _check(value, f"kwargs.{key}")
        raise


def encode_result(value: Any) -> tuple[bytes, list[Buffer]]:
    """Write what a method returned."""
    try:
        return _dump(value)
    except Exception:
        _check(value, "result")
        raise


def decode(data: Buffer, buffers: Buffers, *, allowed: bool) -> Any:
    """Read a value.

    Raises:
        CodecError: the bytes cannot be unpickled here.
        PickleRefusedError: it is not allowed.
    """
    if not allowed:
        problem = "pickle is refused: it runs what the sender names; allow it on both sides, or send msgpack"
        raise PickleRefusedError("", problem)
    try:
        return pickle.loads(data, buffers=buffers)
    except Exception as err:
        raise CodecError("", f"the bytes cannot be unpickled here: {type(err).__name__}: {err}") from err


def _dump(value: Any) -> tuple[bytes, list[Buffer]]:
    buffers: list[Buffer] = []

    def beside(buffer: pickle.PickleBuffer) -> bool:
        """Take a buffer that is large; True leaves it in the pickle."""
        try:
            raw = buffer.raw()
        except BufferError:  # not in one piece
            return True
        if raw.nbytes < OUT_OF_BAND:
            return True
        buffers.append(raw)
        return False

    data: bytes = cloudpickle.dumps(value, protocol=5, buffer_callback=beside)
    return data, buffers


def _check(value: Any, path: str) -> None:
    try:
        _dump(value)
    except Exception as err:
        raise CodecError(path, f"a {type(value).__qualname__} cannot be pickled: {err}") from err
