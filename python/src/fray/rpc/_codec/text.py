"""The JSON codec, for people who type arguments. What JSON lacks is an object of one key, such as $bytes."""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from fray.rpc._codec import arrays
from fray.rpc._codec.common import (
    BAD_ACTOR,
    BAD_ARRAY,
    BAD_NUMBER,
    BAD_TEXT,
    BAD_TIME,
    NOT_JSON,
    READ_TOO_DEEP,
    ActorRef,
    Buffer,
    CodecError,
    OnActor,
)
from fray.rpc._codec.lowering import Lowering, find_plain

_BYTES = "$bytes"
_TIME = "$time"
_ARRAY = "$ndarray"
_ACTOR = "$actor"

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII)
_ESCAPED_SURROGATE = re.compile(r"\\u[dD]")


class _Forms:
    """How JSON writes what it does not know."""

    __slots__ = ()

    plain: frozenset[type] = frozenset({type(None), bool, str})
    int_keys = False

    def number(self, value: int | float) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            raise CodecError("", "NaN and infinities are not carried by JSON; send msgpack")
        find_plain(value)
        return value

    def data(self, value: Buffer) -> Any:
        return {_BYTES: base64.b64encode(value).decode()}

    def time(self, value: datetime.datetime) -> Any:
        text = value.replace(tzinfo=None).isoformat()
        return {_TIME: (text.rstrip("0") if "." in text else text) + "Z"}

    def array(self, value: Any) -> Any:
        dtype, shape, data = arrays.parts(value)
        return {_ARRAY: {"dtype": dtype, "shape": shape, "data": base64.b64encode(data).decode()}}

    def actor(self, value: ActorRef) -> Any:
        parts = value._asdict()
        if not value.member:
            del parts["member"]
        return {_ACTOR: parts}

    def check_key(self, key: str) -> None:
        if key.startswith("$"):
            raise CodecError("", "a map key that begins with $ is not carried by JSON; send msgpack")


def encode_args(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Write the arguments of a call."""
    lowering = Lowering(_Forms())
    pair = []
    for value, root in ((list(args), "args"), (dict(kwargs), "kwargs")):
        try:
            pair.append(lowering.value(value, -1))
        except CodecError as err:
            raise err.under(root) from err.__cause__
    return _write(pair, ("args", "kwargs"))


def encode_result(value: Any) -> bytes:
    """Write what a method returned."""
    try:
        lowered = Lowering(_Forms()).value(value)
    except CodecError as err:
        raise err.under("result") from err.__cause__
    return _write([lowered], ("result",))


def _write(values: list[Any], roots: tuple[str, ...]) -> bytes:
    value = values[0] if len(values) == 1 else values
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        for part, root in zip(values, roots, strict=True):
            find_plain(part, root)
        raise


def decode(data: Buffer, on_actor: OnActor | None) -> Any:
    """Read a value. How deep it nests is left to `checking`.

    Raises:
        CodecError: the bytes are no such value.
    """
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError:
        raise CodecError("", BAD_TEXT) from None
    failures: list[Exception] = []

    def of_object(found: dict[str, Any]) -> Any:
        for key in found:
            if key.startswith("$"):
                return _form(min(k for k in found if k.startswith("$")), found, on_actor, failures)
        return found

    try:
        value = json.loads(
            text, object_hook=of_object, parse_int=_int, parse_float=_float, parse_constant=_constant
        )
    except RecursionError:
        raise CodecError("", READ_TOO_DEEP) from None
    except ValueError as err:
        if err in failures:
            raise
        raise CodecError("", NOT_JSON) from None
    if _ESCAPED_SURROGATE.search(text):
        _check_text(value)
    return value


def _check_text(value: Any) -> None:
    try:
        find_plain(value)
    except CodecError:
        raise CodecError("", BAD_TEXT) from None
    except RecursionError:
        raise CodecError("", READ_TOO_DEEP) from None


def _int(digits: str) -> int:
    number = int(digits) if len(digits) <= 20 else 1 << 64
    if not -(1 << 63) <= number < 1 << 64:
        raise CodecError("", BAD_NUMBER)
    return number


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise CodecError("", BAD_NUMBER)
    return number


def _constant(_: str) -> NoReturn:
    raise CodecError("", NOT_JSON)


def _form(key: str, found: dict[str, Any], on_actor: OnActor | None, failures: list[Exception]) -> Any:
    """Return what an object with a key that begins with $ stands for."""
    if len(found) != 1:
        raise CodecError("", f'"{key}" is malformed')
    value = found[key]
    if key == _BYTES:
        try:
            return _base64(value)
        except ValueError:
            raise CodecError("", f'"{key}" is malformed') from None
    if key == _TIME:
        return _time(value)
    if key == _ARRAY:
        return _array(value)
    if key != _ACTOR:
        raise CodecError("", f"{json.dumps(key, ensure_ascii=False)} is no form of this protocol")
    reference = _reference(value)
    if on_actor is None:
        return reference
    try:
        return on_actor(reference)
    except ValueError as err:
        failures.append(err)
        raise


def _base64(value: Any) -> bytes:
    if not isinstance(value, str) or len(value) % 4:
        raise ValueError("no base64")
    return binascii.a2b_base64(value.encode("ascii"), strict_mode=True) if value else b""


def _time(value: Any) -> datetime.datetime:
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise CodecError("", BAD_TIME)
    try:
        return datetime.datetime.fromisoformat(value).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise CodecError("", BAD_TIME) from None


def _array(value: Any) -> Any:
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data"}:
        raise CodecError("", BAD_ARRAY)
    dtype, shape = value["dtype"], value["shape"]
    if not isinstance(dtype, str) or not isinstance(shape, list):
        raise CodecError("", BAD_ARRAY)
    try:
        data = _base64(value["data"])
    except ValueError:
        raise CodecError("", BAD_ARRAY) from None
    return arrays.make(dtype, shape, data)


def _reference(value: Any) -> ActorRef:
    if not isinstance(value, dict) or value.keys() - {"member"} != {"name", "namespace", "url"}:
        raise CodecError("", BAD_ACTOR)
    if any(type(part) is not str for part in value.values()):
        raise CodecError("", BAD_ACTOR)
    return ActorRef(**value)
