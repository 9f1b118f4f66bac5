"""The vectors that Go's tests read too: the two codecs write and read the same bytes."""

import datetime
import json
import math
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fray.rpc import codec
from fray.rpc.codec import ActorRef, Codec, CodecError

VECTORS = Path(__file__).parents[2] / "actorrpc" / "codec" / "testdata" / "vectors.json"
FILE: dict[str, list[dict[str, Any]]] = json.loads(VECTORS.read_text())
CODECS = {"msgpack": Codec.MSGPACK, "json": Codec.JSON}


def hex_of(notation: Any) -> bytes:
    if isinstance(notation, str):
        return bytes.fromhex(notation)
    if isinstance(notation, list):
        return b"".join(map(hex_of, notation))
    part, times = notation["repeat"]
    return bytes.fromhex(part) * int(times)


def value_of(notation: Any) -> Any:
    """Return the value that a vector's notation stands for; the file describes the notation."""
    if not isinstance(notation, dict):
        return notation
    ((kind, content),) = notation.items()
    match kind:
        case "int":
            return int(content)
        case "float":
            return float(content)
        case "bytes":
            return hex_of(content)
        case "time":
            return datetime.datetime.fromisoformat(content)
        case "list":
            return [value_of(element) for element in content]
        case "nested":
            nested: list[Any] = []
            for _ in range(content - 1):
                nested = [nested]
            return nested
        case "map":
            return {value_of(key): value_of(value) for key, value in content}
        case "array":
            return array_of(content)
        case "actor":
            return ActorRef(*content)
    raise AssertionError(f"no value: {notation}")


def array_of(content: dict[str, Any]) -> Any:
    dtype, data = content["dtype"], hex_of(content["data"])
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    array = np.frombuffer(data, dtype) if data else np.zeros(0, dtype)
    return array.reshape(content["shape"])


def same(got: Any, want: Any) -> bool:
    """Whether two values are equal in type too; NaN is itself, and -0.0 is not 0.0."""
    if isinstance(want, np.ndarray):
        kind = np.ndarray if want.shape else np.generic
        return (
            isinstance(got, kind)
            and (got.dtype, got.shape) == (want.dtype, want.shape)
            and got.tobytes() == want.tobytes()
        )
    if type(got) is not type(want):
        return False
    if isinstance(want, list):
        return len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, dict):
        return list(got) == list(want) and all(map(same, got.values(), want.values()))
    if isinstance(want, float):
        return struct.pack("d", got) == struct.pack("d", want) or (math.isnan(got) and math.isnan(want))
    return bool(got == want)


def data_of(vector: dict[str, Any]) -> bytes:
    return vector["text"].encode() if "text" in vector else hex_of(vector["data"])


def decoded(vector: dict[str, Any]) -> Any:
    buffers = [hex_of(buffer) for buffer in vector.get("buffers", [])]
    number = CODECS[vector["codec"]]
    if "args" in vector:
        return list(codec.decode_args(number, data_of(vector), buffers))
    return codec.decode_result(number, data_of(vector), buffers)


def encoded(vector: dict[str, Any], value: Any) -> tuple[bytes, list[bytes]]:
    number = CODECS[vector["codec"]]
    if "args" in vector:
        data, buffers = codec.encode_args(number, tuple(value[0]), value[1])
    else:
        data, buffers = codec.encode_result(number, value)
    return data, [bytes(buffer) for buffer in buffers]


def wanted(vector: dict[str, Any]) -> Any:
    if "args" not in vector:
        return value_of(vector["result"])
    return [
        [value_of(arg) for arg in vector["args"]],
        {key: value_of(value) for key, value in vector["kwargs"].items()},
    ]


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["name"])


def test_file_is_whole() -> None:
    counts = {kind: len(FILE[kind]) for kind in ("carried", "malformed", "refused")}
    assert counts["carried"] >= 100
    assert counts["malformed"] >= 50
    assert counts["refused"] >= 5


@pytest.mark.parametrize("vector", FILE["carried"], ids=name_of)
def test_carried(vector: dict[str, Any]) -> None:
    want = wanted(vector)
    got = decoded(vector)
    assert same(got, want), f"decoded {got!r}, want {want!r}"
    if vector.get("decode_only"):
        return
    assert encoded(vector, want) == (data_of(vector), [hex_of(b) for b in vector.get("buffers", [])])


@pytest.mark.parametrize("vector", FILE["malformed"], ids=name_of)
def test_malformed(vector: dict[str, Any]) -> None:
    with pytest.raises(CodecError, match=f"^{re.escape(vector['problem'])}$") as caught:
        decoded(vector)
    assert caught.value.path == ""


@pytest.mark.parametrize("vector", FILE["refused"], ids=name_of)
def test_rejected(vector: dict[str, Any]) -> None:
    with pytest.raises(CodecError) as caught:
        encoded(vector, wanted(vector))
    assert (caught.value.path, caught.value.problem) == (vector["path"], vector["problem"])
