"""Which codec carries the values of created actors, and how they are pickled."""

from __future__ import annotations

import datetime
import sys
import types
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

from fray.rpc._codec import pickling
from fray.rpc.codec import ActorRef, Codec, CodecError, decode_args, encode_call, encode_reply
from valued import Color, FileLostError, LessonError, Level, Point, Settings


class _Handle:
    def __fray_actor__(self) -> tuple[str, str, str, str]:
        return "counter", "rl", "", ""


HANDLE = _Handle()
FAITHFUL: list[Any] = [
    None,
    True,
    1,
    -(2**63),
    1.5,
    "text",
    b"bytes",
    [],
    [1, [2, {"a": [b"x", None]}]],
    {"a": 1, 2: "b"},
    datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    np.arange(3),
    np.float32(1.5),
    np.float64(1.5),
    [{"weights": np.ones((2, 2))}],
    HANDLE,
]
CHANGED: list[Any] = [
    (),
    (1,),
    [(1,)],
    {"a": ()},
    {"a": [{"b": (1,)}]},
    {(1,): 1},
    {1.5: 1},
    {True: 1},
    {Level.HIGH: 1},
    {1},
    OrderedDict(a=1),
    Level.HIGH,
    Color.RED,
    Point(1, 2),
    Settings("x"),
    2**64,
    bytearray(b"x"),
    "\ud800",
    datetime.datetime(2026, 1, 2),
    datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    np.ma.array([1], mask=[True]),
    np.array([None]),
    np.str_("x"),
    complex(1, 2),
]


@pytest.mark.parametrize("value", FAITHFUL, ids=repr)
def test_what_msgpack_carries_is_not_pickled(value: Any) -> None:
    assert encode_call((value,), {"by": value})[0] == Codec.MSGPACK
    assert encode_reply(Codec.MSGPACK, value, True)[0] == Codec.MSGPACK


@pytest.mark.parametrize("value", CHANGED, ids=ascii)
def test_what_it_would_change_is_pickled(value: Any) -> None:
    for args, kwargs in (((value,), {}), ((), {"by": value}), (([[value]],), {"by": {"a": value}})):
        number, data, buffers = encode_call(args, kwargs)
        assert number == Codec.PICKLE
        positional, named = decode_args(number, data, buffers, allow_pickle=True)
        assert repr((tuple(positional), named)) == repr((args, kwargs))
    assert encode_reply(Codec.MSGPACK, value, True)[0] == Codec.PICKLE
    assert encode_reply(Codec.JSON, [], True)[0] == Codec.JSON


def test_a_value_that_contains_itself() -> None:
    value: list[Any] = []
    value.append(value)
    number, data, buffers = encode_call((value,), {})
    [came], _ = decode_args(number, data, buffers, allow_pickle=True)
    assert came[0] is came


def test_arrays_are_out_of_band() -> None:
    array = np.arange(1 << 16)
    number, data, buffers = encode_call((Settings("x", extra={"array": array}),), {})
    assert number == Codec.PICKLE
    assert len(data) < 1000
    assert [memoryview(b).nbytes for b in buffers] == [array.nbytes]
    assert np.shares_memory(np.frombuffer(buffers[0], array.dtype), array)
    [came], _ = decode_args(number, data, buffers, allow_pickle=True)
    assert np.shares_memory(came.extra["array"], array)


def program_class() -> Any:
    """Return a class that no other process can import."""
    return types.new_class("Program", (), {}, lambda ns: ns.update(__module__="__main__"))


def test_a_class_is_sent_once_and_comes_back_as_itself() -> None:
    kind = program_class()
    first = pickling.encode_result(kind())[0]
    kind.changed = True
    assert pickling.encode_result(kind())[0] == first, "its code was made again"
    assert type(pickling.decode(first, (), None, allowed=True)) is kind
    assert kind.changed, "what came back replaced the caller's own class"


def test_code_needs_cloudpickle() -> None:
    factor = 3
    data, _ = pickling.encode_result([lambda n: n * factor, sys])
    [function, module] = pickling.decode(data, (), None, allowed=True)
    assert (function(5), module) == (15, sys)


def test_handles_are_made_by_the_receiver() -> None:
    data, _ = pickling.encode_result((HANDLE,))
    assert pickling.decode(data, (), None, allowed=True) == (ActorRef("counter", "rl", ""),)
    seen: list[ActorRef] = []
    pickling.decode(data, (), seen.append, allowed=True)
    assert seen == [ActorRef("counter", "rl", "")]


@pytest.mark.parametrize(
    "error",
    [
        LessonError("chess", hint="go"),
        FileLostError(2, "lost", "x.txt"),
        ValueError("plain"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
        ImportError("no x", name="x", path="/x"),
    ],
    ids=repr,
)
def test_exceptions_are_made_without_their_constructors(error: Exception) -> None:
    came = pickling.decode(pickling.encode_result(error)[0], (), None, allowed=True)
    assert (type(came), came.args, str(came)) == (type(error), error.args, str(error))
    assert vars(came) == vars(error)
    for name in ("filename", "name", "path", "reason"):
        assert getattr(came, name, None) == getattr(error, name, None)


def test_what_cannot_be_sent_at_all() -> None:
    with pytest.raises(CodecError, match="a generator cannot be pickled") as caught:
        encode_call((1,), {"by": (n for n in range(3))})
    assert caught.value.path == "kwargs.by"
