"""Random bytes: the decoders return a value or a CodecError. The runs are the same every time."""

import contextlib
import datetime
import math
import random
import string
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fray.rpc import codec
from fray.rpc.codec import OUT_OF_BAND, ActorRef, Codec, CodecError
from test_codec_vectors import CODECS, FILE, data_of, same

SEEDS = [
    (CODECS[vector["codec"]], data_of(vector)) for kind in ("carried", "malformed") for vector in FILE[kind]
]


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with a few changes, each of them of a byte or a stretch."""
    out = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(5):
            case 0 if at < len(out):
                out[at] = rng.randrange(256)
            case 1 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                out[at:at] = rng.randbytes(rng.randrange(1, 5))
            case 3:
                del out[at : at + rng.randrange(1, 9)]
            case 4:
                other = rng.choice(SEEDS)[1]
                out[at:at] = other[: rng.randrange(64)]
    return bytes(out)


@pytest.mark.parametrize("seed", range(8))
def test_any_bytes(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2500):
        number, data = rng.choice(SEEDS)
        data = mutated(rng, data)
        buffers = [rng.randbytes(8) for _ in range(rng.randrange(3))]
        with contextlib.suppress(CodecError):
            codec.decode_args(number, data, buffers)
        try:
            value = codec.decode_result(number, data, buffers)
        except CodecError:
            continue
        again = codec.decode_result(number, *codec.encode_result(number, value))
        assert same(again, value), f"{data!r} is {value!r}, and after a turn {again!r}"


def some(rng: random.Random, depth: int, *, json: bool) -> Any:
    """Return a value of any type that is carried."""
    makers: list[Callable[[], Any]] = [
        lambda: None,
        lambda: rng.random() < 0.5,
        lambda: rng.randrange(-(1 << 63), 1 << 64) >> rng.randrange(64),
        lambda: rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300),
        lambda: "".join(rng.choices(string.printable + "äß☃🎈", k=rng.randrange(40))),
        lambda: rng.randbytes(rng.choice([0, 1, 31, 300, OUT_OF_BAND])),
        lambda: some_time(rng),
        lambda: some_array(rng),
        lambda: ActorRef("a" * rng.randrange(40), "rl", ""),
    ]
    if depth < 4:
        makers += [
            lambda: [some(rng, depth + 1, json=json) for _ in range(rng.choice([0, 1, 3, 17]))],
            lambda: {
                some_key(rng, json=json): some(rng, depth + 1, json=json) for _ in range(rng.randrange(4))
            },
        ] * 2
    return rng.choice(makers)()


def some_key(rng: random.Random, *, json: bool) -> str | int:
    return str(rng.random()) if json or rng.random() < 0.5 else rng.randrange(-(1 << 63), 1 << 64)


def some_time(rng: random.Random) -> datetime.datetime:
    start = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
    return start + datetime.timedelta(
        days=rng.randrange(3_652_059), microseconds=rng.randrange(86_400_000_000)
    )


def some_array(rng: random.Random) -> Any:
    dtype = rng.choice(
        ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
    )
    shape = [rng.randrange(12) for _ in range(rng.randrange(4))]
    elements = np.frombuffer(rng.randbytes(12**3), "u1")[: math.prod(shape)]
    return elements.astype(dtype).reshape(shape)


@pytest.mark.parametrize("number", [Codec.MSGPACK, Codec.JSON], ids=["msgpack", "json"])
@pytest.mark.parametrize("seed", range(4))
def test_any_value(number: Codec, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        args = tuple(some(rng, 0, json=number == Codec.JSON) for _ in range(rng.randrange(4)))
        kwargs = {"x": some(rng, 0, json=number == Codec.JSON)}
        positional, named = codec.decode_args(number, *codec.encode_args(number, args, kwargs))
        assert same(positional, list(args)), f"sent {args!r}, got {positional!r}"
        assert same(named, kwargs), f"sent {kwargs!r}, got {named!r}"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x91" * 1_000_000 + b"\xc0", id="lists"),
        pytest.param(b"\x81\xa1a" * 300_000 + b"\xc0", id="maps"),
        pytest.param(b"\xdd\x00\x0f\x00\x00" * 200_000, id="declared lists"),
        pytest.param(b"\xc7\xff\x01" * 300_000, id="extensions"),
        pytest.param(b"\xdc\xff\xff" + b"\xd4\x03\x00" * 65535, id="one buffer, often"),
    ],
)
def test_hostile_bytes_are_rejected(data: bytes) -> None:
    with pytest.raises(CodecError):
        codec.decode_result(Codec.MSGPACK, data, [bytes(1 << 20)])


def test_deep_json_is_rejected() -> None:
    for text in (b"[" * 1_000_000, b'{"a":' * 1_000_000, b"[" * 101 + b"]" * 101):
        with pytest.raises(CodecError):
            codec.decode_result(Codec.JSON, text)
