"""What Python's side of the codecs adds to the vectors: its own types, its errors and its guarantees."""

import array as stdlib_array
import collections
import dataclasses
import datetime
import enum
import gc
import os
import pickle
import subprocess
import sys
import tracemalloc
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fray.rpc import codec
from fray.rpc.codec import OUT_OF_BAND, ActorRef, Codec, CodecError, PickleRefusedError

UTC = datetime.UTC
EAST = datetime.timezone(datetime.timedelta(hours=1))
NEW_YEAR = datetime.datetime(2024, 1, 1, tzinfo=UTC)


class Level(enum.IntEnum):
    HIGH = 3


class Color(enum.StrEnum):
    RED = "red"


class Point(collections.namedtuple("Point", "x y")):
    __slots__ = ()


class Later(datetime.datetime):
    """A subclass, as pandas has one."""


@dataclasses.dataclass
class Config:
    lr: float = 0.1


class Handle:
    def __fray_actor__(self) -> tuple[str, str, str]:
        return ("counter", "rl", "")


class Tensor:
    """An array of another library, which numpy knows nothing of."""

    dtype = "mine"
    shape = (2,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array([1, 2], dtype)


class OnDevice(Tensor):
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError("it is on the device")


def sent(value: Any, number: Codec = Codec.MSGPACK) -> Any:
    """Return what arrives of a value."""
    data, buffers = codec.encode_result(number, value)
    return codec.decode_result(number, data, buffers)


@pytest.mark.parametrize("number", [Codec.MSGPACK, Codec.JSON], ids=["msgpack", "json"])
@pytest.mark.parametrize(
    ("value", "want"),
    [
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        ([Point(1, (2,))], [[1, [2]]]),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.defaultdict(list, a=[1]), {"a": [1]}),
        (Level.HIGH, 3),
        ([Color.RED], ["red"]),
        ({Color.RED: 1}, {"red": 1}),
        (np.float64(1.5), 1.5),
        (np.str_("a"), "a"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcdef")[::2], b"ace"),
        (memoryview(stdlib_array.array("i", [1])), b"\1\0\0\0"),
        (datetime.datetime(2024, 1, 1, 1, tzinfo=EAST), NEW_YEAR),
        (Later(2024, 1, 1, tzinfo=UTC), NEW_YEAR),
        (Handle(), ActorRef("counter", "rl", "")),
        ([Handle()], [ActorRef("counter", "rl", "")]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_types_that_arrive_as_others(number: Codec, value: Any, want: Any) -> None:
    got = sent(value, number)
    assert got == want
    assert type(got) is type(want)


@pytest.mark.parametrize("number", [Codec.MSGPACK, Codec.JSON], ids=["msgpack", "json"])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.arange(6).reshape(2, 3).T,
        np.arange(10)[::-2],
        np.zeros((0, 3), "f4"),
        np.array(7),
        np.float32(2.5),
        np.bool_(True),
        np.full((40, 40), 1j),
    ],
    ids=["big endian", "transposed", "strided", "empty", "no dimension", "scalar", "bool", "large"],
)
def test_arrays(number: Codec, array: Any) -> None:
    got = sent([array], number)[0]
    assert got.dtype == np.asarray(array).dtype.newbyteorder("=")
    np.testing.assert_array_equal(got, array)


def test_arrays_of_other_libraries() -> None:
    np.testing.assert_array_equal(sent(Tensor()), [1, 2])


def test_nothing_large_is_copied() -> None:
    data = bytes(OUT_OF_BAND)
    floats = np.arange(OUT_OF_BAND, dtype="f4")
    message, buffers = codec.encode_args(Codec.MSGPACK, (data, [floats]), {"x": {"y": data}})
    assert len(message) < 100
    assert [len(buffer) for buffer in buffers] == [len(data), floats.nbytes, len(data)]
    assert buffers[0] is data
    (first, [second]), named = codec.decode_args(Codec.MSGPACK, message, buffers)
    assert first is data
    assert named["x"]["y"] is data
    assert np.shares_memory(second, floats)
    assert not second.flags.writeable
    np.testing.assert_array_equal(second, floats)


def test_bytes_are_bytes_whatever_the_buffer_is() -> None:
    message, _ = codec.encode_result(Codec.MSGPACK, bytes(OUT_OF_BAND))
    for buffer in (bytearray(OUT_OF_BAND), memoryview(bytes(OUT_OF_BAND))):
        got = codec.decode_result(Codec.MSGPACK, message, [buffer])
        assert type(got) is bytes
        assert got == bytes(OUT_OF_BAND)


@pytest.mark.parametrize("count", [3, OUT_OF_BAND], ids=["small", "large"])
def test_arrays_are_read_only(count: int) -> None:
    message, buffers = codec.encode_result(Codec.MSGPACK, np.zeros(count))
    array = codec.decode_result(Codec.MSGPACK, message, [bytearray(buffer) for buffer in buffers])
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_what_was_passed_is_not_changed() -> None:
    value = {"a": [b"x" * OUT_OF_BAND, Handle()], "b": (Config,)[:0]}
    before = {key: list(part) for key, part in value.items()}
    codec.encode_args(Codec.MSGPACK, (value,), {})
    assert {key: list(part) for key, part in value.items()} == before


def nest(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def looped() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def none(what: str, instead: str) -> str:
    return f"{what} is carried by no codec; {instead}"


BIG_INT = "the int is outside of -2^63 to 2^64-1; send a string"
NO_UTF8 = "the string is no valid UTF-8; send bytes"
TOO_DEEP = "nested deeper than 100 levels, or contains itself"
NUMBERS = "convert it to a bool, int, float or complex dtype"

# The value, where in it the culprit is, and the problem of it.
REJECTED: list[tuple[Any, str, str]] = [
    ({1, 2}, "", none("a set", "send a list")),
    ([1, {"lr": {1}}], "[1].lr", none("a set", "send a list")),
    ([object()], "[0]", none("an object", "send what it is made of")),
    ({"two words": object()}, '["two words"]', none("an object", "send what it is made of")),
    (Config(), "", none("a Config", "send dataclasses.asdict of it")),
    (Config, "", none("a class Config", "send its name")),
    (Handle, "", none("a class Handle", "send its name")),
    (iter([]), "", none("a list_iterator", "send a list of what it yields")),
    (uuid.UUID(int=1), "", none("a UUID", "send what it is made of")),
    (1j, "", none("a complex", "send a list of its two parts")),
    (datetime.date(2024, 1, 1), "", none("a date", "send a datetime with a zone, or its isoformat()")),
    (
        datetime.datetime(2024, 1, 1),
        "",
        none("a datetime without a zone", "give it one, such as datetime.timezone.utc"),
    ),
    (
        datetime.datetime(1, 1, 1, tzinfo=EAST),
        "",
        "a time outside of the years 1 to 9999 is carried by no codec",
    ),
    ([2**64], "[0]", BIG_INT),
    (-(2**63) - 1, "", BIG_INT),
    ({"a": ("\ud800",)}, ".a[0]", NO_UTF8),
    ({"\ud800": 1}, "", NO_UTF8),
    ({"a": {1.5: 2}}, ".a", none("a map key of type float", "use a str or an int")),
    ({True: 2}, "", none("a map key of type bool", "use a str or an int")),
    ({b"a": 2}, "", none("a map key of type bytes", "use a str or an int")),
    (np.array([object()]), "", none("an array of dtype object", NUMBERS)),
    (np.array(["a"]), "", none("an array of dtype str32", NUMBERS)),
    (OnDevice(), "", "an OnDevice cannot be made a numpy array: it is on the device"),
    (nest(101), ".a" * 100, TOO_DEEP),
    (looped(), "[1]" * 100, TOO_DEEP),
]


@pytest.mark.parametrize("number", [Codec.MSGPACK, Codec.JSON], ids=["msgpack", "json"])
@pytest.mark.parametrize(("value", "path", "problem"), REJECTED, ids=[row[2][:30] for row in REJECTED])
def test_rejected(number: Codec, value: Any, path: str, problem: str) -> None:
    with pytest.raises(CodecError) as caught:
        codec.encode_args(number, (1, value), {})
    assert (caught.value.path, caught.value.problem) == ("args[1]" + path, problem)
    with pytest.raises(CodecError) as caught:
        codec.encode_args(number, (1,), {"x": 2, "y": value})
    assert str(caught.value) == f"kwargs.y{path}: {problem}"


def test_rejected_under_a_name_that_is_none() -> None:
    with pytest.raises(CodecError, match=r'^kwargs\["two words"\]: a set'):
        codec.encode_args(Codec.MSGPACK, (), {"two words": {1}})


def test_rejected_result() -> None:
    with pytest.raises(CodecError) as caught:
        codec.encode_result(Codec.MSGPACK, [{1}])
    assert caught.value.path == "result[0]"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.path, again.problem) == (caught.value.path, caught.value.problem)
    assert caught.value.args == (caught.value.path, caught.value.problem)


def test_a_failure_leaves_nothing_behind() -> None:
    """The packers are used again, and must not write what a call before has left."""
    for _ in range(3):
        with pytest.raises(CodecError):
            codec.encode_args(Codec.MSGPACK, ("kept", 2**64), {})
        assert codec.encode_args(Codec.MSGPACK, (1,), {}) == (b"\x92\x91\x01\x80", [])


def test_unknown_codec() -> None:
    with pytest.raises(CodecError, match=r"^codec 7 is unknown; send msgpack$"):
        codec.encode_args(7, (), {})
    with pytest.raises(CodecError, match=r"^codec 7 is unknown; send msgpack$"):
        codec.decode_result(7, b"\xc0")
    assert codec.decode_args(0, *codec.encode_args(0, (1,), {})) == ([1], {})


@pytest.mark.parametrize("number", [Codec.MSGPACK, Codec.JSON], ids=["msgpack", "json"])
def test_on_actor(number: Codec) -> None:
    message, buffers = codec.encode_args(number, (Handle(), [Handle()]), {"h": Handle()})
    got = codec.decode_args(number, message, buffers, on_actor=lambda reference: reference.name)
    assert got == (["counter", ["counter"]], {"h": "counter"})


@pytest.mark.parametrize("number", [Codec.MSGPACK, Codec.JSON], ids=["msgpack", "json"])
@pytest.mark.parametrize("error", [ValueError("mine"), OSError("mine"), CodecError("", "mine")], ids=repr)
def test_what_on_actor_raises_is_not_hidden(number: Codec, error: Exception) -> None:
    def on_actor(_: ActorRef) -> Any:
        raise error

    message, buffers = codec.encode_result(number, Handle())
    with pytest.raises(type(error)) as caught:
        codec.decode_result(number, message, buffers, on_actor=on_actor)
    assert caught.value is error


def test_pickle() -> None:
    floats = np.arange(OUT_OF_BAND)
    small = np.arange(3)
    message, buffers = codec.encode_args(Codec.PICKLE, (floats, {1, 2}, lambda n: n + 1), {"c": small})
    assert len(buffers) == 1
    (array, numbers, function), named = codec.decode_args(Codec.PICKLE, message, buffers, allow_pickle=True)
    assert np.shares_memory(array, floats)
    assert (numbers, function(1), named["c"].tolist()) == ({1, 2}, 2, [0, 1, 2])
    with pytest.raises(PickleRefusedError, match=r"^pickle is refused: "):
        codec.decode_args(Codec.PICKLE, message, buffers)


def test_pickle_is_not_read_when_rejected(tmp_path: Path) -> None:
    trace = tmp_path / "read"

    class Bomb:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(trace),))

    message, _ = codec.encode_result(Codec.PICKLE, [Bomb()])
    with pytest.raises(PickleRefusedError):
        codec.decode_result(Codec.PICKLE, message)
    assert not trace.exists()
    codec.decode_result(Codec.PICKLE, message, allow_pickle=True)
    assert trace.exists()


def test_pickle_that_fails() -> None:
    with pytest.raises(CodecError, match=r"^args\[1\]: a generator cannot be pickled: "):
        codec.encode_args(Codec.PICKLE, (1, (n for n in "")), {})
    with pytest.raises(CodecError, match=r"^kwargs\.x: a generator cannot be pickled: "):
        codec.encode_args(Codec.PICKLE, (), {"x": (n for n in "")})
    with pytest.raises(CodecError, match=r"^the bytes cannot be unpickled here: UnpicklingError"):
        codec.decode_result(Codec.PICKLE, b"no", allow_pickle=True)
    with pytest.raises(CodecError, match=r"^the bytes are no arguments"):
        codec.decode_args(Codec.PICKLE, pickle.dumps(1), allow_pickle=True)


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    ).stdout.strip()


def test_numpy_is_imported_with_the_first_array() -> None:
    array = codec.encode_result(Codec.MSGPACK, np.arange(2))[0]
    program = f"""
import sys
from fray.rpc import codec
codec.decode_args(1, *codec.encode_args(1, (1, b"", [{{"a": 1.5}}]), {{}}))
before = "numpy" in sys.modules
codec.decode_result(1, {array!r})
print(before, "numpy" in sys.modules)
"""
    assert run(program) == "False True"


def test_without_numpy() -> None:
    array = codec.encode_result(Codec.MSGPACK, np.arange(2))[0]
    program = f"""
import sys
sys.modules["numpy"] = None
from fray.rpc import codec
try:
    codec.decode_result(1, {array!r})
except codec.CodecError as err:
    print(err)
"""
    assert run(program) == "an array needs the package numpy, which is not installed here"


def test_without_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    message = b"\xd8\x01\x93\xa8bfloat16\x91\x01\xc4\x02\x00\x00"
    with pytest.raises(CodecError) as caught:
        codec.decode_result(Codec.MSGPACK, message)
    assert (
        caught.value.problem
        == "an array of bfloat16 needs the package ml_dtypes, which is not installed here"
    )


def peak(message: bytes) -> int:
    """Return how many bytes decoding takes at most."""
    gc.collect()
    tracemalloc.start()
    try:
        codec.decode_result(Codec.MSGPACK, message)
    except CodecError:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most


@pytest.mark.parametrize("prefix", [b"\xdd\x00\x00\xf0\x00", b"\x81\xa0\xdd\x00\x00\xf0\x00"])
def test_declared_lengths_are_not_trusted(prefix: bytes) -> None:
    message = prefix * 900 + bytes(1 << 16)
    most = peak(message)
    assert most < 4 * len(message), f"{len(message)} bytes took {most}"
    assert peak(prefix * 100) < 1 << 20
