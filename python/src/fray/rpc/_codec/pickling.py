"""The pickle codec: for Python peers that trust each other, as reading it runs what the sender names.

Most values are pickled in C. What has to be sent with its code, such as a lambda, is left to cloudpickle, and
how classes, exceptions and handles travel to `reducing`.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle

from fray.rpc._codec import reducing
from fray.rpc._codec.common import OUT_OF_BAND, Buffer, Buffers, CodecError, OnActor, PickleRefusedError

_Beside = Callable[[pickle.PickleBuffer], bool]
_PROTOCOL = 5


class _ByCloudpickleError(Exception):
    """The value has something that only cloudpickle can send."""


class _Quick(pickle.Pickler):
    """Pickles what the receiver can import, and classes that it is sent once."""

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is pickled."""
        if reducing.has_code(value):
            raise _ByCloudpickleError
        return reducing.reduced(value)


class _Whole(cloudpickle.Pickler):  # type: ignore[misc] # it has no types
    """Pickles functions with their code, too."""

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is pickled."""
        found = reducing.reduced(value)
        return super().reducer_override(value) if found is NotImplemented else found


def encode_args(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[bytes, list[Buffer]]:
    """Write the arguments of a call."""
    try:
        return _dump([list(args), dict(kwargs)])
    except Exception as err:
        for index, value in enumerate(args):
            _check(value, f"args[{index}]")
        for key, value in kwargs.items():
            _check(value, f"kwargs.{key}")
        raise CodecError("", f"the arguments cannot be pickled: {err}") from err


def encode_result(value: Any) -> tuple[bytes, list[Buffer]]:
    """Write what a method returned."""
    try:
        return _dump(value)
    except Exception as err:
        raise _problem(value, "result", err) from err


def decode(data: Buffer, buffers: Buffers, on_actor: OnActor | None, *, allowed: bool) -> Any:
    """Read a value.

    Raises:
        CodecError: the bytes cannot be unpickled here.
        PickleRefusedError: it is not allowed.
    """
    if not allowed:
        problem = "pickle is refused: it runs what the sender names; allow it on both sides, or send msgpack"
        raise PickleRefusedError("", problem)
    before = reducing.arriving(on_actor)
    try:
        return pickle.loads(data, buffers=buffers)
    except Exception as err:
        raise CodecError("", f"the bytes cannot be unpickled here: {type(err).__name__}: {err}") from err
    finally:
        reducing.arriving(before)


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

    file = io.BytesIO()
    try:
        _Quick(file, _PROTOCOL, buffer_callback=beside).dump(value)
    except Exception:  # of what C cannot pickle, such as a module
        file = io.BytesIO()
        buffers.clear()
        _Whole(file, _PROTOCOL, buffer_callback=beside).dump(value)
    return file.getvalue(), buffers


def _check(value: Any, path: str) -> None:
    try:
        _dump(value)
    except Exception as err:
        raise _problem(value, path, err) from err


def _problem(value: Any, path: str, err: Exception) -> CodecError:
    return CodecError(path, f"a {type(value).__qualname__} cannot be pickled: {err}")
